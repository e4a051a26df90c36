"""Gradients through a call of a compiled function from eager code.

The call is one note of the tape, whose pullback is a program of its own. Contributions to a tensor
are added one by one to the sum that there is by then, in the order of the function's own ops: the
bits are those of the tape that it would have left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

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
from weft.types import TensorType

Values = Sequence[Any]


class Taken(NamedTuple):
    """What becomes of a result of a pullback."""

    at: int  # which result
    input: int  # whose slope it is
    whole: bool  # whether it goes on from the sum
    kind: Term | None  # of a slope that is owed, where `q` is the result with its other operand
    q: int


class Gradient:
    """The pullback of a captured call: a program for each choice of results that a cotangent comes
    from, and of inputs that have a sum already. `function` takes the call's inputs, `kept` values
    it saved, all cotangents and all sums.
    """

    def __init__(self, captured: Captured, function: Function, kept: int) -> None:
        self.captured, self.function = captured, function
        self.inputs = len(captured.function.params)
        self.results = len(captured.function.results)
        self.numbers = any(not isinstance(p.type, TensorType) for p in captured.function.params)
        params = function.params
        cotangents = self.inputs + kept
        sums = cotangents + len(captured.noted)
        self.cotangents, self.sums = params[cotangents:sums], params[sums:]
        self.programs: dict[Any, tuple[Native, list[Taken]]] = {}
        types = tuple([p.type for p in params[:cotangents]])
        self.call = Continued(Op(captured.function.name, _no_rule), types, {})
        self.call.pull, self.call.owes = self._pull, True
        going_on = {k for k, _ in captured.sums}
        slopes = range(len(function.results))
        self.owed = terms(function, [k for k in slopes if k not in going_on])
        #: results: what is owed as one operand, the other ones behind all
        self.lean = _lean(function, self.owed)
        self.owing = [captured.slopes[k][0] for k in self.owed]
        self.going_on = [captured.slopes[k][0] for k, _ in captured.sums]
        self.nobody = (None,) * kept
        #: what runs where all results were used, for the first time
        usual = (True,) * len(self.cotangents), (False,) * len(self.sums)
        self.usual = self.program(*usual, bool(self.owed))[0]

    def program(
        self, given: tuple[bool, ...], begun: tuple[bool, ...], lean: bool
    ) -> tuple[Native, list[Taken]]:
        """The pullback of some cotangents onto some sums, and the slopes it gives."""
        found = self.programs.get((given, begun, lean))
        if found is None:
            there = zip((*self.cotangents, *self.sums), (*given, *begun), strict=True)
            gone = [p for p, yes in there if not yes]
            whole = self.lean if lean else self.function
            f, left = without(whole, self.cotangents, self.sums, gone)
            taken = self._taken(left, begun, lean)
            found = self.programs[given, begun, lean] = Native(f, machine), taken
        return found

    def _taken(self, left: Sequence[int], begun: Sequence[bool], lean: bool) -> list[Taken]:
        """What becomes of the results that are left."""
        captured = self.captured
        places = {k: at for at, k in enumerate(left)}
        whole = {k for (k, _), yes in zip(captured.sums, begun, strict=True) if yes}
        second = {k: places.get(len(self.function.results) + i) for i, k in enumerate(self.owed)}
        out = []
        for k, (i, _) in enumerate(captured.slopes):
            if k not in places:
                continue
            if not lean or k not in self.owed:
                out.append(Taken(places[k], i, k in whole, None, -1))
            elif (q := second[k]) is not None:
                out.append(Taken(places[k], i, k in whole, self.owed[k], q))
        return out

    def note(self, xs: Values, outs: tuple[Any, ...]) -> None:
        """Note a call on the tape."""
        if self.numbers:
            parents = [x.note if isinstance(x, Value) else None for x in xs]
            saved = [x.data if isinstance(x, Value) else x for x in xs]
        else:
            parents, saved = [x.note for x in xs], [x.data for x in xs]
        if parents.count(None) == len(parents):
            return
        out = [o.data for o in outs]
        saved += out[self.results :]
        made = Note(
            self.call,
            (*parents, *self.nobody),
            tuple(saved),
            tuple(out[: self.results]),
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
        begun: list[Value | None] = []
        taken: set[Any] = set()  # inputs that are one tensor: the first goes on from the sum
        for i in self.going_on:
            parent = parents[i]
            begun.append(None if parent in taken else sums.get(parent))
            taken.add(parent)
        noted = self.captured.noted
        lean = bool(self.owing) and all(parents[i].__class__ in _LEAF for i in self.owing)
        given, started = tuple([r in g for r in noted]), tuple([s is not None for s in begun])
        native, slopes = self.program(given, started, lean)
        cotangents = [g[r] for r in noted if r in g]
        results = native.run([*xs, *cotangents, *(s for s in begun if s is not None)])
        out: dict[Any, Any] = {}
        for at, i, whole, kind, q in slopes:
            parent, slope = parents[i], results[at]
            if parent is None:
                continue
            before = None if whole else out.get(parent)
            if before is None and not whole:
                before = sums.get(parent)
            if kind is not None:
                out[parent] = owing(before, kind, slope, results[q])
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
