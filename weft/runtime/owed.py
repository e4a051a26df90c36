"""Gradients of weights that are not added up yet.

A function that is called again and again from eager code, for every node of a tree say, gives each
time a gradient as large as its weight: a product of small operands, or a row in its place among
zeros. Of these the operands are kept, and what they come to is computed when it is asked for: all
are added in their order, with one pass over memory. The bits are those of adding one by one.
"""

from __future__ import annotations

from array import array
from typing import Any, NamedTuple

from weft.autodiff import tape
from weft.autodiff.backward import constant
from weft.buffer import Buffer, Layout
from weft.ir import Function, Node
from weft.ops.define import Value, installed
from weft.ops.indexing import row_sum
from weft.ops.joining import concat
from weft.runtime import kernels
from weft.runtime.eager import dense
from weft.runtime.plan import Plan, kind_of, make_plan
from weft.runtime.start import machine
from weft.schedule.drain import LEAST, plan_list
from weft.schedule.sums import term
from weft.types import TensorType
from weft.types.dtype import int64

#: terms that are kept, so that they stay small beside the weight
MOST = 64
_LIST = TensorType((2 * MOST + 1,), int64)
_plans: dict[Any, Plan] = {}


class Term(NamedTuple):
    """A result of a gradient, and what it is computed of; `rows`: (indices, rows) put on zeros."""

    p: Node
    q: Node
    type: TensorType
    rows: bool


def terms(f: Function, wanted: list[int]) -> dict[int, Term]:
    """Which results can be owed."""
    read = {i for n in f.order for i in n.inputs}
    out: dict[int, Term] = {}
    for k in wanted:
        r = f.results[k]
        if r in read or f.results.count(r) > 1 or not isinstance(r.type, TensorType):
            continue
        found: Term | None = None
        if r.op is row_sum and r.attr("axis") == 0 and r.inputs[0].type is TensorType((1,), int64):
            found = Term(r.inputs[0], r.inputs[1], r.type, True)
        elif (product := term(r)) is not None:
            found = Term(*product, r.type, False)
        if found is not None:
            small = found.p.type.nbytes + found.q.type.nbytes
            if r.type.nbytes >= max(LEAST, 2 * small):
                out[k] = found
    return out


class Owed:
    """A sum, and what is to be added to it. Where rows are, nothing was there before: what is added
    to a zero of negative sign would show.
    """

    __slots__ = ("base", "kind", "pairs")

    def __init__(self, kind: Term, base: Value | None) -> None:
        self.kind, self.base = kind, base
        self.pairs: list[tuple[Value, Value]] = []

    def takes(self, kind: Term) -> bool:
        mine = self.kind
        return (mine.p.type, mine.q.type, mine.rows) == (kind.p.type, kind.q.type, kind.rows)

    def add(self, p: Value, q: Value) -> None:
        if len(self.pairs) == MOST and not self.kind.rows:
            self.base, self.pairs = self.whole(), []
        self.pairs.append((p, q))

    def whole(self) -> Value:
        """What it comes to."""
        if self.kind.rows:
            indices, rows = (concat(*x, axis=0) for x in zip(*self.pairs, strict=True))
            kind = self.kind.type
            return row_sum(indices, rows, shape=kind.shape, axis=0)
        base = dense(self.base if self.base is not None else constant(-0.0, self.kind.type))
        said = array("q", [len(self.pairs)])
        for p, q in self.pairs:
            said.extend((p.data.address, q.data.address))
        said.extend([0] * (2 * (MOST - len(self.pairs))))
        listed = installed.tensor(Buffer(Layout.dense(_LIST), said.buffer_info()[0], said))
        return installed.launch(self._plan(), listed, base)

    def _plan(self) -> Plan:
        p, q = (Layout.dense(x.type) for x in (self.kind.p, self.kind.q))
        found = _plans.get((p, q))
        if found is None:
            launch = plan_list(p, q, machine().vector)
            addresses = [kernels.address(x.spec, x.function) for x in launch.phases]
            held = [kernels.code(x.spec) for x in launch.phases]
            kinds = (kind_of(None), kind_of(None))
            found = _plans[p, q] = make_plan(launch, None, addresses, kinds, False, held)
        return found


def owing(before: Any, kind: Term, p: Value, q: Value) -> Any:
    """A sum with a term more."""
    if before.__class__ is not Owed or not before.takes(kind):
        if before is not None and kind.rows:
            full = row_sum(p, q, shape=kind.type.shape, axis=0)
            return tape.paid(before) + full
        before = Owed(kind, tape.paid(before))
    before.add(p, q)
    return before


tape.owed[0] = Owed
