"""Reverse mode along the tape.

Every call that needs a gradient leaves a Note: what was called, the notes of its inputs, and the
buffers its gradient will read (no others are kept alive). Notes hold values, never Tensors, so
there are no reference cycles and a Tensor that is later given another value does no harm. `pull`
walks notes from the newest to the oldest; cotangents of one value add up in that order, in eager
and in symbolic mode alike.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from weft.autodiff.mode import enable_grad, no_grad, recording
from weft.autodiff.pullback import COTANGENT, OUTPUT, Pullback
from weft.buffer import Buffer
from weft.errors import GradError
from weft.ops.define import (
    Call,
    Value,
    capturing,
    closed,
    data_of,
    installed,
    placeholder,
    standard_mode,
)
from weft.types import TensorType


class Leaf:
    """Where a gradient ends: the `grad` of a tensor that requires one."""

    __slots__ = ("grad",)
    serial = -1

    def __init__(self) -> None:
        self.grad: Value | None = None


def new_leaf(x: Value) -> Leaf:
    """A leaf for a tensor; if it is part of a graph, the capture under way is told whose it is."""
    out = Leaf()
    if capturing.now is not None and not isinstance(x.data, Buffer):
        capturing.now.own_leaf(out)
    return out


def inner_leaf() -> Leaf:
    """A leaf that is nobody's but the transform's that made it: its gradient is no state."""
    out = Leaf()
    if capturing.now is not None:
        capturing.now.own_leaf(out)
    return out


class Note:
    """How a value came about. `saved` is None once the note has been used up."""

    __slots__ = ("call", "output", "parents", "saved", "serial")

    def __init__(
        self,
        call: Call,
        parents: tuple[Any, ...],
        saved: tuple[Any, ...] | None,
        output: Any,
        serial: int,
    ) -> None:
        self.call, self.parents, self.saved, self.output, self.serial = (
            call,
            parents,
            saved,
            output,
            serial,
        )


class Continued(Call):
    """A call whose gradient goes on with the sums that cotangents have come to so far: control
    flow, whose own contributions must be added one by one, as if its ops stood in the tape.

    `pull(xs, g, parents, sums)` takes the operands, the cotangents of results by position, the
    parents whose cotangents are wanted (None for others) and their sums so far (None: nothing yet);
    it gives the new sums by parent.
    """

    __slots__ = ("owes", "pull")
    pull: Callable[..., dict[Any, Value]]
    owes: bool  # whether it takes, and gives to leaves, sums that are not added up yet


class Part(Call):
    """A call that gives a part of its first operand which in eager code is a value of its own: its
    cotangents are added there one by one as they arrive.

    `widen(g)` is the cotangent of the operand with one of the part in it and -0.0 elsewhere,
    `read(sum)` the part's sum in the operand's, `put(sum, total)` the operand's with another one.
    """

    __slots__ = ("put", "read", "was", "widen")
    widen: Callable[[Value], Value]
    read: Callable[[Value], Value]
    put: Callable[[Value, Value], Value]
    was: Any  # what the value's note was before it became a part, if it was a value before


#: whether a value that has become a part is followed there; gradients of gradients follow it to
#: where it was before
parting: ContextVar[bool] = ContextVar("weft_parting", default=True)


@contextmanager
def apart(wanted: bool = True) -> Iterator[None]:
    """While what has become a part is not followed there."""
    token = parting.set(parting.get() and not wanted)
    try:
        yield
    finally:
        parting.reset(token)


def _leads(n: Note) -> tuple[Any, ...]:
    """Where cotangents of a note go."""
    call = n.call
    if call.__class__ is Part and call.was is not None and not parting.get():
        return (call.was,)
    return n.parents


class Row(Call):
    """A call that puts its operands behind each other; in eager code they stay values of their own:
    cotangents go on to each of them as they arrive.

    `split` has a function per operand for its part of a cotangent, `join(sums)` is the whole's sum,
    of which those of some operands may be missing.
    """

    __slots__ = ("join", "split")
    split: Sequence[Callable[[Value], Value]]
    join: Callable[[Sequence[Value | None]], Value]


class Pick(NamedTuple):
    """One result of a note whose call had several. Control flow has others: what a path computed on
    the way, by its note there.
    """

    note: Note
    position: Any

    @property
    def serial(self) -> int:
        return self.note.serial


class Absent:
    """Stands for the data of a value that a gradient does not read: its type is known, its
    elements are gone.
    """

    __slots__ = ("type",)

    def __init__(self, type_: TensorType) -> None:
        self.type = type_


next_serial: list[Callable[[], int]] = [
    itertools.count().__next__
]  # the runtime puts its native counter here


def note(call: Call, xs: tuple[Any, ...], outs: tuple[Value, ...]) -> None:
    """Note a call made from Python (symbolic calls, ops with several results); the native path
    does the same itself.
    """
    parents = tuple(x.note if isinstance(x, Value) else None for x in xs)
    if call.op.vjp is None or not recording.get() or all(p is None for p in parents):
        return
    saved = tuple(data_of(x) if isinstance(x, Value) else x for x in xs)
    made = Note(call, parents, saved, tuple(o.data for o in outs), next_serial[0]())
    for i, out in enumerate(outs):
        if out.type.dtype.is_float:
            out.note = made if len(outs) == 1 else Pick(made, i)
    if len(outs) == 1:
        made.output = outs[0].data


def keep_mask(call: Call) -> int:
    """Which inputs' elements (bit i) and whether the result's (bit OUTPUT) the gradient of a call
    reads.

    Found by asking the op's own vjp on symbolic values: what the cotangents do not reach is not
    kept. What was found is the call's pullback from then on.
    """
    xs = tuple(
        placeholder(t, i) if isinstance(t, TensorType) else t(1) for i, t in enumerate(call.types)
    )
    inferred = call.op.infer(*call.types, **call.attrs)
    if isinstance(inferred, tuple):
        return -1
    y, g = placeholder(inferred, OUTPUT), placeholder(inferred, COTANGENT)
    with no_grad(), closed():
        found = _said(call, call.op.vjp(g, y, *xs, **call.attrs))  # type: ignore[misc]
        cotangents = [c() if callable(c) else c for c in found]
    mask, seen, stack = 0, set(), [c.data for c in cotangents if isinstance(c, Value)]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack.extend(node.inputs)
            if node.op.name == "parameter" and node.attr("position") <= OUTPUT:
                mask |= 1 << node.attr("position")
    if len(xs) <= OUTPUT and all(isinstance(t, TensorType) for t in call.types):
        call.pullback = Pullback(cotangents)
    return mask


def _operands(n: Note) -> list[Any]:
    """The values the note kept."""
    call = n.call
    if n.saved is None:
        raise GradError(
            f"backward through {call.op.name}",
            expected="values saved by the forward pass",
            got="a graph that was already used",
            hint="pass retain_graph=True to the first backward() to go through it again; in a "
            "training loop, update parameters inside wf.no_grad()",
        )
    tensor = installed.tensor
    return [
        s if t.__class__ is not TensorType else tensor(s if s is not None else Absent(t), p)
        for s, t, p in zip(n.saved, call.types, n.parents, strict=True)
    ]


def _cotangents(n: Note, g: Any) -> Sequence[Any]:
    """Call the op's vjp on the values the note kept."""
    call, tensor, xs = n.call, installed.tensor, _operands(n)
    kept = n.output
    y: Any
    if kept.__class__ is tuple:
        y = tuple(tensor(o, Pick(n, i)) for i, o in enumerate(kept))
    else:
        out: Any = call.out  # the one type there is
        y = tensor(kept if kept is not None else Absent(out), n)
    return _said(call, call.op.vjp(g, y, *xs, **call.attrs))  # type: ignore[misc]


def _said(call: Call, cotangents: Any) -> Sequence[Any]:
    """What a vjp gives, which is one cotangent for each operand."""
    if not isinstance(cotangents, (tuple, list)) or len(cotangents) != len(call.types):
        raise GradError(
            f"the vjp of {call.op.name}",
            expected=f"a tuple of {len(call.types)}, a cotangent or None for each operand",
            got=f"{len(cotangents)}" if isinstance(cotangents, tuple) else str(cotangents),
        )
    return cotangents


def pull(
    ys: Sequence[tuple[Any, Value]],
    wanted: Sequence[Any] | None = None,
    *,
    retain: bool = False,
    create_graph: bool = False,
    sums: dict[Any, Value] | None = None,
    merged: dict[Any, Any] | None = None,
) -> dict[Any, Value]:
    """Cotangents of `wanted` notes (all leaves if None), given (note, cotangent) pairs of
    results. `sums` are what cotangents of wanted notes have come to already; `merged` says which
    wanted notes are one with others.
    """
    stops = frozenset(wanted or ())
    with apart(create_graph):
        needed = None if wanted is None else _leading_to(stops, [n for n, _ in ys])
    pending: dict[Note, Any] = {}
    heap: list[tuple[int, Note]] = []
    found: dict[Any, Value] = dict(sums or {})

    # none of these calls itself: a function that does is garbage for the collector afterwards

    def arrive(target: Any, g: Value) -> None:
        left: Any = None  # of a row: what arrives at its parts
        while True:
            if merged is not None:
                target = merged.get(target, target)
            if target in stops or (needed is None and target.__class__ is Leaf):
                found[target] = paid(found[target]) + paid(g) if target in found else g
            else:
                picked = target.__class__ is Pick
                n, position = (target.note, target.position) if picked else (target, None)
                if n.call.__class__ is Part:
                    whole = _leads(n)[0]
                    target, g = whole, n.call.widen(g) if whole is n.parents[0] else g
                    continue
                if n.call.__class__ is Row:
                    left = [*(left or ()), *_split(n, g, is_wanted)]
                elif n not in pending:
                    heapq.heappush(heap, (-n.serial, n))
                    pending[n] = g if position is None else {position: g}
                elif position is None:
                    pending[n] = pending[n] + g
                else:
                    given = pending[n]
                    given[position] = given[position] + g if position in given else g
            if not left:
                return
            target, g = left.pop()

    def is_wanted(target: Any) -> bool:
        return target is not None and (needed is None or target in stops or _note(target) in needed)

    def launched(n: Note, g: Any) -> bool:
        """Whether the gradient of a planned call could be launched without asking its vjp."""
        if n.saved is None or g.data.__class__ is not Buffer:
            return False
        if needed is None and None not in n.parents:
            return n.call.pullback.run(n, g, None, arrive)  # type: ignore[no-any-return]
        wanted = tuple([is_wanted(p) for p in n.parents])
        return n.call.pullback.run(n, g, wanted, arrive)  # type: ignore[no-any-return]

    def ask(n: Note, g: Any) -> None:
        """Any other call: its vjp says the cotangents."""
        cotangents = _cotangents(n, _all_results(n, g) if g.__class__ is dict else g)
        for parent, c in zip(n.parents, cotangents, strict=True):
            if c is not None and is_wanted(parent):
                arrive(parent, c() if callable(c) else c)

    def go_on(n: Note, g: Any) -> None:
        """A continued call: its sums replace those that are there."""
        given = g if g.__class__ is dict else {0: g}
        parents: Sequence[Any] = n.parents
        if needed is not None:
            parents = [p if is_wanted(p) else None for p in parents]
        ends = {p: merged.get(p, p) if merged is not None else p for p in parents if p is not None}
        shared = set()  # of several that are one, each gives a sum of its own, to be added
        if merged is not None:
            shared = {e for e in ends.values() if sum(e is o for o in ends.values()) > 1}
        started = {}
        for p, e in ends.items():
            so_far = None if e in shared else _sum(e, _sum)
            if so_far is not None:
                started[p] = so_far if n.call.owes else paid(so_far)  # type: ignore[attr-defined]
        for p, total in n.call.pull(_operands(n), given, parents, started).items():  # type: ignore[attr-defined]
            if ends[p] in shared:
                arrive(ends[p], total)
            else:
                settle(ends[p], total)

    def settle(target: Any, total: Value) -> None:
        left = [(target, total)]
        while left:
            target, total = left.pop()
            if merged is not None:
                target = merged.get(target, target)
            if target in stops or (needed is None and target.__class__ is Leaf):
                found[target] = total
                continue
            picked = target.__class__ is Pick
            n, position = (target.note, target.position) if picked else (target, None)
            if n.call.__class__ is Part and _leads(n)[0] is not n.parents[0]:
                left.append((_leads(n)[0], total))
            elif n.call.__class__ is Part:
                whole = _sum(n.parents[0], _sum)
                wide = n.call.widen(total) if whole is None else n.call.put(whole, total)
                left.append((n.parents[0], wide))
            elif n.call.__class__ is Row:
                left += _split(n, total, is_wanted)
            elif n not in pending:
                heapq.heappush(heap, (-n.serial, n))
                pending[n] = total if position is None else {position: total}
            elif position is None:
                pending[n] = total
            else:
                pending[n][position] = total

    def _sum(target: Any, ask: Any) -> Value | None:
        parts: list[Any] = []
        now: Any
        while True:
            if merged is not None:
                target = merged.get(target, target)
            if target in found:
                now = found[target]
                break
            if target.__class__ is Note and target.call.__class__ is Row:
                of = [None if p is None else paid(ask(p, ask)) for p in target.parents]
                now = None if all(s is None for s in of) else target.call.join(of)
                break
            if target.__class__ is not Note or target.call.__class__ is not Part:
                now = pending.get(_note(target))
                if target.__class__ is Pick and now is not None:
                    now = now.get(target.position)
                break
            if (whole := _leads(target)[0]) is target.parents[0]:
                parts.append(target.call)
            target = whole
        for part in reversed(parts if now is not None else []):
            now = part.read(now)
        return now  # type: ignore[no-any-return]

    # a gradient that is only run: neither noted nor captured
    straight = not create_graph and capturing.now is None

    with standard_mode(), enable_grad() if create_graph else no_grad(), apart(create_graph):
        for target, g in ys:
            if target is not None and (
                needed is None or target in stops or _note(target) in needed
            ):
                arrive(target, g)
        while heap:
            n = heapq.heappop(heap)[1]
            g = pending.pop(n)
            if n.call.__class__ is Continued:
                go_on(n, g)
            elif not (straight and n.call.pullback is not None and launched(n, g)):
                ask(n, g)
            if not retain:
                n.saved = n.output = None
                n.parents = (None,) * len(n.parents)
            del g
    # cells of their own: a result may be given another value without another one seeing it
    whole = {n: paid(v) for n, v in found.items()}
    return {n: installed.tensor(v.data, v.note) for n, v in whole.items()}


def paid(x: Any) -> Any:
    """A sum, added up: see `Continued.owes`."""
    return x.whole() if x.__class__ is owed[0] else x


#: what a sum is that is not added up yet; the runtime puts its class here
owed: list[Any] = [Leaf]


#: calls whose results have no sums of their own: parts of lists, and what is put together of them
PARTS = (Part, Row)


def frontier(
    roots: Sequence[Any],
    since: int,
    parts_since: int | None = None,
    types: dict[Any, Any] | None = None,
) -> list[Any]:
    """The notes older than `since`, and leaves, that newer ones lead to. Older `PARTS` are gone
    through if they were made since `parts_since`; `types` is told of what they are parts of.
    """
    parts_since = since if parts_since is None else parts_since
    found: dict[Any, None] = {}
    seen: set[Any] = set()
    stack = [r for r in reversed(roots) if r is not None]
    while stack:
        target = stack.pop()
        if target in seen:
            continue
        seen.add(target)
        n = target.note if isinstance(target, Pick) else target
        if isinstance(n, Leaf) or (
            n.serial < since and (n.serial < parts_since or n.call.__class__ not in PARTS)
        ):
            found[target] = None
            continue
        if types is not None and n.call.__class__ in PARTS:
            leads = _leads(n)
            of = n.call.types if leads is n.parents else (n.call.out,)
            types.update(zip(leads, of, strict=True))
        stack.extend(p for p in reversed(_leads(n)) if p is not None)
    return list(found)


def _split(n: Note, g: Value, wanted: Callable[[Any], bool]) -> list[tuple[Any, Value]]:
    """What arrives at the parts of a row."""
    parts = zip(n.parents, n.call.split, strict=True)  # type: ignore[attr-defined]
    return [(p, of(g)) for p, of in parts if wanted(p)]


def _note(target: Any) -> Any:
    return target.note if target.__class__ is Pick else target


def _all_results(n: Note, given: dict[int, Value]) -> tuple[Value, ...]:
    """A cotangent for each result; zeros for those that have none."""
    outs = [installed.tensor(o) for o in n.output or _operands(n)]
    return tuple(given[i] if i in given else zeros_for[0](o.type) for i, o in enumerate(outs))


zeros_for: list[
    Callable[[TensorType], Value]
] = []  # creation of zeros, put here by the functions on top


def _leading_to(targets: frozenset[Any], roots: list[Any]) -> set[Any]:
    """The notes from which some target can be reached, not counting the targets themselves."""
    leads: dict[Any, bool] = {}
    stack = [(_note(r), False) for r in roots if r is not None]
    while stack:
        n, done = stack.pop()
        if done:
            leads[n] = any(
                p in targets or leads.get(_note(p), False) for p in _leads(n) if p is not None
            )
        elif n not in leads:
            leads[n] = False
            if n.__class__ is not Leaf and n not in targets:
                stack.append((n, True))
                stack.extend((_note(p), False) for p in _leads(n) if p is not None)
    return {n for n, yes in leads.items() if yes}


installed.note = note
