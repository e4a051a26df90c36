"""Functions to functions: grad, value_and_grad, vjp, jvp, jacobian, hessian.

They nest: an inner transform differentiates with respect to an alias of its argument, so that what
it computes is noted for an outer one as well. Forward mode is two reverse sweeps: the vjp is linear
in its cotangent, and its own vjp is the jvp.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.autodiff.backward import constant, start
from weft.autodiff.mode import enable_grad, recording
from weft.autodiff.tape import Leaf, Note, Pick, inner_leaf, pull
from weft.errors import DTypeError, GradError, ShapeError
from weft.ops.define import Value, data_of, installed
from weft.ops.joining import concat
from weft.ops.movement import alias, reshape
from weft.types import TensorType

Fn = Callable[..., Any]


def _tracked(x: Any, place: str) -> Value:
    """A stand-in for `x` that ends the inner sweep and passes on to the outer one."""
    if not isinstance(x, Value):
        x = installed.lift(x)
    if not x.type.dtype.is_float:
        raise DTypeError(
            place, expected="floating arguments to differentiate", got=x.type.dtype.name
        )
    if x.note is None or not recording.get():
        out = installed.tensor(data_of(x))
        out.note = inner_leaf()
        return out
    out = alias(x)
    if out.note is x.note or out.note is None:
        raise GradError(place, expected="a tensor that can be noted", got=repr(x))
    return out  # type: ignore[no-any-return]


def _cell(x: Value) -> Value:
    """The same value in a tensor of its own: what is assigned to either doesn't reach the other."""
    return installed.tensor(data_of(x), x.note)


def _reaches_outside(roots: Sequence[Any], own: set[Any]) -> bool:
    """Whether results depend on noted values other than our own: then the gradient must be
    differentiable too.
    """
    seen: set[Any] = set()
    stack = [r for r in roots if r is not None]
    while stack:
        n = stack.pop()
        n = n.note if isinstance(n, Pick) else n
        if n in seen:
            continue
        seen.add(n)
        if n in own:
            if isinstance(n, Note) and any(p is not None for p in n.parents):
                return True
        elif isinstance(n, Leaf):
            return True
        else:
            stack.extend(p for p in n.parents if p is not None)
    return False


def _zeros(x: Value) -> Value:
    return constant(0.0, x.type)


def _sweep(
    ys: Sequence[Value], cts: Sequence[Value], xs: Sequence[Value], create_graph: bool | None = None
) -> list[Value]:
    """Cotangents of tracked `xs`. None: make the result differentiable exactly if it depends on
    something noted.
    """
    wanted = [x.note for x in xs]
    outside = (
        create_graph
        if create_graph is not None
        else _reaches_outside([*(y.note for y in ys), *(c.note for c in cts)], set(wanted))
    )
    found = pull(
        [(y.note, c) for y, c in zip(ys, cts, strict=True)],
        wanted,
        retain=outside,
        create_graph=outside,
    )
    return [found[x.note] if x.note in found else _zeros(x) for x in xs]


def _positions(argnums: int | Sequence[int], count: int, place: str) -> tuple[int, ...]:
    nums = tuple(argnums) if isinstance(argnums, (tuple, list)) else (argnums,)
    if not nums or any(not isinstance(n, int) or not -count <= n < count for n in nums):
        raise ShapeError(place, expected=f"argnums below {count}", got=repr(argnums))
    return tuple(n % count for n in nums)


def function(f: Any, place: str) -> Fn:
    """`f`, or an error if it can't be called."""
    if callable(f):
        return f  # type: ignore[no-any-return]
    raise DTypeError(place, expected="a function", got=type(f).__name__)


def sequence(xs: Any, place: str) -> list[Any]:
    """The arguments of a function, given as a tuple or list."""
    if isinstance(xs, (tuple, list)):
        return list(xs)
    raise DTypeError(place, expected="a tuple or list of tensors", got=type(xs).__name__)


def _results(y: Any, place: str) -> tuple[Value, ...]:
    ys = y if isinstance(y, tuple) else (y,)
    if all(isinstance(o, Value) for o in ys):
        return tuple(_cell(o) for o in ys)
    got = ", ".join(type(o).__name__ for o in ys)
    raise DTypeError(place, expected="a function that returns tensors", got=got)


def value_and_grad(f: Fn, argnums: int | Sequence[int] = 0) -> Fn:
    """A function that gives `f`'s value and its gradient with respect to arguments `argnums`.

    >>> import weft as wf
    >>> wf.value_and_grad(lambda x: (x * x).sum())(wf.tensor([1.0, 2.0]))
    (tensor(5.), tensor([2., 4.]))
    """
    function(f, "grad")

    def run(*args: Any, **kwargs: Any) -> Any:
        nums = _positions(argnums, len(args), "grad")
        xs = {n: _tracked(args[n], "grad") for n in nums}
        with enable_grad():
            y = f(*(_cell(xs[n]) if n in xs else a for n, a in enumerate(args)), **kwargs)
        if not isinstance(y, Value):
            raise DTypeError(
                "grad", expected="a function that returns one tensor", got=type(y).__name__
            )
        y = _cell(y)
        gs = _sweep([y], [start(y, None, "grad")], [xs[n] for n in nums])
        return _value(y, list(xs.values())), gs[0] if isinstance(argnums, int) else tuple(gs)

    return run


def _value(y: Value, xs: Sequence[Value]) -> Value:
    """The function's value, noted only if it depends on something outside."""
    outside = _reaches_outside([y.note], {x.note for x in xs})
    return installed.tensor(data_of(y), y.note if outside else None)


def grad(f: Fn, argnums: int | Sequence[int] = 0) -> Fn:
    """A function that gives the gradient of the scalar function `f`.

    >>> import weft as wf
    >>> wf.grad(wf.grad(lambda x: x * x * x))(wf.tensor(2.0))
    tensor(12.)
    """
    both = value_and_grad(f, argnums)
    return lambda *args, **kwargs: both(*args, **kwargs)[1]


def vjp(f: Fn, *xs: Any) -> tuple[Any, Callable[..., tuple[Value, ...]]]:
    """`f(*xs)` and the function that takes a cotangent of it to cotangents of `xs`.

    >>> import weft as wf
    >>> y, pullback = wf.vjp(lambda a, b: a * b, wf.tensor(2.0), wf.tensor(3.0))
    >>> pullback(wf.tensor(1.0))
    (tensor(3.), tensor(2.))
    """
    function(f, "vjp")
    traced = [_tracked(x, "vjp") for x in xs]
    with enable_grad():
        y = f(*map(_cell, traced))
    ys = _results(y, "vjp")

    def pullback(*cts: Any) -> tuple[Value, ...]:
        if len(cts) == 1 and isinstance(cts[0], tuple):
            cts = cts[0]
        if len(cts) != len(ys):
            raise ShapeError("vjp", expected=f"{len(ys)} cotangents", got=str(len(cts)))
        given = [start(o, c, "vjp") for o, c in zip(ys, cts, strict=True)]
        outside = _reaches_outside(
            [*(o.note for o in ys), *(c.note for c in given)], {t.note for t in traced}
        )
        wanted = [t.note for t in traced]
        found = pull(
            [(o.note, c) for o, c in zip(ys, given, strict=True)],
            wanted,
            retain=True,
            create_graph=outside,
        )
        return tuple(found[t.note] if t.note in found else _zeros(t) for t in traced)

    values = tuple(_value(o, traced) for o in ys)
    return (values if isinstance(y, tuple) else values[0]), pullback


def jvp(f: Fn, xs: Sequence[Any], ts: Sequence[Any]) -> tuple[Any, Any]:
    """`f(*xs)` and its directional derivative along `ts`.

    >>> import weft as wf
    >>> wf.jvp(lambda x: x * x, (wf.tensor(3.0),), (wf.tensor(1.0),))
    (tensor(9.), tensor(6.))
    """
    function(f, "jvp")
    xs, ts = sequence(xs, "jvp"), sequence(ts, "jvp")
    if len(xs) != len(ts):
        raise ShapeError("jvp", expected=f"{len(xs)} tangents", got=str(len(ts)))
    traced = [_tracked(x, "jvp") for x in xs]
    tangents = [start(x, t, "jvp") for x, t in zip(traced, ts, strict=True)]
    with enable_grad():
        y = f(*map(_cell, traced))
        ys = _results(y, "jvp")
        dummies = [_tracked(_zeros(o), "jvp") for o in ys]
        pulled = _sweep(ys, dummies, traced, create_graph=True)
    notes = [(p.note, t) for p, t in zip(pulled, tangents, strict=True) if p.note is not None]
    wanted = [d.note for d in dummies]
    outside = _reaches_outside(
        [n for n, _ in notes] + [t.note for t in tangents], set(wanted) | {x.note for x in traced}
    )
    found = pull(notes, wanted, retain=outside, create_graph=outside)
    values = tuple(_value(o, traced) for o in ys)
    out = tuple(found[d.note] if d.note in found else _zeros(d) for d in dummies)
    return (values, out) if isinstance(y, tuple) else (values[0], out[0])


def jacobian(f: Fn, argnums: int = 0) -> Fn:
    """A function that gives the Jacobian, of shape `f(x).shape + x.shape`, by one reverse sweep per
    result element.

    >>> import weft as wf
    >>> wf.jacobian(lambda x: x * x)(wf.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    function(f, "jacobian")

    def run(*args: Any) -> Value:
        n = _positions(argnums, len(args), "jacobian")[0]
        x = _tracked(args[n], "jacobian")
        with enable_grad():
            y = f(*args[:n], _cell(x), *args[n + 1 :])
        if not isinstance(y, Value):
            raise DTypeError(
                "jacobian", expected="a function that returns one tensor", got=type(y).__name__
            )
        y = _cell(y)
        outside = _reaches_outside([y.note], {x.note})
        rows: list[Value] = []
        for i in range(y.type.size):
            found = pull(
                [(y.note, _one_hot(i, y.type))], [x.note], retain=True, create_graph=outside
            )
            rows.append(found.get(x.note, _zeros(x)))
        shape = (*y.type.shape, *x.type.shape)
        if not rows:
            return constant(0.0, TensorType(shape, x.type.dtype))
        flat = concat(*(reshape(r, shape=(1, x.type.size)) for r in rows), axis=0)
        out: Value = reshape(flat, shape=shape)
        return out

    return run


def _one_hot(i: int, type_: TensorType) -> Value:
    flat = np.zeros(type_.sizes, type_.dtype.np)
    flat.reshape(-1)[i] = 1
    return installed.lift(flat)


def hessian(f: Fn, argnums: int = 0) -> Fn:
    """The Jacobian of the gradient.

    >>> import weft as wf
    >>> wf.hessian(lambda x: (x * x * x).sum())(wf.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacobian(grad(f, argnums), argnums)
