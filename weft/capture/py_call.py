"""`py_call`: eager Python inside a compiled program, with gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.autodiff.mode import enable_grad, no_grad, recording
from weft.autodiff.tape import Leaf, note, pull
from weft.capture.effects import root, tell
from weft.capture.refusal import refused
from weft.capture.source.calls import SPECIAL
from weft.capture.structure import Form, flatten
from weft.capture.text import written
from weft.control.branches import first_order
from weft.control.host import emit_host, first_token
from weft.errors import DTypeError
from weft.ir import Node
from weft.ops.define import Call, Op, Value, data_of, installed, types_of
from weft.types import TensorType


def py_call(f: Callable[..., Any], *args: Any, result: Any = None) -> Any:
    """`f(*args)`, run eagerly by Python, in a compiled program too, whenever it comes by, in order
    with what is printed there.

    `result` says what f gives: a tensor of the same type, or a structure of such; None, that it
    gives nothing. Gradients go to tensors among the arguments, by what f does with them; a program
    runs f again for that.

    >>> import weft as wf
    >>> @wf.compile(fallback=False)
    ... def f(x):
    ...     return wf.py_call(lambda v: wf.tensor(sorted(v.tolist())), x, result=x) * 2
    >>> f(wf.tensor([3.0, 1.0, 2.0]))
    tensor([2., 4., 6.])
    """
    if not callable(f):
        raise DTypeError("py_call", expected="a function", got=type(f).__name__)
    like, gives = ([], None) if result is None else flatten(result)
    types = tuple([_type(x) for x in like])
    leaves, form = flatten(args)
    callback = Callback(f, form, gives)
    if root() is None:
        if any(isinstance(x, Value) and isinstance(x.data, Node) for x in leaves):
            raise refused("py_call", "tensors, or a compiled function", "a graph made by hand")
        outs = callback.taped(leaves, types)
    else:
        outs = callback.told(leaves, types)
    return None if gives is None else gives.build(outs)


def _type(x: Any) -> TensorType:
    if isinstance(x, TensorType):
        return x
    if isinstance(x, Value):
        return x.type
    raise DTypeError(
        "py_call",
        expected="tensors of the types that the function gives, as `result`",
        got=type(x).__name__,
        hint="result=wf.zeros(shape), say, or None for nothing",
    )


class Callback:
    """A function of the user's on leaves, in Python and in a program."""

    def __init__(self, f: Callable[..., Any], form: Form, gives: Form | None) -> None:
        self.f, self.form, self.gives = f, form, gives
        self.__qualname__ = getattr(f, "__qualname__", type(f).__name__)

    def __call__(self, *leaves: Any) -> tuple[Any, ...]:
        out = self.f(*self.form.build(leaves))
        if self.gives is None:
            return ()
        found, form = flatten(out)
        if form != self.gives:
            raise DTypeError(
                f"py_call of {self.__qualname__}",
                expected=f"{self.gives.count} results in the structure of `result`",
                got=f"{len(found)} in another one",
            )
        return tuple([x if isinstance(x, Value) else installed.lift(x) for x in found])

    def checked(self, outs: Sequence[Any], types: Sequence[TensorType]) -> tuple[Any, ...]:
        for x, t in zip(outs, types, strict=True):
            if x.type is not t:
                raise DTypeError(
                    f"py_call of {self.__qualname__}",
                    expected=f"{t}, as `result` says",
                    got=str(x.type),
                    hint="convert it with .astype() or .reshape() inside the function",
                )
        return tuple(outs)

    # eagerly

    def taped(self, leaves: Sequence[Any], types: Sequence[TensorType]) -> tuple[Any, ...]:
        """The results, on the tape."""
        xs = [x for x in leaves if isinstance(x, Value)]
        if not recording.get() or all(x.note is None for x in xs):
            with no_grad():
                outs = self.checked(self(*leaves), types)
            return tuple([installed.tensor(x.data) for x in outs])
        own, outs = self._run(leaves)
        fresh = tuple([installed.tensor(x.data) for x in self.checked(outs, types)])

        def vjp(g: Any, y: Any, *_: Any) -> tuple[Any, ...]:
            first_order(op)
            return _pulled(own, outs, g)

        op = Op("py_call", infer=_no_infer, vjp=vjp)
        note(Call(op, types_of(tuple(xs)), {}), tuple(xs), fresh)
        return fresh

    def _run(self, leaves: Sequence[Any]) -> tuple[list[Any], tuple[Any, ...]]:
        """The function on tensors of its own, and these."""
        stands = [_leaf(x) if isinstance(x, Value) else x for x in leaves]
        with enable_grad():
            outs = self(*stands)
        return [x for x in stands if isinstance(x, Value)], outs

    # in a program

    def told(self, leaves: Sequence[Any], types: Sequence[TensorType]) -> tuple[Any, ...]:
        """The results as values of the program."""
        bare = [installed.tensor(data_of(x)) if isinstance(x, Value) else x for x in leaves]
        outs = tell(written(self, bare, word="apply"), types)
        xs = tuple([x for x in leaves if isinstance(x, Value)])
        if not outs or not recording.get() or all(x.note is None for x in xs):
            return outs
        floats = [x.type for x in xs if x.type.dtype.is_float]

        def vjp(g: Any, y: Any, *again: Any) -> tuple[Any, ...]:
            first_order(op)
            left = iter(again)
            given = [next(left) if isinstance(x, Value) else x for x in leaves]
            plain = [installed.tensor(data_of(x)) if isinstance(x, Value) else x for x in given]
            gs = [s for s in (g if isinstance(g, tuple) else (g,)) if isinstance(s, Value)]
            said = written(Pullback(self, len(leaves)), [*plain, *gs], word="apply")
            token = installed.tensor(first_token())
            slopes = iter(emit_host((token, *said.values), said.said, tuple(floats))[1:])
            return tuple([next(slopes) if x.type.dtype.is_float else None for x in xs])

        op = Op("py_call", infer=_no_infer, vjp=vjp)
        installed.note(Call(op, types_of(xs), {}), xs, outs)
        return outs


class Pullback:
    """The gradient of a callback: runs it again, and back."""

    def __init__(self, callback: Callback, count: int) -> None:
        self.callback, self.count = callback, count
        self.__qualname__ = f"gradient of {callback.__qualname__}"

    def __call__(self, *given: Any) -> tuple[Any, ...]:
        own, outs = self.callback._run(given[: self.count])
        found = _pulled(own, outs, given[self.count :])
        return tuple(
            [
                installed.lift(x.numpy() * 0) if s is None else s
                for x, s in zip(own, found, strict=True)
                if x.type.dtype.is_float
            ]
        )

    def taped(self, *_: Any) -> Any:
        first_order(Op("py_call", infer=_no_infer))


def _leaf(x: Value) -> Value:
    out = installed.tensor(x.data)
    if x.type.dtype.is_float:
        out.note = out.leaf = Leaf()
    return out


def _pulled(own: Sequence[Any], outs: Sequence[Any], g: Any) -> tuple[Any, ...]:
    """Cotangents of the arguments."""
    gs = g if isinstance(g, tuple) else (g,)
    pairs = [(y.note, s) for y, s in zip(outs, gs, strict=True) if y.note is not None]
    with no_grad():
        found = pull(pairs, [x.note for x in own if x.note is not None], retain=True)
    return tuple([None if x.note is None else found.get(x.note) for x in own])


def _no_infer(*types: Any, **attrs: Any) -> Any:
    raise refused("py_call", "to be run, not inferred", "an inference")


SPECIAL[py_call] = py_call
