"""Calls whose gradient is said, or found, by running Python: custom_vjp, checkpoint, and the
derived vjp of composites.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from weft.autodiff.backward import constant
from weft.autodiff.mode import enable_grad, no_grad, recording
from weft.autodiff.tape import Note, Pick, frontier, inner_leaf, next_serial, note, pull
from weft.errors import DTypeError, GradError
from weft.ops.define import Call, Op, Value, capturing, data_of, installed, types_of
from weft.ops.makers import later
from weft.ops.movement import again, alias

Fn = Callable[..., Any]


def _function(place: str, f: Any) -> Fn:
    if not callable(f):
        raise DTypeError(place, expected="a function", got=type(f).__name__)
    return f  # type: ignore[no-any-return]


def _results(name: str, out: Any) -> tuple[Value, ...]:
    outs = out if isinstance(out, tuple) else (out,)
    if not all(isinstance(o, Value) for o in outs):
        raise GradError(
            name, expected="tensors as results", got=", ".join(type(o).__name__ for o in outs)
        )
    return outs


class custom_vjp:
    """A function with a gradient of its own.

    `f.defvjp(forward, backward)`: `forward(*args)` gives the result and whatever is to be kept;
    `backward(kept, g)` gives a cotangent per argument (None for arguments that have none).

    >>> import weft as wf
    >>> @wf.custom_vjp
    ... def clipped(x):
    ...     return x
    >>> clipped.defvjp(lambda x: (x, None), lambda kept, g: (wf.clip(g, -1.0, 1.0),))
    >>> wf.grad(lambda x: clipped(x) * 5.0)(wf.tensor(2.0))
    tensor(1.)
    """

    def __init__(self, f: Fn) -> None:
        functools.update_wrapper(self, _function("custom_vjp", f))
        self.f = f
        self._forward: Fn | None = None
        self._backward: Fn | None = None

    def defvjp(self, forward: Fn, backward: Fn) -> None:
        """Say how to run forward and backward."""
        self._forward, self._backward = forward, backward

    def __call__(self, *args: Any, **named: Any) -> Any:
        args = self._positional(args, named) if named else args
        tensors = [x for x in args if isinstance(x, Value)]
        if not recording.get() or all(x.note is None for x in tensors):
            return self.f(*args)
        if self._forward is None:
            raise GradError(
                self.f.__name__,
                expected="a gradient of its own, as a custom_vjp",
                got="none",
                hint=f"give it one with {self.f.__name__}.defvjp(forward, backward)",
            )
        with no_grad():
            pair = self._forward(*_frozen(args))
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise GradError(
                self.f.__name__,
                expected="a result and what to keep, from forward",
                got=type(pair).__name__,
            )
        out, kept = pair
        outs = _results(self.f.__name__, out)
        fresh = tuple(installed.tensor(data_of(o)) for o in outs)
        op = Op(
            self.f.__name__, infer=_no_infer, vjp=functools.partial(self._pull, kept, len(args))
        )
        note(Call(op, types_of(args), {}), args, fresh)
        return fresh if isinstance(out, tuple) else fresh[0]

    def _positional(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        bound = inspect.signature(self.f).bind(*args, **named)
        if bound.kwargs:
            raise GradError(
                self.f.__name__,
                expected="arguments that may be given by position, in a custom_vjp",
                got=", ".join(bound.kwargs),
            )
        return bound.args

    def _pull(self, kept: Any, count: int, g: Any, y: Any, *xs: Any) -> tuple[Any, ...]:
        given = self._backward(kept, g)  # type: ignore[misc]
        cotangents: tuple[Any, ...] = given if isinstance(given, tuple) else (given,)
        if len(cotangents) != count:
            raise GradError(
                self.f.__name__,
                expected=f"{count} cotangents from backward",
                got=str(len(cotangents)),
                hint="give one per argument, None for those without",
            )
        for n, (c, x) in enumerate(zip(cotangents, xs, strict=True)):
            if c is not None and isinstance(x, Value):
                found = c.type if isinstance(c, Value) else type(c).__name__
                if found is not x.type:
                    raise GradError(
                        f"{self.f.__name__}, cotangent {n}", expected=str(x.type), got=str(found)
                    )
        return cotangents


def _frozen(x: Any) -> Any:
    """The same arguments in cells of their own, so that what is assigned later is not seen."""
    if isinstance(x, Value):
        return installed.tensor(data_of(x), x.note)
    if type(x) in (tuple, list):
        return type(x)(_frozen(v) for v in x)
    if type(x) is dict:
        return {k: _frozen(v) for k, v in x.items()}
    return x


def _anew(x: Any) -> Any:
    """The same arguments, to compute from a second time."""
    if isinstance(x, Value):
        return again(x)
    if type(x) in (tuple, list):
        return type(x)(_anew(v) for v in x)
    if type(x) is dict:
        return {k: _anew(v) for k, v in x.items()}
    return x


def _no_infer(*types: Any, **attrs: Any) -> Any:
    raise GradError("custom function", expected="to be run, not inferred")


def checkpoint(f: Fn) -> Fn:
    """`f`, keeping none of its intermediate values: backward runs it again, on the same arguments
    and the same random numbers. What else it reads must not have changed by then.

    >>> import weft as wf
    >>> x = wf.tensor([0.5], requires_grad=True)
    >>> wf.checkpoint(lambda x: (x.exp() * x).sum())(x).backward()
    >>> x.grad
    tensor([2.4731])
    """
    _function("checkpoint", f)

    @functools.wraps(f)
    def run(*args: Any, **kwargs: Any) -> Any:
        if not recording.get():
            return f(*args, **kwargs)
        given, named = _frozen(args), _frozen(kwargs)
        c = capturing.now
        get_random, set_random = installed.random_state if c is None else (c.position, c.rewind)
        random = get_random()
        since = next_serial[0]()
        out = f(*_frozen(given), **_frozen(named))
        outs = _results("checkpoint", out)
        before = frontier([o.note for o in outs], since)
        if not before:
            return out
        fresh = tuple(installed.tensor(data_of(o)) for o in outs)

        def redo(g: Any, y: Any, *_: Any) -> tuple[Any, ...]:
            now = get_random()
            set_random(random)
            try:
                with enable_grad():
                    redone = _results("checkpoint", f(*_anew(given), **_anew(named)))
            finally:
                set_random(now)
            gs = g if isinstance(g, tuple) else (g,)
            differentiable = recording.get()
            found = pull(
                [(o.note, c) for o, c in zip(redone, gs, strict=True)],
                before, retain=differentiable, create_graph=differentiable,
            )  # fmt: skip
            return tuple(found.get(n) for n in before)

        op = Op("checkpoint", infer=_no_infer, vjp=redo)
        kept = (None,) * len(before)
        made = Note(
            Call(op, (float,) * len(before), {}),
            tuple(before),
            kept,
            tuple(o.data for o in fresh),
            next_serial[0](),
        )
        for i, o in enumerate(fresh):
            o.note = made if len(fresh) == 1 else Pick(made, i)
        if len(fresh) == 1:
            made.output = fresh[0].data
        return fresh if isinstance(out, tuple) else fresh[0]

    return run


@functools.cache
def derived(name: str, body: Fn, count: int) -> Op:
    """The gradient of a composite of `count` results, derived from its body: run it on aliases,
    sweep back. A composite itself, so it runs as one kernel where that can be done and can be
    differentiated again.
    """

    def run(*values: Value, **attrs: Any) -> Any:
        gs, xs = values[:count], values[count:]
        with enable_grad():
            own = [_alias(x) for x in xs]
            ys = body(*own, **attrs)
        wanted = [x.note for x in _floats(own)]
        differentiable = recording.get()
        pairs = zip(ys if isinstance(ys, tuple) else (ys,), gs, strict=True)
        found = pull(
            [(y.note, g) for y, g in pairs],
            wanted,
            retain=differentiable,
            create_graph=differentiable,
        )
        outs = tuple(
            found[n] if n in found else later.zeros(x.type)
            for n, x in zip(wanted, _floats(own), strict=True)
        )
        return outs if len(outs) > 1 else outs[0]

    said = f"{name}_vjp{count}" if count > 1 else f"{name}_vjp"
    made: Op = later.composite(said)(run)
    return made


@functools.cache
def body_vjp(name: str, body: Fn) -> Fn:
    """The vjp of a composite that has none of its own: a call of the op derived from its body."""

    def vjp(g: Any, y: Any, *xs: Value, **attrs: Any) -> tuple[Any, ...]:
        gs = g if isinstance(g, tuple) else (g,)
        out = derived(name, body, len(gs))(*gs, *xs, **attrs)
        cotangents = iter(out if isinstance(out, tuple) else (out,))
        return tuple(next(cotangents) if _is_float(x) else None for x in xs)

    return vjp


def _is_float(x: Any) -> bool:
    return isinstance(x, Value) and x.type.dtype.is_float


def _floats(xs: list[Value]) -> list[Value]:
    return [x for x in xs if _is_float(x)]


def _alias(x: Value) -> Value:
    if not _is_float(x):  # a Python number, too
        return x
    if x.note is not None:
        return alias(x)  # type: ignore[no-any-return]
    out = installed.tensor(data_of(x))
    out.note = inner_leaf()
    return out


def run_noted(op: Op, xs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
    """Run a composite's body op by op, under one note for the whole. Its gradient sweeps the body's
    own notes: the same additions in the same order as the derived vjp, without computing anything
    twice.
    """
    if not recording.get() or all(x.note is None for x in xs if isinstance(x, Value)):
        return op.body(*xs, **attrs)  # type: ignore[misc]
    own = tuple(_alias(x) if isinstance(x, Value) else x for x in xs)
    out = op.body(*own, **attrs)  # type: ignore[misc]
    inner = _results(op.name, out)
    fresh = tuple(installed.tensor(data_of(o)) for o in inner)
    wanted = [x.note for x in own if isinstance(x, Value) and x.type.dtype.is_float]

    def sweep(g: Any, y: Any, *again: Any, **_: Any) -> tuple[Any, ...]:
        gs = g if isinstance(g, tuple) else (g,)
        differentiable = recording.get()
        found = pull(
            [(o.note, c) for o, c in zip(inner, gs, strict=True)],
            wanted, retain=True, create_graph=differentiable,
        )  # fmt: skip
        return tuple(found.get(x.note) if isinstance(x, Value) else None for x in own)

    noted = Op(op.name, op.infer, vjp=sweep)
    note(Call(noted, types_of(xs), attrs), xs, fresh)
    return fresh if isinstance(out, tuple) else fresh[0]


later.body_vjp, later.derived = body_vjp, derived
later.zeros = functools.partial(constant, 0.0)
