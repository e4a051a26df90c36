"""Branches and loops as nodes, from pieces that were run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from weft.autodiff.mode import recording
from weft.autodiff.tape import Leaf
from weft.control.branches import Piece, build_cond, first_order
from weft.control.gradient import note_while
from weft.control.growing import spots, tie
from weft.control.nodes import AGAIN, BOOL, Regions, emit, while_, while_grad
from weft.control.region import Region, close
from weft.errors import ShapeError
from weft.ops.creation import full
from weft.ops.define import Value, as_node, data_of, installed
from weft.ops.elementwise import astype
from weft.ops.movement import reshape
from weft.ops.record import replay
from weft.types.dtype import bool_, int64

#: how many states a loop keeps for its gradient, unless it says otherwise
KEPT = 256


def truth(x: Value, place: str) -> Value:
    """A condition as a bool without axes."""
    if x.type is BOOL:
        return x
    if x.type.size != 1:
        raise ShapeError(
            place,
            expected="a condition of one element",
            got=str(x.type),
            hint="use .any() or .all(), or & | ~ between conditions",
        )
    if x.type.dtype is not bool_:
        x = astype(x, dtype=bool_)
    out: Value = x if x.type.shape == () else reshape(x, shape=())
    return out


def state_params(region: Region, types: Sequence[Any]) -> tuple[list[Value], list[Any]]:
    """Params for the state of a loop, and their notes."""
    params = [region.parameter(t) for t in types]
    leaves: list[Any] = [None] * len(params)
    if recording.get():
        for i, p in enumerate(params):
            if p.type.dtype.is_float:
                p.note = leaves[i] = Leaf()
                region.leaves.add(leaves[i])
    return params, leaves


def build_while(
    inits: Sequence[Value],
    leaves: Sequence[Any],
    test: Piece,
    body: Piece,
    checkpoint: int | bool | None = None,
    runs: bool = False,
) -> tuple[Value, ...]:
    """The last state of a loop. For its gradient the states of `checkpoint` steps at most are kept
    at a time; the others are computed again. False: all are kept. `runs`: there is a step at least.
    """
    inits = [installed.tensor(data_of(x), x.note) for x in inits]
    count = len(inits)
    if recording.get():
        region, params, values = body
        for at in spots(inits, params, values):
            inits, leaves = [*inits, full(-1, shape=(), dtype=int64)], [*leaves, None]
            params = [*params, region.parameter(at.type)]
            values = [*values, installed.tensor(at)]
        test, body = (test[0], params, test[2]), (region, params, values)
    functions, captured = close(
        "while",
        [
            (r.nodes, [p.data for p in params], [as_node(v) for v in values])
            for r, params, values in (test, body)
        ],
    )
    outs = emit(while_, (*inits, *map(installed.tensor, captured)), tuple(functions), {})
    most = KEPT if checkpoint is None or checkpoint is True else int(checkpoint)
    note_while(inits, leaves, test, body, outs, most + most % 2)
    if runs:
        tie(inits, body[1], body[2], outs)
    return outs[:count]


# nodes called again, on other symbols


def _again_cond(xs: Sequence[Any], regions: Regions) -> tuple[Value, ...]:
    pieces = [_ran(partial(replay, r, xs[1:])) for r in regions]
    return build_cond(xs[0], pieces)


def _ran(f: Callable[[], Sequence[Value]]) -> Piece:
    region = Region()
    with region:
        return region, (), f()


def _again_while(xs: Sequence[Any], regions: Regions) -> tuple[Value, ...]:
    test, body = regions
    count = len(body.results)
    first, second = Region(), Region()
    params, leaves = state_params(second, [x.type for x in xs[:count]])
    captured = xs[count:]
    with first:
        checked = replay(test, (*params, *captured))
    with second:
        values = replay(body, (*params, *captured))
    return build_while(xs[:count], leaves, (first, params, checked), (second, params, values))


def _again_while_grad(xs: Sequence[Any], regions: Regions, **attrs: Any) -> tuple[Value, ...]:
    if any(isinstance(x, Value) and x.note is not None for x in xs):
        first_order(while_grad)
    return emit(while_grad, xs, regions, attrs)


AGAIN.update({"cond": _again_cond, "while": _again_while, "while_grad": _again_while_grad})
