"""The ops as the text form and the verifier need them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from weft.ir import Function, Module
from weft.ir.language import Language
from weft.ir.parser import parse as parse_text
from weft.ir.verify import verify as verify_program
from weft.ops.contraction import Contraction, Window
from weft.ops.cotangent import FORMULAS
from weft.ops.define import OPS, Op, Types, constant, inferred, parameter, result
from weft.ops.makers import later


def _infer(
    op: Op, types: tuple[Any, ...], attrs: dict[str, Any], regions: tuple[Function, ...]
) -> Types:
    if op is constant or op is parameter:
        out: Types = attrs["type"]  # the class of a Python number, too
        return out
    return inferred(op, types, {**attrs, "regions": regions} if regions else attrs)


class _Names(Mapping[str, Op]):
    """The ops by name. Gradients derived from other ops are made when they are asked for: a text
    may name one that this process has not met.
    """

    def __getitem__(self, name: str) -> Op:
        found = OPS.get(name) or _derived(name)
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(OPS)

    def __len__(self) -> int:
        return len(OPS)


def _derived(name: str) -> Op | None:
    if name in FORMULAS:
        FORMULAS[name].make()
        return OPS.get(name)
    said = re.fullmatch(r"(.+)_vjp([1-9]?)", name)
    base = said and (OPS.get(said[1]) or _derived(said[1]))
    if not base or not said or not hasattr(base.vjp, "derived"):
        return None
    assert base.body is not None
    return later.derived(base.name, base.body, int(said[2] or 1))


LANGUAGE = Language(
    ops=_Names(),
    infer=_infer,
    parameter=parameter,
    result=result,
    constant=constant,
    records={"Contraction": Contraction, "Window": Window},
)


def parse(text: str, file: str = "<text>") -> Module:
    """The program that a text says, checked."""
    return parse_text(text, LANGUAGE, file)


def verify(program: Function | Module) -> None:
    """Raise ProgramError unless every node follows its op's rule."""
    verify_program(program, LANGUAGE)
