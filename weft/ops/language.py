"""The ops as the text form and the verifier need them."""

from __future__ import annotations

from typing import Any

from weft.ir import Function, Module
from weft.ir.language import Language
from weft.ir.parser import parse as parse_text
from weft.ir.verify import verify as verify_program
from weft.ops.contraction import Contraction, Window
from weft.ops.define import OPS, Op, Types, constant, inferred, parameter, result


def _infer(
    op: Op, types: tuple[Any, ...], attrs: dict[str, Any], regions: tuple[Function, ...]
) -> Types:
    if op is constant or op is parameter:
        out: Types = attrs["type"]  # the class of a Python number, too
        return out
    return inferred(op, types, {**attrs, "regions": regions} if regions else attrs)


LANGUAGE = Language(
    ops=OPS,
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
