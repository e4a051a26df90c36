"""Control flow said by hand: `cond`, `switch`, `while_loop`, `fori_loop`, `scan`.

On real tensors they are Python's branches and loops; while a function is captured, or on symbols,
branches and loops of the graph. Either way gradients go through them, and functions given to them
may use Python's own control flow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.capture.effects import happened
from weft.capture.refusal import refused
from weft.capture.source.calls import call
from weft.capture.source.loops import loop
from weft.capture.source.ranges import Range, as_index, counted, is_long, is_symbolic
from weft.capture.source.symbolic import branch
from weft.capture.structure import flatten
from weft.errors import CaptureError, DTypeError, ShapeError
from weft.ops.define import Value
from weft.tensor.creation import zeros
from weft.tensor.manipulation import concat, stack
from weft.types.size import Size

Fn = Callable[..., Any]


def _callable(place: str, *fns: Any) -> None:
    for f in fns:
        if not callable(f):
            raise DTypeError(place, expected="functions", got=type(f).__name__)


def _checkpoint(place: str, x: Any) -> None:
    if not (x is None or type(x) is bool or (type(x) is int and x >= 2)):
        got = repr(x) if type(x) is int else type(x).__name__
        raise DTypeError(place, expected="checkpoint: None, False or a number from 2", got=got)


def _nothing(*_: Any) -> None:
    """Binds no variable."""


def cond(pred: Any, true_fn: Fn, false_fn: Fn, *args: Any) -> Any:
    """`true_fn(*args)` if `pred` (one element) is true, else `false_fn(*args)`.

    In a program both are there; results must then have one structure and types.

    >>> import weft as wf
    >>> x = wf.tensor(3.0)
    >>> wf.cond(x > 0, lambda x: x * 2, lambda x: -x, x)
    tensor(6.)
    """
    _callable("cond", true_fn, false_fn)
    if not is_symbolic(pred):
        return true_fn(*args) if pred else false_fn(*args)
    then, otherwise = (lambda f=f: call(f, *args) for f in (true_fn, false_fn))
    return branch(pred, then, otherwise, tuple, _nothing, ())


def switch(index: Any, fns: Sequence[Fn], *args: Any) -> Any:
    """`fns[index](*args)`; an index below 0 means the first, one beyond the end the last.

    >>> import weft as wf
    >>> wf.switch(wf.tensor(1), [lambda x: x, lambda x: x * 10], wf.tensor(2.0))
    tensor(20.)
    """
    if not isinstance(fns, list | tuple):
        raise DTypeError("switch", expected="a list of functions", got=repr(fns)[:60])
    if not fns:
        raise ShapeError("switch", expected="one function or more", got="none")
    _callable("switch", *fns)
    if isinstance(index, Value) and not (index.type.dtype.is_int and index.type.size == 1):
        raise DTypeError("switch", expected="one integer", got=str(index.type))
    if not is_symbolic(index):
        return fns[min(max(int(index), 0), len(fns) - 1)](*args)

    def among(first: int) -> Any:
        if first == len(fns) - 1:
            return call(fns[first], *args)
        then, otherwise = lambda: call(fns[first], *args), lambda: among(first + 1)
        return branch(as_index(index) <= first, then, otherwise, tuple, _nothing, ())

    return among(0)


def while_loop(cond_fn: Fn, body_fn: Fn, init: Any, *, checkpoint: int | bool | None = None) -> Any:
    """`state = body_fn(state)` while `cond_fn(state)`, from `init` on; the last state.

    In a program the state keeps its structure and types. For the gradient the program keeps the
    states of `checkpoint` steps (256 if None), and while it goes back those between two of them,
    computed again: no bit changes, and a long loop needs little memory. False: it keeps all.

    >>> import weft as wf
    >>> wf.while_loop(lambda x: x < 100, lambda x: x * 3, wf.tensor(1.0))
    tensor(243.)
    """
    _callable("while_loop", cond_fn, body_fn)
    _checkpoint("while_loop", checkpoint)
    state = init
    while True:
        done = happened()
        more = call(cond_fn, state) if _is_traced(state) else cond_fn(state)
        if is_symbolic(more):
            break
        if not more:
            return state
        state = body_fn(state)

    def step() -> None:
        nonlocal state
        state = call(body_fn, state)

    def put(new: Any) -> None:
        nonlocal state
        state = new

    check = lambda: call(cond_fn, state)
    changes = done != happened()
    loop(more, changes, check, step, lambda: (state,), put, ("state",), None, checkpoint)
    return state


def _is_traced(state: Any) -> bool:
    return any(is_symbolic(x) for x in flatten(state)[0])


def fori_loop(
    lower: Any,
    upper: Any,
    body_fn: Fn,
    init: Any,
    *,
    checkpoint: int | bool | None = None,
) -> Any:
    """`state = body_fn(i, state)` for i from `lower` up to, not including, `upper`.

    In a program it is a loop if a bound is a tensor or there are many steps, and otherwise its
    steps one after the other. `checkpoint` as in `while_loop`.

    >>> import weft as wf
    >>> wf.fori_loop(0, 4, lambda i, x: x + i, wf.tensor(0.0))
    tensor(6.)
    """
    _callable("fori_loop", body_fn)
    _checkpoint("fori_loop", checkpoint)
    state = init
    traced = is_symbolic(lower) or is_symbolic(upper)
    steps: Any = range(0) if traced else range(int(lower), int(upper))

    def step(i: Any) -> None:
        nonlocal state
        state = call(body_fn, i, state) if traced else body_fn(i, state)

    def put(new: Any) -> None:
        nonlocal state
        state = new

    if traced or is_long(steps):
        bounds = (
            Range(as_index(lower), as_index(upper)) if traced else Range(steps.start, steps.stop)
        )
        try:
            get = lambda: (state,)
            counted(bounds, step, get, put, ("state",), None, checkpoint, known=not traced)
            return state
        except CaptureError:
            if traced:
                raise
    for i in steps:
        step(i)
    return state


def scan(fn: Fn, init: Any, xs: Any, *, checkpoint: int | bool | None = None) -> tuple[Any, Any]:
    """`state, y = fn(state, x)` for each x along the first axis of `xs` (a tensor or a structure of
    tensors); the last state, and all y stacked.

    In a program it is a loop if there are many steps. `checkpoint` as in `while_loop`.

    >>> import weft as wf
    >>> wf.scan(lambda s, x: (s + x, s * x), wf.tensor(0.0), wf.tensor([1.0, 2.0, 3.0]))
    (tensor(6.), tensor([0., 2., 9.]))
    """
    _callable("scan", fn)
    _checkpoint("scan", checkpoint)
    leaves, form = flatten(xs)
    if not leaves or not all(isinstance(x, Value) and x.type.ndim for x in leaves):
        raise DTypeError("scan", expected="tensors with an axis to go along", got=repr(xs)[:60])
    count = leaves[0].type.shape[0]
    if any(x.type.shape[0] != count for x in leaves):
        got = ", ".join(str(x.type) for x in leaves)
        raise ShapeError("scan", expected="first axes of one size", got=got)
    if count < 1:
        hint = "give init a step, or check for an empty axis first"
        raise ShapeError("scan", expected="at least one step", got=f"{leaves[0].type}", hint=hint)

    def step(state: Any, i: Any) -> tuple[Any, list[Any], Any]:
        out = call(fn, state, form.build([x[i] for x in leaves]))
        if not isinstance(out, tuple) or len(out) != 2:
            got = type(out).__name__
            raise DTypeError("scan", expected="a function that gives (state, y)", got=got)
        return out[0], *flatten(out[1])

    state, row, shape = step(init, 0)
    if type(count) is Size or is_long(range(count)):
        try:
            return _scanned(step, state, row, shape, count, checkpoint)
        except CaptureError:  # step by step, then
            pass
    rows = [row]
    for i in range(1, count):
        state, row, now = step(state, i)
        if now != shape:
            raise refused("scan", "results of one structure", "another one in a later step")
        rows.append(row)
    stacked = [
        stack(list(column)) if isinstance(column[0], Value) else column[0]
        for column in zip(*rows, strict=True)
    ]
    return state, shape.build(stacked)


def _scanned(
    step: Fn, state: Any, row: list[Any], shape: Any, count: Any, checkpoint: int | bool | None
) -> tuple[Any, Any]:
    """A scan after its first step, as a loop that writes what the steps give into tensors."""
    columns = [
        concat([stack([y]), zeros((count - 1, *y.type.shape), dtype=y.type.dtype)])
        if isinstance(y, Value)
        else y
        for y in row
    ]

    def again(i: Any) -> None:
        nonlocal state, columns
        state, new, now = step(state, i)
        if now != shape:
            raise refused("scan", "results of one structure", "another one in a later step")
        written = []
        for column, y in zip(columns, new, strict=True):
            if not isinstance(y, Value):
                raise refused("scan", "results that are tensors", type(y).__name__)
            column = column.clone()
            column[i] = y
            written.append(column)
        columns = written

    def get() -> tuple[Any, Any]:
        return state, columns

    def put(new: Any, more: Any) -> None:
        nonlocal state, columns
        state, columns = new, more

    known = type(count) is not Size
    counted(Range(1, count), again, get, put, ("state", "y"), None, checkpoint, known)
    return state, shape.build(columns)
