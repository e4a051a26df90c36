"""Laws of values: what every op gives, for every sample its record brings."""

from __future__ import annotations

import numpy as np
import pytest

from tests.laws.lab import (
    FLOATS,
    agree,
    all_good,
    bad,
    each,
    forward,
    good,
    named,
    records,
    run,
    same_bits,
    spread,
    tensors,
)
from weft.errors import WeftError
from weft.ops.define import types_of

EVERY = pytest.mark.parametrize("op", records(), ids=lambda op: op.name)


@pytest.mark.tiny
def test_every_record_brings_samples():
    without = {n for n, op in named().items() if op.samples is None}
    assert without == {"constant", "parameter", "result"} | {
        "cond",
        "host",
        "while",
        "while_grad",
        "call",
        "recursion",
        "put",
        "get",
    }
    assert all(good(op) for op in records())
    print(f"\n{len(records())} op records, {len(all_good())} samples")


def _type_rule(case):
    inferred = case.op.infer(*types_of(tuple(tensors(case.sample))), **case.sample.attrs)
    inferred = inferred if isinstance(inferred, tuple) else (inferred,)
    for out, type_ in zip(run(case.op, case.sample), inferred, strict=True):
        assert out.type is type_, f"{out.type}, inferred {type_}"


@EVERY
def test_type_rule_agrees_with_the_kernel(op):
    each(good(op), _type_rule)


def _reference(case):
    """The oracle computes in float64, so that only one side rounds."""
    wide = [
        a.astype(np.float64) if isinstance(a, np.ndarray) and a.dtype in FLOATS else a
        for a in case.sample.args
    ]
    with np.errstate(all="ignore"):
        want = case.op.reference(*wide, **case.sample.attrs)
    for got, w in zip(forward(case), want if isinstance(want, tuple) else (want,), strict=True):
        agree(got, w)


@pytest.mark.parametrize("op", [op for op in records() if op.reference], ids=lambda op: op.name)
def test_value_agrees_with_the_reference(op):
    each(good(op), _reference)


def _raises(case):
    with pytest.raises(case.sample.error) as caught:
        run(case.op, case.sample)
    assert isinstance(caught.value, WeftError)


@pytest.mark.tiny
def test_bad_samples_raise_the_named_error():
    assert each((c for op in records() for c in bad(op)), _raises) > 50


def _strided(case):
    xs = [spread(a) if isinstance(a, (np.ndarray, np.generic)) else a for a in case.sample.args]
    got = case.op(*xs, **case.sample.attrs)
    same_bits([o.numpy() for o in (got if isinstance(got, tuple) else (got,))], forward(case))


@EVERY
def test_strided_operands_give_the_same_bits(op):
    each(good(op), _strided)
