"""What the laws share: every op record with its samples, how to run them, and how to say where two
results differ.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft as wf
from weft.ops.define import OPS, Op, installed
from weft.ops.samples import Sample
from weft.types.dtype import bfloat16, float16, float64

Array = np.ndarray[Any, Any]

#: relative and absolute error that a different order of the same operations may cause, by dtype
TOLERANCE = {
    "float64": (1e-12, 1e-12),
    "float32": (3e-5, 3e-6),
    "float16": (4e-3, 4e-3),
    "bfloat16": (4e-2, 4e-2),
}


@dataclass(frozen=True, eq=False)
class Case:
    """One sample of one op."""

    op: Op
    number: int
    sample: Sample

    @property
    def name(self) -> str:
        return f"{self.op.name}-{self.number}"

    def __str__(self) -> str:
        said = [_said(a) for a in self.sample.args]
        said += [f"{k}={v}" for k, v in self.sample.attrs.items()]
        return f"{self.op.name} sample {self.number}: {self.op.name}({', '.join(said)})"


def _said(a: Any) -> str:
    return f"{a.dtype}{list(a.shape)}" if isinstance(a, (np.ndarray, np.generic)) else repr(a)


@cache
def _cases(op: Op) -> tuple[Case, ...]:
    return tuple(Case(op, i, s) for i, s in enumerate(op.samples())) if op.samples else ()


def named() -> dict[str, Op]:
    """The ops that were written down; those that others' gradients derive are not."""
    return {n: op for n, op in sorted(OPS.items()) if not re.search(r"_vjp\d*$", n)}


def records() -> list[Op]:
    """The ops that bring samples, by name."""
    return [op for op in named().values() if op.samples is not None]


def good(op: Op) -> list[Case]:
    """The samples of an op that have a result."""
    return [c for c in _cases(op) if c.sample.error is None]


def bad(op: Op) -> list[Case]:
    """The samples of an op that must raise."""
    return [c for c in _cases(op) if c.sample.error is not None]


def all_good() -> list[Case]:
    return [c for op in records() for c in good(op)]


def each(cases: Iterable[Case], check: Callable[[Case], Any]) -> int:
    """Check every case, then raise one error that names each one that failed. How many there
    were.
    """
    failures, count = [], 0
    for c in cases:
        count += 1
        try:
            check(c)
        except Exception as e:
            where = traceback.extract_tb(e.__traceback__)[-1]
            failures.append(f"{c}\n    {type(e).__name__} at {where.filename}:{where.lineno}: {e}")
    failed(failures, count)
    return count


def failed(failures: Sequence[str], count: int) -> None:
    """Raise if there are failures, showing the first few."""
    if failures:
        shown = "\n".join(failures[:12])
        pytest.fail(f"{len(failures)} of {count} failed:\n{shown}", pytrace=False)


# running


def tensors(sample: Sample) -> list[Any]:
    """The operands: arrays as tensors, Python numbers as they are."""
    return [wf.asarray(a) if isinstance(a, (np.ndarray, np.generic)) else a for a in sample.args]


def run(op: Op, sample: Sample) -> tuple[Any, ...]:
    """The results as tensors."""
    return as_tuple(op(*tensors(sample), **sample.attrs))


def as_tuple(out: Any) -> tuple[Any, ...]:
    return out if isinstance(out, tuple) else (out,)


def forward(case: Case) -> list[Array]:
    """The results as arrays."""
    return [np.array(o.numpy()) for o in run(case.op, case.sample)]


@cache
def cotangent(shape: tuple[int, ...], dtype: Any) -> Array:
    """Numbers of both signs that repeat at no power of two."""
    n = int(np.prod(shape, dtype=np.int64))
    return np.cos(1.0 + np.arange(n)).reshape(shape).astype(dtype)


def differentiable(case: Case) -> bool:
    """Whether the op has a gradient and the sample an operand to differentiate by and a result to
    differentiate.
    """
    if case.op.vjp is None or not any(_floats(a) for a in case.sample.args):
        return False
    return any(o.dtype.is_float for o in run(case.op, case.sample))


def _floats(a: Any) -> bool:
    return isinstance(a, (np.ndarray, np.generic)) and a.dtype in FLOATS


FLOATS = {np.dtype(t) for t in (np.float64, np.float32, np.float16, ml_dtypes.bfloat16)}


def function(
    op: Op, xs: Sequence[Any], attrs: dict[str, Any]
) -> tuple[Callable[..., Any], list[Any]]:
    """The op as a function of its floating operands alone, giving its floating results; and those
    operands.
    """
    floating = [i for i, x in enumerate(xs) if isinstance(x, wf.Tensor) and x.dtype.is_float]

    def f(*given: Any) -> Any:
        full = list(xs)
        for i, g in zip(floating, given, strict=True):
            full[i] = g
        outs = tuple(o for o in as_tuple(op(*full, **attrs)) if o.dtype.is_float)
        return outs[0] if len(outs) == 1 else outs

    return f, [xs[i] for i in floating]


def gradients(
    op: Op, xs: Sequence[Any], attrs: dict[str, Any], seeds: Sequence[Array] | None = None
) -> list[Array]:
    """The cotangents of the floating operands, given those of the floating results (fixed ones if
    not said).
    """
    f, given = function(op, xs, attrs)
    y, pullback = wf.vjp(f, *given)
    if seeds is None:
        seeds = [cotangent(o.shape, o.dtype.np) for o in as_tuple(y)]
    return [np.array(g.numpy()) for g in pullback(*(wf.asarray(s) for s in seeds))]


def backward(case: Case) -> list[Array]:
    """The gradients of a case."""
    return gradients(case.op, tensors(case.sample), case.sample.attrs)


def everything(case: Case) -> list[Array]:
    """Results and, where there are any, gradients."""
    return forward(case) + (backward(case) if differentiable(case) else [])


def forget_plans() -> None:
    """Plan every call anew."""
    for op in OPS.values():
        op.plans.clear()
    installed.eager.known.clear()


def spread(a: Any) -> Any:
    """A tensor of the same values with gaps between them and axes running backwards."""
    a = np.asarray(a)
    wide = np.zeros([2 * n + 1 for n in a.shape], a.dtype)
    view = wide[(*(slice(2 * n - 1, None, -2) if n else slice(0, 0) for n in a.shape), ...)]
    view[...] = a
    if a.dtype == ml_dtypes.bfloat16:  # DLPack of NumPy has no word for it
        return (
            wf.view(wf.from_dlpack(view.view(np.uint16)), wf.bfloat16)
            if hasattr(wf, "view")
            else wf.asarray(a)
        )
    return wf.from_dlpack(view)


def as_float64(sample: Sample) -> Sample | None:
    """The sample in float64, where it has a floating operand; None for one that was made for
    another dtype.
    """
    halves = {float16.np, bfloat16.np}
    arrays = [a for a in sample.args if isinstance(a, np.ndarray)]
    if any(a.dtype in halves for a in arrays) or not any(a.dtype.kind == "f" for a in arrays):
        return None
    args = tuple(
        a.astype(np.float64) if isinstance(a, np.ndarray) and a.dtype.kind == "f" else a
        for a in sample.args
    )
    attrs = {
        k: float64 if k == "dtype" and getattr(v, "is_float", False) else v
        for k, v in sample.attrs.items()
    }
    return Sample(args, attrs, sample.error, sample.smooth)


# comparing


def bits(a: Array) -> Array:
    """The elements as unsigned numbers of their size."""
    a = np.ascontiguousarray(a).reshape(a.shape)
    return a.view(f"u{a.dtype.itemsize}")


def same_bits(got: Sequence[Array], want: Sequence[Array], what: str = "") -> None:
    """Equal shapes, dtypes and bits; else an error that shows the first element that differs."""
    assert len(got) == len(want), f"{what}: {len(got)} arrays, expected {len(want)}"
    for n, (a, b) in enumerate(zip(got, want, strict=True)):
        place = f"{what} array {n}"
        assert (a.shape, a.dtype) == (b.shape, b.dtype), (
            f"{place}: {a.dtype}{list(a.shape)}, expected {b.dtype}{list(b.shape)}"
        )
        different = bits(a) != bits(b)
        if different.any():
            raise AssertionError(f"{place}: {_difference(a, b, different)}")


def differences(got: Sequence[Array], want: Sequence[Array], what: str) -> list[str]:
    """What `same_bits` says, if it says anything."""
    try:
        same_bits(got, want)
    except AssertionError as e:
        return [f"{what}: {e}"]
    return []


def close(got: Array, want: Array, rtol: float, atol: float, what: str = "") -> None:
    """Equal within a tolerance, NaN to NaN; else an error that shows the first element that
    isn't.
    """
    assert got.shape == want.shape, f"{what}: shape {got.shape}, expected {want.shape}"
    a, b = got.astype(np.float64), want.astype(np.float64)
    far = ~np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=True)
    if far.any():
        raise AssertionError(f"{what}: {_difference(got, want.astype(got.dtype), far)}")


def agree(got: Array, want: Any, what: str = "", loosen: float = 1.0) -> None:
    """Equal within the tolerance of the dtype; exactly for integers and bools."""
    want = np.asarray(want)
    if got.dtype not in FLOATS:
        assert got.shape == want.shape, f"{what}: shape {got.shape}, expected {want.shape}"
        same_bits([got], [want.astype(got.dtype)], what)
        return
    with np.errstate(over="ignore"):
        want = want.astype(got.dtype)  # what is out of range is infinite
    rtol, atol = TOLERANCE[got.dtype.name]
    close(got, want, rtol * loosen, atol * loosen, what)


def _difference(a: Array, b: Array, different: Array) -> str:
    at = tuple(int(i) for i in np.argwhere(different)[0])
    digits = 2 * a.dtype.itemsize
    got, want = (f"{x[at]} (0x{int(bits(x)[at]):0{digits}x})" for x in (a, b))
    count = f"{int(different.sum())} of {different.size} elements differ"
    return f"{count}, first at {at}: {got}, expected {want}"
