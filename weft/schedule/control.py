"""Control flow in a plan: regions laid out one after the other, with jumps between them.

Every value of a loop's state has one place in the arena that all steps read and, at their end,
write. What is read inside a loop and was made before it lives until the loop ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from weft.buffer import Layout
from weft.ir import Function, Node
from weft.schedule.again import Again, kept_again
from weft.schedule.call import plan_call, plan_recursion
from weft.schedule.host import plan_host
from weft.schedule.launch import Launch
from weft.schedule.records import plan_held, plan_kept
from weft.schedule.scalars import plan_scalars
from weft.schedule.stack import (
    HANDLE,
    Field,
    plan_back,
    plan_clear,
    plan_keep,
    plan_last,
    plan_more,
    plan_pop,
    plan_short,
)
from weft.schedule.steps import When
from weft.schedule.store import plan_get, plan_put
from weft.schedule.sums import Sums, in_place, plan_accumulate

NOTHING = Again((), ())
ALWAYS, IF_TRUE, IF_FALSE = When.ALWAYS, When.IF_TRUE, When.IF_FALSE


class Kept(NamedTuple):
    """What a loop kept: the handle of its states, what else, and the handle of that."""

    handle: Any
    again: Again
    other: Any


def plan_control(p: Any, n: Node) -> None:
    """Plan a node with regions, or a call. `p` plans the function that it stands in."""
    inputs = [p.operand(i) for i in n.inputs]
    if n.op.name in SINGLE:
        p.spots[n] = SINGLE[n.op.name](p, n, inputs)
        return
    outs = PLANS[n.op.name](p, n, inputs)
    for pick in p.f.order:
        if pick.is_pick and pick.inputs[0] is n:
            p.spots[pick] = outs[pick.attr("position")]


def _cond(p: Any, n: Node, inputs: Sequence[Any]) -> list[Any]:
    yes, no = n.regions
    there = dict(in_place(n))
    outs = [
        inputs[1 + there[r]] if r in there else p.room(Layout.dense(x.type))
        for r, x in enumerate(yes.results)
    ]
    start = len(p.steps)
    other = p.jump(IF_FALSE, inputs[0])
    _into(p, outs, p.region(yes, inputs[1:]))
    end = p.jump(ALWAYS)
    other.target = len(p.steps)
    _into(p, outs, p.region(no, inputs[1:]))
    end.target = len(p.steps)
    _alive(outs, start, end.target)
    return outs


def _while(p: Any, n: Node, inputs: Sequence[Any]) -> list[Any]:
    test, body = n.regions
    count = len(body.results)
    reverse = _reverse(p.f, n)
    if reverse is None and (planned := plan_scalars(n, [x.layout for x in inputs])):
        launch, taken, named = planned
        outs = [p.room(layout) for layout in launch.outs]
        p.append(launch, (*(inputs[i] for i in taken), *outs), (n, named))
        return outs
    state = _copies(p, inputs[:count])
    if reverse is None:
        _loop(p, test, body, state, inputs[count:])
    else:
        again = kept_again(n, reverse)
        p.kept[n] = _kept(p, test, body, state, inputs[count:], dict(reverse.attrs), again)
    return state


def _reverse(f: Function, loop: Node) -> Node | None:
    """The reverse of a loop in the same function, if there is one: it needs no second run then."""
    found = [n for n in f.order if n.op.name == "while_grad" and _loop_of(n) is loop]
    return found[0] if len(found) == 1 else None


def _loop_of(n: Node) -> Node | None:
    """The loop whose reverse a node is, where that is in sight."""
    result = n.inputs[-1]
    return result.inputs[0] if result.is_pick else None


def _kept(
    p: Any,
    test: Function,
    body: Function,
    state: list[Any],
    captured: Any,
    attrs: dict[str, Any],
    again: Again = NOTHING,
) -> Kept:
    """Run a loop that keeps the state before its steps, and what else its reverse reads."""
    handle = p.stack(HANDLE)
    p.append(plan_clear(), (handle,), ())
    values = [state[i] for i in attrs["kept"]] if len(state) != attrs["state"] else state
    launch = plan_keep([v.layout for v in values], attrs["checkpoint"])
    kept = Kept(handle, again, p.stack(HANDLE) if again.there else None)
    if again.there:
        p.append(plan_clear(), (kept.other,), ())
        body = Function(body.name, body.params, (*body.results, *again.there))

    def computed(found: list[Any]) -> None:
        if found:
            dense = [p.dense(x) for x in found]
            p.append(
                plan_keep([x.layout for x in dense], attrs["checkpoint"]), (kept.other, *dense), ()
            )

    _loop(p, test, body, state, captured, lambda: p.append(launch, (handle, *values), ()), computed)
    return kept


def _loop(
    p: Any,
    test: Function,
    body: Function,
    state: list[Any],
    captured: Sequence[Any],
    first: Callable[[], None] = lambda: None,
    computed: Callable[[list[Any]], None] = lambda found: None,
) -> None:
    """Steps while `test` says so; `first` adds what is to be done before each, `computed` what is
    to be done with what the body gives besides the next state.
    """
    p.pack(body, (*state, *captured), captured)
    start = len(p.steps)
    (go,) = p.region(test, (*state, *captured))
    leave = p.jump(IF_FALSE, go)
    first()
    after = p.region(body, (*state, *captured), state, captured)
    computed(after[len(state) :])
    _into(p, state, after[: len(state)])
    p.jump(ALWAYS).target = start
    leave.target = len(p.steps)
    _hold(p, start)
    _alive(state, start, len(p.steps) - 1)


def _while_grad(p: Any, n: Node, inputs: Sequence[Any]) -> list[Any]:
    test, body, step, last, none = n.regions
    attrs = dict(n.attrs)
    count, slopes, inner = attrs["state"], attrs["slopes"], attrs["inner"]
    total = len(last.results)
    inits = list(inputs[:count])
    given = inputs[count : count + slopes]
    begun = inputs[count + slopes : count + slopes + total]
    captured = inputs[count + slopes + total : -1]
    outs = [p.room(Layout.dense(r.type)) for r in last.results]
    start = len(p.steps)
    state = _copies(p, inits)
    kept = p.kept.get(_loop_of(n))
    if kept is None:
        kept = _kept(p, test, body, state, captured, attrs)
    handle = kept.handle
    between = p.stack(HANDLE)
    p.append(plan_clear(), (between,), ())
    idle = p.jump(IF_FALSE, _more(p, handle, 0, Field.STEPS))
    gs, sums = _copies(p, given), _copies(p, begun)
    found = [p.room(Layout.dense(t)) for t in kept.again.types]
    added = Sums(kept.again.read(step), {slopes + i: count + slopes + i for i in range(len(inner))})
    handles = [p.stack(HANDLE) for _ in added.held]
    for h in handles:
        p.append(plan_clear(), (h,), ())
    parts = [sums[i] for i in inner]
    sent = [*gs, *parts]
    whole, given_step = added.rewritten(), (*state, *sent, *captured, *found, *handles)
    p.pack(whole, given_step, captured)
    again = len(p.steps)
    leave = p.jump(IF_FALSE, _more(p, handle, 1, Field.STEPS))
    _fetch(p, handle, between, body, state, captured)
    if found:
        _fetch_more(p, kept, found, step, (*state, *sent, *captured))
    _into(p, sent, p.region(whole, given_step, sent, captured))
    p.jump(ALWAYS).target = again
    leave.target = len(p.steps)
    _hold(p, again)
    for r, h in zip(added.held, handles, strict=True):
        added.drain(p, r, h, sent[r])
    _alive([*state, *gs, *sums, *found], again, len(p.steps) - 1)
    _into(p, outs, p.region(last, (*inits, *gs, *sums, *captured)))
    end = p.jump(ALWAYS)
    idle.target = len(p.steps)
    _into(p, outs, p.region(none, (*given, *begun)))
    end.target = len(p.steps)
    _alive(outs, start, len(p.steps))
    return outs


def _fetch(
    p: Any, handle: Any, between: Any, body: Function, state: list[Any], captured: Sequence[Any]
) -> None:
    """The state before the last step that is left, computed again from where it was kept last."""
    layouts = [s.layout for s in state]
    thinned = p.jump(IF_TRUE, _more(p, handle, 1, Field.STRIDE))
    p.append(plan_last(layouts), (handle, *state), ())
    end = p.jump(ALWAYS)
    thinned.target = len(p.steps)
    there = p.jump(IF_TRUE, _more(p, between, 0, Field.COUNT))
    p.append(plan_back(layouts), (handle, *state), ())
    p.append(plan_keep(layouts, 0), (between, *state), ())
    start = len(p.steps)
    launch = plan_short()
    short = p.room(launch.outs[0])
    p.append(launch, (handle, between, short), ())
    done = p.jump(IF_FALSE, short)
    _into(p, state, p.region(body, (*state, *captured)))
    p.append(plan_keep(layouts, 0), (between, *state), ())
    p.jump(ALWAYS).target = start
    there.target = done.target = len(p.steps)
    _hold(p, start)
    _alive(state, start, len(p.steps) - 1)
    p.append(plan_pop(layouts), (handle, between, *state), ())
    end.target = len(p.steps)


def _fetch_more(
    p: Any, kept: Kept, places: Sequence[Any], step: Function, given: Sequence[Any]
) -> None:
    """What else was kept of a step; computed again, where it was not kept of all."""
    thinned = p.jump(IF_TRUE, _more(p, kept.other, 1, Field.STRIDE))
    p.append(plan_back([x.layout for x in places]), (kept.other, *places), ())
    end = p.jump(ALWAYS)
    thinned.target = len(p.steps)
    _into(p, places, p.region(Function(step.name, step.params, kept.again.back), given))
    end.target = len(p.steps)


PLANS = {
    "cond": _cond, "while": _while, "while_grad": _while_grad, "host": plan_host,
    "recursion": plan_recursion, "call": plan_call,
}  # fmt: skip
#: nodes of one result
SINGLE = {
    "put": plan_put, "get": plan_get, "accumulate": plan_accumulate, "kept": plan_kept,
    "held": plan_held,
}  # fmt: skip


def _more(p: Any, handle: Any, than: int, field: Field) -> Any:
    launch: Launch = plan_more(than, field)
    flag = p.room(launch.outs[0])
    p.append(launch, (handle, flag), ())
    return flag


def _copies(p: Any, spots: Sequence[Any]) -> list[Any]:
    """Places of their own with the same values."""
    out = []
    for s in spots:
        room = p.room(Layout.dense(s.layout.type))
        p.copy_to(s, room)
        out.append(room)
    return out


def _into(p: Any, places: Sequence[Any], values: Sequence[Any]) -> None:
    """Values to their places; one that lies in another's place is put aside first."""
    blocks = {id(s.block) for s in places}
    waiting = []
    for place, value in zip(places, values, strict=True):
        if value == place:
            continue
        if value.block is not None and id(value.block) in blocks:
            aside = p.room(Layout.dense(value.layout.type))
            p.copy_to(value, aside)
            value = aside
        waiting.append((place, value))
    for place, value in waiting:
        p.copy_to(value, place)


def _alive(spots: Sequence[Any], start: int, end: int) -> None:
    for s in spots:
        if s.block is not None:
            s.block.birth = min(s.block.birth, start)
            s.block.death = max(s.block.death, end)


def _hold(p: Any, start: int) -> None:
    """What a loop reads of before its start lives until its end."""
    end = len(p.steps) - 1
    for b in p.blocks:
        if b.birth < start <= b.death:
            b.death = max(b.death, end)
