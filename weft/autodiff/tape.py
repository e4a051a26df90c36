"""Reverse mode along the tape.

Every call that needs a gradient leaves a Note: what was called, the notes of its inputs, and the
buffers its gradient will read (no others are kept alive). Notes hold values, never Tensors, so
there are no reference cycles and a Tensor that is later given another value does no harm. `pull`
walks notes from the newest to the oldest; cotangents of one value add up in that order, in eager
and in symbolic mode alike.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from weft.autodiff.mode import enable_grad, no_grad, recording
from weft.autodiff.notes import (
    PARTS as PARTS,
    Absent as Absent,
    Continued as Continued,
    Leaf as Leaf,
    Note as Note,
    Part as Part,
    Pick as Pick,
    Row as Row,
    apart as apart,
    frontier as frontier,
    inner_leaf as inner_leaf,
    leads_to,
    new_leaf as new_leaf,
    next_serial as next_serial,
    note_of,
)
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
    following = apart() if create_graph else nullcontext()
    with following:
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
                    whole = leads_to(n)[0]
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
        return target is not None and (
            needed is None or target in stops or note_of(target) in needed
        )

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
            if n.call.__class__ is Part and leads_to(n)[0] is not n.parents[0]:
                left.append((leads_to(n)[0], total))
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
                now = pending.get(note_of(target))
                if target.__class__ is Pick and now is not None:
                    now = now.get(target.position)
                break
            if (whole := leads_to(target)[0]) is target.parents[0]:
                parts.append(target.call)
            target = whole
        for part in reversed(parts if now is not None else []):
            now = part.read(now)
        return now  # type: ignore[no-any-return]

    # a gradient that is only run: neither noted nor captured
    straight = not create_graph and capturing.now is None

    with standard_mode(), enable_grad() if create_graph else no_grad(), following:
        for target, g in ys:
            if target is not None and (
                needed is None or target in stops or note_of(target) in needed
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


def _split(n: Note, g: Value, wanted: Callable[[Any], bool]) -> list[tuple[Any, Value]]:
    """What arrives at the parts of a row."""
    parts = zip(n.parents, n.call.split, strict=True)  # type: ignore[attr-defined]
    return [(p, of(g)) for p, of in parts if wanted(p)]


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
    stack = [(note_of(r), False) for r in roots if r is not None]
    while stack:
        n, done = stack.pop()
        if done:
            leads[n] = any(
                p in targets or leads.get(note_of(p), False) for p in leads_to(n) if p is not None
            )
        elif n not in leads:
            leads[n] = False
            if n.__class__ is not Leaf and n not in targets:
                stack.append((n, True))
                stack.extend((note_of(p), False) for p in leads_to(n) if p is not None)
    return {n for n, yes in leads.items() if yes}


installed.note = note
