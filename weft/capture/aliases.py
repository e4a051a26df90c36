"""Which tensors of a program may be one: those that a path or a step passes on.

Behind a branch a variable holds what one path left in it, or what the other did: a tensor of the
program that is none of the two. Were that or one of them changed in place, the others would have to
change too, on one path. So they are unclear from then on, which is an error if a result depends on
it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from weft.autodiff.backward import constant
from weft.capture.refusal import located, refused
from weft.control.region import Region
from weft.errors import CaptureError
from weft.ir import Function, Location, Node, user_location
from weft.ops.define import Value, as_node, capturing, data_of, installed, result
from weft.types import TensorType


class Aliases:
    """The tensors of one trace that may be one, and the values that are unclear.

    A tensor that was joined may be any of its parts, one for each way to come there; tensors
    joined at one time came the same way.
    """

    def __init__(self) -> None:
        self.held: dict[int, Value] = {}
        self.named: dict[int, Value] = {}  # of these, what somebody can still name
        self.parts: dict[int, tuple[int, list[Value | None]]] = {}  # when, and what it may be
        self.ends: dict[int, dict[int, None]] = {}  # what joined ones are made of
        self.users: dict[int, list[int]] = {}  # the tensors made of one
        self.unclear: dict[int, tuple[Node, Location | None]] = {}
        self.loops: list[Names] = []  # of those under way
        self.time = 0

    def now(self) -> int:
        """A moment at which several tensors are joined."""
        self.time += 1
        return self.time

    def join(self, time: int, new: Value, *parts: Any) -> None:
        """`new` may be any of the tensors among the parts; those for one moment, in one order."""
        kept = [x if isinstance(x, Value) else None for x in parts]
        self.parts[id(new)] = time, kept
        known = self.ends.setdefault(id(new), {})
        for x in (new, *kept):
            if x is not None and id(x) not in self.held:
                self.held[id(x)] = self.named[id(x)] = x
        for x in kept:
            for end in () if x is None else self.ends.get(id(x)) or (id(x),):
                if end not in known:
                    known[end] = None
                    self.users.setdefault(end, []).append(id(new))

    def may_be_one(self, x: Value, y: Value) -> bool:
        """Whether two tensors may be the same."""
        todo: list[tuple[Value | None, Value | None]] = [(x, y)]
        seen: set[tuple[int, int]] = set()
        while todo:
            a, b = todo.pop()
            if a is None or b is None or (id(a), id(b)) in seen:
                continue
            if a is b:
                return True
            seen.add((id(a), id(b)))
            when, left = self.parts.get(id(a), (0, []))
            then, right = self.parts.get(id(b), (0, []))
            if when == then:
                todo += zip(left, right, strict=True)
            elif when > then:
                todo += [(part, b) for part in left]
            else:
                todo += [(a, part) for part in right]
        return False

    def others(self, x: Value) -> list[Value]:
        """The tensors that may be `x`."""
        ends = self.ends.get(id(x)) or (id(x),)
        found = dict.fromkeys(k for end in ends for k in (end, *self.users.get(end, ())))
        known = [self.named[k] for k in found if k in self.named and k != id(x)]
        return [y for y in known if self.may_be_one(x, y)]

    def close(self, region: Region) -> None:
        """Forget the names of what a region made."""
        self.named = {
            k: x for k, x in self.named.items() if x.data not in region.nodes or k in region.written
        }

    def changed(self, x: Value) -> None:
        """`x` is being changed in place: of the others nobody knows."""
        for names in self.loops:
            names.written.append(x)
        for other in self.others(x) if self.parts else ():
            if not any(other is y for names in self.loops for y in names.first):
                self.blur(other)

    def blur(self, x: Value) -> None:
        """Make the value of a tensor one that no result may depend on."""
        assert capturing.now is not None
        capturing.now.keep(x)
        x.data, x.note = self._mark(x.type), None

    def _mark(self, type_: TensorType) -> Node:
        node = inner = as_node(constant(0, type_))
        self.unclear[id(node)] = node, user_location()
        while inner.inputs:  # of open sizes: what is the same node in every region
            inner = inner.inputs[0]
            self.unclear[id(inner)] = inner, user_location()
        return node

    def check(self, results: Sequence[Node]) -> None:
        """Raise if results depend on a value that is unclear."""
        if not self.unclear:
            return
        for n in _read(results):
            if id(n) in self.unclear:
                raise CaptureError(
                    located("an assignment in place", self.unclear[id(n)][1]),
                    expected="a tensor that has one name on every path",
                    got="one that may be another one too, whose value is used later",
                    hint="write x = x + y instead of x += y, or start from .clone()",
                )


def is_unclear(n: Node) -> bool:
    aliases = getattr(capturing.now, "aliases", None)
    return aliases is not None and id(n) in aliases.unclear


class Names:
    """The tensors that a loop carries: which of them may be one, and which are changed in place.

    `known` are pairs of them that were found to be one at the end of a step, the second of which is
    changed in the next.
    """

    def __init__(
        self, first: Sequence[Any], params: Sequence[Any], known: set[tuple[int, int]]
    ) -> None:
        self.first, self.params, self.known = first, params, known
        self.last: Sequence[Any] = ()  # at the end of a step
        self.placed: dict[int, Any] = {}  # what tensors were given when a step began
        self.changed: dict[int, Value] = {}
        self.written: list[Value] = []
        self.aliases: Aliases | None = getattr(capturing.now, "aliases", None)
        self._join(params, first)
        for i, j in known:
            self._join([params[i]], [first[i]], [params[j]])

    def _join(self, new: Sequence[Any], *parts: Sequence[Any]) -> None:
        if self.aliases is None:
            return
        time = self.aliases.now()
        for x, *found in zip(new, *parts, strict=True):
            self.aliases.join(time, x, *found)

    def begin(self, body: Region) -> None:
        """A step is run: the params stand for what the loop began with."""
        self.placed = {k: x.data for k, (x, _, _) in body.written.items()}
        if self.aliases is not None:
            self.aliases.loops.append(self)

    def end(self, body: Region) -> dict[int, Value]:
        """It has been run: what tensors that it changed hold by now, by their ids."""
        written = {k: x for k, (x, _, _) in body.written.items()}
        self.changed = {k: x for k, x in written.items() if x.data is not self.placed.get(k)}
        return {k: installed.tensor(data_of(x), x.note) for k, x in written.items()}

    def close(self) -> None:
        """The params are no one's any more."""
        if self.aliases is not None:
            for p in self.params:
                self.aliases.named.pop(id(p), None)
            if self in self.aliases.loops:
                self.aliases.loops.remove(self)

    @property
    def inplace(self) -> list[bool]:
        """Of each, whether steps change it in place and leave it where it was."""
        pairs = zip(self.params, self.last, strict=True)
        return [id(p) in self.changed and x is p for p, x in pairs]

    def _is_written(self, x: Value) -> bool:
        """Whether a step may change a tensor that the loop began with."""
        return self.aliases is None or any(self.aliases.may_be_one(x, y) for y in self.written)

    def go_round(self, last: Sequence[Any]) -> bool:
        """Say what a step ends with. Whether another pair is known now."""
        self.last = last
        self._join(self.params, self.first, last)
        found = len(self.known)
        aliases = self.aliases
        if aliases is None:
            if any(id(p) in self.changed and not any(x is p for x in last) for p in self.params):
                raise _two_names()
            return False
        for i, p in enumerate(self.params):
            ones = [] if id(p) in self.changed else self.changed.values()
            for x in (x for x in ones if aliases.may_be_one(p, x)):
                j = next((j for j, q in enumerate(self.params) if q is x), None)
                if j is None or (i, j) in self.known:
                    raise _two_names()
                self.known.add((i, j))
        return len(self.known) > found

    def leave(self, out: Sequence[Any], captured: Sequence[Node]) -> None:
        """Say what the loop gives, and which values it reads of the outside. A tensor that a step
        changed and then let go is unclear behind it.
        """
        for x, p, stays in zip(self.first, self.params, self.inplace, strict=True):
            if id(p) not in self.changed or not isinstance(x, Value) or not self._is_written(x):
                continue
            shared = sum(y is x for y in self.first) > 1
            if shared or data_of(x) in captured or id(x) in self.changed:
                raise _two_names()
            if self.aliases is not None and not stays:
                self.aliases.changed(x)
                self.aliases.blur(x)
        self._join(out, self.first, self.last)


def _two_names() -> CaptureError:
    return refused(
        "a loop",
        "tensors changed in place to have one name",
        "two names for one tensor",
        "write x = x + y instead of x += y, or start from .clone()",
    )


def _read(results: Iterable[Node]) -> Iterable[Node]:
    """The nodes that results depend on; of branches and loops, those of the results in use."""
    seen: set[int] = set()
    stack = list(results)
    while stack:
        n = stack.pop()
        if id(n) in seen:
            continue
        seen.add(id(n))
        yield n
        made = n.inputs[0] if n.op is result else n
        if n.op is not result or made.op.name not in ("cond", "while"):
            stack += n.inputs
            stack += [r for f in n.regions for r in f.results]
            continue
        inner, used = _parts(made, n.attr("position"))
        yield from inner
        stack += used


def _parts(n: Node, position: int) -> tuple[list[Node], list[Node]]:
    """What a result of a branch or loop depends on: nodes inside, and operands."""
    inner: dict[int, Node] = {}
    if n.op.name == "cond":
        wanted = {0}
        for f in n.regions:
            read = list(_read([f.results[position]]))
            inner.update({id(x): x for x in read})
            wanted |= {i + 1 for i in _params(f, read)}
        return list(inner.values()), [n.inputs[i] for i in wanted]
    test, body = n.regions
    wanted, count = {position}, 0
    while count < len(wanted):
        count = len(wanted)
        ends = [body.results[i] for i in wanted if i < len(body.results)]
        for f, results in ((test, test.results), (body, ends)):
            read = list(_read(results))
            inner.update({id(x): x for x in read})
            wanted |= _params(f, read)
    return list(inner.values()), [n.inputs[i] for i in wanted]


def _params(f: Function, read: Sequence[Node]) -> set[int]:
    ids = {id(n) for n in read}
    return {i for i, p in enumerate(f.params) if id(p) in ids}
