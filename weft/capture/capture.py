"""A call of a function, captured: its graph, and how inputs and results are bound to the world."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.autodiff.mode import recording
from weft.autodiff.tape import Leaf, Note, Pick, next_serial, pull
from weft.capture.chosen import Chosen, Flag
from weft.capture.effects import Raised
from weft.capture.guards import Guards, Held
from weft.capture.join import Unfit
from weft.capture.perhaps import Perhaps
from weft.capture.refusal import NO_SOURCE, READABLE, defined, located, on_line
from weft.capture.runs import Maybe, settled
from weft.capture.signature import Marks, has_elements, opened
from weft.capture.source.convert import operating, was_operator
from weft.capture.stacks import Stack
from weft.capture.structure import Form, flatten
from weft.capture.symbols import Symbols
from weft.capture.things import holds
from weft.capture.trace import Cell, Trace
from weft.capture.unions import ended
from weft.errors import CaptureError, called
from weft.ir import Function, Node
from weft.ops.define import Call, Value, as_node, installed
from weft.ops.elementwise import add
from weft.ops.movement import alias
from weft.types.record import dataclass
from weft.types.size import Number


@dataclass(frozen=True, eq=False)
class Inputs:
    """What a program is called on, in the order of its params."""

    arguments: tuple[int, ...]  # numbers of leaves of the call's arguments
    cells: tuple[Cell, ...]
    numbers: tuple[Callable[[], Any], ...]
    scalars: tuple[Number, ...]  # numbers that come of arguments
    random: bool  # key and counter of the generator


@dataclass(frozen=True, eq=False)
class Output:
    """A leaf of what the function returned: a result of the program by number, or something that
    is known without running it: an argument, a tensor from outside, a Python value.
    """

    result: int | None = None
    number: bool = False  # a Python number, which the program has as a tensor
    argument: int | None = None
    value: Any = None


@dataclass(frozen=True, eq=False)
class Write:
    """A place that holds another value afterwards: a cell, or an argument. No result: no gradient
    any more.
    """

    result: int | None
    cell: Cell | None = None
    argument: int | None = None
    inside: bool = False  # the gradient there is given another value, and stays the object it is


@dataclass(frozen=True, eq=False)
class Captured:
    """A captured call."""

    function: Function  # results: outputs, then what is written; for a gradient also its own
    inputs: Inputs
    form: Form
    outputs: tuple[Output, ...]
    writes: tuple[Write, ...]
    drawn: int  # random numbers
    counter: int | None = None  # the result that is the generator's counter afterwards, if one is
    noted: tuple[int, ...] = ()  # results that carry a gradient
    seeds: tuple[Node, ...] = ()  # their cotangents: further inputs of `gradient`
    slopes: tuple[tuple[int, Node], ...] = ()  # (input, its cotangent)
    sums: tuple[tuple[int, Node], ...] = ()  # (number of a slope, the sum it goes on from)
    spent: tuple[tuple[int, Note], ...] = ()  # results that backward() was called on, used notes
    empty: tuple[Cell, ...] = ()  # gradients that were looked at and not there
    symbols: Symbols | None = None  # sizes and numbers of the call that are left open
    guards: Guards | None = None  # what converted code read from outside
    held: tuple[Held, ...] = ()  # tensors from outside: note and type of each
    exact: tuple[tuple[int, int], ...] = ()  # ints among the arguments that it is made for
    fast: bool = False  # whether last bits may differ
    found: tuple[Node | None, ...] = ()  # sizes that the program finds
    roomy: Any = None  # of a program for all sizes: see `weft.capture.roomy`
    rooms: tuple[int, ...] = ()  # of these: any that are as large will do

    @property
    def read_only(self) -> frozenset[int]:
        """The inputs that are state which the program leaves as it is."""
        first, written = len(self.inputs.arguments), {w.cell for w in self.writes}
        cells = enumerate(self.inputs.cells, first)
        return frozenset([i for i, c in cells if not c.is_grad and c not in written])


class Unsized(Exception):
    """A capture failed that knew not yet what sizes the program finds: `captured` finds them."""

    def __init__(self, captured: Captured, failure: Exception) -> None:
        self.captured, self.failure = captured, failure


def capture(
    f: Callable[..., Any],
    leaves: list[Any],
    form: Form,
    run: Callable[..., Any] | None = None,
    marks: Marks | None = None,
    hints: tuple[int, ...] = (),
) -> Captured:
    """`captured`, with operators converted too if a special method of the user's needs it."""
    try:
        return captured(f, leaves, form, run, marks, hints)
    except (CaptureError, Unsized) as e:
        if run is None or operating.on or not was_operator(e):
            raise
    with operating:
        return captured(f, leaves, form, run, marks, hints)


def captured(
    f: Callable[..., Any],
    leaves: list[Any],
    form: Form,
    run: Callable[..., Any] | None,
    marks: Marks | None,
    hints: tuple[int, ...],
) -> Captured:
    """Run `f` on symbols for the tensors among `leaves`, which `form` makes (args, kwargs) of;
    `marks` says which sizes and numbers are symbols too. `hints`: sizes that the program finds.
    """
    for x in leaves:
        if has_elements(x):
            raise CaptureError(
                "capture",
                expected="tensors, and Python values that stay as they are",
                got=f"an argument of type {type(x).__name__}",
                hint="pass wf.asarray(x)",
            )
    trace = Trace(hints=hints)
    trace.symbols, given = opened(leaves, marks or Marks(numbers=False))
    if marks is not None and marks.numbers:
        trace.guards.varying, trace.guards.inputs = marks.outside, trace.symbols.outside
    try:
        with trace:
            stands = [
                trace.argument(x, g, i) if isinstance(x, Value) else g
                for i, (x, g) in enumerate(zip(leaves, given, strict=True))
            ]
            for x in leaves:
                trace.guards.whole(x)
            tensors = [i for i, x in enumerate(leaves) if isinstance(x, Value)]
            firsts = list({id(leaves[i]): i for i in reversed(tensors)}.values())[::-1]
            before = {i: stands[i].data for i in firsts}
            args, kwargs = form.build(stands)
            try:
                out = run(f, *args, **kwargs) if run else f(*args, **kwargs)
            except Raised as e:  # whatever the path
                e.finish()
                out = None
            except Exception as e:
                if len(hints) < len(trace.settled):
                    raise Unsized(_so_far(trace, firsts, before), e) from e
                if isinstance(e, CaptureError):
                    on_line(e, f, trace.guards.unguarded)
                raise
            _no_side_effects(trace, f)
            _is_known(f, out)
            name = getattr(f, "__name__", type(f).__name__)
            return finish(trace, name, out, stands, firsts, before)
    finally:
        trace.restore()
        trace.guards.restore()


def _so_far(trace: Trace, firsts: list[int], before: dict[int, Node]) -> Captured:
    """What of a capture is enough to find sizes."""
    inputs, params = _inputs(trace, firsts, [before[i] for i in firsts])
    _, form = flatten(())
    function = Function("sizes", params, ())
    return Captured(
        function,
        inputs,
        form,
        (),
        (),
        0,
        symbols=trace.symbols,
        found=tuple(trace.settled),
        rooms=tuple(r.number for r in trace.rooms.values()),
    )


def _no_side_effects(trace: Trace, f: Callable[..., Any]) -> None:
    """A program updates tensors; other things that a function changes would be changed once."""
    place = located("capture", defined(f))
    for w in trace.guards.writes.values():
        raise CaptureError(
            place,
            expected="a function that changes nothing outside but tensors",
            got=f"an assignment to {w.said}",
            hint="keep it in a tensor and assign() to that, or do it outside",
        )
    for reason in trace.guards.unguarded:
        hint = READABLE if reason.endswith(NO_SOURCE) else ""
        raise CaptureError(place, expected="code that can be read", got=reason, hint=hint)


def _is_known(f: Callable[..., Any], out: Any) -> None:
    """A result has one structure, whatever path the program takes."""
    place = located("a result", defined(f))
    try:
        _, form = flatten(settled(out))
    except CaptureError as e:
        raise called(e, place) from None
    if any(map(form.holds, (Perhaps, Maybe, Stack))):
        raise CaptureError(
            place,
            expected="lists and dicts whose structure is known",
            got="one whose keys or length depend on values",
            hint="return elements by themselves, or give a key a value on every path",
        )


def finish(
    trace: Trace,
    name: str,
    out: Any,
    stands: list[Any],
    firsts: list[int],
    before: dict[int, Node],
) -> Captured:
    results: list[Node] = []
    numbers: dict[Node, int] = {}

    def result(n: Node) -> int:
        if n not in numbers:
            numbers[n] = len(results)
            results.append(n)
        return numbers[n]

    counter = None
    if trace.draws is not None and trace.draws.cell is not None:
        counter = result(trace.draws.cell.data)
    if trace.token is not None:
        result(trace.token.data)  # first: what is done in order comes before what might fail
    found, form = flatten(ended(out))
    of_argument = {id(stands[i]): i for i in firsts}
    of_tensor: dict[int, int] = {}
    known = {id(c.owner) for c in trace.cells.values()}
    outputs = []
    for x in found:
        if isinstance(x, Unfit):
            x.used()
        if not isinstance(x, Value):
            _is_whole(x, trace, name)
            outputs.append(Output(value=x))
        elif id(x) in of_argument:
            outputs.append(Output(argument=of_argument[id(x)]))
        elif id(x) in known or not isinstance(x.data, Node):
            outputs.append(Output(value=x))
        else:
            if x.leaf is not None:
                raise CaptureError(
                    "capture",
                    expected="results that ops have made",
                    got=f"a {x.type} made with requires_grad=True",
                    hint="set requires_grad of the result outside",
                )
            if id(x) not in of_tensor:  # two tensors may hold one node
                another = x.data in numbers
                n = Node(alias, (x.data,), (), x.type, x.data.loc) if another else x.data
                of_tensor[id(x)] = result(n)
            outputs.append(Output(result=of_tensor[id(x)], number=type(x) in (Chosen, Flag)))
    writes = [
        Write(None if n is None else result(n), cell, inside=inside)
        for cell, n, inside in trace.state()
    ]
    written = [c.owner for c in trace.cells.values() if c.written and not c.is_grad]
    changed = [i for i in firsts if stands[i].data is not before[i]]
    if not all(_plain(x.note) for x in (*written, *(stands[i] for i in changed))):
        raise CaptureError(
            "capture",
            expected="tensors from outside to be updated inside wf.no_grad()",
            got="an update with a history",
        )
    writes += [Write(result(stands[i].data), argument=i) for i in changed]
    noted, seeds, slopes, sums = _gradient(trace, found, outputs)
    trace.aliases.check([*results, *(g for _, g in slopes)])
    inputs, params = _inputs(trace, firsts, [before[i] for i in firsts])
    position = {p: i for i, p in enumerate(params)}
    return Captured(
        Function(name, params, tuple(results)),
        inputs,
        form,
        tuple(outputs),
        tuple(writes),
        trace.draws.count if trace.draws and counter is None else 0,
        counter,
        noted,
        seeds,
        tuple((position[p], g) for p, g in slopes),
        sums,
        _spent(found, outputs),
        tuple(c for c in trace.cells.values() if c.empty),
        trace.symbols,
        trace.guards if len(trace.guards) else None,
        tuple({**trace.guards.tensors, **_held(trace)}.values()),
        found=tuple(trace.sizes),
        rooms=tuple(r.number for r in trace.rooms.values()),
    )


def _held(trace: Trace) -> dict[int, Held]:
    """Tensors from outside by id, with their notes and types before the call."""
    cells = [c for c in trace.cells.values() if not c.is_grad]
    found = [(c.owner, c.before if c.written else (c.owner.data, c.owner.note)) for c in cells]
    return {id(x): (x, note, data.layout.type) for x, (data, note) in found}


def _is_whole(x: Any, trace: Trace, name: str) -> None:
    """A thing that is returned has no tensor of the program in it."""
    if holds(x, lambda t: isinstance(t.data, Node), trace.guards.made):
        raise CaptureError(
            f"a result of {name}()",
            expected="tensors, and structures of them",
            got=f"a {type(x).__name__} with a tensor in it that the function has computed",
            hint="return the tensor, or a tuple, dict or dataclass",
        )


def _plain(note: Any) -> bool:
    return note is None or isinstance(note, Leaf)


Slopes = tuple[
    tuple[int, ...], tuple[Node, ...], list[tuple[Node, Node]], tuple[tuple[int, Node], ...]
]


def _inputs(trace: Trace, firsts: list[int], first: list[Node]) -> tuple[Inputs, tuple[Node, ...]]:
    """The inputs in their order: arguments, cells, numbers, the random generator's state."""
    cells = [c for c in trace.cells.values() if c.node is not None]
    random = trace.draws.params if trace.draws else ()
    ordered = [
        *first,
        *(c.node for c in cells),
        *(n for n, _ in trace.numbers),
        *(n for n, _ in trace.scalars.values()),
        *random,
    ]
    inputs = Inputs(
        tuple(firsts),
        tuple(cells),
        tuple(read for _, read in trace.numbers),
        tuple(x for _, x in trace.scalars.values()),
        bool(random),
    )
    return inputs, tuple(ordered)  # type: ignore[arg-type]


def _gradient(trace: Trace, found: list[Any], outputs: list[Output]) -> Slopes:
    """Results that lead back to inputs with gradients; symbols for their cotangents; the cotangents
    of those inputs, in graph terms; symbols for the sums that these go on from, where they are sums
    themselves: contributions are added one by one, as the tape does.
    """
    if not recording.get():
        return (), (), [], ()
    ends = {x.leaf: x for x in trace.arguments.values() if x.leaf is not None}
    used = dict(_spent(found, outputs))
    noted = [
        (o.result, x)
        for o, x in zip(outputs, found, strict=True)
        if o.result is not None and x.note is not None and o.result not in used
    ]
    if not noted:
        return (), (), [], ()
    first = dict(reversed([(r, x) for r, x in noted]))
    cells = {
        c.owner.leaf: c.node
        for c in trace.cells.values()
        if not c.is_grad and c.node is not None and c.owner.leaf is not None
    }
    nodes = {leaf: _entry(trace, x) for leaf, x in ends.items()} | cells
    seeds = [installed.tensor(trace.parameter(x.type)) for x in first.values()]
    begun = {leaf: installed.tensor(trace.parameter(n.type)) for leaf, n in nodes.items()}
    slopes = pull(
        [(x.note, g) for x, g in zip(first.values(), seeds, strict=True)],
        list(nodes),
        retain=True,
        sums=begun,
    )
    pairs: list[tuple[Node, Node]] = []
    sums: list[tuple[int, Node]] = []
    for leaf, g in slopes.items():
        start, total = begun[leaf].data, as_node(g)
        if total is start:
            continue
        if total.op is add and total.inputs[0] is start:
            total = total.inputs[1]
        else:
            sums.append((len(pairs), start))
        pairs.append((nodes[leaf], total))
    if not pairs:  # used up: backward() was called inside
        return (), (), [], ()
    return tuple(first), tuple(s.data for s in seeds), pairs, tuple(sums)


def _spent(found: list[Any], outputs: list[Output]) -> tuple[tuple[int, Note], ...]:
    """Results whose history was used up inside, with notes that say so."""
    out: dict[int, Note] = {}
    for o, x in zip(outputs, found, strict=True):
        if o.result is None:
            continue
        n = x.note.note if isinstance(x.note, Pick) else x.note
        if isinstance(n, Note) and n.saved is None:
            out[o.result] = Note(Call(n.call.op, (), {}), (), None, None, next_serial[0]())
    return tuple(out.items())


def _entry(trace: Trace, x: Value) -> Node:
    """The param an argument came in as, whatever it holds now."""
    position, _ = trace.leaves[x.leaf]
    return trace.params[position]
