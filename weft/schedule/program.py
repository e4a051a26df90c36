"""A whole graph -> one plan: kernels in order, every value with its place in memory.

Values lie in the program's inputs, in its outputs, in constants or in the arena. Views cost
nothing: they are another layout over the same place. Groups of nodes that one kernel can do are
found by `weft.schedule.partition`; what a group means is planned like a single op.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from weft.buffer import Buffer, Layout
from weft.control.nodes import Control
from weft.ir import Function, Node
from weft.ir.node import exact
from weft.ops.define import Op, constant, result
from weft.ops.elementwise import copy
from weft.ops.growing import put_rows
from weft.schedule.arena import place
from weft.schedule.beside import together
from weft.schedule.control import plan_control
from weft.schedule.host import HostCall
from weft.schedule.launch import KernelSpec, Launch, Machine
from weft.schedule.map import MapSpec, cut
from weft.schedule.order import arrange
from weft.schedule.partition import Group, look, partition, plan_group, smaller
from weft.schedule.recompute import recompute
from weft.schedule.rows import narrowed
from weft.schedule.settle import settle
from weft.schedule.share import share, without_copies
from weft.schedule.single import plan_single, weak_dtype
from weft.schedule.steps import (
    ABSOLUTE,
    ARENA,
    OPERANDS,
    PACKED,
    Block,
    Enter,
    Jump,
    Packed,
    ProgramPlan,
    Routine,
    Spot,
    Step,
    When,
)
from weft.types import DType, TensorType, result_dtype
from weft.types.dtype import int64

#: the layout of an address
WORD = Layout.dense(TensorType((), int64))

Needed = Callable[[KernelSpec], object]


def plan_program(
    f: Function,
    layouts: tuple[Layout | DType, ...],
    machine: Machine,
    needed: Needed = lambda spec: None,
    fixed: frozenset[int] = frozenset(),
) -> ProgramPlan:
    """The plan of `f` on inputs of these layouts. Results are dense, in order. `needed` is told of
    each kernel as soon as it is known. Inputs that are `fixed` have the same value in most calls:
    the program may want more made of them.
    """
    return _Planner(recompute(f), layouts, machine, needed, fixed).plan()


class _Planner:
    def __init__(
        self,
        f: Function,
        layouts: tuple[Layout | DType, ...],
        machine: Machine,
        needed: Needed,
        fixed: frozenset[int] = frozenset(),
    ) -> None:
        self.f, self.machine, self.needed = f, machine, needed
        self.fixed = frozenset(OPERANDS + i for i in fixed)  # bases
        self.packed: dict[Packed, Spot] = {}
        self.lasting: frozenset[Any] = frozenset()  # places that the steps of a loop only read
        self.copies: dict[Any, Spot] = {}  # of these, made before the loop
        self.wanted: dict[Any, Spot] | None = None  # of those, while it is found what is wanted
        self.asked: frozenset[Any] = frozenset()  # places of which that is asked
        self.steps: list[Step] = []
        self.blocks: list[Block] = []
        self.keep: list[Any] = []
        self.stacks: list[Spot] = []
        self.chains: list[Spot] = []
        self.routines: list[Routine] = []
        self.scope: dict[str, Any] = {}  # functions that can be called, see `weft.schedule.call`
        self.records: dict[Node, Any] = {}  # what reverses of calls read, and where that lies
        self.outermost = self  # the program's
        self.lists: Spot | None = None  # the program's: the list of memory for stores of routines
        self.root: Spot | None = None  # in a routine that puts: where the program's arena begins
        self.kept: dict[Node, Spot] = {}  # loops that keep their states: the stacks
        self.known: dict[Any, Any] = {}  # launches of what looks alike: a model's layers do
        self.spots: dict[Node, Spot] = {
            p: Spot(OPERANDS + i, 0, layout)
            for i, (p, layout) in enumerate(zip(f.params, layouts, strict=True))
        }
        self.picks: dict[Node, list[Node]] = {}  # of ops that give several values
        for n in f.order:
            if n.op is result:
                self.picks.setdefault(n.inputs[0], []).append(n)
        self.targets: dict[Node, int] = {}  # results not yet written -> base
        self.owned: set[Node] = set()  # values whose memory may be written over
        self.in_place: Mapping[int, int] = {}  # results that are given where these params lie
        for i, r in enumerate(f.results):
            self.targets.setdefault(r, OPERANDS + len(f.params) + i)

    def plan(self) -> ProgramPlan:
        for group in arrange(partition(self.f), self.f.results):
            self._group(group)
        for i, r in enumerate(self.f.results):
            base = OPERANDS + len(self.f.params) + i
            if i in self.in_place:
                assert self.spots[r].base == OPERANDS + self.in_place[i]
            elif r.type.size and (self.spots[r].base != base or not self._is_dense(self.spots[r])):
                self._copy(self.spots[r], base)
        counts = together(self.steps, self.blocks, self.machine.threads)
        share(self.steps, counts)
        settle(self.steps, self.blocks, self.machine.threads)
        blocks = [b for b in self.blocks if b.over is None]
        offsets, top = place(
            [b.size for b in blocks], [b.birth for b in blocks], [b.death for b in blocks]
        )
        for b, at in zip(blocks, offsets, strict=True):
            b.place = at
        outs = tuple(Layout.dense(r.type) for r in self.f.results)
        steps, counts = without_copies(self.steps, counts)
        return ProgramPlan(
            self.f,
            steps,
            top,
            outs,
            self.machine.threads,
            tuple(self.keep),
            tuple(self.stacks),
            tuple(self.chains),
            counts,
            tuple(self.packed),
            tuple(self.routines),
        )

    # control flow: what `weft.schedule.control` asks for

    def pack(self, f: Function, spots: Sequence[Spot], lasting: Sequence[Spot]) -> None:
        """Copy what steps of a loop, which `f` is, read again and again into the order that they
        read it in. They are planned once to see what that is; functions that were planned with
        them stay.
        """
        if self.wanted is not None:
            return
        lists: list[list[Any]] = [self.steps, self.blocks, self.keep, self.stacks, self.chains]
        ends = [len(x) for x in lists]
        self.wanted, self.asked = {}, frozenset([_place(s) for s in lasting])
        self.region(f, spots, lasting=lasting)
        wanted, self.wanted = self.wanted, None
        for x, end in zip(lists, ends, strict=True):
            del x[end:]
        self.outermost.keep_list()
        for key, spot in wanted.items():
            self.copies[key] = self._copy(spot)

    def region(
        self,
        f: Function,
        spots: Sequence[Spot],
        owned: Sequence[Spot] = (),
        lasting: Sequence[Spot] = (),
    ) -> list[Spot]:
        """Plan a function here, on values in these places; where its results are. Places that are
        `owned` by what it computes may be written over; `lasting` ones are the same for long.
        """
        inner = _Planner(f, tuple(s.layout for s in spots), self.machine, self.needed)
        inner.steps, inner.blocks, inner.keep = self.steps, self.blocks, self.keep
        inner.stacks, inner.chains, inner.targets = self.stacks, self.chains, {}
        inner.routines, inner.scope, inner.known = self.routines, self.scope, self.known
        inner.fixed, inner.packed = self.fixed, self.packed
        inner.copies = dict(self.copies)  # what is made inside is not there outside
        inner.wanted, inner.asked = self.wanted, self.asked
        if lasting:
            inner.machine = replace(self.machine, awake=True)
        inner.lasting = frozenset([_place(s) for s in lasting])
        inner.outermost, inner.root = self.outermost, self.root
        inner.spots = dict(zip(f.params, spots, strict=True))
        blocks = {id(s.block) for s in owned}
        inner.owned = {n for n, s in inner.spots.items() if id(s.block) in blocks}
        for group in arrange(partition(f), f.results):
            inner._group(group)
        return [inner.operand(r) for r in f.results]

    def jump(self, when: int, condition: Spot | None = None) -> Jump:
        made = Jump(when)
        if condition is not None and condition.block is not None:
            condition.block.death = max(condition.block.death, len(self.steps))
        operands = () if condition is None else (condition,)
        self.steps.append(Step(Launch(()), operands, None, (), made))
        return made

    def routine(self, f: Function, layouts: Sequence[Layout | DType]) -> _Planner:
        """A planner for a function that has memory of its own in every call."""
        inner = _Planner(recompute(f), tuple(layouts), self.machine, self.needed)
        inner.routines, inner.keep, inner.known = self.routines, self.keep, self.known
        inner.outermost = self.outermost
        return inner

    def enter(
        self, routine: Routine, operands: tuple[Spot, ...], n: Node, when: When, record: Any = None
    ) -> None:
        """A call of a routine."""
        for spot in (*operands, *([record.slot] if record is not None else ())):
            if spot.block is not None:
                spot.block.death = max(spot.block.death, len(self.steps))
        jump = Enter(when, routine=routine, record=record)
        self.steps.append(Step(Launch(()), operands, None, (n,), jump))

    def chain(self) -> Spot:
        """A list of records, which is empty from here on: in memory of its own."""
        self.chains.append(self._lasting(WORD))
        self.steps.append(Step(Launch(()), (self.chains[-1],), None, (), Jump(When.FORGET)))
        return self.chains[-1]

    def stack(self, layout: Layout) -> Spot:
        """The handle of a stack: in memory of its own from the start to the end."""
        self.stacks.append(self._lasting(layout))
        return self.stacks[-1]

    def arena(self) -> Spot:
        """Where the program's arena begins, whatever routine this is."""
        return self.root or Spot(ARENA, 0, WORD)

    def apart(self) -> Spot | None:
        """In a routine that puts: where the list begins of memory for its stores."""
        if self.root is None:
            return None
        top = self.outermost
        if top.lists is None:
            top.lists = top._lasting(WORD)
            top.chains.append(top.lists)
        return Spot(self.root.base, 0, WORD, top.lists.block)

    def keep_list(self) -> None:
        """The list of memory for stores is there however it was found that it has to be."""
        if self.lists is not None and self.lists not in self.chains:
            assert self.lists.block is not None
            self.chains.append(self.lists)
            self.blocks.append(self.lists.block)

    def _lasting(self, layout: Layout) -> Spot:
        spot = self.room(layout)
        assert spot.block is not None
        spot.block.birth, spot.block.death = 0, 1 << 60
        return spot

    def copy_to(self, spot: Spot, place: Spot) -> None:
        assert isinstance(spot.layout, Layout)
        type_ = spot.layout.type
        if type_.size == 0:
            return
        launch = plan_single(copy, (type_,), (spot.layout,), {}, type_, self.machine)
        assert launch is not None
        self.append(launch, (spot, place), ())

    def dense(self, spot: Spot) -> Spot:
        """The value laid out densely."""
        return spot if self._is_dense(spot) else self._copy(spot)

    # one group

    def _group(self, group: Group) -> None:
        if len(group.nodes) > 1:
            inputs = [self.operand(n) for n in group.inputs]
            layouts = [s.layout for s in inputs]
            fixed = self._fixed(inputs)
            key = look(group, layouts), fixed, self.machine.awake
            if key not in self.known:
                self.known[key] = plan_group(group, layouts, self.machine, fixed)
            planned = self.known[key]
            if planned is not None:
                launch, order = planned
                self._step(launch, [inputs[i] for i in order], group.outputs, group.nodes)
                return
            for part in smaller(group):
                self._group(part)
            return
        (n,) = group.nodes
        op: Op = n.op  # type: ignore[assignment]
        if op is result:
            return  # placed with the node it picks from
        if op is constant:
            self._constant(n)
        elif op.effect or isinstance(op, Control):
            plan_control(self, n)
        elif op.view is not None:
            self._view(n, op)
        else:
            self._single(n, op)

    def _single(self, n: Node, op: Op) -> None:
        travels = None  # what Python numbers are to a kernel
        if not all(isinstance(i.type, TensorType) for i in n.inputs):
            kinds: list[Any] = [getattr(i.type, "dtype", i.type) for i in n.inputs]
            travels = weak_dtype(result_dtype(*kinds))
        inputs = [self.operand(i, travels) for i in n.inputs]
        if op.dense:
            inputs = [s if self._is_dense(s) else self._copy(s) for s in inputs]
        types = tuple(i.type for i in n.inputs)
        layouts = tuple(s.layout if isinstance(s.layout, Layout) else None for s in inputs)
        attrs = dict(n.attrs)
        picks = self.picks.get(n, ())
        out: Any = n.type
        if picks or _several(op, types, attrs):
            out = op.infer(*types, **attrs)
        fixed = self._fixed(inputs)
        key = (op, types, layouts, exact(n.attrs), fixed, self.machine.awake)
        if key not in self.known:
            self.known[key] = plan_single(op, types, layouts, attrs, out, self.machine, fixed)
        launch = self.known[key]
        assert launch is not None, op.name
        if op is put_rows and self._is_last_of_its_own(n):
            self.owned.add(n)
            self.spots[n] = inputs[0]
            self.append(launch, (*inputs, inputs[0]), (n,))
        elif isinstance(out, tuple):
            by_place = {p.attr("position"): p for p in picks}
            self._step(launch, inputs, tuple(by_place.get(i) for i in range(len(out))), (n,))
        else:
            self._step(launch, inputs, (n,), (n,))

    def _is_last_of_its_own(self, n: Node) -> bool:
        """Whether the first operand is this function's own, and this node the last to read it."""
        x = n.inputs[0]
        if x not in self.owned or x in self.f.results:
            return False
        readers = {v for v in self.f.order if x in v.inputs and v is not n}
        if any(v.op.view is not None for v in readers):  # type: ignore[attr-defined]
            return False
        stack, before = list(n.inputs[1:]) if readers else [], set[Node]()
        while stack:
            v = stack.pop()
            if v not in before:
                before.add(v)
                stack.extend(v.inputs)
        return readers <= before

    def _view(self, n: Node, op: Op) -> None:
        spot = self.operand(n.inputs[0])
        viewed = op.view(spot.layout, **dict(n.attrs))  # type: ignore[misc]
        if viewed is None:
            spot = self._copy(spot)
            viewed = op.view(spot.layout, **dict(n.attrs))  # type: ignore[misc]
        layout, offset = viewed
        at = spot.offset + offset * layout.type.dtype.itemsize
        self.spots[n] = Spot(spot.base, at, layout, spot.block)

    def _constant(self, n: Node) -> None:
        value = n.attr("value")
        if isinstance(value, Buffer):
            self.keep.append(value)
            self.spots[n] = Spot(ABSOLUTE, value.address, value.layout)

    # places

    def operand(self, n: Node, travels: DType | None = None) -> Spot:
        spot = self.spots.get(n)
        if spot is None and n.op is constant:
            self._constant(n)
            spot = self.spots.get(n) or self._number(n, travels)
        assert spot is not None, n.op.name
        return spot

    def _number(self, n: Node, travels: DType | None) -> Spot:
        """A Python number that a kernel reads from memory."""
        import numpy as np

        value = n.attr("value")
        dtype = travels or weak_dtype(result_dtype(type(value)))
        array = np.asarray([value], dtype.np)
        self.keep.append(array)
        return Spot(ABSOLUTE, array.ctypes.data, dtype)

    def _fixed(self, inputs: Sequence[Spot]) -> frozenset[int]:
        return frozenset(
            i for i, s in enumerate(inputs) if s.base in self.fixed or _place(s) in self.lasting
        )

    def _ahead(self, spot: Spot, layout: Layout) -> Spot:
        """What lies in a place that is read for long, in a layout."""
        if spot.base in self.fixed:
            return self._packed(spot, layout)
        key = _place(spot), layout
        if key not in self.copies and self.wanted is not None:
            if key[0] in self.asked:
                self.wanted[key] = Spot(spot.base, spot.offset, layout, spot.block)
            return self.room(Layout.dense(layout.type))
        return self.copies[key]

    def _packed(self, spot: Spot, layout: Layout) -> Spot:
        """What a fixed input holds in a layout, as an input of its own."""
        wanted = Packed(spot.base - OPERANDS, spot.offset, layout)
        made = Spot(PACKED - len(self.packed), 0, Layout.dense(layout.type))
        return self.packed.setdefault(wanted, made)

    def _is_dense(self, spot: Spot) -> bool:
        return isinstance(spot.layout, DType) or spot.layout.is_dense

    def _copy(self, spot: Spot, base: int | None = None) -> Spot:
        """The value laid out densely, in the arena or at an output."""
        assert isinstance(spot.layout, Layout)
        type_ = spot.layout.type
        launch = plan_single(copy, (type_,), (spot.layout,), {}, type_, self.machine)
        assert launch is not None
        made = self.room(launch.outs[0]) if base is None else Spot(base, 0, launch.outs[0])
        self.append(launch, (spot, made), ())
        return made

    def room(self, layout: Layout) -> Spot:
        """Memory of the arena for a value that the next step writes."""
        block = Block(layout.type.nbytes, len(self.steps), len(self.steps))
        self.blocks.append(block)
        return Spot(ARENA, 0, layout, block)

    def _step(
        self,
        launch: Launch,
        inputs: list[Spot],
        outputs: tuple[Node | None, ...],
        nodes: tuple[Node, ...],
    ) -> None:
        if launch.ahead is not None:
            i, wanted = launch.ahead
            inputs = [*inputs[:i], self._ahead(inputs[i], wanted), *inputs[i + 1 :]]
        made = []
        for n, layout in zip(outputs, launch.outs, strict=True):
            base = self.targets.pop(n, None) if n is not None else None
            spot = self.room(layout) if base is None else Spot(base, 0, layout)
            made.append(spot)
            if n is not None:
                self.spots[n] = spot
        self.append(launch, (*inputs, *made), nodes)

    def append(self, launch: Launch, operands: tuple[Spot, ...], nodes: tuple[Node, ...]) -> None:
        if not launch.phases:
            return
        several = self.machine.awake and self.machine.threads > 1 and not launch.heavy
        if several and isinstance(launch.phases[0].spec, MapSpec):
            launch = cut(launch, self.machine.threads)
        launch = narrowed(launch)
        for phase in launch.phases:
            if not isinstance(phase.spec, HostCall):
                self.needed(phase.spec)
        for spot in operands:
            if spot.block is not None:
                spot.block.death = max(spot.block.death, len(self.steps))
        bytes_ = launch.scratch + launch.worker_scratch * (
            self.machine.threads if launch.heavy else 1
        )
        scratch = None
        if bytes_:
            scratch = Block(bytes_, len(self.steps), len(self.steps))
            self.blocks.append(scratch)
        self.steps.append(Step(launch, operands, scratch, nodes))


def _place(spot: Spot) -> tuple[int, int, int]:
    return spot.base, spot.offset, id(spot.block)


def _several(op: Op, types: tuple[Any, ...], attrs: dict[str, Any]) -> bool:
    return op.extern is not None and isinstance(op.infer(*types, **attrs), tuple)
