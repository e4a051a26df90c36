"""The scalar math library against true values: mpmath everywhere, and densely in float32 against
float64.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np
import pytest
import scipy.special as sp
from kernel_lab import TARGETS, Array, Lab, Rules
from ulp import ulp, ulps

from weft.ops import math as m
from weft.types.dtype import DType, float32, float64

pytestmark = pytest.mark.xdist_group("math")  # the worst errors are one table
FLOATS = (float32, float64)
worst: dict[str, dict[str, float]] = {}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with np.errstate(all="ignore"), mp.workprec(160):
        yield


@pytest.fixture(scope="module", autouse=True)
def _table() -> Iterator[None]:
    yield
    print("\nworst error found, in ulp")
    for name, found in sorted(worst.items()):
        print(f"  {name:12s}" + "".join(f"  {d} {e:5.3f}" for d, e in sorted(found.items())))


@dataclass(frozen=True)
class Known:
    """A function's true value, where to look, and a NumPy version in float64."""

    true: Callable[[Any], Any]
    numpy: Callable[[Any], Any]
    low: float = -np.inf
    high: float = np.inf
    near: tuple[float, ...] = (0.0,)
    bound: float = 2.0


def clipped(f: Callable[[Any], Any], below: float, above: float) -> Callable[[Any], Any]:
    """`f` where numbers stay in mpmath's reach, the limits beyond."""
    return lambda x: mp.mpf(below) if x < -1100 else mp.mpf(above) if x > 1100 else f(x)


def positive(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: mp.nan if x < 0 else -mp.inf if x == 0 else f(x)


def unit(f: Callable[[Any], Any], end: Any = None) -> Callable[[Any], Any]:
    """`f` on -1..1, with `end` times the sign at the ends if given, NaN beyond."""

    def true(x: Any) -> Any:
        if abs(x) > 1:
            return mp.nan
        return f(x) if end is None or abs(x) < 1 else mp.sign(x) * end

    return true


def softplus(x: Any) -> Any:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def true_softplus(x: Any) -> Any:
    return mp.mpf(0) if x < -1100 else x if x > 1100 else mp.log1p(mp.exp(x))


INF, PI = np.inf, np.pi
UNARY: dict[str, Known] = {
    "exp": Known(clipped(mp.exp, 0, INF), np.exp, -760, 720),
    "exp2": Known(clipped(lambda x: mp.mpf(2) ** x, 0, INF), np.exp2, -1080, 1030),
    "expm1": Known(clipped(mp.expm1, -1, INF), np.expm1, -40, 720),
    "log": Known(positive(mp.log), np.log, 0, 10, (1.0,)),
    "log2": Known(positive(lambda x: mp.log(x) / mp.ln2), np.log2, 0, 10, (1.0,)),
    "log10": Known(positive(lambda x: mp.log(x) / mp.ln10), np.log10, 0, 10, (1.0,)),
    "log1p": Known(lambda x: mp.log1p(x) if x > -1 else -mp.inf if x == -1 else mp.nan,
                   np.log1p, -1, 5, (0.0, -1.0)),
    "sin": Known(mp.sin, np.sin, -100, 100, (0.0, PI, PI / 2, 355.0)),
    "cos": Known(mp.cos, np.cos, -100, 100, (0.0, PI, PI / 2, 5.319372648326541e255)),
    "tan": Known(mp.tan, np.tan, -100, 100, (0.0, PI, PI / 2, 5.319372648326541e255)),
    "asin": Known(unit(mp.asin), np.arcsin, -1, 1, (0.0, 1.0, -1.0, 0.5)),
    "acos": Known(unit(mp.acos), np.arccos, -1, 1, (0.0, 1.0, -1.0, 0.5)),
    "atan": Known(mp.atan, np.arctan, -4, 4, (0.0, 1.0, 0.41421, 2.41421)),
    "sinh": Known(clipped(mp.sinh, -INF, INF), np.sinh, -712, 712),
    "cosh": Known(clipped(mp.cosh, INF, INF), np.cosh, -712, 712),
    "tanh": Known(clipped(mp.tanh, -1, 1), np.tanh, -20, 20, (0.0, 0.55)),
    "asinh": Known(mp.asinh, np.arcsinh, -4, 4),
    "acosh": Known(lambda x: mp.nan if x < 1 else mp.acosh(x), np.arccosh, 1, 4, (1.0,)),
    "atanh": Known(unit(mp.atanh, mp.inf), np.arctanh, -1, 1, (0.0, 1.0, -1.0)),
    "erf": Known(clipped(mp.erf, -1, 1), sp.erf, -6.5, 6.5, (0.0, 0.95, 1.0)),
    "erfc": Known(clipped(mp.erfc, 2, 0), sp.erfc, -4, 28, (0.0, 0.5)),
    "erfinv": Known(unit(mp.erfinv, mp.inf), sp.erfinv, -1, 1, (0.0, 1.0, -1.0)),
    "lgamma": Known(mp.loggamma, sp.gammaln, 0, 12, (1.0, 2.0, 1e300)),
    "digamma": Known(mp.digamma, sp.digamma, 0, 12, (1.0, 2.0, 1.4616321449683623)),
    "sigmoid": Known(clipped(lambda x: 1 / (1 + mp.exp(-x)), 0, 1), sp.expit, -760, 50),
    "softplus": Known(true_softplus, softplus, -760, 50),
    "log_sigmoid": Known(lambda x: -true_softplus(-x), lambda x: -softplus(-x), -50, 760),
    "rsqrt": Known(lambda x: 1 / mp.sqrt(x) if x > 0 else mp.nan, lambda x: 1 / np.sqrt(x), 0, 10),
    "cbrt": Known(lambda x: mp.sign(x) * mp.cbrt(abs(x)), np.cbrt, -10, 10),
    "reciprocal": Known(lambda x: 1 / x, np.reciprocal, -10, 10, bound=0.5),
}  # fmt: skip
SLOW = {"erfinv": 250, "digamma": 500, "lgamma": 500}  # mpmath takes a millisecond for one value
POSITIVE = ("lgamma", "digamma")  # the other half of the line has a test of its own


def points(known: Known, d: DType, n: int) -> Array:
    """Random bits, every size, the function's own range, and close to where it is hard."""
    rng = np.random.default_rng(7)
    raw = rng.integers(0, 2**63, n, dtype=np.int64).astype(f"u{d.itemsize}").view(d.np)
    exponents = np.linspace(-149 if d is float32 else -1074, 128 if d is float32 else 1024, n)
    sizes = np.ldexp(rng.uniform(0.5, 1, n), exponents.astype(int)) * rng.choice([-1, 1], n)
    inside = rng.uniform(max(known.low, -1e3), min(known.high, 1e3), n)
    normal = rng.standard_normal(n)
    close = [v * (1 + k * np.finfo(d.np).eps) for v in known.near for k in range(-3, 4)]
    around = [
        v + rng.choice([-1, 1], n // 4) * 10.0 ** rng.uniform(-17, 0, n // 4) for v in known.near
    ]
    out = np.concatenate([raw, sizes, inside, normal, close, *around]).astype(d.np)
    return out[np.isfinite(out)]


def note(name: str, d: DType, error: float) -> None:
    found = worst.setdefault(name, {})
    found[d.short] = max(error, found.get(d.short, 0.0))


def check_unary(name: str, d: DType, n: int) -> None:
    known = UNARY[name]
    x = points(known, d, SLOW.get(name, n))
    if name in POSITIVE:
        x = np.abs(x)
    x = x[x != 0]
    got = Lab(getattr(m, name), d)(x)
    with mp.workprec(1250 if name in ("sin", "cos", "tan") else 160):  # 2**1024 modulo pi
        errors = [ulp(g, known.true(mp.mpf(float(v)))) for v, g in zip(x, got, strict=True)]
    at = int(np.argmax(errors))
    note(name, d, errors[at])
    assert errors[at] <= known.bound, f"{name}({x[at]!r}) gave {got[at]!r}: {errors[at]} ulp"


@pytest.mark.parametrize("d", FLOATS, ids=str)
@pytest.mark.parametrize("name", UNARY)
def test_true_value(name: str, d: DType) -> None:
    check_unary(name, d, 800)


@pytest.mark.tiny
@pytest.mark.parametrize("name", ["exp", "log", "tanh", "erf", "sigmoid", "sin", "log1p", "expm1"])
def test_true_value_of_the_common_ones(name: str) -> None:
    check_unary(name, float32, 60)


#: where SciPy is not followed: digamma has no limit at -inf, C has lgamma(-inf) = inf, -0.0 is odd
BETTER = {"digamma": (3, np.nan), "lgamma": (3, np.inf), "erfinv": (1, -0.0)}


@pytest.mark.tiny
@pytest.mark.parametrize("d", FLOATS, ids=str)
def test_special_values_are_numpys(d: DType) -> None:
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 2.0, -2.0], d.np)
    rules = Rules({k: (getattr(m, k), d) for k in UNARY}, lanes=8)
    for name, known in UNARY.items():
        got, want = rules(name, x), known.numpy(x.astype(np.float64))
        if name in BETTER:
            at, value = BETTER[name]
            want[at] = value
        edge = ~np.isfinite(want) | (want == 0)
        ok = (np.isnan(got) & np.isnan(want)) | (
            (got == want) & (np.signbit(got) == np.signbit(want))
        )
        assert ok[edge].all(), (
            f"{name} of {x[edge & ~ok]} gave {got[edge & ~ok]}, not {want[edge & ~ok]}"
        )


@pytest.mark.parametrize("name", [n for n in UNARY if n != "reciprocal"])
def test_float32_densely(name: str) -> None:
    known = UNARY[name]
    rng = np.random.default_rng(11)
    n = 400_000
    raw = rng.integers(0, 2**32, n, dtype=np.uint32).view(np.float32)
    inside = rng.uniform(max(known.low, -200), min(known.high, 200), n)
    around = np.concatenate([v + 0.3 * rng.standard_normal(n // 4) for v in known.near if v < 1e6])
    x = np.concatenate([raw, inside, around]).astype(np.float32)
    x = np.abs(x) if name in POSITIVE else x
    got = Lab(getattr(m, name), float32)(x)
    errors = ulps(got, known.numpy(x.astype(np.float64)))
    at = int(np.argmax(errors))
    note(name, float32, errors[at])
    assert errors[at] <= known.bound, f"{name}({x[at]!r}) gave {got[at]!r}: {errors[at]} ulp"


@pytest.mark.parametrize("d", FLOATS, ids=str)
@pytest.mark.parametrize("name", POSITIVE)
def test_negative_axis_of_gamma(name: str, d: DType) -> None:
    """float32 is right there too; float64 within 2**-49 of the larger of 1 and the result."""
    rng = np.random.default_rng(3)
    zeros = [-2.4570247, -2.7476826, -3.1435809, -3.9552942, -0.504083, -1.5734984, -2.6107209]
    x = -np.concatenate([rng.uniform(0, 30, 300), 10.0 ** rng.uniform(-30, 0, 50)]).astype(d.np)
    x = np.concatenate([x, np.array(zeros, d.np)])
    got = Lab(getattr(m, name), d)(x)

    def true(v: Any) -> Any:
        if name == "digamma":
            return mp.digamma(v)
        return mp.log(mp.pi / abs(mp.sin(mp.pi * v))) - mp.loggamma(1 - v)

    want = [true(mp.mpf(float(v))) for v in x]
    if d is float32:
        assert max(ulp(g, w) for g, w in zip(got, want, strict=True)) <= 2
    else:
        error = [abs(mp.mpf(float(g)) - w) / max(1, abs(w)) for g, w in zip(got, want, strict=True)]
        assert max(error) < 2.0**-49


BINARY = {
    "pow": (np.power, lambda x, y: mp.power(x, y)),
    "atan2": (np.arctan2, lambda y, x: mp.atan2(y, x)),
    "hypot": (np.hypot, lambda x, y: mp.hypot(x, y)),
    "logaddexp": (np.logaddexp, lambda x, y: mp.log(mp.exp(x) + mp.exp(y))),
}
SPECIAL = [
    0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 2.0, -2.0, 3.0, -3.0, 0.5, -0.5, -2.5,
    1e-40, -1e-40, 3e38, -3e38, 1e20,
    9007199254740993.0, 4503599627370497.5, 5e-324, 1.7e308, -1.7e308, 1e-200, 1e200, 0.1, -0.1,
    3.3,
]  # fmt: skip


def special_pairs(d: DType) -> tuple[Array, Array]:
    grid = np.array(list(itertools.product(SPECIAL, SPECIAL))).astype(d.np)
    return grid[:, 0].copy(), grid[:, 1].copy()


def random_pairs(name: str, d: DType, n: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(5)
    x, y = rng.standard_normal((2, n)) * np.exp(rng.standard_normal((2, n)) * 2)
    if name == "pow":
        wide = 3 if d is float32 else 9
        x = np.abs(
            np.concatenate(
                [x, np.exp(rng.standard_normal(n) * 0.01), np.exp(rng.standard_normal(n) * 30)]
            )
        )
        y = np.concatenate([y, rng.standard_normal(n) * 10.0 ** (wide / 2), rng.standard_normal(n)])
    elif name == "logaddexp":
        x = np.abs(x)  # near a result of 0 only the larger argument is a measure
    else:
        raw = rng.integers(0, 2**63, (2, n), dtype=np.int64).astype(f"u{d.itemsize}").view(d.np)
        x, y = np.concatenate([x, raw[0]]), np.concatenate([y, raw[1]])
    x, y = x.astype(d.np), y.astype(d.np)
    fine = np.isfinite(x) & np.isfinite(y)
    return x[fine], y[fine]


@pytest.mark.parametrize("d", FLOATS, ids=str)
@pytest.mark.parametrize("name", BINARY)
def test_true_value_of_two(name: str, d: DType) -> None:
    numpy, true = BINARY[name]
    lab = Lab(getattr(m, name), d, d)
    x, y = random_pairs(name, d, 1200)
    got = lab(x, y)
    errors = [
        ulp(g, true(mp.mpf(float(a)), mp.mpf(float(b)))) for a, b, g in zip(x, y, got, strict=True)
    ]
    at = int(np.argmax(errors))
    note(name, d, errors[at])
    assert errors[at] <= 2, f"{name}({x[at]!r}, {y[at]!r}) gave {got[at]!r}: {errors[at]} ulp"
    x, y = special_pairs(d)
    got, want = lab(x, y), numpy(x.astype(np.float64), y.astype(np.float64)).astype(d.np)
    close = np.isclose(got, want, rtol=4 * np.finfo(d.np).eps, atol=0) & (
        np.signbit(got) == np.signbit(want)
    )
    wrong = ~close & ~(np.isnan(got) & np.isnan(want))
    assert not wrong.any(), list(zip(x[wrong], y[wrong], got[wrong], want[wrong], strict=True))[:5]


EXACT = {
    "fmod": np.fmod,
    "remainder": np.remainder,
    "floor_divide": np.floor_divide,
    "nextafter": np.nextafter,
}


@pytest.mark.tiny
@pytest.mark.parametrize("d", FLOATS, ids=str)
def test_exact_functions_are_numpys(d: DType) -> None:
    rng = np.random.default_rng(9)
    n = 20_000
    raw = rng.integers(0, 2**64, (2, n), dtype=np.uint64).astype(f"u{d.itemsize}").view(d.np)
    plain = rng.standard_normal((2, n)) * np.exp(3 * rng.standard_normal((2, n)))
    whole = rng.integers(-50, 50, (2, n))
    pairs = [raw, plain, whole, special_pairs(d), (raw[0], raw[0] * d.np.type(1.001))]
    x, y = (np.concatenate([np.asarray(p[i]).astype(d.np) for p in pairs]) for i in (0, 1))
    rules = Rules({k: (getattr(m, k), d, d) for k in EXACT}, lanes=8)
    for name, numpy in EXACT.items():
        got, want = rules(name, x, y), numpy(x, y)
        ok = (np.isnan(got) & np.isnan(want)) | (
            (got == want) & (np.signbit(got) == np.signbit(want))
        )
        assert ok.all(), (name, x[~ok][:3], y[~ok][:3], got[~ok][:3], want[~ok][:3])


@pytest.mark.tiny
@pytest.mark.parametrize("d", FLOATS, ids=str)
def test_classes_of_floats(d: DType) -> None:
    x = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, -np.nan, 1e-40, -1e-40], d.np)
    rules = Rules(
        {k: (getattr(m, k), d) for k in ("signbit", "isinf", "isfinite", "sign")}, lanes=8
    )
    for name in ("signbit", "isinf", "isfinite"):
        assert np.array_equal(rules(name, x), getattr(np, name)(x))
    assert np.array_equal(rules("sign", x), np.sign(x), equal_nan=True)


@pytest.mark.parametrize("d", FLOATS, ids=str)
def test_same_bits_on_every_target(d: DType) -> None:
    rng = np.random.default_rng(13)
    raw = rng.integers(0, 2**64, 300, dtype=np.uint64).astype(f"u{d.itemsize}").view(d.np)
    x = np.concatenate(
        [raw, (3 * rng.standard_normal(301)).astype(d.np), np.array(SPECIAL).astype(d.np)]
    )
    y = np.roll(x, 7)
    one = {k: (getattr(m, k), d) for k in UNARY}
    two = {k: (getattr(m, k), d, d) for k in (*BINARY, *EXACT)}
    seen: dict[str, set[bytes]] = {k: set() for k in (*one, *two)}

    def bits(a: Array) -> bytes:
        return np.where(np.isnan(a), d.np.type(np.nan), a).tobytes()  # which NaN comes out is open

    for target, lanes in [("host", 1), ("host", 16), ("avx2", 8), ("sse2", 4)]:
        rules = Rules(one | two, TARGETS[target], lanes)
        for name in one:
            seen[name].add(bits(rules(name, x)))
        for name in two:
            seen[name].add(bits(rules(name, x, y)))
    assert not [k for k, found in seen.items() if len(found) > 1]
