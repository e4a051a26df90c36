"""Plans of whole programs, gone through step by step: what a kernel reads is what was written for
it, and nothing is written over what is still wanted.
"""

import pytest

import weft as wf
from tests.compile.programs import functions
from weft.buffer import Layout
from weft.schedule import program, recompute
from weft.schedule.host import HostCall
from weft.schedule.launch import Machine
from weft.schedule.program import ARENA, OPERANDS, plan_program
from weft.schedule.share import _in_place
from weft.schedule.single import weak_dtype
from weft.types import TensorType, result_dtype


def layouts(f, turned=False):
    out = []
    for p in f.params:
        if not isinstance(p.type, TensorType):
            out.append(weak_dtype(result_dtype(p.type)))
        elif turned and p.type.ndim:
            last = p.type.shape[::-1]
            strides = Layout.dense(TensorType(last, p.type.dtype)).strides[::-1]
            out.append(Layout(p.type, strides))
        else:
            out.append(Layout.dense(p.type))
    return tuple(out)


def span(spot):
    """First and last byte of a value in the arena."""
    layout = spot.layout
    size = layout.type.dtype.itemsize
    reach = [(n - 1) * s * size for n, s in zip(layout.type.shape, layout.strides, strict=True)]
    at = spot.offset + spot.block.offset
    low = at + sum(r for r in reach if r < 0)
    return low, at + sum(r for r in reach if r > 0) + size


def places(plan, spots):
    out = []
    for s in spots:
        if s.base == ARENA and s.layout.type.size:
            low, high = span(s)
            assert low >= 0 and high <= plan.arena
            assert s.block.offset <= low and high <= s.block.offset + s.block.size
            out.append((s, low, high))
    return out


def together(plan):
    """Steps that run at one time."""
    counts = plan.together or (1,) * len(plan.steps)
    out = []
    for step, count in zip(plan.steps, counts, strict=True):
        if count:
            out.append([])
        out[-1].append(step)
    return out


def check(plan):
    """Go through the plan, knowing of every byte of the arena which block it was written for."""
    held = {}  # (first, last) of the latest writes -> block
    inside = 0
    for steps in together(plan):
        reads, writes = [], []
        for number, step in enumerate(steps):
            count = len(step.launch.outs)
            for spot, low, high in places(plan, step.operands[:-count]):
                owner = [b for (a, z), b in held.items() if a < high and low < z]
                assert owner == [spot.block], "a value that was written over, or never"
                reads.append((number, low, high, step))
            made = places(plan, step.operands[-count:])
            if step.scratch is not None and step.scratch.size:
                at = step.scratch.offset
                assert at + step.scratch.size <= plan.arena
                made.append((None, at, at + step.scratch.size))
            writes += [(number, spot, low, high) for spot, low, high in made]
        for i, (number, spot, low, high) in enumerate(writes):
            for other, a, z, reader in reads:
                if a < high and low < z:
                    assert other == number and len(steps) == 1, "read while it is written over"
                    assert spot is not None and spot.block.over is not None
                    assert (a, z) == (low, high) and _in_place(reader.launch)
                    inside += 1
            for _, _, a, z in writes[i + 1 :]:
                assert z <= low or high <= a, "two results in one place"
        for _, spot, low, high in writes:
            held = {k: b for k, b in held.items() if k[1] <= low or high <= k[0]}
            if spot is not None:
                held[low, high] = spot.block
    for step in plan.steps:
        inputs = range(OPERANDS, OPERANDS + len(plan.function.params))
        assert all(s.base not in inputs for s in step.operands[-len(step.launch.outs) :])
    return inside


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_random_plans(threads, monkeypatch):
    inside = steps = 0
    for seed in range(1000, 1040):
        with monkeypatch.context() as m:
            if seed % 2:
                m.setattr(recompute, "LEAST", 1)
                m.setattr(recompute, "NEAR", 1)
            for f in functions(seed):
                plan = plan_program(f, layouts(f, seed % 3 == 0), Machine(threads))
                inside += check(plan)
                steps += len(plan.steps)
    print(f"\n{steps} steps, {inside} results in the place of an operand")
    assert inside > 20


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_plans_with_steps_side_by_side(threads):
    def f(*xs):
        products = [(a @ b).exp() for a, b in zip(xs[::2], xs[1::2], strict=True)]
        total = products[0] @ products[1] + products[2] @ products[3]
        return total.relu(), sum(products), total @ total.T + products[0] @ total

    xs = [wf.rand((64, 64)) for _ in range(8)]
    c = wf.compile(f, fallback=False)
    c.graph(*xs)
    (programs,) = c.programs.values()
    g = programs[0].forward.function
    plan = plan_program(g, layouts(g), Machine(threads))
    check(plan)
    assert (max(plan.together) > 1) == (threads > 1)


def test_every_result_is_written_once_and_apart():
    for seed in range(1000, 1040):
        for f in functions(seed):
            plan = plan_program(f, layouts(f), Machine(2))
            written = [
                s.base
                for step in plan.steps
                for s in step.operands[-len(step.launch.outs) :]
                if s.base >= OPERANDS
            ]
            first = OPERANDS + len(f.params)
            wanted = [first + i for i, r in enumerate(f.results) if r.type.size]
            assert sorted(set(written)) == sorted(set(wanted) | set(written))
            assert set(written) <= set(range(first, first + len(f.results)))


@pytest.mark.tiny
def test_an_operand_read_twice_is_not_written_over():
    """x is read by element and transposed: a result in its place would spoil what is still read."""

    def f(x):
        a = x * 2
        return (a + a.T) * 3 + 1

    x = wf.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert wf.compile(f, fallback=False)(x).tolist() == f(x).tolist()


def test_kernels_are_told_of_while_the_plan_is_being_made():
    for seed in range(1000, 1010):
        for f in functions(seed):
            told = []
            plan = plan_program(f, layouts(f), Machine(2), told.append)
            specs = {p.spec for step in plan.steps for p in step.launch.phases}
            assert {s for s in specs if not isinstance(s, HostCall)} == set(told)


def test_layers_that_look_alike_are_planned_once(monkeypatch):
    planned = []

    def plan_group(group, *others):
        planned.append(group)
        return inner(group, *others)

    inner = program.plan_group
    monkeypatch.setattr(program, "plan_group", plan_group)

    def f(x, *ws):
        for w in ws:
            x = ((x @ w) * 0.5).tanh()
        return x

    x, ws = wf.rand((8, 64)), [wf.rand((64, 64)) for _ in range(5)]
    c = wf.compile(f, fallback=False)
    assert c(x, *ws).numpy().tobytes() == f(x, *ws).numpy().tobytes()
    assert len(planned) < 5


@pytest.mark.tiny
def test_no_step_copies_a_value_onto_itself():
    """Not even the state of a loop in a loop, which is first what was made just before."""

    def inner(y):
        return wf.while_loop(lambda s: s.sum() > 1, lambda s: s * 0.7, y * 1.1)

    def f(x, n):
        return wf.while_loop(lambda s: s[1] < n, lambda s: (inner(s[0]), s[1] + 1), (x, 0))[0]

    x, n = wf.rand((8, 8)), wf.tensor(3)
    graph = wf.trace(f, x, n).graph
    plan = plan_program(graph, layouts(graph), Machine(threads=1))
    copies = [s.operands for s in plan.steps if not s.nodes and s.jump is None]
    assert copies
    for value, made in copies:
        at = [(s.base, s.offset, s.block and s.block.offset) for s in (value, made)]
        assert at[0] != at[1]
    assert wf.compile(f)(x, n).numpy().tobytes() == f(x, n).numpy().tobytes()
