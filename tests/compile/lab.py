"""What these tests share: compiled or not, the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import weft as wf
from weft.capture.structure import flatten

_rng = np.random.default_rng(0)


def random(*shape: int, grad: bool = False) -> wf.Tensor:
    return wf.tensor(_rng.standard_normal(shape).astype(np.float32), requires_grad=grad)


def compiled(f: Any) -> Any:
    """A function that has to be captured."""
    return wf.compile(f, fallback=False)


def bits(x: wf.Tensor) -> tuple[Any, ...]:
    """Dtype, shape and elements, to compare."""
    return x.dtype.name, x.shape, x.numpy().tobytes()


def same(got: Any, want: Any) -> None:
    """Equal structure, types, bits, and whether gradients are noted."""
    a, form = flatten(got)
    b, other = flatten(want)
    assert form == other, f"{got}\nexpected\n{want}"
    for x, y in zip(a, b, strict=True):
        if isinstance(y, wf.Tensor):
            assert isinstance(x, wf.Tensor)
            assert (x.dtype, x.shape) == (y.dtype, y.shape)
            assert x.numpy().tobytes() == y.numpy().tobytes(), f"{x}\nexpected\n{y}"
            assert x.requires_grad == y.requires_grad
        else:
            assert type(x) is type(y) and (x == y or x != x != y), f"{x!r}, expected {y!r}"


def outcome(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What a call raises, or None."""
    try:
        f(*args, **kwargs)
    except Exception as e:
        return type(e), str(e)
    return None
