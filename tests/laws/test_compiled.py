"""The law of both graphs: compiled equals eager, to the bit, for every op and its gradient."""

from __future__ import annotations

import pytest

import weft as wf
from tests.laws.lab import (
    as_tuple,
    cotangent,
    differentiable,
    each,
    function,
    good,
    records,
    same_bits,
    tensors,
)

OPS = pytest.mark.parametrize("op", records(), ids=lambda op: op.name)


def _forward(case):
    xs = tensors(case.sample)
    places = [i for i, x in enumerate(xs) if isinstance(x, wf.Tensor)]

    def f(*given):
        full = list(xs)
        for i, x in zip(places, given, strict=True):
            full[i] = x
        return case.op(*full, **case.sample.attrs)

    given = [xs[i] for i in places]
    want = as_tuple(f(*given))
    got = as_tuple(wf.compile(f, fallback=False)(*given))
    same_bits([a.numpy() for a in got], [b.numpy() for b in want])


def _whole(case):
    """Forward, backward and a further op in one program."""
    f, xs = function(case.op, tensors(case.sample), case.sample.attrs)

    def step(*given):
        y, pullback = wf.vjp(f, *given)
        seeds = [wf.asarray(cotangent(o.shape, o.dtype.np)) for o in as_tuple(y)]
        return y, pullback(*seeds)

    want = step(*xs)
    got = wf.compile(step, fallback=False)(*xs)
    same_bits(_flat(got), _flat(want))


def _flat(out):
    return [x.numpy() for x in (*as_tuple(out[0]), *out[1])]


@OPS
def test_compiled_op_gives_the_bits_of_eager(op):
    each(good(op), _forward)


@OPS
def test_compiled_gradient_gives_the_bits_of_eager(op):
    each([c for c in good(op) if differentiable(c)], _whole)
