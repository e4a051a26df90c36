"""Bad arguments, made at random from a seed: what a caller might pass by mistake or on purpose."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np

import weft as wf
from weft.types import DTYPES

#: sizes, axes, steps: none of them a size that a test machine has time for
INTS = (
    -(2**100), -(2**63) - 1, -(2**63), -(2**40), -(2**31), -9, -3, -2, -1, 0, 1, 2, 3, 4, 7, 33,
    2**33, 2**40, 2**61, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 2**100,
)  # fmt: skip
FLOATS = (math.nan, math.inf, -math.inf, 0.0, -0.0, 0.5, 1.0, 2.0, -1.5, 1e300, -1e308, 5e-324)
STRINGS = ("", "x", "mean", "same", "ij,jk->ik", "float32", "\0", "é" * 50, "->", "cuda:0")


class Source(random.Random):
    """Random choices, of three common dtypes and one other: every dtype makes kernels of its own,
    and compiling them is most of what calls that turn out to be fine cost.
    """

    def __init__(self, seed: str) -> None:
        super().__init__(seed)
        self.dtypes = (*[wf.float32] * 5, *[wf.int64] * 3, *[wf.bool] * 2, self.choice(DTYPES))


class Odd:
    """An object that is none of what is wanted."""

    def __repr__(self) -> str:
        return "Odd()"


def _endless() -> list[Any]:
    out: list[Any] = []
    out.append(out)
    return out


def _deep(depth: int = 200) -> list[Any]:
    out: list[Any] = [1.0]
    for _ in range(depth):
        out = [out]
    return out


_STRANGE: tuple[Callable[[], Any], ...] = (
    lambda: None,
    lambda: Odd(),
    lambda: 1j,
    lambda: b"bytes",
    list,
    lambda: (),
    dict,
    lambda: {"a": 1},
    lambda: {1, 2},
    lambda: [1, "a", None],
    lambda: [[1.0, 2.0], [3.0]],
    lambda: [[], [[]]],
    lambda: (None,),
    lambda: ((1,), 2),
    lambda: (0, 0),
    lambda: (-1, -1),
    lambda: (1.5, 2.5),
    lambda: (2**62, 2**62),
    lambda: (2**33,) * 5,
    lambda: (1,) * 40,
    lambda: _deep(),
    lambda: _endless(),
    lambda: slice(None),
    lambda: Ellipsis,
    lambda: range(3),
    lambda: len,
    lambda: int,
    lambda: Odd,
    lambda: float,
    lambda: wf.float32,
    lambda: wf.bool,
    lambda: iter([1, 2]),
    lambda: np.array(["a", "b"]),
    lambda: np.array([None, 1], object),
    lambda: np.zeros(3, np.complex64),
    lambda: np.zeros(2, "datetime64[s]"),
    lambda: np.zeros(2, [("a", "i4")]),
    lambda: np.longdouble(1),
    lambda: np.float32("nan"),
    lambda: np.int64(-7),
    lambda: np.bool_(True),
    lambda: np.array(3),
    lambda: np.zeros((2, 3), np.float16),
    lambda: np.dtype("f4"),
    lambda: np.str_("x"),
)


def scalar(rng: Source) -> Any:
    """A Python number of any kind."""
    return rng.choice(rng.choice((INTS, FLOATS, (True, False))))


def junk(rng: Source) -> Any:
    """Anything at all."""
    match rng.randrange(10):
        case 0 | 1 | 2:
            return scalar(rng)
        case 3:
            return rng.choice(STRINGS)
        case 4 | 5:
            return tensor(rng)
        case 6:
            return tuple(rng.choice(INTS) for _ in range(rng.randrange(5)))
        case _:
            return rng.choice(_STRANGE)()


SHAPES = (
    (), (1,), (2,), (3,), (0,), (2, 3), (3, 2), (1, 1), (0, 3), (3, 0), (2, 3, 4), (1, 3, 1),
    (2, 1, 3, 2), (2, 2, 2, 2, 2), (1,) * 9, (37,), (5, 0, 2),
)  # fmt: skip
_NUMPY = {d.np for d in DTYPES}


def array(rng: Source, shape: tuple[int, ...] | None = None) -> np.ndarray[Any, Any]:
    """An array of any of Weft's dtypes, some with values at the ends of their range."""
    shape = rng.choice(SHAPES) if shape is None else shape
    dtype = rng.choice(rng.dtypes)
    values = np.random.default_rng(rng.randrange(2**32)).integers(-3, 9, shape)
    with np.errstate(all="ignore"):
        out = np.asarray(values).astype(dtype.np)
    if out.size and rng.random() < 0.3:
        if dtype.is_float:
            out.flat[rng.randrange(out.size)] = rng.choice((math.nan, math.inf, -math.inf, -0.0))
        elif dtype.is_int:
            info = np.iinfo(dtype.np)
            out.flat[rng.randrange(out.size)] = rng.choice((info.min, info.max))
    return out


def tensor(rng: Source) -> Any:
    """A tensor of small sizes, dense, strided, running backwards or spread over nothing."""
    return laid(rng, array(rng))


def laid(rng: Source, a: np.ndarray[Any, Any]) -> Any:
    """A tensor of these elements, laid out in one way or another."""
    x = wf.asarray(a)
    match rng.randrange(12):
        case 0 if x.ndim > 1:
            x = x.T
        case 1 if x.ndim:
            x = x[::-1]
        case 2:
            x = wf.broadcast_to(x, (2, *x.shape))
        case 3 if x.ndim and x.shape[0] > 1:
            x = x[1:]
        case 4 if x.dtype.is_float:
            x.requires_grad = True
    return x


def changed(rng: Source, x: Any) -> Any:
    """A tensor or array with another shape, dtype or layout; anything else with a flaw."""
    if isinstance(x, wf.Tensor) or (isinstance(x, (np.ndarray, np.generic)) and x.dtype in _NUMPY):
        return _changed_array(rng, np.asarray(x)) if x.size < 10_000 else junk(rng)
    if isinstance(x, bool):
        return rng.choice((not x, 0, 1, None, "no", np.bool_(x), 0.0))
    if isinstance(x, int):
        return rng.choice((*INTS, float(x), None, str(x), (x,), np.int8(0), -x, x + 1, x - 1))
    if isinstance(x, float):
        return rng.choice((*FLOATS, *INTS, None, str(x), -x))
    if isinstance(x, str):
        return rng.choice((*STRINGS, x.upper(), x + x, None, 0))
    if isinstance(x, (tuple, list)):
        return _changed_sequence(rng, x)
    return junk(rng)


def _changed_array(rng: Source, a: np.ndarray[Any, Any]) -> Any:
    shape = list(a.shape)
    match rng.randrange(8):
        case 0 if shape:  # another size
            shape[rng.randrange(len(shape))] = rng.choice((0, 1, 2, 5, 9))
        case 1 if shape:  # an axis less
            del shape[rng.randrange(len(shape))]
        case 2:  # an axis more
            shape.insert(rng.randrange(len(shape) + 1), rng.choice((0, 1, 2, 3)))
        case 3:  # another dtype
            with np.errstate(all="ignore"):
                return laid(rng, np.asarray(a).astype(rng.choice(rng.dtypes).np))
        case 4 if a.dtype.kind in "iu":  # other integers: indices out of range
            extreme = np.iinfo(a.dtype)
            return laid(rng, np.full(a.shape, rng.choice((extreme.min, extreme.max)), a.dtype))
        case 5 if shape:
            rng.shuffle(shape)
        case _:
            return array(rng) if rng.random() < 0.2 else tensor(rng)
    return laid(rng, np.resize(a, shape).astype(a.dtype))


def _changed_sequence(rng: Source, x: Any) -> Any:
    made = list(x)
    match rng.randrange(6):
        case 0 if made:
            del made[rng.randrange(len(made))]
        case 1:
            made.insert(rng.randrange(len(made) + 1), rng.choice(INTS))
        case 2 | 3 if made:
            at = rng.randrange(len(made))
            made[at] = changed(rng, made[at])
        case 4:
            return rng.choice((*made, None, "x", made, [made], set(map(str, made))))
        case _:
            return junk(rng)
    return made if rng.random() < 0.1 else tuple(made)


Call = tuple[list[Any], dict[str, Any]]


def bad_call(rng: Source, args: Any, kwargs: Any) -> Call:
    """A good call with one flaw, or two."""
    args, kwargs = list(args), dict(kwargs)
    for _ in range(rng.choice((1, 1, 2))):
        places: list[Any] = [*range(len(args)), *kwargs]
        act = rng.randrange(20)
        if act == 0:
            args.insert(rng.randrange(len(args) + 1), junk(rng))
        elif act == 1 and args:
            del args[rng.randrange(len(args))]
        elif act == 2 and kwargs:
            del kwargs[rng.choice(list(kwargs))]
        elif act == 3:
            kwargs[rng.choice(("axis", "dtype", "nonsense", "shape", "out"))] = junk(rng)
        elif places:
            at = rng.choice(places)
            holder: Any = kwargs if isinstance(at, str) else args
            holder[at] = changed(rng, holder[at]) if act < 13 else junk(rng)
        else:
            args.append(junk(rng))
    return args, kwargs


def said(args: Any, kwargs: Any) -> str:
    """A call's arguments, short enough for a message."""
    return ", ".join([*map(_said, args), *(f"{k}={_said(v)}" for k, v in kwargs.items())])


def _said(x: Any) -> str:
    if isinstance(x, wf.Tensor):
        layout = x.data.layout
        values = x.tolist() if 0 < x.size <= 6 else "…"
        return f"{layout} {values}{' noted' if x.note is not None else ''}"
    if isinstance(x, np.ndarray):
        return f"np.{x.dtype}{list(x.shape)}"
    try:
        text = repr(x)
    except Exception as e:
        text = f"<{type(x).__name__}, {type(e).__name__} in repr>"
    return text if len(text) < 120 else text[:117] + "…"
