"""Laws of values: what every op gives, for every sample its record brings."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.laws.lab import agree, bits, cases, run, tensors
from weft.errors import WeftError
from weft.ops.define import OPS, types_of

GOOD = cases(lambda op, s: s.error is None)


def test_every_record_brings_samples():
    without = [op.name for op in OPS.values() if op.samples is None and not op.name.endswith("_vjp")]
    assert without == ["constant", "parameter", "result"], without
    print(f"\n{len(OPS)} op records, {len(GOOD)} samples")


@pytest.mark.parametrize("op, sample", GOOD)
def test_type_rule_agrees_with_the_kernel(op, sample):
    inferred = op.infer(*types_of(tuple(tensors(sample))), **sample.attrs)
    inferred = inferred if isinstance(inferred, tuple) else (inferred,)
    for out, type_ in zip(run(op, sample), inferred, strict=True):
        assert out.type is type_


@pytest.mark.parametrize("op, sample", cases(lambda op, s: s.error is None and op.reference is not None))
def test_value_agrees_with_the_reference(op, sample):
    wide = [
        a.astype(np.float64) if isinstance(a, np.ndarray) and a.dtype.kind in "fV" and a.dtype.itemsize < 8 else a
        for a in sample.args
    ]
    with np.errstate(all="ignore"):
        want = op.reference(*wide, **sample.attrs)
    for got, w in zip(run(op, sample), want if isinstance(want, tuple) else (want,), strict=True):
        agree(got, w)


@pytest.mark.parametrize("op, sample", cases(lambda op, s: s.error is not None))
def test_bad_sample_raises_the_named_error(op, sample):
    with pytest.raises(sample.error) as caught:
        run(op, sample)
    assert isinstance(caught.value, WeftError)


@pytest.mark.parametrize("op, sample", GOOD)
def test_strided_operands_give_the_same_bits(op, sample):
    want = [bits(o) for o in run(op, sample)]

    def spread(a):
        """The same values with gaps between them and axes running backwards."""
        wide = np.zeros([2 * n + 1 for n in a.shape], a.dtype)
        view = wide[(*(slice(2 * n - 1, None, -2) if n else slice(0, 0) for n in a.shape), ...)]
        view[...] = a
        return wf.from_dlpack(view) if a.dtype.kind != "V" and a.dtype.name != "bfloat16" else wf.asarray(a)

    xs = [spread(np.asarray(a)) if isinstance(a, (np.ndarray, np.generic)) else a for a in sample.args]
    got = op(*xs, **sample.attrs)
    assert [bits(o) for o in (got if isinstance(got, tuple) else (got,))] == want


def test_thread_count_changes_no_bit():
    before = wf.get_num_threads()
    try:
        found = {}
        for n in (1, 2, 3, 7):
            wf.set_num_threads(n)
            found[n] = [
                (case.id, b"".join(bits(o) for o in run(*case.values))) for case in GOOD
            ]
    finally:
        wf.set_num_threads(before)
    for n in (2, 3, 7):
        different = [a[0] for a, b in zip(found[1], found[n], strict=True) if a != b]
        assert not different, f"{n} threads differ from 1 in {different}"
