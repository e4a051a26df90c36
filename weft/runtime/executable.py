"""A captured program, ready to run: from the leaves of a call to its results and the new state."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Any

from weft.autodiff.mode import recording
from weft.autodiff.tape import Leaf
from weft.capture.capture import Captured, Write
from weft.capture.numbers import Reader, checker, reader
from weft.capture.runs import Run, returned
from weft.capture.trace import Cell
from weft.ir import Function
from weft.ops.define import Value, capturing, changes, installed
from weft.runtime.gradient import Gradient
from weft.runtime.native_program import Native
from weft.types.size import Number

_data = attrgetter("data")
_put_data = vars(Value)["data"].__set__
_put_grad = vars(Leaf)["grad"].__set__


@dataclass
class Puts:
    """Results that go to places that are the same in every call."""

    owners: list[Any] = field(default_factory=list)
    results: list[int] = field(default_factory=list)


class Executable:
    """A captured call, compiled; `gradient` is how it is pulled back."""

    def __init__(
        self,
        captured: Captured,
        forward: Native,
        gradient: Gradient | None,
        whole: Function,
    ) -> None:
        self.captured, self.forward, self.gradient = captured, forward, gradient
        inputs = captured.inputs
        self.arguments = inputs.arguments
        self.cells: tuple[Cell, ...] = inputs.cells
        self.plain = all(not c.is_grad for c in inputs.cells)
        self.owners = [c.owner for c in inputs.cells]
        self.whole = whole
        symbols = captured.symbols
        live = symbols.live() if symbols is not None else []
        self.holds = checker(symbols, live) if symbols is not None and live else None
        self.scalars = _reader(captured, inputs.scalars)
        self.returned = _reader(captured, [o.value for o in captured.outputs])
        outs = captured.outputs
        self.numbers = any(o.number for o in outs)
        self.single = (
            captured.form.kind is None
            and outs[0].result == 0
            and not captured.writes
            and not self.numbers
        )
        leaves = all(c.kind is None for c in captured.form.children)
        self.flat = captured.form.kind if captured.form.kind in (tuple, list) and leaves else None
        self.grown = captured.form.holds(Run)
        self.state = tuple(self.owners)
        self.guards = captured.guards
        self.seen = -1  # changes there had been when state was last looked at
        #: whether a call needs no more than the arguments' layouts to be right
        self.direct = (
            self.plain
            and self.holds is None
            and self.scalars is None
            and captured.roomy is None
            and self.returned is None
            and not (inputs.numbers or inputs.random or captured.empty)
            and all(w.argument is None for w in captured.writes)
            and all(w.cell is None or w.cell.argument is None for w in captured.writes)
            and self.arguments == tuple(range(len(self.arguments)))
        )

        #: where results go that go to the same place in every call, and which results
        self.puts, self.grads = Puts(), Puts()
        self.other_writes = [w for w in captured.writes if not self._fixed(w)]
        self.spent, self.exact = captured.spent, captured.exact
        self.fixed = tuple([o.value for o in outs])
        self.pick = self._picker() if self.direct and self.flat is tuple else None

    def _fixed(self, w: Write) -> bool:
        if w.cell is None or w.cell.argument is not None or w.inside or w.result is None:
            return False
        to = self.grads if w.cell.is_grad else self.puts
        to.owners.append(w.cell.owner)
        to.results.append(w.result)
        return True

    def _picker(self) -> Callable[[tuple[Any, ...]], Any] | None:
        """What takes a flat tuple of returned values out of results, arguments and fixed values."""
        captured = self.captured
        if captured.writes or self.numbers or len(captured.outputs) < 2:
            return None
        count = len(self.forward.function.results)
        behind = count + len(self.arguments)
        return itemgetter(
            *[
                o.result
                if o.result is not None
                else (behind + i if o.argument is None else count + o.argument)
                for i, o in enumerate(captured.outputs)
            ]
        )

    def fits(self, leaves: list[Any]) -> bool:
        """Whether gradients are where they were when the call was captured."""
        if self.holds is not None and not self.holds(leaves):
            return False
        roomy = self.captured.roomy
        if roomy is not None and not roomy.fits(leaves, self.arguments):
            return False
        for i, n in self.exact:
            if leaves[i] != n:
                return False
        return self._unchanged() and fits(self.captured, leaves)

    def guarded(self) -> bool:
        """Whether what the function read from outside is what it was."""
        if self.seen != changes.now and not self._unchanged():
            return False
        guards = self.guards
        return guards is None or guards.quick() or guards.check() is None

    def _unchanged(self) -> bool:
        """Whether tensors from outside are of the type, and where on the tape, that they were."""
        now = changes.now
        if self.seen != now:
            if not unchanged(self.captured):
                return False
            self.seen = now
        return True

    def __call__(
        self, leaves: list[Any], run: Callable[[list[Any]], tuple[Any, ...]] | None = None
    ) -> Any:
        """Call the program; `run` may say how its function is computed instead."""
        captured = self.captured
        xs = [leaves[i] for i in self.arguments]
        if self.plain:
            xs += self.owners
        else:
            xs += [_grad(c, leaves) if c.is_grad else c.owner for c in self.cells]
        inputs = captured.inputs
        if inputs.numbers:
            xs += [read() for read in inputs.numbers]
        if self.scalars is not None:
            xs += self.scalars(leaves)
        if inputs.random:
            key, offset = installed.random_state[0]()
            after = (key, (offset + captured.drawn) % 2**64)
            installed.random_state[1](after)
            xs += [_signed(key), _signed(offset)]
        if captured.roomy is not None:
            xs = captured.roomy.given(leaves, xs)
        try:
            outs = self.forward.run(xs) if run is None else run(xs)
        except BaseException:
            if inputs.random and installed.random_state[0]() == after:
                installed.random_state[1]((key, offset))  # nothing was drawn
            raise
        if captured.counter is not None:  # how many were drawn was up to the program
            installed.random_state[1]((key, outs[captured.counter].item() % 2**64))
        if run is None and self.gradient is not None and recording.get():
            self.gradient.note(xs, outs)
        if self.spent:
            self._spend(outs)
        if self.single:
            return outs[0]
        return self._finish(leaves, outs)

    def call(self, args: tuple[Any, ...]) -> Any:
        """A `direct` program on tensors."""
        xs = args[: len(self.arguments)] + self.state
        outs = self.forward.run(xs)
        if self.gradient is not None and recording.get():
            self.gradient.note(xs, outs)
        if self.spent:
            self._spend(outs)
        if self.single:
            return outs[0]
        if self.pick is not None:
            return self.pick(outs + args + self.fixed)
        return self._finish(args, outs)

    def _spend(self, outs: tuple[Any, ...]) -> None:
        """Give results that backward() was called on a history that is used up."""
        for r, used in self.spent:
            outs[r].note = used

    def _finish(self, leaves: Sequence[Any], outs: tuple[Any, ...]) -> Any:
        """Put new values where they belong and results into their structure."""
        captured = self.captured
        owners, values, leaves_of, grads = [], [], [], []  # of the other writes
        for w in self.other_writes:
            made = None if w.result is None else outs[w.result]
            if w.cell is not None and w.cell.is_grad:
                owner = w.cell.owner if w.cell.argument is None else leaves[w.cell.argument].leaf
                if not w.inside:
                    leaves_of.append(owner)
                    grads.append(made)
                    continue
                owner = owner.grad
            else:
                owner = leaves[w.argument] if w.cell is None else w.cell.owner  # type: ignore[index]
            owners.append(owner)
            values.append(made.data)  # type: ignore[union-attr]
        # all of it or nothing: no signal is handled and no other thread runs inside of this
        out = outs.__getitem__
        puts = (
            map(_put_data, self.puts.owners, map(_data, map(out, self.puts.results))),
            map(_put_grad, self.grads.owners, map(out, self.grads.results)),
            map(_put_data, owners, values),
            map(_put_grad, leaves_of, grads),
        )
        deque(chain.from_iterable(puts), 0)
        found = [
            outs[o.result]
            if o.result is not None
            else (o.value if o.argument is None else leaves[o.argument])
            for o in captured.outputs
        ]
        if self.numbers and capturing.now is None:
            found = [
                x.item() if o.number else x for x, o in zip(found, captured.outputs, strict=True)
            ]
        if self.returned is not None:
            numbers = iter(self.returned(leaves))
            found = [next(numbers) if isinstance(x, Number) else x for x in found]
        if self.flat is not None:
            return self.flat(found)
        made = captured.form.build(found)
        return returned(made) if self.grown else made


def fits(captured: Captured, leaves: list[Any]) -> bool:
    """Whether gradients are where they were when the call was captured, and what the function read
    from outside is what it was.
    """
    if captured.guards is not None and captured.guards.check() is not None:
        return False
    for cell in captured.inputs.cells:
        if cell.is_grad and _grad(cell, leaves) is None:
            return False
    return all(_grad(c, leaves) is None for c in captured.empty)


def unchanged(captured: Captured) -> bool:
    """Whether tensors from outside are of the type, and where on the tape, that they were."""
    return all(x.note is note and x.type is type_ for x, note, type_ in captured.held)


def _grad(cell: Cell, leaves: list[Any]) -> Any:
    leaf = cell.owner if cell.argument is None else leaves[cell.argument].leaf
    return None if leaf is None else leaf.grad


def _reader(captured: Captured, values: Sequence[Any]) -> Reader | None:
    """What gives the numbers among `values` in a call."""
    steps = [x.step for x in values if isinstance(x, Number)]
    if not steps or captured.symbols is None:
        return None
    return reader(captured.symbols, steps)


def _signed(n: int) -> int:
    """As the int64 of the same bits."""
    return n - 2**64 if n >= 2**63 else n
