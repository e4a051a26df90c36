"""What a program wants made of its state ahead: kept from call to call, and made anew when the
state holds something else.

A buffer's value never changes, so a state that holds the same buffers as before holds the same
values. That is looked at by the engine, when it takes the inputs of a call: of those that something
was made of, and of what was made, the plan names the very buffers it expects. A call on others
comes back as a `LayoutChange`, and everything is made again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary, ref

from weft.autodiff.mode import no_grad
from weft.buffer import Buffer, Layout
from weft.ops.define import Value, closed, installed
from weft.ops.elementwise import copy
from weft.runtime.plan import Plan
from weft.schedule.steps import ProgramPlan

Key = tuple[int, Layout]

#: what was made of buffers that are still there, as long as a program holds it: programs that read
#: the same state share it
_shared: WeakKeyDictionary[Buffer, WeakValueDictionary[Key, Buffer]] = WeakKeyDictionary()

#: calls that making something ahead is worth
FEW = 4


class Prepared:
    """The inputs of a program that are made ahead."""

    def __init__(self, plan: Plan, planned: ProgramPlan) -> None:
        self.plan, self.wanted = plan, planned.packed
        self.first = len(planned.function.params)  # the number of the first such input
        self.made: tuple[Value, ...] = ()
        self.sources: list[Any] = []  # weak references
        self.lock = threading.Lock()
        self.calls = FEW  # since they were made
        self.wasted = 0  # how often in a row that were a few

    def taken(self) -> tuple[Value, ...]:
        """Those made last, for another call."""
        self.calls += 1
        return self.made

    def make(self, xs: Sequence[Any]) -> None:
        """Make them for a call with these inputs."""
        self.wasted = self.wasted + 1 if self.calls < FEW else 0
        self.calls = 0
        buffers = [xs[w.source].data for w in self.wanted]
        with closed(), no_grad():
            made = [
                _made(b, (w.offset, w.layout)) for b, w in zip(buffers, self.wanted, strict=True)
            ]
        with self.lock:  # never is one source expected beside what was made of another
            for w in self.wanted:
                self.plan.expect(w.source, None)
            for i, m in enumerate(made, self.first):
                self.plan.expect(i, m)
            self.made = tuple([installed.tensor(m) for m in made])
            self.sources = [
                ref(b, _forget(self.plan, w.source))
                for b, w in zip(buffers, self.wanted, strict=True)
            ]
            for b, w in zip(buffers, self.wanted, strict=True):
                self.plan.expect(w.source, b)


def _forget(plan: Plan, i: int) -> Callable[[Any], None]:
    """What is done when the buffer expected as an input is gone: another may get its address."""
    return lambda _: plan.expect(i, None)


def _made(source: Buffer, key: Key) -> Buffer:
    """A dense copy of what lies in a buffer, in a layout from an offset on."""
    known = _shared.setdefault(source, WeakValueDictionary())
    found = known.get(key)
    if found is None:
        offset, layout = key
        there = Buffer(layout, source.address + offset, source.owner)
        found = known[key] = copy(installed.tensor(there)).data
    return found
