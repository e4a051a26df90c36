"""Loops on numbers: a `while` all of whose values are single elements, as one kernel.

Its state is held in registers, loops and branches inside it are its own; tensors that it reads an
element of by a computed index are operands. Rounding is that of the ops: each is said by its rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from weft.buffer import Layout
from weft.ir import Function, Node
from weft.ops.define import constant
from weft.ops.indexing import ravel_index, take
from weft.ops.scalar import Scalar, input_
from weft.schedule.launch import Launch, Phase
from weft.schedule.read import Numbers, Unreadable, applied, elementwise, op_of
from weft.schedule.scalars_spec import Block, If, Let, Read, ScalarSpec, While
from weft.types import DType, TensorType
from weft.types.dtype import int64

#: statements beyond which a loop is left to kernels of its own ops
MOST = 300


def plan_scalars(n: Node, layouts: Sequence[Any]) -> tuple[Launch, tuple[int, ...], Node] | None:
    """A loop as one kernel: which of its operands it takes, in order, and the last op in it that
    may fail; None if it computes with more than single elements.
    """
    try:
        return _Reader(n, layouts).plan()
    except Unreadable:
        return None


def _is_number(type_: Any) -> bool:
    """Whether it is the type of a Python number, which has no dtype yet."""
    return not isinstance(type_, TensorType)


def _line(n: Node) -> Any:
    return n.loc and (n.loc.file, n.loc.line)


class _Place:
    """An element that a rule of indices asks for: the one there is."""

    def __init__(self, scalar: Scalar) -> None:
        self.scalar, self.dtype = scalar, scalar.dtype

    def __call__(self, *_: Any) -> Scalar:
        return self.scalar


class _Source(NamedTuple):
    """A tensor that elements are read of."""

    position: int


class _Reader:
    def __init__(self, n: Node, layouts: Sequence[Any]) -> None:
        self.node, self.layouts = n, layouts
        self.dtypes: list[DType] = []
        self.numbers = Numbers()
        self.sources: dict[int, int] = {}  # of operands: which source
        self.left = MOST
        self.reads: list[Node] = []

    def plan(self) -> tuple[Launch, tuple[int, ...], Node]:
        env: list[Any] = []
        elements: list[int] = []
        for i, x in enumerate(self.node.inputs):
            if not isinstance(x.type, TensorType):
                raise Unreadable("a number")
            if x.type.shape == ():
                env.append(self._register(x.type.dtype))
                elements.append(i)
            else:
                env.append(_Source(i))
        first, block = self._while(self.node, env)
        count = len(self.node.regions[1].results)
        outs = tuple(Layout.dense(r.type) for r in self.node.regions[1].results)
        whole = Block((block,), tuple(range(first, first + count)))
        sources = tuple(self.layouts[i].type.dtype for i in self.sources)
        words = self.numbers.words
        spec = ScalarSpec(whole, tuple(self.dtypes), len(elements), sources, len(words))
        launch = Launch(outs, (Phase(spec, 1),), tuple(words), heavy=True)
        return launch, (*elements, *self.sources), (*self.reads, self.node)[0]

    def _register(self, dtype: DType) -> int:
        if dtype.is_float and dtype.bits == 16:
            raise Unreadable("narrow floats")
        self.dtypes.append(dtype)
        return len(self.dtypes) - 1

    def _block(self, f: Function, given: Sequence[Any]) -> Block:
        env: dict[Node, Any] = dict(zip(f.params, given, strict=True))
        made: dict[tuple[Node, int], int] = {}
        lines: list[Any] = []
        for n in f.order:
            self.left -= 1
            if self.left < 0:
                raise Unreadable("much")
            if n.is_pick:
                env[n] = made[n.inputs[0], n.attr("position")]
                continue
            if n.regions:
                first, line = self._control(n, [self._held(env, i, lines) for i in n.inputs])
                made.update({(n, i): first + i for i in range(len(n.regions[1].results))})
                lines.append(line)
            elif n.op is constant and _is_number(n.type):
                env[n] = n
            else:
                env[n] = self._one(n, env, lines)
        return Block(tuple(lines), tuple(self._held(env, r, lines) for r in f.results))

    def _held(self, env: dict[Node, Any], n: Node, lines: list[Any]) -> Any:
        """The register of a value; a constant gets one where it is needed."""
        found = env.get(n)
        if found is None and n.op is constant and isinstance(n.type, TensorType):
            found = env[n] = self._one(n, env, lines)
        if isinstance(found, Node) or found is None:
            raise Unreadable("a number")
        return found

    def _one(self, n: Node, env: dict[Node, Any], lines: list[Any]) -> Any:
        if not isinstance(n.type, TensorType) or n.type.shape != ():
            raise Unreadable(op_of(n).name)
        if n.op is take:
            return self._read(n, env, lines)
        args = [self._scalar(env, i) for i in n.inputs]
        if n.op is ravel_index:
            root = op_of(n).at(None, *map(_Place, args), **dict(n.attrs))  # type: ignore[misc]
        elif op_of(n).scalar is not None:
            root = applied(n, args, self._number)
        else:
            root = elementwise(n, dict(zip(n.inputs, args, strict=True)))
        if root.dtype is not n.type.dtype:
            root = root.cast(n.type.dtype)
        to = self._register(n.type.dtype)
        lines.append(Let(to, (root,)))
        return to

    def _number(self, value: Any, dtype: DType) -> Scalar:
        return self.numbers(value, dtype)

    def _scalar(self, env: dict[Node, Any], n: Node) -> Any:
        if n.op is constant and n not in env:
            return elementwise(n, {})
        found = env[n]
        if isinstance(found, Node):
            return found.attr("value")
        if isinstance(found, _Source):
            raise Unreadable("a tensor")
        return input_(found, self.dtypes[found])

    def _read(self, n: Node, env: dict[Node, Any], lines: list[Any]) -> int:
        source, where = env.get(n.inputs[0]), self._held(env, n.inputs[1], lines)
        if not isinstance(source, _Source) or n.attr("axis") != 0:
            raise Unreadable("take")
        layout = self.layouts[source.position]
        if not isinstance(layout, Layout) or not layout.is_dense or layout.type.ndim != 1:
            raise Unreadable("take")
        at = self.sources.setdefault(source.position, len(self.sources))
        self.numbers(layout.type.size, int64)
        to = self._register(n.type.dtype)
        lines.append(Read(to, at, where, len(self.numbers.words) - 1))
        if self.reads and _line(self.reads[-1]) != _line(n):
            raise Unreadable("reads on several lines: an error would not know which")
        self.reads.append(n)
        return to

    def _control(self, n: Node, given: list[Any]) -> tuple[int, Any]:
        if op_of(n).name == "while":
            return self._while(n, given)
        if op_of(n).name != "cond":
            raise Unreadable(op_of(n).name)
        yes, no = (self._block(r, given[1:]) for r in n.regions)
        first = self._results(n.regions[0])
        return first, If(first, given[0], yes, no)

    def _while(self, n: Node, given: list[Any]) -> tuple[int, Any]:
        test, body = n.regions
        inits = tuple(given[: len(body.results)])
        if any(isinstance(i, _Source) for i in inits):
            raise Unreadable("a tensor as state")
        first = self._results(body)
        state = [*range(first, first + len(inits)), *given[len(inits) :]]
        return first, While(first, inits, self._block(test, state), self._block(body, state))

    def _results(self, f: Function) -> int:
        first = len(self.dtypes)
        for r in f.results:
            if not isinstance(r.type, TensorType) or r.type.shape != ():
                raise Unreadable("more than one element")
            self._register(r.type.dtype)
        return first
