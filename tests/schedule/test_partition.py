"""Cutting a graph into kernels: each node in one, none waits for itself, and what belongs together
is together.
"""

import pytest

import weft as wf
import weft.nn.functional as F
from tests.compile.programs import functions
from weft.buffer import Layout
from weft.ops.define import constant
from weft.ops.language import parse
from weft.schedule.partition import MOST, as_function, look, partition, smaller
from weft.types import TensorType

SEEDS = range(1000, 1040)


@pytest.fixture(scope="module")
def graphs():
    return [f for seed in SEEDS for f in functions(seed)]


def names(f):
    return [[n.op.name for n in g.nodes] for g in partition(f)]


def kernels(f, *args):
    """What the kernels of a compiled function compute."""
    return [" ".join(k) for k in wf.compile(f, fallback=False).explain(*args).kernels]


def check(groups, f, outside=()):
    """Groups are a partition of the graph, in an order in which they can run."""
    home = {n: i for i, g in enumerate(groups) for n in g.nodes}
    assert sum(len(g.nodes) for g in groups) == len(home) == len(f.order)
    known = {*f.params, *outside}
    users = {}
    for n in f.order:
        for i in n.inputs:
            users.setdefault(i, set()).add(home[n])
    for number, g in enumerate(groups):
        own = set(g.nodes)
        literals = {
            i
            for n in g.nodes
            for i in n.inputs
            if i.op is constant and not isinstance(i.type, TensorType)
        }
        assert set(g.inputs) | literals >= {i for n in g.nodes for i in n.inputs} - own
        assert not own & set(g.inputs)
        assert set(g.inputs) <= known | literals, "a group before one that it waits for"
        for n in g.nodes:
            assert all(i in known or i in own or i in literals for i in n.inputs)
            if n in f.results or users.get(n, set()) - {number}:
                assert n in g.outputs, n.op.name
        known |= own
        assert len(g.nodes) <= MOST


def test_groups_of_random_programs(graphs):
    for f in graphs:
        check(partition(f), f)


def test_no_group_depends_on_itself_through_another(graphs):
    for f in graphs:
        groups = partition(f)
        home = {n: i for i, g in enumerate(groups) for n in g.nodes}
        reach = [set() for _ in groups]  # groups that each one waits for, in their order
        for i, g in enumerate(groups):
            for n in g.inputs:
                if n in home and home[n] != i:
                    reach[i] |= {home[n]} | reach[home[n]]
            assert i not in reach[i]


def test_a_group_in_parts_is_the_group(graphs):
    seen = 0
    for f in graphs:
        for g in partition(f):
            parts = smaller(g) if len(g.nodes) > 1 else []
            seen += bool(parts)
            if parts:
                assert len(parts) > 1
                assert {n for p in parts for n in p.nodes} == set(g.nodes)
                known = set(g.inputs)
                for p in parts:
                    assert {i for i in p.inputs if i.op is not constant} <= known
                    known |= set(p.nodes)
    assert seen > 50


def test_a_group_as_a_function(graphs):
    for f in graphs:
        for g in partition(f):
            if len(g.nodes) == 1:
                continue  # run as it is
            made = as_function(g)
            assert [p.type for p in made.params] == [i.type for i in g.inputs]
            assert [r.type for r in made.results] == [o.type for o in g.outputs]


@pytest.mark.tiny
def test_a_value_used_on_both_sides_of_a_product():
    """The sum must not join the map behind the product: the product waits for it."""
    f = parse("""
fn f(%x: f32[4, 4]) -> f32[4, 4] {
  %a = exp %x
  %b = matmul %a, %a
  %c = add %a, %b
  return %c
}""").entry
    assert names(f) == [["exp"], ["matmul", "add"]]


@pytest.mark.tiny
def test_two_ways_of_different_length():
    """exp is read by a kernel and by one that waits for that: it joins the first or stands alone,
    and nothing waits in a circle.
    """
    f = parse("""
fn f(%x: f32[4, 4]) -> (f32[4, 4], f32[4]) {
  %a = exp %x
  %s = sum %a {axes = (0,), keepdims = false}
  %t = sin %a
  %y = add %t, %s
  %z = sum %t {axes = (0,), keepdims = false}
  return %y, %z
}""").entry
    check(partition(f), f)


def with_its_sum(x):
    y = F.softmax(x, dim=-1)
    return y, y.sum()


def with_more(x, w):
    y = F.softmax(x, dim=-1)
    return y * w, y.square().sum()


@pytest.mark.tiny
@pytest.mark.parametrize(
    ("f", "shapes", "want"),
    [
        (lambda x, a: wf.tanh(x * a + 1) - x, [(5, 4), (4,)], ["multiply add tanh subtract"]),
        (lambda x: F.softmax(x, dim=-1), [(5, 40)], ["max subtract exp sum divide"]),
        (lambda x: (x * x).sum(axis=0), [(5, 4)], ["multiply sum"]),
        (with_its_sum, [(5, 40)], ["max subtract exp sum divide", "sum"]),
        (
            with_more,
            [(5, 40), (5, 40)],
            ["max subtract exp sum divide multiply", "square sum"],
        ),
        (lambda x, w: (x @ w).relu() * 2, [(5, 4), (4, 3)], ["matmul relu multiply"]),
        (lambda x: (x.exp(), x.exp() + 1), [(5,)], ["exp add"]),
        (lambda x: x.T[1:], [(5, 4)], ["copy"]),
        (lambda x: x, [(5, 4)], []),
    ],
    ids=[
        "map",
        "rows",
        "fold",
        "rows, a sum of all",
        "rows, a map, a sum of all",
        "product",
        "two results",
        "view",
        "nothing",
    ],
)
def test_what_is_one_kernel(f, shapes, want):
    made = kernels(f, *(wf.ones(s) for s in shapes))
    assert made == want


@pytest.mark.tiny
def test_products_that_do_not_fill_the_threads_run_at_the_same_time():
    def f(a, b, c, d):
        return (a @ b + c @ d).relu()

    n = wf.get_num_threads()
    wf.set_num_threads(2)
    try:
        xs = [wf.rand((64, 64)) for _ in range(4)]
        c = wf.compile(f, fallback=False)
        said = c.explain(*xs)
        assert [" ".join(k) for k in said.kernels] == ["matmul", "matmul", "add relu"]
        assert "at the same time" in str(said)
        assert c(*xs).numpy().tobytes() == f(*xs).numpy().tobytes()
    finally:
        wf.set_num_threads(n)


@pytest.mark.tiny
def test_kernels_stay_small():
    def f(x):
        for _ in [None] * 200:  # a range would be a loop of the program
            x = (x * 1.5).tanh()
        return x

    sizes = [len(k.split()) for k in kernels(f, wf.ones(7))]
    assert sum(sizes) == 400 and max(sizes) <= MOST


@pytest.mark.parametrize("stride", [1, 2])
def test_what_goes_on_from_the_gradient_of_a_convolution_with_strides_is_a_kernel_of_its_own(
    stride,
):
    def f(x, w):
        y, pull = wf.vjp(lambda x: F.conv2d(x, w, stride=stride), x)
        return wf.relu(pull(y)[0] * 2 + 1)

    w = wf.ones((3, 4, 1, 1))
    last = kernels(f, wf.ones((2, 4, 8, 8)), w)[-1]
    assert last.endswith("multiply add relu")
    assert last.startswith("contract") == (stride == 1)


def test_groups_look_alike_if_and_only_if_one_launch_does_for_both():
    def text(number, size):
        return parse(
            f"fn f(%x: f32[{size}], %y: f32[{size}]) -> f32[{size}] {{\n"
            f"  %a = multiply %x, {number}\n  %b = add %a, %y\n  return %b\n}}\n"
        ).entry

    def looks(number="2.0", size=3, stride=1):
        f = text(number, size)
        group = max(partition(f), key=lambda g: len(g.nodes))
        return look(group, [Layout(p.type, (stride,)) for p in f.params])

    assert looks() == looks()
    others = [looks("3.0"), looks("2"), looks(size=4), looks(stride=2)]
    assert looks() not in others and looks("0.0") != looks("-0.0")
