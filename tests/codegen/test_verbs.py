"""Every verb, for every dtype it takes: NumPy's result, at every lane count, the same bits on every
target.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from kernel_lab import TARGETS, Array, Rules

from weft.ops import scalar as s
from weft.types.dtype import (
    DTYPES,
    DType,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int64,
    uint32,
    uint64,
)

FLOATS = [float64, float32]
INTEGERS = [d for d in DTYPES if d.is_int]
UINT = {64: np.uint64, 32: np.uint32, 16: np.uint16, 8: np.uint8}
EDGES = [
    0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 0.5, -0.5, 1.5, 2.5, 127.5, 128, 255, 256, -129,
    32767.5, 32768, 65504, 65519, 65520, 65521, 65535, 65536, 2.0**31, -(2.0**31),
    -(2.0**31) - 0.5, 2.0**32, 2.0**63, -(2.0**63), 2.0**64,
    1.9e19, 1e20, -1e20, 1e-8, 6e-8, 3e-8, 2.98e-8, 1e-40, 1e-45, 3.39e38, 3.4e38, 1e300, -1e-310,
    8388609.0,
]  # fmt: skip


def to(d: DType) -> Callable[[s.Scalar], s.Scalar]:
    return lambda v: v.cast(d)


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with np.errstate(all="ignore"):
        yield


def values(d: DType, n: int = 700, seed: int = 0) -> Array:
    """Random bits, random sizes and the edges of a dtype; a length no vector divides."""
    rng = np.random.default_rng([seed, d.bits])
    bits = rng.integers(0, 2**64, n, dtype=np.uint64)
    if d is bool_:
        return (bits & 1).astype(bool)
    if d.is_float:
        sizes = rng.standard_normal(n) * np.exp(rng.uniform(-20, 45, n))
        raw = bits.astype(UINT[d.bits]).view(d.np)
        return np.concatenate([raw, sizes.astype(d.np), np.array(EDGES).astype(d.np)])
    sizes = (bits.astype(d.np) >> rng.integers(0, d.bits, n).astype(d.np)).astype(d.np)
    ends = np.iinfo(d.np)
    edges = np.array([ends.max, ends.min, ends.max - 1, 0, 1, 2, 3], d.np)
    return np.concatenate([bits.astype(d.np), sizes, edges, -edges])


def pairs(d: DType) -> tuple[Array, Array]:
    """Two operands: random values, and all pairs of some edges."""
    a, b = values(d), values(d, seed=1)
    some = a[-12:]
    left, right = np.array(list(itertools.product(some, some)), d.np).T
    return np.concatenate([a, left]), np.concatenate([b, right])


def same(got: Array, want: Array) -> Array:
    """Equal, NaN to any NaN, and zeros of one sign."""
    if want.dtype.kind in "iub":
        return got == want
    g, w = got.astype(np.float64), want.astype(np.float64)
    return (np.isnan(g) & np.isnan(w)) | ((g == w) & (np.signbit(g) == np.signbit(w)))


def check(
    cases: dict[str, tuple[Any, ...]], wants: dict[str, tuple[tuple[Array, ...], Array]]
) -> None:
    """Compile `cases` for each target and lane count; compare with NumPy, and the bits with each
    other.
    """
    bits: dict[str, set[bytes]] = {k: set() for k in cases}
    for target, lanes in [
        ("host", 1),
        ("host", 8),
        ("host", 16),
        ("host", 64),
        ("avx2", 16),
        ("sse2", 16),
    ]:
        rules = Rules(cases, TARGETS[target], lanes)
        for name, (args, want) in wants.items():
            got = rules(name, *args)
            assert got.dtype == want.dtype
            wrong = np.flatnonzero(~same(got, want))
            first = wrong[:3]
            assert not len(wrong), (
                f"{name} at {lanes} lanes on {target}: {len(wrong)} wrong, "
                f"{[a[first] for a in args]} gave {got[first]}, not {want[first]}"
            )
            bits[name].add(got.tobytes())
    assert all(len(b) == 1 for b in bits.values()), [k for k, b in bits.items() if len(b) > 1]


def numpy_mulhi(a: Array, b: Array) -> Array:
    bits = a.dtype.itemsize * 8
    u = [x.astype(UINT[bits]).astype(object) for x in (a, b)]
    high = np.array([x * y >> bits for x, y in zip(*u, strict=True)], object)
    return high.astype(UINT[bits]).astype(a.dtype)


def fma_oracle(a: Array, b: Array, c: Array) -> Array:
    """a * b + c with one rounding, by exact rational arithmetic."""
    out = []
    for x, y, z in zip(a.tolist(), b.tolist(), c.tolist(), strict=True):
        if not np.isfinite([x, y]).all():
            out.append(np.float64(x) * np.float64(y) + np.float64(z))
        elif not np.isfinite(z):
            out.append(z)
        elif exact := Fraction(x) * Fraction(y) + Fraction(z):
            out.append(nearest(exact, a.dtype))
        else:  # zeros and their signs
            out.append(0.0 if x and y else x * y + z)
    return np.array(out).astype(a.dtype)


def nearest(x: Any, dtype: Any) -> float:
    """A rational, not 0, rounded to nearest even in a float dtype (as a float64, which may not hold
    it: then infinite).
    """
    digits, least = {np.float64: (53, -1074), np.float32: (24, -149)}.get(dtype.type, (8, -133))
    top = abs(x).numerator.bit_length() - abs(x).denominator.bit_length()
    top -= abs(x) < 2**top if top >= 0 else abs(x) * 2**-top < 1
    unit = max(top + 1 - digits, least)
    scaled = x / 2**unit if unit >= 0 else x * 2**-unit
    biggest = {53: 1024, 24: 128, 8: 128}[digits]
    whole = round(scaled)  # Python rounds ties to even
    if abs(whole) >= 2**digits and unit + digits >= biggest:
        return float("inf") if x > 0 else float("-inf")
    return float(np.ldexp(float(whole), unit)) if whole else (-0.0 if x < 0 else 0.0)


FLOAT_VERBS: dict[str, tuple[int, Callable[..., Any], Callable[..., Any]]] = {
    "add": (2, lambda a, b: a + b, np.add),
    "sub": (2, lambda a, b: a - b, np.subtract),
    "mul": (2, lambda a, b: a * b, np.multiply),
    "div": (2, lambda a, b: a / b, np.divide),
    "neg": (1, lambda a: -a, np.negative),
    "abs": (1, abs, np.abs),
    "min": (2, s.minimum, np.minimum),
    "max": (2, s.maximum, np.maximum),
    "sqrt": (1, s.sqrt, np.sqrt),
    "floor": (1, s.floor, np.floor),
    "ceil": (1, s.ceil, np.ceil),
    "trunc": (1, s.trunc, np.trunc),
    "rint": (1, s.rint, np.rint),
    "copysign": (2, s.copysign, np.copysign),
    "lt": (2, lambda a, b: a < b, np.less),
    "le": (2, lambda a, b: a <= b, np.less_equal),
    "eq": (2, lambda a, b: a.eq(b), np.equal),
    "ne": (2, lambda a, b: a.ne(b), np.not_equal),
    "isnan": (1, s.isnan, np.isnan),
}
INTEGER_VERBS: dict[str, tuple[int, Callable[..., Any], Callable[..., Any]]] = {
    **{
        k: FLOAT_VERBS[k]
        for k in ("add", "sub", "mul", "neg", "abs", "min", "max", "lt", "le", "eq", "ne")
    },
    "floordiv": (2, lambda a, b: a // b, np.floor_divide),
    "mod": (2, lambda a, b: a % b, np.remainder),
    "mulhi": (2, s.mulhi, numpy_mulhi),
    "shl": (2, lambda a, b: a << b, np.left_shift),
    "shr": (2, lambda a, b: a >> b, np.right_shift),
    "and": (2, lambda a, b: a & b, np.bitwise_and),
    "or": (2, lambda a, b: a | b, np.bitwise_or),
    "xor": (2, lambda a, b: a ^ b, np.bitwise_xor),
    "not": (1, lambda a: ~a, np.invert),
    "select": (2, lambda a, b: s.select(a < b, a, b), lambda a, b: np.where(a < b, a, b)),
}
BOOL_VERBS = {
    k: INTEGER_VERBS[k]
    for k in ("and", "or", "xor", "not", "eq", "ne", "lt", "le", "min", "max", "select")
}


def check_verbs(verbs: dict[str, tuple[int, Any, Any]], d: DType) -> None:
    a, b = pairs(d)
    if d.is_int:  # distances a shift meets, and divisors that are small
        a, b = np.concatenate([a, a]), np.concatenate([b, (b % 70).astype(d.np)])
    cases = {k: (rule, *[d] * count) for k, (count, rule, _) in verbs.items()}
    wants = {}
    for name, (count, _, numpy) in verbs.items():
        args = (a, b)[:count]
        wants[name] = (args, np.asarray(numpy(*args)))
    check(cases, wants)


@pytest.mark.parametrize("d", FLOATS, ids=str)
def test_float_verbs(d: DType) -> None:
    check_verbs(FLOAT_VERBS, d)


@pytest.mark.parametrize("d", INTEGERS, ids=str)
def test_integer_verbs(d: DType) -> None:
    check_verbs(INTEGER_VERBS, d)


def test_bool_verbs() -> None:
    check_verbs(BOOL_VERBS, bool_)


@pytest.mark.parametrize("d", FLOATS, ids=str)
def test_fma_rounds_once(d: DType) -> None:
    a, b = pairs(d)
    rng = np.random.default_rng(2)
    near = (
        -(a.astype(np.float64) * b.astype(np.float64))
        * (1 + rng.integers(-2, 3, a.size) * 2.0**-23)
    ).astype(d.np)
    c = np.where(
        rng.integers(0, 2, a.size) == 0, near, values(d, seed=3)[rng.integers(0, 900, a.size)]
    )
    check({"fma": (s.fma, d, d, d)}, {"fma": ((a, b, c), fma_oracle(a, b, c))})


def cast_oracle(x: Array, source: DType, to: DType) -> Array:
    """NumPy's cast, except where it depends on the length of the array or rounds twice."""
    if to is bfloat16 and (source is float64 or (source.is_int and source.bits >= 32)):
        exact = [
            v if not np.isfinite(v) or v == 0 else nearest(Fraction(v), to.np) for v in x.tolist()
        ]
        return np.array(exact, np.float64).astype(np.float32).astype(to.np)
    if to is uint32 and source.is_float:
        return x.astype(np.float64).astype(np.int64).astype(np.uint32)
    return x.astype(to.np)


@pytest.mark.parametrize("source", DTYPES, ids=str)
def test_casts(source: DType) -> None:
    x = values(source)
    targets = [d for d in DTYPES if d is not source]
    cases = {d.short: (to(d), source) for d in targets}
    check(cases, {d.short: ((x,), cast_oracle(x, source, d)) for d in targets})


@pytest.mark.tiny
def test_all_half_floats_survive_float32() -> None:
    bits = np.arange(2**16, dtype=np.uint16)
    for d in (float16, bfloat16):
        x = bits.view(d.np)
        for target in TARGETS.values():
            rules = Rules(
                {
                    "up": (lambda v: v.cast(float32), d),
                    "round": (lambda v, d=d: v.cast(float32).cast(d), d),
                },
                target,
            )
            up = rules("up", x)
            assert same(up, x.astype(np.float32)).all()
            kept = rules("round", x)
            number = ~np.isnan(up)
            assert np.array_equal(kept.view(np.uint16)[number], bits[number])
            assert np.isnan(kept.astype(np.float32)[~number]).all()


@pytest.mark.tiny
def test_a_cast_of_a_wide_float_rounds_once() -> None:
    x = np.array([1 + 2**-11 + 2**-40, 1 + 2**-8 + 2**-40, 65520 - 2**-30, 2**-25 + 2**-70])
    rules = Rules({d.short: (to(d), float64) for d in (float16, bfloat16)})
    assert rules("f16", x).astype(float).tolist() == [1 + 2**-10, 1 + 2**-8, 65504.0, 2**-24]
    assert rules("bf16", x).astype(float)[:2].tolist() == [1.0, 1 + 2**-7]


@pytest.mark.tiny
def test_bits_of_a_float() -> None:
    x = values(float64)
    rules = Rules(
        {
            "there": (lambda v: v.bitcast(int64), float64),
            "back": (lambda v: v.bitcast(uint64).bitcast(float64), float64),
        }
    )
    assert np.array_equal(rules("there", x), x.view(np.int64))
    assert np.array_equal(rules("back", x).view(np.int64), x.view(np.int64))


@pytest.mark.tiny
def test_division_where_machines_trap() -> None:
    least = np.iinfo(np.int32).min
    a = np.array([least, least, 7, -7, 7, 0] * 6, np.int32)
    b = np.array([-1, 0, 0, 2, -2, 0] * 6, np.int32)
    rules = Rules(
        {"div": (lambda x, y: x // y, "i32", "i32"), "mod": (lambda x, y: x % y, "i32", "i32")}
    )
    assert rules("div", a, b)[:6].tolist() == [least, 0, 0, -4, -4, 0]
    assert rules("mod", a, b)[:6].tolist() == [0, 0, 0, 1, -1, 0]


@pytest.mark.tiny
def test_half_floats_only_convert() -> None:
    with pytest.raises(TypeError, match="compute in float32"):
        Rules({"sum": (lambda a, b: a + b, float16, float16)})
