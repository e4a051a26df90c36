"""Updates of one parameter by one step of an optimizer: composites over the elements, so that each
is one kernel.

Results come first the new parameter, then the new state. Numbers (learning rate, betas, …) are 0-d
operands in the dtype the update computes in; a half type computes in float32 and rounds once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from weft.ops.define import Value
from weft.ops.elementwise import (
    astype,
    equal,
    expm1,
    log,
    maximum,
    sign,
    sqrt,
    where,
)
from weft.ops.makers import composite
from weft.ops.reduction import narrowed, sum as total, widened
from weft.ops.samples import Sample, array
from weft.types import DType
from weft.types.dtype import bfloat16, float32, float64


def _samples(states: int, numbers: tuple[float, ...], *attrs: dict[str, Any]) -> Any:
    """A parameter, a gradient, states away from 0 (they are often under a root) and numbers."""

    def make() -> Iterator[Sample]:
        for said in attrs or ({},):
            for shape, d in [((3, 5), float32), ((), float64), ((70,), float64), ((4,), bfloat16)]:
                xs = [array(shape, d, seed=i) for i in range(2)]
                xs += [array(shape, d, (0.5, 2.0), seed=i + 2) for i in range(states)]
                yield Sample((*xs, *(np.asarray(n, d.compute.np) for n in numbers)), said)

    return make


def _with_decay(p: Value, g: Value, decay: str, numbers: list[Value]) -> tuple[Value, Value]:
    """Parameter and gradient, weight decay applied by the last of the numbers: to one or the other
    (or to neither, where `decay` is "none").
    """
    if decay == "gradient":
        return p, g + numbers[-1] * p
    if decay == "parameter":
        return p * numbers[-1], g
    return p, g


# SGD


@composite(
    "sgd_update",
    samples=lambda: (
        s
        for n, decay in ((1, "none"), (2, "gradient"))
        for s in _samples(0, (0.1, 0.01)[:n], {"decay": decay})()
    ),
    reference=lambda p, g, lr, *wd, decay: p - lr * (g + wd[0] * p if wd else g),
)
def sgd_update(p: Value, g: Value, *numbers: Value, decay: str) -> Value:
    """p - lr * g. Numbers: lr, and the decay if there is one."""
    w, d = _with_decay(widened(p), widened(g), decay, list(numbers))
    return narrowed(w - numbers[0] * d, p)


def _momentum_reference(
    p: Any, g: Any, b: Any, lr: Any, mu: Any, *wd: Any, decay: str, nesterov: bool
) -> tuple[Any, ...]:
    d = g + wd[0] * p if wd else g
    b = mu * b + d
    return p - lr * (d + mu * b if nesterov else b), b


@composite(
    "sgd_momentum_update",
    samples=lambda: (
        s
        for n, decay, nesterov in ((2, "none", False), (3, "gradient", True))
        for s in _samples(1, (0.1, 0.9, 0.01)[:n], {"decay": decay, "nesterov": nesterov})()
    ),
    reference=_momentum_reference,
)
def sgd_momentum_update(
    p: Value, g: Value, buffer: Value, *numbers: Value, decay: str, nesterov: bool
) -> tuple[Value, Value]:
    """b = momentum * b + g; p - lr * b. Numbers: lr, momentum, and the decay if there is one."""
    lr, momentum = numbers[:2]
    w, d = _with_decay(widened(p), widened(g), decay, list(numbers))
    b = momentum * widened(buffer) + d
    step = d + momentum * b if nesterov else b
    return narrowed(w - lr * step, p), narrowed(b, p)


def _damped_samples() -> Iterator[Sample]:
    for s in _samples(1, (0.1, 0.9, 0.5), {"decay": "none", "nesterov": False})():
        for t in (1, 4):
            yield Sample((*s.args[:3], np.asarray(t), *s.args[3:]), s.attrs)


def _damped_reference(
    p: Any, g: Any, b: Any, t: Any, lr: Any, mu: Any, kept: Any, *wd: Any, decay: str, nesterov: Any
) -> tuple[Any, ...]:
    b = g if t == 1 else mu * b + kept * g
    return p - lr * b, b


@composite("sgd_damped_update", samples=_damped_samples, reference=_damped_reference)
def sgd_damped_update(
    p: Value, g: Value, buffer: Value, step: Value, *numbers: Value, decay: str, nesterov: bool
) -> tuple[Value, Value]:
    """sgd_momentum_update with dampening, which the first step is not subject to.

    Numbers: lr, momentum, 1 - dampening, and the decay if there is one.
    """
    lr, momentum, kept = numbers[:3]
    w, d = _with_decay(widened(p), widened(g), decay, list(numbers))
    b = where(equal(step, 1), d, momentum * widened(buffer) + kept * d)
    way = d + momentum * b if nesterov else b
    return narrowed(w - lr * way, p), narrowed(b, p)


# Adam


def _scale_samples() -> Iterator[Sample]:
    for t in (1, 1000):
        numbers = (np.asarray(x) for x in (0.001, 0.9, 0.999))
        yield Sample((np.asarray(t), *numbers), {"dtype": float32 if t == 1 else float64})


@composite(
    "adam_scale",
    samples=_scale_samples,
    reference=lambda t, lr, b1, b2, *, dtype: (lr / (1 - b1**t), 1 / np.sqrt(1 - b2**t)),
)
def adam_scale(
    step: Value, lr: Value, beta1: Value, beta2: Value, *, dtype: DType
) -> tuple[Value, Value]:
    """lr / (1 - beta1**step) and 1 / sqrt(1 - beta2**step), in float64 up to the end.

    Two moments that start at 0 are too small by what these divide by; elements are multiplied.
    """
    t = astype(step, dtype=float64)
    first, second = (-expm1(t * log(b)) for b in (beta1, beta2))
    return astype(lr / first, dtype=dtype), astype(1 / sqrt(second), dtype=dtype)


_ADAM = (0.002, 0.5, 0.1, 0.99, 0.01, 1e-8, 0.98)


def _adam_samples() -> Iterator[Sample]:
    for amsgrad, decay in ((False, "none"), (False, "gradient"), (True, "parameter")):
        numbers = _ADAM if decay != "none" else _ADAM[:-1]
        said = {"decay": decay, "amsgrad": amsgrad}
        yield from _samples(3 if amsgrad else 2, numbers, said)()


def _adam_reference(p: Any, g: Any, m: Any, v: Any, *rest: Any, decay: str, amsgrad: bool) -> Any:
    peak, (size, scale, k1, b2, k2, eps, *wd) = rest[:1], rest[1:] if amsgrad else rest
    if decay != "none":
        p, g = (p, g + wd[0] * p) if decay == "gradient" else (p * wd[0], g)
    m, v = m + k1 * (g - m), b2 * v + k2 * g * g
    high = np.maximum(peak[0], v) if amsgrad else v
    new = p - size * m / (np.sqrt(high) * scale + eps), m, v
    return (*new, high) if amsgrad else new


@composite("adam_update", samples=_adam_samples, reference=_adam_reference)
def adam_update(
    p: Value, g: Value, m: Value, v: Value, *rest: Value, decay: str, amsgrad: bool
) -> tuple[Value, ...]:
    """m = lerp(m, g, 1 - beta1); v = beta2 * v + (1 - beta2) * g²; p - m / (sqrt(v) + eps), scaled.

    Kingma and Ba, https://arxiv.org/abs/1412.6980. With `amsgrad` the largest v so far is one more
    operand, before the numbers, and one more result. Numbers: the two of `adam_scale`, 1 - beta1,
    beta2, 1 - beta2, eps, and the decay if there is one.
    """
    peak, numbers = (rest[:1], rest[1:]) if amsgrad else ((), rest)
    size, scale, far1, near2, far2, eps = numbers[:6]
    w, d = _with_decay(widened(p), widened(g), decay, list(numbers))
    m1 = widened(m)
    m1 = m1 + far1 * (d - m1)
    v1 = near2 * widened(v) + far2 * d * d
    high = maximum(widened(peak[0]), v1) if peak else v1
    new = w - size * m1 / (sqrt(high) * scale + eps)
    return tuple(narrowed(x, p) for x in (new, m1, v1, *((high,) if peak else ())))


# RMSprop, Adagrad, Lion


def _rmsprop_samples() -> Iterator[Sample]:
    numbers = (0.01, 0.99, 0.01, 1e-8, 0.9, 0.02)
    for centered, momentum, decay in ((False, False, "none"), (True, True, "gradient")):
        said = {"decay": decay, "centered": centered, "momentum": momentum}
        n = 4 + momentum + (decay != "none")
        for s in _samples(1 + centered + momentum, numbers[:n], said)():
            if centered:  # the mean square is no less than the square of the mean
                s.args[3][...] *= s.args[3].dtype.type(0.1)
            yield s


def _rmsprop_reference(
    p: Any, g: Any, *rest: Any, decay: str, centered: bool, momentum: bool
) -> Any:
    n = 1 + centered + momentum
    (v, *others), (lr, near, far, eps, *more) = list(rest[:n]), rest[n:]
    d = g + more[-1] * p if decay != "none" else g
    v = near * v + far * d * d
    spread, new = v, [v]
    if centered:
        new.append(others[0] + far * (d - others[0]))
        spread = v - new[1] ** 2
    way = d / (np.sqrt(spread) + eps)
    if momentum:
        way = more[0] * others[-1] + way
        new.append(way)
    return (p - lr * way, *new)


@composite("rmsprop_update", samples=_rmsprop_samples, reference=_rmsprop_reference)
def rmsprop_update(
    p: Value, g: Value, *rest: Value, decay: str, centered: bool, momentum: bool
) -> tuple[Value, ...]:
    """v = alpha * v + (1 - alpha) * g²; p - lr * g / (sqrt(v) + eps).

    States: v, with `centered` the mean gradient, with `momentum` its buffer. Numbers: lr, alpha,
    1 - alpha, eps, with `momentum` it, and the decay if there is one.
    """
    n = 1 + centered + momentum
    states, numbers = [widened(x) for x in rest[:n]], list(rest[n:])
    lr, near, far, eps = numbers[:4]
    w, d = _with_decay(widened(p), widened(g), decay, numbers)
    v = near * states[0] + far * d * d
    spread, new = v, [v]
    if centered:
        mean = states[1] + far * (d - states[1])
        spread = v - mean * mean
        new.append(mean)
    way = d / (sqrt(spread) + eps)
    if momentum:
        way = numbers[4] * states[-1] + way
        new.append(way)
    return tuple(narrowed(x, p) for x in (w - lr * way, *new))


@composite(
    "adagrad_rate",
    samples=lambda: iter([Sample(tuple(np.asarray(x) for x in (9, 0.1, 0.2)))]),
    reference=lambda t, lr, slowing: lr / (1 + (t - 1) * slowing),
)
def adagrad_rate(step: Value, lr: Value, slowing: Value) -> Value:
    """lr / (1 + (step - 1) * slowing)."""
    return lr / (1.0 + (astype(step, dtype=float64) - 1.0) * slowing)  # type: ignore[no-any-return]


def _adagrad_reference(p: Any, g: Any, s: Any, lr: Any, eps: Any, *wd: Any, decay: str) -> Any:
    d = g + wd[0] * p if wd else g
    s = s + d * d
    return p - lr * d / (np.sqrt(s) + eps), s


@composite(
    "adagrad_update",
    samples=lambda: (
        s
        for n, decay in ((2, "none"), (3, "gradient"))
        for s in _samples(1, (0.1, 1e-10, 0.01)[:n], {"decay": decay})()
    ),
    reference=_adagrad_reference,
)
def adagrad_update(
    p: Value, g: Value, squares: Value, *numbers: Value, decay: str
) -> tuple[Value, Value]:
    """s = s + g²; p - lr * g / (sqrt(s) + eps). Numbers: lr, eps, and the decay if there is one."""
    lr, eps = numbers[:2]
    w, d = _with_decay(widened(p), widened(g), decay, list(numbers))
    s = widened(squares) + d * d
    return narrowed(w - lr * d / (sqrt(s) + eps), p), narrowed(s, p)


def _lion_reference(p: Any, g: Any, m: Any, lr: Any, f1: Any, f2: Any, *wd: Any, decay: str) -> Any:
    new = (p * wd[0] if wd else p) - lr * np.sign(m + f1 * (g - m))
    return new, m + f2 * (g - m)


@composite(
    "lion_update",
    samples=lambda: (
        s
        for n, decay in ((3, "none"), (4, "parameter"))
        for s in _samples(1, (0.01, 0.1, 0.01, 0.98)[:n], {"decay": decay})()
    ),
    reference=_lion_reference,
)
def lion_update(p: Value, g: Value, m: Value, *numbers: Value, decay: str) -> tuple[Value, Value]:
    """p - lr * sign(lerp(m, g, 1 - beta1)); m = lerp(m, g, 1 - beta2).

    Chen et al., https://arxiv.org/abs/2302.06675. Numbers: lr, 1 - beta1, 1 - beta2, and the decay
    if there is one.
    """
    lr, far1, far2 = numbers[:3]
    w, d = _with_decay(widened(p), widened(g), decay, list(numbers))
    mean = widened(m)
    way = sign(mean + far1 * (d - mean))
    return narrowed(w - lr * way, p), narrowed(mean + far2 * (d - mean), p)


# the size of gradients


def _square_samples() -> Iterator[Sample]:
    for shape, d in [((3, 5), float32), ((70,), float64), ((), float32), ((2, 3, 4), bfloat16)]:
        yield Sample((array(shape, d),))


@composite(
    "square_sum", samples=_square_samples, reference=lambda x: (x.astype(np.float64) ** 2).sum()
)
def square_sum(x: Value) -> Value:
    """The sum of the squares of all elements; of a half type, in float32."""
    w = widened(x)
    return total(w * w, axes=tuple(range(x.type.ndim)), keepdims=False)  # type: ignore[no-any-return]
