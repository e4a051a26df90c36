"""Random tensors and the generator behind them: a key, set by a seed, and a counter that every call
moves on.

Numbers are functions of key and counter alone: the same on every machine, for any number of
threads, whatever the shape is cut into.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any

from weft.errors import CaptureError, DTypeError, NumericsError, ShapeError
from weft.ops import random as ops
from weft.ops.define import Op, Value, capturing, installed
from weft.ops.elementwise import astype, less
from weft.ops.indexing import take
from weft.ops.random_bits import counters
from weft.ops.sorting import argsort
from weft.tensor.arguments import all_integers, integer, sizes, value
from weft.tensor.data import finished
from weft.types import DType, TensorType, as_dtype
from weft.types.dtype import float32, int64, uint64

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

__all__ = [
    "bernoulli",
    "get_rng_state",
    "manual_seed",
    "permutation",
    "rand",
    "randint",
    "randn",
    "set_rng_state",
]


class _Generator:
    """The one that functions draw from."""

    def __init__(self) -> None:
        self.key, self.offset = 0, 0
        self.lock = threading.Lock()

    def draw(self, count: int) -> tuple[Any, Any]:
        """The key and the first of `count` counters that nobody else gets."""
        c = capturing.now
        if c is not None and (c.inside or not c.by_hand):
            return c.draw(count)
        with self.lock:
            key, offset = self.key, self.offset
            self.offset = (offset + count) % 2**64
        return _signed(key), _signed(offset)


def _signed(n: int) -> int:
    """As the int64 of the same bits."""
    return n - 2**64 if n >= 2**63 else n


_generator = _Generator()


def _not_captured(name: str) -> None:
    c = capturing.now
    if c is not None and not c.by_hand:
        raise CaptureError(
            name,
            got="a call inside a function that is being captured",
            hint="call it before; random numbers inside go on from there",
        )


def manual_seed(seed: int) -> None:
    """Start the sequence of random numbers that belongs to `seed`.

    >>> import weft as wf
    >>> wf.manual_seed(0)
    >>> a = wf.rand(3)
    >>> wf.manual_seed(0)
    >>> bool((wf.rand(3) == a).all())
    True
    """
    n = integer(seed, "manual_seed")
    if not -(2**63) <= n < 2**64:
        raise NumericsError("manual_seed", expected="a seed of 64 bits", got=str(n))
    _not_captured("manual_seed")
    with _generator.lock:
        _generator.key, _generator.offset = n % 2**64, 0


def get_rng_state() -> tuple[int, int]:
    """Where the generator is: its key and its counter.

    >>> import weft as wf
    >>> wf.manual_seed(7)
    >>> wf.get_rng_state()
    (7, 0)
    """
    _not_captured("get_rng_state")
    with _generator.lock:
        return _generator.key, _generator.offset


def set_rng_state(state: tuple[int, int]) -> None:
    """Put the generator where `get_rng_state` found it.

    >>> import weft as wf
    >>> state = wf.get_rng_state()
    >>> a = wf.randn(2)
    >>> wf.set_rng_state(state)
    >>> bool((wf.randn(2) == a).all())
    True
    """
    numbers = sizes(state, "set_rng_state")
    if len(numbers) != 2 or not all(0 <= n < 2**64 for n in numbers):
        raise ShapeError("set_rng_state", expected="what get_rng_state gave", got=repr(state))
    _not_captured("set_rng_state")
    with _generator.lock:
        _generator.key, _generator.offset = numbers


_plans: dict[Any, tuple[Any, int]] = {}


def _again(op: Op, shape: Any, dtype: Any) -> Value | None:
    """Draw by a plan found by the arguments as they were said."""
    try:
        plan, count = _plans[op, shape, dtype]
        all_integers(shape)
    except (KeyError, TypeError):
        return None
    return installed.launch(plan, *_generator.draw(count))


def _first(op: Op, said: Any, place: str, dtype: Any) -> Tensor:
    shape, d = _shaped(said, place), _floating(dtype, place)
    out = _drawn(op, shape, d)
    plan = op.plans.get((int, int, shape, d))
    if plan is not None and all(type(n) in (int, tuple) for n in said):
        if len(_plans) >= 1024:
            _plans.clear()
        _plans[op, said, dtype] = plan, out.type.size * counters(op.name, d)
    return out


def _drawn(op: Op, shape: tuple[int, ...], dtype: DType, *more: int) -> Tensor:
    size = TensorType(shape, dtype).size
    return op(*_generator.draw(size * counters(op.name, dtype)), *more, shape=shape, dtype=dtype)


def _shaped(shape: tuple[Any, ...], place: str) -> tuple[int, ...]:
    return sizes(shape[0] if len(shape) == 1 else shape, place)


def _floating(dtype: Any, place: str) -> DType:
    d = float32 if dtype is None else as_dtype(dtype)
    if not d.is_float:
        raise DTypeError(place, expected="a floating dtype", got=d.name)
    return d


def rand(*shape: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Uniform in [0, 1): `rand((2, 3))` or `rand(2, 3)`.

    >>> import weft as wf
    >>> wf.rand(2, 3).shape
    (2, 3)
    """
    out: Any = _again(ops.uniform, shape, dtype)
    if out is None:
        out = _first(ops.uniform, shape, "rand", dtype)
    return out if requires_grad is False else finished(out, requires_grad)


def randn(*shape: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Normal, of mean 0 and variance 1: `randn((2, 3))` or `randn(2, 3)`.

    >>> import weft as wf
    >>> wf.randn(4, dtype=wf.float64).dtype
    weft.float64
    """
    out: Any = _again(ops.normal, shape, dtype)
    if out is None:
        out = _first(ops.normal, shape, "randn", dtype)
    return out if requires_grad is False else finished(out, requires_grad)


def randint(low: int, high: Any = None, shape: Any = None, *, dtype: Any = None) -> Tensor:
    """Integers of [low, high), each alike: `randint(0, 10, (2, 3))`, or `randint(10, (2, 3))` from
    0.

    >>> import weft as wf
    >>> wf.randint(5, 6, (3,))
    tensor([5, 5, 5])
    """
    if shape is None:
        low, high, shape = 0, low, high
    d = int64 if dtype is None else as_dtype(dtype)
    a, b = integer(low, "randint"), integer(high, "randint")
    if not d.is_int:
        raise DTypeError("randint", expected="an integer dtype", got=d.name)
    least, most = (0, 2**d.bits) if d.kind == "u" else (-(2 ** (d.bits - 1)), 2 ** (d.bits - 1))
    if not least <= a < b <= most:
        raise ShapeError(
            "randint", expected=f"{least} <= low < high <= {most} for {d.name}", got=f"{a} and {b}"
        )
    return _drawn(
        ops.randint,
        sizes(() if shape is None else shape, "randint"),
        d,
        _signed(a % 2**64),
        _signed((b - a) % 2**64),
    )


def bernoulli(p: Any, shape: Any = None, *, dtype: Any = None) -> Tensor:
    """Ones with probability `p`, zeros otherwise: of a tensor of probabilities, or of one number
    and a shape.

    >>> import weft as wf
    >>> wf.bernoulli(wf.tensor([0.0, 1.0]))
    tensor([0., 1.])
    """
    of = p.type.dtype if isinstance(p, Value) and p.type.dtype.is_float else float32
    whole = sizes(shape, "bernoulli") if shape is not None else value(p).type.shape
    if not isinstance(p, Value) and not (isinstance(p, (int, float)) and 0 <= p <= 1):
        if isinstance(p, (int, float)):
            raise ShapeError("bernoulli", expected="a probability from 0 to 1", got=str(p))
        p = value(p)
    chosen = less(_drawn(ops.uniform, whole, of), p)  # type: ignore[arg-type]
    return astype(chosen, dtype=of if dtype is None else as_dtype(dtype))


def permutation(x: Any) -> Tensor:
    """The numbers 0 to x - 1 in random order, or a tensor's rows along its first axis.

    >>> import weft as wf
    >>> sorted(wf.permutation(5).tolist())
    [0, 1, 2, 3, 4]
    """
    if isinstance(x, Value) or hasattr(x, "shape"):
        v = value(x)
        if v.type.ndim:
            order = argsort(_drawn(ops.random_bits, v.type.shape[:1], uint64), descending=False)  # type: ignore[arg-type]
            return take(v, order, axis=0)
    n = integer(x, "permutation")
    return argsort(_drawn(ops.random_bits, (n,), uint64), descending=False)


installed.random_state = (get_rng_state, set_rng_state)
os.register_at_fork(
    before=_generator.lock.acquire,
    after_in_parent=_generator.lock.release,
    after_in_child=_generator.lock.release,
)
