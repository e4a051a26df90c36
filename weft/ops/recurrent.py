"""Cells of recurrent networks: what happens between the products of one time step.

Gates come side by side in one operand, as one product makes them; the gradient hands them back that
way.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from weft.errors import ShapeError
from weft.ops.define import Value
from weft.ops.elementwise import sigmoid, tanh
from weft.ops.joining import concat, stack
from weft.ops.makers import composite
from weft.ops.movement import reshape, slice_
from weft.ops.reduction import narrowed, widened
from weft.ops.samples import Sample, array
from weft.types.dtype import float32, float64


def _split(x: Value, parts: int, like: Value, place: str) -> list[Value]:
    """The parts of the last axis, each as wide as `like`."""
    shape, n = x.type.shape, like.type.shape[-1]
    if shape != (*like.type.shape[:-1], parts * n):
        raise ShapeError(
            place, expected=f"{parts} gates beside each other for {like.type}", got=str(x.type)
        )
    lead = len(shape) - 1
    return [
        slice_(x, starts=(*(0,) * lead, k * n), sizes=like.type.shape, steps=(1,) * len(shape))
        for k in range(parts)
    ]


def _samples(*widths: int) -> Any:
    def make() -> Iterator[Sample]:
        for lead, n, d in [((3,), 5, float32), ((2,), 17, float64), ((), 4, float64)]:
            yield Sample(tuple(array((*lead, w * n), d, seed=i) for i, w in enumerate(widths)))
        if max(widths) > 1:
            shapes = ((3, w * 5 + (w > 1)) for w in widths)
            yield Sample(tuple(array(s, float32) for s in shapes), error=ShapeError)

    return make


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _time_samples() -> Iterator[Sample]:
    for shape, d in [((3, 2, 5), float32), ((4, 3), float64), ((1, 2), float32)]:
        yield Sample((array(shape, d),))
    yield Sample((array((), float32),), error=ShapeError)
    yield Sample((array((0, 3), float32),), error=ShapeError)


@composite(
    "time_steps",
    samples=_time_samples,
    vjp=lambda g, y, x: (lambda: stack(*(g if isinstance(g, tuple) else (g,)), axis=0),),
    reference=lambda x: tuple(x),
)
def time_steps(x: Value) -> tuple[Value, ...]:
    """The slices along the first axis, whose cotangents are put together at once."""
    shape = x.type.shape
    if not shape or not shape[0]:
        raise ShapeError("time_steps", expected="at least one time step", got=str(x.type))
    rest = (0,) * (len(shape) - 1)
    cut = {"sizes": (1, *shape[1:]), "steps": (1,) * len(shape)}
    return tuple(
        reshape(slice_(x, starts=(t, *rest), **cut), shape=shape[1:])
        for t in range(shape[0])  # type: ignore[arg-type]
    )


# LSTM


@composite("lstm_gates", samples=_samples(1, 1, 1, 1, 1))
def lstm_gates(i: Value, f: Value, g: Value, o: Value, c: Value) -> tuple[Value, Value]:
    """c' = sigmoid(f) * c + sigmoid(i) * tanh(g); h' = sigmoid(o) * tanh(c')."""
    wi, wf, wg, wo, wc = (widened(x) for x in (i, f, g, o, c))
    new = sigmoid(wf) * wc + sigmoid(wi) * tanh(wg)
    return narrowed(sigmoid(wo) * tanh(new), c), narrowed(new, c)


@composite("lstm_gates_grad", samples=_samples(1, 1, 1, 1, 1, 1, 1, 1))
def lstm_gates_grad(
    gh: Value, gc: Value, i: Value, f: Value, g: Value, o: Value, c: Value, new: Value
) -> tuple[Value, ...]:
    """The cotangents of the gates and of c."""
    si, sf, so = (sigmoid(widened(x)) for x in (i, f, o))
    tg, tc = tanh(widened(g)), tanh(widened(new))
    dh, wc = widened(gh), widened(c)
    dc = widened(gc) + dh * so * (1.0 - tc * tc)
    outs = (
        dc * tg * si * (1.0 - si),
        dc * wc * sf * (1.0 - sf),
        dc * si * (1.0 - tg * tg),
        dh * tc * so * (1.0 - so),
        dc * sf,
    )
    return tuple(narrowed(x, c) for x in outs)


def _lstm_vjp(g: Any, y: Any, gates: Value, c: Value) -> tuple[Any, ...]:
    *parts, dc = lstm_gates_grad(*g, *_split(gates, 4, c, "lstm_cell"), c, y[1])
    return lambda: concat(*parts, axis=gates.type.ndim - 1), lambda: dc


def _lstm_reference(gates: Any, c: Any) -> Any:
    i, f, g, o = np.split(gates, 4, -1)
    new = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
    return _sigmoid(o) * np.tanh(new), new


@composite("lstm_cell", vjp=_lstm_vjp, samples=_samples(4, 1), reference=_lstm_reference)
def lstm_cell(gates: Value, c: Value) -> tuple[Value, Value]:
    """The new hidden and cell state; the gates are input, forget, cell, output.

    Hochreiter and Schmidhuber, Neural Computation 9(8), 1997.
    """
    return lstm_gates(*_split(gates, 4, c, "lstm_cell"), c)  # type: ignore[no-any-return]


# GRU


@composite("gru_gates", samples=_samples(1, 1, 1, 1, 1, 1, 1))
def gru_gates(xr: Value, xz: Value, xn: Value, hr: Value, hz: Value, hn: Value, h: Value) -> Value:
    """r, z = sigmoid(x + h); n = tanh(xn + r * hn); n + z * (h - n)."""
    r, z = sigmoid(widened(xr) + widened(hr)), sigmoid(widened(xz) + widened(hz))
    n = tanh(widened(xn) + r * widened(hn))
    return narrowed(n + z * (widened(h) - n), h)


@composite("gru_gates_grad", samples=_samples(1, 1, 1, 1, 1, 1, 1, 1))
def gru_gates_grad(
    g: Value, xr: Value, xz: Value, xn: Value, hr: Value, hz: Value, hn: Value, h: Value
) -> tuple[Value, ...]:
    """The cotangents of r, of z, of n, of hn and of h."""
    r, z = sigmoid(widened(xr) + widened(hr)), sigmoid(widened(xz) + widened(hz))
    w = widened(hn)
    n, d = tanh(widened(xn) + r * w), widened(g)
    dn = d * (1.0 - z) * (1.0 - n * n)
    dz = d * (widened(h) - n) * z * (1.0 - z)
    dr = dn * w * r * (1.0 - r)
    return tuple(narrowed(x, h) for x in (dr, dz, dn, dn * r, d * z))


def _gru_vjp(g: Value, y: Value, x: Value, s: Value, h: Value) -> tuple[Any, ...]:
    parts = (*_split(x, 3, h, "gru_cell"), *_split(s, 3, h, "gru_cell"))
    dr, dz, dn, dm, dh = gru_gates_grad(g, *parts, h)
    axis = x.type.ndim - 1
    return (
        lambda: concat(dr, dz, dn, axis=axis),
        lambda: concat(dr, dz, dm, axis=axis),
        lambda: dh,
    )


def _gru_reference(x: Any, s: Any, h: Any) -> Any:
    (xr, xz, xn), (hr, hz, hn) = np.split(x, 3, -1), np.split(s, 3, -1)
    r, z = _sigmoid(xr + hr), _sigmoid(xz + hz)
    n = np.tanh(xn + r * hn)
    return (1 - z) * n + z * h


@composite("gru_cell", vjp=_gru_vjp, samples=_samples(3, 3, 1), reference=_gru_reference)
def gru_cell(x: Value, s: Value, h: Value) -> Value:
    """The new hidden state; the gates, from the input and from the state, are reset, update, new.

    Cho et al., https://arxiv.org/abs/1406.1078.
    """
    return gru_gates(*_split(x, 3, h, "gru_cell"), *_split(s, 3, h, "gru_cell"), h)  # type: ignore[no-any-return]
