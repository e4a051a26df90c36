"""A function of the graph as a Python function: branches are `if`, loops `while` and `for`.

Regions are closed in the graph; in the source they read the variables around them. A value that is
used once stands where it is used. Variables have names of their own throughout, so that what a
branch makes for itself is nobody else's.
"""

from __future__ import annotations

import base64
import builtins
import keyword
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.buffer import Buffer
from weft.buffer.interchange import to_numpy
from weft.capture.chosen import Chosen
from weft.deploy.python.functions import Functions, count_of, own_operands, variable
from weft.deploy.python.spelling import (
    ATOM,
    UNARY,
    Said,
    number,
    spelled,
    symbol,
)
from weft.ir import Function, Node
from weft.ir.literals import type_text
from weft.ir.node import elements
from weft.ops.define import constant
from weft.types import Dim, TensorType
from weft.types.dtype import bool_, float32, int64

WIDTH = 76  # of an expression that is put together
LISTED = 16  # elements of a constant that are written as numbers
_WEAK = (float, int, bool)
_TAKEN = {"wf", "F", "ops", *keyword.kwlist, *keyword.softkwlist, *dir(builtins)}
Names = Sequence[str]


def to_python(f: Function, names: Names = (), doc: str = "") -> str:
    """Python source of a function of the graph. `names` are those of its parameters.

    >>> import weft as wf
    >>> def flip(x):
    ...     return x * 2 if x.sum() > 0 else -x
    >>> print(wf.compile(flip).graph(wf.zeros((3,))).to_python())
    import weft as wf
    <BLANKLINE>
    <BLANKLINE>
    def flip(x: "f32[3]"):
        if wf.sum(x) > 0:
            t = x * 2
        else:
            t = -x
        return t
    <BLANKLINE>
    """
    writer = _Writer()
    body = writer.function(f, _identifier(f.name) or "program", names)
    if doc:
        at = next(i for i, line in enumerate(body) if line.endswith("):")) + 1
        body.insert(at, f'    """{doc}"""')
    text = "\n".join(body)
    head = ["import weft as wf"]
    if re.search(r"\bF\.", text):
        head.append("import weft.nn.functional as F")
    if re.search(r"\bops\b", text):
        head.append("from weft.deploy.python.by_name import ops")
    return "\n".join([*head, "", "", *body, ""])


Function.to_python = to_python


def _identifier(name: str) -> str:
    """The name as one of Python's, or nothing."""
    found = re.sub(r"\W+", "_", name).strip("_")
    found = f"_{found}" if found[:1].isdigit() else found
    return f"{found}_" if found in _TAKEN else found


class _Writer:
    """Names that are taken."""

    def __init__(self) -> None:
        self.taken = set(_TAKEN)
        self.functions: dict[str, tuple[str, bool]] = {}  # that calls name: as what, if Python's

    def fresh(self, hint: str) -> str:
        """A name that nothing has."""
        hint = _identifier(hint) or "t"
        name, n = hint, 1
        while name in self.taken:
            n += 1
            name = f"{hint}_{n}"
        self.taken.add(name)
        return name

    def function(self, f: Function, name: str, names: Names = (), local: bool = False) -> list[str]:
        env: dict[Node, Said] = {}
        said = []
        for i, p in enumerate(f.params):
            own = self.fresh(names[i] if i < len(names) else p.name or "xyzuvw"[i % 6])
            env[p] = variable(own, p.type)
            said.append(f"{own}: {type_text(p.type)!r}".replace("'", '"'))
        block = _Block(self, f, env, 1)
        if not local:
            block.sizes(f.params)
        results = block.run()
        block.give([x.text for x in results])
        given = ", ".join(said)
        head = f"def {name}({given}):"
        if len(head) > 100:
            head = "\n".join([f"def {name}(", *(f"    {s}," for s in said), "):"])
        return [*head.split("\n"), *block.lines]


def kind(n: Node) -> Any:
    """The type of a value; of a Python number its class."""
    return n.type


class _Block(Functions):
    """The statements of one function or region."""

    def __init__(self, writer: _Writer, f: Function, env: dict[Node, Said], depth: int) -> None:
        self.writer, self.f, self.env, self.depth = writer, f, env, depth
        self.lines: list[str] = []
        self.picks: dict[Node, dict[int, list[Node]]] = {}
        for n in f.order:
            if n.is_pick:
                self.picks.setdefault(n.inputs[0], {}).setdefault(n.attr("position"), []).append(n)
        self.users = Counter(i for n in f.order if not n.is_pick for i in n.inputs)
        self.users.update(f.results)
        self.own = {*f.order, *(f.params if depth == 1 else ())}  # not variables around it
        #: values that a region reads are variables: it must not compute them again
        self.named = {i for n in f.order for i in n.inputs[own_operands(n) :] if n.regions}

    def write(self, line: str) -> None:
        self.lines.append("    " * self.depth + line if line else "")

    def give(self, results: list[str]) -> None:
        """The last statement."""
        line = f"return {', '.join(results)}".rstrip()
        if len(line) <= 2 * WIDTH:
            self.write(line)
        else:
            for s in ("return (", *(f"    {r}," for r in results), ")"):
                self.write(s)

    def sizes(self, params: Sequence[Node]) -> None:
        """Names for the sizes that are open."""
        known: set[str] = set()
        for p in params:
            for axis, size in enumerate(getattr(p.type, "shape", ())):
                if type(size) is Dim and size.name not in known:
                    known.add(size.name)
                    self.writer.taken.add(size.name)
                    self.write(f"{size.name} = {self.env[p].text}.shape[{axis}]")

    def run(self, targets: Sequence[str] = ()) -> list[Said]:
        """Write it; what its results are. A branch of it may leave them in `targets` at once."""
        wanted = dict(zip(self.f.results, targets, strict=False))
        for n in self.f.order:
            if n.is_pick or n in self.env:
                continue
            if n.op is constant:
                self.bind(n, self.constant(n))
            elif n.op.name == "cond" and not n.attrs:
                self.branch(n, wanted)
            elif n.op.name == "while" and not n.attrs:
                self.loop(n)
            elif n.op.name == "recursion" and len(n.regions) == 1:
                self.recursion(n)
            elif n.op.name == "call":
                self.enter(n)
            elif n.regions:
                self.called(n)
            else:
                self.call(n)
        return [self.env[r] for r in self.f.results]

    # values

    def bind(self, n: Node, said: Said) -> None:
        """A value as a variable, or, where it is used once and short, to be written there."""
        weak = n.op is constant and kind(n) in _WEAK
        once = self.users[n] <= 1 and n not in self.named and len(said.text) <= WIDTH
        if weak or once:
            self.env[n] = said
        else:
            name = self.writer.fresh(n.name or "t")
            self.write(f"{name} = {said.text}")
            self.env[n] = variable(name, n.type)

    def constant(self, n: Node) -> Said:
        value: Any = n.attr("value")
        if not isinstance(value, Buffer):
            text = number(value)
            return Said(text, UNARY if text[0] == "-" else ATOM, value)
        return Said(_tensor(value), ATOM, symbol(n.type))

    def call(self, n: Node) -> None:
        xs = [self.env[i] for i in n.inputs]
        if n not in self.picks:
            self.bind(n, spelled(n, xs))
            return
        names = []
        for i in range(count_of(n)):
            picks = self.picks[n].get(i, [])
            hint = next((p.name for p in picks if p.name), "t") if picks else "unused"
            names.append(self.writer.fresh(hint))
            for p in picks:
                self.env[p] = variable(names[-1], p.type)
        comma = "," if len(names) == 1 else ""
        self.write(f"{', '.join(names)}{comma} = {spelled(n, xs, several=True).text}")

    # branches

    def branch(self, n: Node, wanted: dict[Node, str]) -> None:
        """`if`, which leaves its results in variables."""
        pred, *xs = n.inputs
        used = sorted(self.picks.get(n, {}))
        if not used:
            return
        targets = {}
        for i in used:
            picks = self.picks[n][i]
            known = next((wanted[p] for p in picks if p in wanted), None)
            hints = (picks[0].name, *(r.results[i].name for r in n.regions))
            targets[i] = known or self.writer.fresh(next(filter(None, hints), "t"))
        sides = []
        for region in n.regions:
            kept = Function(region.name, region.params, tuple(region.results[i] for i in used))
            env = dict(zip(region.params, (self.env[x] for x in xs), strict=True))
            block = _Block(self.writer, kept, env, self.depth + 1)
            values = block.run(list(targets.values()))
            block.assign(list(zip(targets.values(), values, strict=True)))
            sides.append(block.lines)
        self.write(f"if {self.env[pred].text}:")
        self.lines += sides[0] or [self.inner("pass")]
        self.otherwise(sides[1])
        for i, name in targets.items():
            for p in self.picks[n][i]:
                self.env[p] = variable(name, p.type)

    def inner(self, line: str) -> str:
        return "    " * (self.depth + 1) + line

    def otherwise(self, lines: list[str]) -> None:
        """The other branch; as `elif` where it is no more than a branch."""
        if not lines:
            return
        inside = "    " * (self.depth + 1)
        rest = [s for s in lines[1:] if not s.startswith(f"{inside} ")]
        alone = all(s.startswith((f"{inside}elif ", f"{inside}else:")) for s in rest)
        if lines[0].startswith(f"{inside}if ") and alone:
            self.lines += [s[4:] for s in ["    " + "    " * self.depth + "el" + lines[0].strip()]]
            self.lines += [s[4:] for s in lines[1:]]
        else:
            self.write("else:")
            self.lines += lines

    def assign(self, pairs: list[tuple[str, Said]]) -> None:
        """Values to variables, each before another that it reads is changed."""
        left = [(name, x) for name, x in pairs if x.text != name]
        while left:
            free = [(s, x) for s, x in left if not any(s in y.reads for t, y in left if t != s)]
            if not free:
                names, values = zip(*left, strict=True)
                self.write(f"{', '.join(names)} = {', '.join(v.text for v in values)}")
                return
            name, x = free[0]
            self.write(f"{name} = {x.text}")
            left.remove((name, x))

    # loops

    def loop(self, n: Node) -> None:
        test, body = n.regions
        count = len(body.results)
        steady = [i for i in range(count) if body.results[i] is body.params[i]]
        moving = [i for i in range(count) if i not in steady]
        counter = self.counter(n, moving)
        names, env = {}, {}
        for i in moving:
            if i == counter:
                continue
            picks = self.picks.get(n, {}).get(i, [])
            hints = (body.results[i].name, *(p.name for p in picks), n.inputs[i].name)
            hint = next(filter(None, hints), "t")
            names[i] = self.left(n.inputs[i]) or self.writer.fresh(hint)
            env[i] = variable(names[i], body.params[i].type)
        for i in range(len(n.inputs)):
            if i >= count or i in steady:
                env[i] = self.env[n.inputs[i]]
        for i, name in names.items():
            if name != self.env[n.inputs[i]].text:
                self.write(f"{name} = {self.env[n.inputs[i]].text}")
        if counter is not None:
            index = self.writer.fresh("i")
            chosen = Chosen.of(symbol(body.params[counter].type))
            env[counter] = variable(index, None, chosen)
            self.write(f"for {index} in {self.range(n, counter, env)}:")
        else:
            self.write(f"while {self.test(test, env)}:")
        kept = Function(body.name, body.params, tuple(body.results[i] for i in names))
        block = _Block(self.writer, kept, _bound(body, env), self.depth + 1)
        values = block.run()
        block.assign(list(zip(names.values(), values, strict=True)))
        self.lines += block.lines or [self.inner("pass")]
        for i in range(count):
            for p in self.picks.get(n, {}).get(i, []):
                self.env[p] = env[i]

    def left(self, n: Node) -> str | None:
        """The variable of a value that nothing but the start of a loop reads, to go on with."""
        name = self.env[n].text
        own = n in self.own
        alone = [x.text for x in self.env.values()].count(name) == 1
        once = self.users[n] == 1 and n not in self.named
        return name if own and alone and once and name.isidentifier() else None

    def test(self, test: Function, env: dict[int, Said]) -> str:
        """The condition of a loop: an expression, or the call of a function made for it."""
        inner = _Block(self.writer, test, _bound(test, env), self.depth + 1)
        (value,) = inner.run()
        if not inner.lines:
            return value.text
        name = self.writer.fresh("more")
        inner.write(f"return {value.text}")
        at = len(self.lines)
        self.lines[at:] = ["    " * self.depth + f"def {name}():", *inner.lines]
        return f"{name}()"

    def counter(self, n: Node, moving: list[int]) -> int | None:
        """The state of a loop that counts through a range, if one does and no one else needs to."""
        test, body = n.regions
        (check,) = test.results
        if check.op.name not in ("less", "greater") or len(test.order) > 2:
            return None
        now, stop = check.inputs
        if now not in test.params[: len(body.results)] or stop is now:
            return None
        i = test.params.index(now)
        step = _step(body, i)
        start = n.inputs[i]
        if (
            i not in moving
            or self.picks.get(n, {}).get(i)
            or step is None
            or (step > 0) is not (check.op.name == "less")
            or start.op.name != "full"
            or start.type != TensorType((), int64)
            or self.users[start] > 1
            or not _computes_only(body, body.params[i])
        ):
            return None
        first = start.inputs[0]
        if stop in test.params:
            place = test.params.index(stop)
            known = place >= len(body.results) or place not in moving
            given = n.inputs[place]
            plain = given.type == TensorType((), int64) and given.op is not constant
            return i if known and plain else None
        known = stop.op is constant and kind(stop) is int
        return i if known and first.type == TensorType((), int64) else None

    def range(self, n: Node, i: int, env: dict[int, Said]) -> str:
        test, body = n.regions
        stop = test.results[0].inputs[1]
        step = _step(body, i)
        place = test.params.index(stop) if stop in test.params else None
        last = env[place].text if place is not None else number(stop.attr("value"))
        first = self.env[n.inputs[i].inputs[0]].text
        given = [last] if first == "0" and step == 1 else [first, last]
        return f"range({', '.join(given)}{f', {step}' if step != 1 else ''})"


def _bound(f: Function, env: dict[int, Said]) -> dict[Node, Said]:
    return {p: env[i] for i, p in enumerate(f.params) if i in env}


def _step(body: Function, i: int) -> int | None:
    """What a state of a loop grows by in every step."""
    after = body.results[i]
    if after.op.name != "add" or after.inputs[0] is not body.params[i]:
        return None
    by = after.inputs[1]
    uses = [m for m in body.order if after in m.inputs]
    if by.op is not constant or kind(by) is not int or uses or by.attr("value") == 0:
        return None
    return None if body.results.count(after) > 1 else int(by.attr("value"))


def _computes_only(f: Function, x: Node) -> bool:
    """Whether a value is no more than an operand of ops: no result, no start of a loop."""
    if x in f.results:
        return False
    for n in f.order:
        for place, i in enumerate(n.inputs):
            if i is not x or not n.regions:
                continue
            if n.op.name == "cond" and not n.attrs:
                inner = [(r, r.params[place - 1]) for r in n.regions if place]
            elif n.op.name == "while" and not n.attrs and place >= own_operands(n):
                inner = [(r, r.params[place]) for r in n.regions]
            else:
                return False
            if not all(_computes_only(r, p) for r, p in inner):
                return False
    return True


def _tensor(value: Buffer) -> str:
    """A constant as source."""
    array = to_numpy(value)
    type_ = value.layout.type
    plain = type_.dtype in (float32, int64, bool_)
    tail = "" if plain else f", dtype=wf.{type_.dtype.name}"
    if array.size <= LISTED and array.size and bool(np.all(array == array)):
        return f"wf.tensor({_listed(array.tolist())}{tail})"
    flat = np.frombuffer(elements(value), np.uint8).reshape(max(array.size, 1), -1)
    if bool((flat == flat[0]).all()):
        flat = flat[:1]
    text = base64.b64encode(flat.tobytes()).decode()
    return f'ops.data("{type_text(type_)}", "{text}")'


def _listed(x: Any) -> str:
    if isinstance(x, list):
        return f"[{', '.join(map(_listed, x))}]"
    return number(float(x) if isinstance(x, np.floating) else x)
