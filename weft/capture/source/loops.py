"""Loops whose conditions are symbols: a step is run into a region until its state is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.autodiff.mode import enable_grad
from weft.capture.aliases import Names
from weft.capture.chosen import TYPES, Chosen, Flag
from weft.capture.effects import Raised, later
from weft.capture.guards import same
from weft.capture.join import (
    Slots,
    as_value,
    assign,
    assigned_at,
    blank,
    is_number,
    said,
)
from weft.capture.refusal import refused
from weft.capture.runs import Read
from weft.capture.source.growing import Growth, lists_in
from weft.capture.source.outline import first_other, named, outline
from weft.capture.source.paths import raising, ran
from weft.capture.source.reads import made
from weft.capture.source.signals import NOTHING, Left, Signal, Unknown, as_signal, is_signal
from weft.capture.source.symbolic import as_bool, branch, settled
from weft.capture.source.variables import Again, Variables, held_object
from weft.capture.stacks import rooms
from weft.capture.structure import Form, flatten
from weft.capture.watch import Escaped, Faults, excluding, faults as pending_faults
from weft.capture.widening import Unions
from weft.control.build import build_while, state_params, truth
from weft.control.nodes import BOOL
from weft.control.region import Region
from weft.errors import CaptureError
from weft.ops.define import Value
from weft.ops.elementwise import logical_and, logical_or
from weft.types import TensorType
from weft.types.dtype import bool_

Thunk = Callable[[], Any]
Put = Callable[..., None]
_ROUNDS = 12  # of finding out what a loop changes


class Loop(Variables):
    """A loop being captured, of so many `steps`, where that is known."""

    def __init__(
        self,
        check: Thunk,
        body: Thunk,
        get: Thunk,
        put: Put,
        names: Sequence[str],
        signal: Any,
        checkpoint: int | bool | None = None,
        steps: Any = None,
        stacks: bool = True,
    ) -> None:
        super().__init__(names)
        self.growth = Growth(steps, stacks)
        self.check, self.body, self.get, self.put = check, body, get, put
        self.checkpoint = checkpoint
        self.slots = Slots()
        self.form: Form | None = None  # of the state
        self.lifted: dict[int, TensorType] = {}  # numbers that change: by leaf, as what
        self.numbers: dict[int, Any] = {}  # those that stay numbers to Python: as what
        self.fixed: tuple[Any, set[int]] = None, set()  # of a form: elements that no step changes
        self.signal = signal  # of steps already done, or None
        self.signals = signal is not None
        self.faults = Faults()
        self.escapes: list[Any] = []  # errors that leave it, as long as there are none
        self.unions = Unions()
        self.pairs: set[tuple[int, int]] = set()  # of what it carries, that are one tensor
        self.blank: Any = NOTHING if signal is None else blank(signal.value)

    def run(self) -> Any:
        """Capture it, put its variables' last values, and give its signal."""
        if pending := pending_faults():
            check = self.check
            self.check = lambda: later.unless(pending, lambda: (as_bool(check()),), (BOOL,))[0]
        try:
            with excluding(pending):
                return self._run()
        except (CaptureError, Left):
            self.growth.drop()
            self.drop()
            raise

    def _run(self) -> Any:
        for _ in range(_ROUNDS):
            try:
                return self._round()
            except Again:
                self.faults.drop()
            except Unknown as e:  # what there is before has its type
                self.faults.drop()
                if not e.of.skips:
                    raise
                self.growth.drop()
                return self.signal
            except Read as e:
                self.faults.drop()
                if not self.growth.read(e.of):
                    raise
            except Escaped as e:
                raise refused(*_LEFT) from e
            except CaptureError:  # its steps may be gone through one by one
                self.faults.drop()
                raise
            except Raised:  # by every step: there is one at most
                self.faults.drop()
                go = self._check(self.signal)
                branch(go, self.body, lambda: None, self.get, self.put, self.names)
                return self.signal
        raise refused("a loop", "variables that keep their types", "other ones in every step")

    def _round(self) -> Any:
        before = self.defined_before(self.get())
        start = [
            [self.held(i, x) for i, x in enumerate(before)],
            self.slots.values({}),
            self._first_signal(),
            self.escapes,
        ]
        start = self.unions.widened(start)
        leaves, form = flatten(start)
        if form != self.form:  # other leaves have the numbers that were theirs
            now = {p: i for i, p in enumerate(_paths(form))}
            moved = {i: now[p] for i, p in enumerate(_paths(self.form or form)) if p in now}
            self.lifted = {moved[i]: x for i, x in self.lifted.items() if i in moved}
            self.numbers = {moved[i]: x for i, x in self.numbers.items() if i in moved}
            self.form = form
            self.pairs.clear()
        fixed = self.fixed[1] if self.fixed[0] == form else ()
        at = [
            i
            for i, x in enumerate(leaves)
            if (isinstance(x, Value) and i not in fixed) or i in self.lifted
        ]
        inits = [self._init(i, leaves[i]) for i in at]
        test, body = Region(), Region()
        with enable_grad():  # what steps pass on keeps its history inside no_grad() too
            params, notes = state_params(body, [x.type for x in inits])
        test.leaves = body.leaves
        test.starts = body.starts = {
            note: x.note for note, x in zip(notes, inits, strict=True) if note is not None
        }
        stands = list(leaves)
        for i, p in zip(at, params, strict=True):
            kind = self.numbers.get(i, type(leaves[i]))
            stands[i] = kind.of(p) if kind in (Chosen, Flag) else p
        stand = form.build(stands)
        if self.signals:
            stand[2] = Signal(*stand[2])

        own = {id(p) for p in params}
        names = Names([leaves[i] for i in at], [stands[i] for i in at], self.pairs)

        def step() -> Any:
            self._place(stand)
            names.begin(body)
            signal = raising(self.body)
            self.growth.absorb([*self.get(), *self.slots.containers.values()])
            return signal, list(self.get()), self.slots.held(), names.end(body)

        def checked() -> Any:
            self._place(stand)
            placed = {k: x.data for k, (x, _, _) in test.written.items()}
            first = flatten([self.held(i, x) for i, x in enumerate(self.get())])[0]
            value = self._check(stand[2], [flag for flag, _ in stand[3]])
            changed = {k: x.data for k, (x, _, _) in test.written.items()} != placed
            held = [self.held(i, x) for i, x in enumerate(self.get())]
            now = flatten(held)[0]
            if changed or any(a is not b for a, b in zip(now, first, strict=True)):
                raise Changing("a loop", expected="a condition that changes nothing")
            return value

        try:
            signal, after, held, now = ran("a loop", body, step)
            after = [self.kept(i, x, body) for i, x in enumerate(after)]
            self._learn(body, signal, own)
            body.restore()
            self.put(*before)
            value = ran("a loop", test, checked)
        finally:
            names.close()
            body.restore()
            test.restore()
            self.put(*before)
        after = self.defined(start[0], after)
        end = [after, self.slots.values(held), self._last_signal(signal)]
        self._find_growth(before, end)
        if self.unions.find(start[:3], end):
            self.lifted, self.numbers = {}, {}
            self.pairs.clear()
            raise Again
        end = self.unions.of_step(start[:3], end, body)
        found = self._end(form, [*end, self._escaped(body, own)])
        if names.go_round([found[i] for i in at]):
            raise Again
        values = self._values(leaves, form, at, inits, [now.get(id(x), x) for x in found])
        self._find_fixed(form, [i for i, p, v in zip(at, params, values, strict=True) if p is v])
        pieces = (
            (test, params, [truth(value, "while")]),
            (body, params, [settled(v) for v in values]),
        )
        with enable_grad():
            outs = build_while(inits, notes, *pieces, self.checkpoint, self.growth.runs())
        final = list(leaves)
        for i, o in zip(at, outs, strict=True):
            kind = type(stands[i])
            final[i] = kind.of(o) if kind in (Chosen, Flag) else o
        names.leave([final[i] for i in at], outs[0].data.inputs[0].inputs[len(outs) :])
        body.close()
        inplace = [i for i, x in zip(at, names.inplace, strict=True) if x and i not in self.lifted]
        values = [final[i] for i in inplace]
        final = [leaves[i] if i in inplace else x for i, x in enumerate(final)]  # the same objects
        variables, kept, last, escaped = form.build(final)
        if escaped and inplace:
            raise refused(*_LEFT)
        for x in lists_in([variables, kept]):
            made(x)
        self.growth.end([variables, kept])
        self.put(*map(held_object, variables))
        self.slots.put(kept)
        for i, value in zip(inplace, values, strict=True):
            assign(leaves[i], value)
        self.faults.give(escaped)
        return Signal(*last) if self.signals else None

    # signals: part of the state once there are any

    def _first_signal(self) -> Any:
        if not self.signals:
            return ()
        if self.signal is not None:
            return tuple(self._as_values(self.signal))
        return tuple(self._as_values(Signal(False, False, self.blank)))

    def _last_signal(self, signal: Any) -> Any:
        if not self.signals:
            return ()
        now = as_signal(signal)
        if now.value is NOTHING and self.blank is not NOTHING:
            now = now._replace(value=self.blank)
        return tuple(self._as_values(now))

    def _as_values(self, s: Signal) -> Signal:
        return Signal(as_bool(s.broke), as_bool(s.returns), s.value)

    def _escaped(self, body: Region, own: set[int]) -> list[Any]:
        """What the errors that leave the loop come to after a step."""
        self.faults.found.clear()
        self.faults.take(body, own)
        states = self.faults.sides()[0]
        nothing = [[False, blank(values)] for _, values in states]
        if flatten(nothing)[1] != flatten(self.escapes)[1]:
            self.escapes = nothing
            raise Again
        return states

    def _check(self, signal: Any, escaped: Sequence[Any] = ()) -> Any:
        go = self._goes_on(signal, escaped)
        for room in rooms():
            go = logical_and(go, room.is_enough())
        return go

    def _goes_on(self, signal: Any, escaped: Sequence[Any]) -> Any:
        if not self.signals and not escaped:
            return as_bool(self.check())
        stop = logical_or(signal.broke, signal.returns) if self.signals else as_bool(False)
        for flag in escaped:
            stop = logical_or(stop, as_bool(flag))
        nothing: Any = lambda *_: None
        return branch(
            stop, lambda: as_bool(False), lambda: as_bool(self.check()), tuple, nothing, ()
        )

    # what is found out by running the body

    def _find_growth(self, before: Sequence[Any], end: Any) -> None:
        if self.signals and self.growth.found is None:
            self.growth.steps = None  # it may be broken off
        variables, (_, _, contents), _ = end
        containers = list(self.slots.containers.values())
        dicts = [v for v in before if type(v) is dict]
        ends = [y for x, y in zip(before, variables, strict=True) if type(x) is dict]
        if self.find_keys([*dicts, *containers], [*ends, *contents]):
            raise Again
        if self.growth.find([*before, *containers], [*variables, *contents]):
            raise Again

    def _place(self, stand: Any) -> None:
        self.put(*map(held_object, stand[0]))
        self.slots.put(stand[1])

    def _learn(self, body: Region, signal: Any, own: set[int]) -> None:
        again = self.slots.add(body, own)
        if is_signal(signal):
            value = as_signal(signal).value
            again = again or not self.signals or (self.blank is NOTHING and value is not NOTHING)
            self.signals = True
            if self.blank is NOTHING and value is not NOTHING:
                self.blank = blank(value)
        if again:
            self.pairs.clear()
            raise Again

    def _init(self, i: int, x: Any) -> Value:
        if i not in self.lifted:
            return x  # type: ignore[no-any-return]
        return as_value(x, self.lifted[i])  # type: ignore[no-any-return]

    def _find_fixed(self, form: Form, unchanged: list[int]) -> None:
        """Elements of containers that steps leave as they are, are no part of the state."""
        kept = form.children[1].children
        first = form.children[0].count + kept[0].count + kept[1].count
        found = {i for i in unchanged if first <= i < first + kept[2].count}
        if found and self.fixed[0] != form:
            self.fixed = form, found
            raise Again

    def _end(self, form: Any, end: Any) -> list[Any]:
        """The leaves of the state after a step, of the form it had before."""
        found, other = flatten(end)
        if other != form:
            name, *sides = first_other(form, other, self.names)
            raise refused(
                "a loop",
                f"{name} to keep its structure",
                "{} before a step, {} after".format(*map(outline, sides)) + self._line(name),
                "a list that grows can't be followed; write into a tensor of full size instead",
            )
        return found

    def _values(
        self, leaves: list[Any], form: Any, at: list[int], inits: list[Value], found: list[Any]
    ) -> list[Value]:
        """The state after a step, of the types it had before."""
        of = dict(zip(at, inits, strict=True))
        out = []
        for i, (x, y) in enumerate(zip(leaves, found, strict=True)):
            if i in of:
                out.append(self._step(i, of[i], y, named(i, form, self.names)))
            elif not (x is y or same(x, y)):
                if isinstance(x, Value):
                    self.fixed = form, set()
                    raise Again
                self.lifted[i] = self._lift(i, form, x, y)
                raise Again
        return out

    def _line(self, name: str) -> str:
        line = assigned_at(self.body, name)
        return f" (line {line})" if line else ""

    def _step(self, i: int, before: Value, after: Any, name: str) -> Value:
        if not isinstance(after, Value):
            after = as_value(after, before.type)
        if isinstance(after, Value) and after.type is before.type:
            return after
        wider = isinstance(after, Value) and after.type.shape == () and after.type.dtype.is_float
        if i in self.lifted and wider and not before.type.dtype.is_float:
            self.lifted[i] = after.type
            self.numbers.pop(i, None)
            raise Again
        raise refused(
            "a loop",
            f"{name} to keep its type {before.type}",
            said(after) + self._line(name),
            "convert it with .astype() or .reshape()",
        )

    def _lift(self, i: int, form: Any, x: Any, y: Any) -> TensorType:
        """What a number that a step changes is carried as."""
        if type(x) is bool and type(y) in (bool, Flag):
            self.numbers[i] = Flag
            return TensorType((), bool_)
        if type(x) in TYPES and is_number(y):
            kind = y.kind if type(y) is Chosen else type(y)
            if kind is type(x):
                self.numbers[i] = Chosen
                return TYPES[kind]
        elif type(x) in (bool, int, float) and isinstance(y, Value) and y.type.shape == ():
            return y.type
        raise refused(
            "a loop",
            "variables that are the same, or tensors, in every step",
            f"{said(x)}, then {said(y)}",
            "start from a tensor: wf.tensor(...)",
        )


_LEFT = (
    "a loop",
    "errors that are handled in it, or leave the program",
    "one that a try around the loop handles",
    "leave the loop by a flag, and raise behind it",
)


def _paths(form: Form) -> list[tuple[int, ...]]:
    """Where each leaf of a structure is."""
    if form.kind is None:
        return [()]
    return [(i, *p) for i, part in enumerate(form.children) for p in _paths(part)]


class Changing(CaptureError):
    """A condition that assigns to something, prints or draws random numbers."""


def loop(
    more: Any,
    changes: bool,
    check: Thunk,
    body: Thunk,
    get: Thunk,
    put: Put,
    names: Sequence[str],
    signal: Any = None,
    checkpoint: int | bool | None = None,
) -> Any:
    """A while loop: `more` is its condition now, which was found to change something or not; or
    `signal` what steps done already ended with.
    """
    if not changes:
        try:
            return Loop(check, body, get, put, names, signal, checkpoint).run()
        except Changing:
            pass
    go: Any = None

    def asked(ended: Any) -> Value:
        """The condition at the end of a step, if there may be another."""
        if type(ended) is Signal:
            stop = logical_or(as_bool(ended.broke), as_bool(ended.returns))
            ask: Thunk = lambda: as_bool(check())
            found: Value = branch(stop, lambda: as_bool(False), ask, get, put, names)
            return found
        return as_bool(check() if ended is None else False)

    def step() -> Any:
        nonlocal go
        ended = body()
        go = asked(ended)
        return ended

    def get_all() -> tuple[Any, ...]:
        return (*get(), go)

    def put_all(*values: Any) -> None:
        nonlocal go
        put(*values[:-1])
        go = values[-1]

    go = as_bool(more) if signal is None else asked(signal)
    more_names = (*names, "the condition")
    return Loop(lambda: go, step, get_all, put_all, more_names, signal, checkpoint).run()
