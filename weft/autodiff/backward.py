"""`loss.backward()`: gradients into the leaves."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.autodiff.tape import Leaf, pull, zeros_for
from weft.buffer import Buffer, Layout
from weft.buffer.interchange import copy_from_numpy
from weft.errors import DTypeError, GradError, ShapeError
from weft.ops.creation import full
from weft.ops.define import Value, capturing, fresh, installed
from weft.types import TensorType
from weft.types.size import is_symbolic


def constant(value: float, type_: TensorType) -> Value:
    """A tensor of one number everywhere; one element in memory."""
    if any(map(is_symbolic, type_.shape)):
        spread: Value = full(value, shape=type_.shape, dtype=type_.dtype)
        return spread
    one = copy_from_numpy(np.asarray(value, type_.dtype.np))
    made: Value = fresh(Buffer(Layout(type_, (0,) * type_.ndim), one.address, one.owner))
    return made


zeros_for.append(lambda type_: constant(0.0, type_))


def start(y: Value, g: Any, place: str) -> Value:
    """The cotangent to begin with: the one given, or 1 for a single element."""
    if g is None:
        if y.type.size != 1:
            raise ShapeError(
                place,
                expected="one element to differentiate, or a gradient to start from",
                got=str(y.type),
                hint="reduce to a scalar, e.g. .sum(), or pass grad=",
            )
        return constant(1.0, y.type)
    given = g if isinstance(g, Value) else installed.lift(g)
    if given.type is not y.type:
        raise ShapeError(place, expected=f"a gradient of type {y.type}", got=str(given.type))
    return given


def backward(
    y: Value, g: Any = None, *, retain_graph: Any = False, create_graph: Any = False
) -> None:
    """Add the gradient of `y` to the `grad` of every leaf it was computed from."""
    if y.note is None:
        raise GradError(
            "backward()",
            expected="a tensor computed from one with requires_grad=True",
            got=f"{y.type} with no history",
            hint="set requires_grad=True on inputs or parameters, and check that no_grad() is not "
            "active",
        )
    if retain_graph.__class__ is not bool or create_graph.__class__ is not bool:
        got = f"retain_graph={retain_graph!r}, create_graph={create_graph!r}"
        raise DTypeError("backward()", expected="True or False", got=got)
    found = pull(
        [(y.note, start(y, g, "backward()"))],
        retain=retain_graph or create_graph,
        create_graph=create_graph,
    )
    for leaf, cotangent in found.items():
        if isinstance(leaf, Leaf):
            old = grad_of(leaf)
            set_grad(leaf, cotangent if old is None else old + cotangent)


def grad_of(leaf: Leaf) -> Value | None:
    """The gradient a leaf holds."""
    return leaf.grad if capturing.now is None else capturing.now.read_grad(leaf)


def set_grad(leaf: Leaf, grad: Value | None) -> None:
    """Give a leaf another gradient."""
    if capturing.now is not None:
        capturing.now.write_grad(leaf)
    leaf.grad = grad
