"""Whether two graphs are one: the same values computed in the same way, whatever they are called,
wherever they were said, and in whatever order regions take and give them.
"""

from __future__ import annotations

import linecache
from collections import Counter
from collections.abc import Iterable
from itertools import count
from typing import Any

from weft.capture.source import operators
from weft.capture.trace import Trace
from weft.deploy.python.writer import to_python
from weft.ir import Function, Node
from weft.ir.node import elements
from weft.ops.define import as_node, constant, installed

_files = count()


def defined(source: str) -> Any:
    """The function that a source defines, as if it stood in a file."""
    name = f"/written/{next(_files)}.py"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    space: dict[str, Any] = {"__name__": "written"}
    exec(compile(source, name, "exec", dont_inherit=True), space)
    made = [v for v in space.values() if getattr(v, "__module__", "") == "written"]
    return made[-1]


def captured(f: Any, types: list[Any]) -> Function:
    """The graph of a Python function on values of these types."""
    trace = Trace()
    with trace:
        try:
            xs = [installed.tensor(trace.parameter(t)) for t in types]
            out = operators.call(f, *xs)
            results = [as_node(x) for x in (out if isinstance(out, tuple) else (out,))]
        finally:
            trace.restore()
    assert len(trace.params) == len(types), "something else was read"
    return Function("again", tuple(trace.params), tuple(results))


def again(f: Function) -> tuple[str, Function]:
    """The source of a graph, and the graph of that source."""
    source = to_python(f)
    try:
        return source, captured(defined(source), [p.type for p in f.params])
    except Exception as e:
        raise AssertionError(f"{type(e).__name__}: {e}\n{source}\n{f}") from e


def check(f: Function) -> str:
    """Raise unless the source of a graph gives the graph; the source."""
    source, g = again(f)
    assert same(f, g), f"{source}\n{f}\n{g}\n{ops(f)}\n{ops(g)}"
    return source


def same(f: Function, g: Function) -> bool:
    """Whether two graphs compute the same in the same way, and the second nothing twice that the
    first does once. (It may do once what the first does twice: a branch whose paths agree.)
    """
    canon = Canon()
    return canon.function(f) == canon.function(g) and ops(g) <= ops(f)


def ops(f: Function) -> Counter[str]:
    """How often each op is called, regions included, for results that are used."""
    return _ops(f, range(len(f.results)))


def _ops(f: Function, used: Iterable[int]) -> Counter[str]:
    out: Counter[str] = Counter()
    live: dict[Node, None] = {f.results[i]: None for i in used}
    wanted: dict[Node, set[int]] = {}
    for n in reversed(f.order):
        if n not in live:
            continue
        if n.is_pick:
            wanted.setdefault(n.inputs[0], set()).add(n.attr("position"))
            live[n.inputs[0]] = None
            continue
        out[n.op.name] += n.op is not constant
        for r in n.regions:
            picked = n.op.name == "cond" and not n.attrs
            out += _ops(r, wanted[n] if picked else range(len(r.results)))
        live |= dict.fromkeys(n.inputs)
    return out


class Canon:
    """Values as numbers: equal ones have the same."""

    def __init__(self) -> None:
        self.numbers: dict[Any, int] = {}
        self.functions: list[list[str]] = []  # of recursions around what is looked at

    def of(self, *key: Any) -> int:
        return self.numbers.setdefault(key, len(self.numbers))

    def function(self, f: Function) -> tuple[int, ...]:
        """Its results, as functions of the positions of its parameters."""
        given = [self.of("param", i, str(p.type)) for i, p in enumerate(f.params)]
        return self.run(f, given)

    def run(self, f: Function, given: list[int]) -> tuple[int, ...]:
        env = dict(zip(f.params, given, strict=True))
        outs: dict[Node, list[int]] = {}
        for n in f.order:
            if n.is_pick:
                env[n] = outs[n.inputs[0]][n.attr("position")]
                continue
            xs = [env[i] for i in n.inputs]
            if n.op.name == "cond" and not n.attrs:
                outs[n] = self.cond(n, xs)
            elif n.op.name == "while" and not n.attrs:
                outs[n] = self.loop(n, xs)
            elif n.op.name == "recursion":
                outs[n] = _Several(self, self.recursion(n, xs))
            elif n.op.name == "call":
                outs[n] = _Several(self, self.of("call", self.called(n), tuple(xs)))
            else:
                env[n] = self.of(n.op.name, tuple(xs), self.attrs(n), self.regions(n))
                outs[n] = _Several(self, env[n])
        return tuple(env[r] for r in f.results)

    def attrs(self, n: Node) -> Any:
        return tuple((k, _value(v)) for k, v in n.attrs)

    def regions(self, n: Node) -> Any:
        return tuple(self.function(r) for r in n.regions)

    def cond(self, n: Node, xs: list[int]) -> list[int]:
        yes, no = (self.run(r, xs[1:]) for r in n.regions)
        pairs = zip(yes, no, strict=True)
        return [a if a == b else self.of("cond", xs[0], a, b) for a, b in pairs]

    def recursion(self, n: Node, xs: list[int]) -> int:
        """What it captured is a value from outside, in whatever order it takes that."""
        count = len(xs) - n.attr("captured")
        self.functions.append([f.name for f in n.regions])
        bodies = []
        for f in n.regions:
            own = range(len(f.params) - n.attr("captured"))
            given = [self.of("given", len(self.functions), i) for i in own]
            bodies.append(self.run(f, given + xs[count:]))
        self.functions.pop()
        return self.of("recursion", tuple(xs[:count]), tuple(bodies))

    def called(self, n: Node) -> tuple[int, int]:
        """Which function that is: of which recursion around, and which of it."""
        for depth, names in enumerate(reversed(self.functions)):
            if n.attr("name") in names:
                return depth, names.index(n.attr("name"))
        raise AssertionError(n.attr("name"))

    def loop(self, n: Node, xs: list[int]) -> list[int]:
        """Each state by its start and by what a step makes of it, as deep as states differ."""
        test, body = n.regions
        size = len(body.results)
        held = [i for i in range(size) if body.results[i] is not body.params[i]]
        reach = {i: self.reach(test, body, held, i) for i in held}
        out = list(xs[:size])
        for i in held:
            out[i] = self.state(n, xs, reach[i], i)
        return out

    def reach(self, test: Function, body: Function, held: list[int], i: int) -> list[int]:
        """The states that one depends on, those of the test included."""
        found, todo = set(), [i, *_read(test, test.results[0], held)]
        while todo:
            j = todo.pop()
            if j not in found:
                found.add(j)
                todo += _read(body, body.results[j], held)
        return sorted(found)

    def state(self, n: Node, xs: list[int], states: list[int], i: int) -> int:
        test, body = n.regions
        colour = {j: self.of("state", xs[j]) for j in states}
        kinds = 0
        while len(set(colour.values())) > kinds:
            kinds = len(set(colour.values()))
            given = [colour.get(j, x) for j, x in enumerate(xs)]
            after = self.run(body, given)
            colour = {j: self.of("state", xs[j], after[j]) for j in states}
        given = [colour.get(j, x) for j, x in enumerate(xs)]
        checked = self.run(test, given)
        after = self.run(body, given)
        every = frozenset((colour[j], after[j]) for j in states)
        return self.of("while", checked, every, colour[i])


class _Several(list):
    """The results of a node that has several."""

    def __init__(self, canon: Canon, node: int) -> None:
        self.canon, self.node = canon, node

    def __getitem__(self, i: Any) -> int:
        return self.canon.of("pick", self.node, i)


def _read(f: Function, result: Node, held: list[int]) -> list[int]:
    """The states that a result is computed of."""
    seen, todo = set(), [result]
    while todo:
        n = todo.pop()
        if n not in seen:
            seen.add(n)
            todo += n.inputs
    return [i for i in held if f.params[i] in seen]


def _value(x: Any) -> Any:
    if hasattr(x, "layout"):
        return str(x.layout.type), elements(x)
    if isinstance(x, float):
        return "float", x.hex() if x == x else "nan"
    if isinstance(x, tuple):
        return tuple(map(_value, x))
    return type(x).__name__, repr(x)
