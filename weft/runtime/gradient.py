"""Gradients through a call of a compiled function from eager code.

The call is one note of the tape, whose pullback is a program of its own. Contributions to a tensor
are added one by one to the sum that there is by then, in the order of the function's own ops: the
bits are those of the tape that it would have left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.autodiff import tape
from weft.autodiff.mode import enable_grad, recording
from weft.autodiff.tape import Continued, Leaf, Note, Pick, paid, pull
from weft.capture.capture import Captured
from weft.control.host import silent
from weft.ir import Function
from weft.ops.define import Op, Value, installed
from weft.ops.record import replay
from weft.passes.absent import without
from weft.runtime.native_program import Native
from weft.runtime.owed import Term, owing, terms
from weft.runtime.start import machine

Values = Sequence[Any]


class Gradient:
    """The pullback of a captured call: a program for each choice of results that a cotangent comes
    from, and of inputs that have a sum already. `function` takes the call's inputs, `kept` values
    it saved, all cotangents and all sums.
    """

    def __init__(self, captured: Captured, function: Function, kept: int) -> None:
        self.captured, self.function = captured, function
        self.inputs = len(captured.function.params)
        self.results = len(captured.function.results)
        params = function.params
        cotangents = self.inputs + kept
        sums = cotangents + len(captured.noted)
        self.cotangents, self.sums = params[cotangents:sums], params[sums:]
        self.programs: dict[Any, tuple[Native, tuple[int, ...]]] = {}
        types = tuple([p.type for p in params[:cotangents]])
        self.call = Continued(Op(captured.function.name, _no_rule), types, {})
        self.call.pull, self.call.owes = self._pull, True
        going_on = {k for k, _ in captured.sums}
        slopes = range(len(function.results))
        self.owed = terms(function, [k for k in slopes if k not in going_on])
        #: results: what is owed as one operand, the other ones behind all
        self.lean = _lean(function, self.owed)
        self.nobody = (None,) * kept
        #: what runs where all results were used, for the first time
        usual = (True,) * len(self.cotangents), (False,) * len(self.sums)
        self.usual = self.program(*usual, bool(self.owed))[0]

    def program(
        self, given: tuple[bool, ...], begun: tuple[bool, ...], lean: bool
    ) -> tuple[Native, tuple[int, ...]]:
        """The pullback of some cotangents onto some sums, and which slopes it gives."""
        found = self.programs.get((given, begun, lean))
        if found is None:
            there = zip((*self.cotangents, *self.sums), (*given, *begun), strict=True)
            gone = [p for p, yes in there if not yes]
            whole = self.lean if lean else self.function
            f, left = without(whole, self.cotangents, self.sums, gone)
            found = self.programs[given, begun, lean] = Native(f, machine), left
        return found

    def note(self, xs: Values, outs: tuple[Any, ...]) -> None:
        """Note a call on the tape."""
        parents = tuple([x.note if isinstance(x, Value) else None for x in xs])
        if all(p is None for p in parents):
            return
        saved = [x.data if isinstance(x, Value) else x for x in (*xs, *outs[self.results :])]
        made = Note(
            self.call,
            parents + self.nobody,
            tuple(saved),
            tuple([o.data for o in outs[: self.results]]),
            tape.next_serial[0](),
        )
        for r in self.captured.noted:
            outs[r].note = Pick(made, r)

    def _pull(
        self, xs: Values, g: dict[int, Value], parents: Values, sums: dict[Any, Value]
    ) -> dict[Any, Value]:
        """The sums so far with this call's contributions, by parent."""
        if recording.get():
            return self._pull_noted(xs[: self.inputs], g, parents, sums)
        captured = self.captured
        begun: list[Value | None] = []
        taken: set[Any] = set()  # inputs that are one tensor: the first goes on from the sum
        for k, _ in captured.sums:
            parent = parents[captured.slopes[k][0]]
            begun.append(None if parent in taken else sums.get(parent))
            taken.add(parent)
        given = tuple([r in g for r in captured.noted])
        leaves = all(parents[captured.slopes[k][0]].__class__ in _LEAF for k in self.owed)
        lean = leaves and bool(self.owed)
        native, left = self.program(given, tuple([s is not None for s in begun]), lean)
        cotangents = [g[r] for r in captured.noted if r in g]
        slopes = native.run([*xs, *cotangents, *(s for s in begun if s is not None)])
        whole = {k for (k, _), s in zip(captured.sums, begun, strict=True) if s is not None}
        out: dict[Any, Any] = {}
        others = dict(zip(left, slopes, strict=True))
        behind = len(self.function.results)
        for k in left:
            parent = parents[captured.slopes[k][0]] if k < behind else None
            if parent is None:
                continue
            slope = others[k]
            before = None if k in whole else out.get(parent, sums.get(parent))
            if lean and k in self.owed:
                q = others.get(behind + list(self.owed).index(k))
                if q is not None:
                    out[parent] = owing(before, self.owed[k], slope, q)
            else:
                out[parent] = slope if before is None else paid(before) + slope
        return out

    def _pull_noted(
        self, xs: Values, g: dict[int, Value], parents: Values, sums: dict[Any, Value]
    ) -> dict[Any, Value]:
        """The same by the tape, noted there: for gradients of gradients."""
        with enable_grad():
            stands = [installed.tensor(x.data, x.note) if isinstance(x, Value) else x for x in xs]
            again = replay(silent(self.captured.function), tuple(stands))
            return pull(
                [(again[r].note, s) for r, s in g.items()],
                [p for p in parents if p is not None],
                retain=True,
                create_graph=True,
                sums=sums,
            )


_LEAF = (Leaf, type(None))


def _lean(f: Function, owed: dict[int, Term]) -> Function:
    results = [owed[k].p if k in owed else r for k, r in enumerate(f.results)]
    return Function(f.name, f.params, (*results, *(x.q for x in owed.values())))


def _no_rule(*_: Any, **__: Any) -> Any:
    raise NotImplementedError
