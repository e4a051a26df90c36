"""Every op by its own name, for source that `to_python` wrote.

Most of a program is said by the functions users write. What only passes and gradients make is
called by the name of its op: `ops.softmax_grad(g, y, axis=-1)`. An op with regions takes them as
functions whose parameters are annotated with types, as in the text form of programs.

>>> import weft as wf
>>> from weft.deploy.python.by_name import ops
>>> ops.add(wf.tensor([1.0, 2.0]), 1.0)
tensor([2., 3.])
>>> ops.data("f32[3]", "AACAPw==")
tensor([1., 1., 1.])
"""

from __future__ import annotations

import base64
import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from weft.capture.source import operators
from weft.control.region import Region, close
from weft.ir import Function
from weft.ir.language import WEAK
from weft.ops.define import Value, as_node
from weft.ops.language import LANGUAGE, parse
from weft.tensor.creation import tensor


class _Ops:
    """Ops and records by name."""

    def __getattr__(self, name: str) -> Any:
        if name in LANGUAGE.records:
            return LANGUAGE.records[name]
        try:
            return partial(_call, LANGUAGE.ops[name])
        except KeyError:
            raise AttributeError(f"there is no op {name}") from None

    def type(self, text: str) -> Any:
        """A type by its text: `f32[3, 4]`, or `float` for a Python number."""
        return type_of(text)

    def data(self, type_: str, elements: str) -> Value:
        """A constant: its elements in row-major order as base64, or the one that all are."""
        known = type_of(type_)
        flat = np.frombuffer(base64.b64decode(elements), known.dtype.np)
        array = flat.reshape(known.shape) if flat.size == known.size else flat
        out: Value = tensor(np.broadcast_to(array, known.shape))
        return out


ops = _Ops()


def type_of(text: str) -> Any:
    """The type a text says."""
    if text in WEAK:
        return WEAK[text]
    return parse(f"fn f(%x: {text}) -> {text} {{ return %x }}").entry.params[0].type


def _call(op: Any, *xs: Any, regions: Sequence[Callable[..., Any]] = (), **attrs: Any) -> Any:
    if regions:
        attrs["regions"] = tuple([_region(f) for f in regions])
    return op(*xs, **attrs)


def _region(f: Callable[..., Any]) -> Function:
    """A Python function as the closed function of a region."""
    said = inspect.signature(f).parameters.values()
    region = Region()
    params = [region.parameter(type_of(p.annotation)) for p in said]
    with region:
        out = operators.call(f, *params)
        results = [as_node(x) for x in (out if isinstance(out, tuple) else (out,))]
    (made,), _ = close(f.__name__, [(region.nodes, [p.data for p in params], results)])
    return made
