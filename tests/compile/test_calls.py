"""Calls of compiled functions: whatever is passed and returned is as in the function itself."""

from __future__ import annotations

import collections
import copy
import dataclasses
import pickle

import numpy as np
import pytest

import weft as wf
import weft.nn.functional as F
from tests.compile.lab import compiled, outcome, random, same
from weft.errors import CaptureError, CaptureWarning

pytestmark = pytest.mark.tiny


@dataclasses.dataclass
class Point:
    at: wf.Tensor
    n: int = 3


@dataclasses.dataclass(frozen=True, slots=True)
class Fixed:
    at: wf.Tensor
    n: int = 3


Pair = collections.namedtuple("Pair", "x y")


def test_keywords_and_defaults():
    def f(x, *, a=1.0, b=None, **more):
        return x * a + (0 if b is None else b) + sum(more.values())

    c, x = compiled(f), random(3)
    for kwargs in ({}, {"a": 2.0}, {"b": random(3)}, {"z": random(3)}, {"a": 3.5, "z": 2}, {}):
        same(c(x, **kwargs), f(x, **kwargs))


def test_a_keyword_or_a_position():
    f = lambda x, y=2.0: x * y
    c, x = compiled(f), random(3)
    same(c(x, 3.0), f(x, 3.0))
    same(c(x, y=3.0), f(x, 3.0))
    same(c(x=x), f(x))


def test_any_number_of_arguments():
    f = lambda *xs: [x * i for i, x in enumerate(xs)]
    c = compiled(f)
    for n in (0, 1, 5, 2):
        xs = [random(2) for _ in range(n)]
        same(c(*xs), f(*xs))


def test_structures_in_and_out():
    def f(point, pair, table, rest):
        first, *_ = rest
        out = Point(point.at * 2, point.n + 1), Pair(pair.y, [pair.x])
        return (*out, {"k": (table["k"] + first, None, "s"), 3: True}, Fixed(point.at))

    args = (Point(random(2)), Pair(random(2), random(3)), {"k": random(4)}, [random(4), 2])
    got, want = compiled(f)(*args), f(*args)
    same(got[:3], want[:3])
    same(got[3].at, want[3].at)
    assert type(got[3]) is Fixed and got[3].n == 3


def test_dictionaries_of_other_kinds():
    c = compiled(lambda d: collections.OrderedDict((k, v * 2) for k, v in d.items()))
    out = c(collections.OrderedDict(b=random(2), a=random(3)))
    assert type(out) is collections.OrderedDict and list(out) == ["b", "a"]
    given = collections.defaultdict(list, q=random(2))
    out = compiled(lambda d: d)(given)
    assert type(out) is collections.defaultdict and out.default_factory is list
    same(out["q"], given["q"])


def test_other_structures_are_other_programs():
    f = lambda xs: sum(xs) if isinstance(xs, list) else xs["a"] * 2
    c = compiled(f)
    for xs in ([random(3)], [random(3)] * 2, [random(3), random(3)], {"a": random(3)}):
        same(c(xs), f(xs))


def test_the_same_tensor_twice():
    f = lambda a, b: (a * b, a - b)
    c = compiled(f)
    x, y = random(3), random(3)
    for args in ((x, x), (x, x), (x, y), (x, y), (y, y), (y, x)):
        same(c(*args), f(*args))


def test_arguments_that_are_changed():
    def f(x, y):
        x[0] = y[1]
        x += 1
        return x * 2

    c = compiled(f)
    x, y = random(3), random(3)
    other = x.clone()
    for _ in range(3):
        same(c(x, y), f(other, y))
        same(x, other)


def test_an_argument_that_is_changed_under_two_names():
    def f(x, y):
        x += 1
        return x + y, y

    x = random(3)
    other = x.clone()
    got, want = compiled(f)(x, x), f(other, other)
    same(got, want)
    assert got[1] is x
    same(x, other)


def test_arguments_and_parameters_given_back_are_themselves():
    w = wf.nn.Parameter(random(3))
    c = compiled(lambda x: (x, w, x, x + 1))
    x = random(3)
    for _ in range(3):
        out = c(x)
        assert out[0] is x and out[1] is w and out[2] is x


def test_a_result_given_twice_is_one():
    def f(x):
        y = x * 2
        return y, [y]

    out = compiled(f)(random(3))
    assert out[0] is out[1][0]


def test_layouts_that_change():
    f = lambda x, w: (x @ w).relu().sum(axis=0)
    c, a, w = compiled(f), random(6, 8), random(6, 5)
    given = [a.T, random(8, 6), random(16, 6)[::2], random(8, 12)[:, ::2], a.T[::-1]]
    given.append(wf.broadcast_to(random(6), (8, 6)))
    for x in given * 2:
        same(c(x, w), f(x, w))
    assert c.captures == 1


def test_sizes_of_zero():
    def f(x, w):
        return (x @ w).sum(axis=0), x.sum(), x.T, x * 2, x.reshape(-1), F.softmax(x, dim=-1)

    c = compiled(f)
    for n in (0, 3, 0):
        x, w = random(n, 4), random(4, 2)
        same(c(x, w), f(x, w))
    x = random(0, 4, grad=True)
    compiled(lambda x: (x * x).sum())(x).backward()
    assert x.grad.shape == (0, 4)


def test_python_values_given_back():
    f = lambda x: (1, "a", None, x.shape, x.dtype, x.ndim, 2.5, [True, {}], x + 0)
    x = random(3)
    same(compiled(f)(x), f(x))
    assert compiled(lambda: None)() is None
    assert compiled(lambda: (1, [2]))() == (1, [2])


def test_python_values_passed():
    f = lambda x, k: x * k + (k if k > 1 else 0)
    c, x = compiled(f), random(3)
    for k in (0.5, 2.5, -0.0, 0.0, float("nan"), float("inf"), 3, True, 2**40, np.float32(2)):
        same(c(x, k), f(x, k))
    g = lambda x, how, flag, d: (
        (x.sum() if how == "sum" else x.mean()).astype(d) * (2 if flag else 1)
    )
    c = compiled(g)
    for how, flag, d in (("sum", True, wf.float64), ("mean", False, wf.float16), ("sum", 1, None)):
        d = d or wf.float32
        same(c(x, how, flag, d), g(x, how, flag, d))


def test_numbers_made_of_tensors_are_numbers_again():
    def halved(x):
        steps = 0
        while x.sum() > 1:
            x = x / 2
            steps += 1
        return {"x": x, "steps": steps}, x[0].item()

    compiled = wf.compile(halved, fallback=False)
    for x in (wf.tensor([4.0, 5.0]), wf.tensor([0.25, 0.5])):
        (found, first), (want, item) = compiled(x), halved(x)
        assert type(found["steps"]) is int and found["steps"] == want["steps"]
        assert type(first) is float and first == item
    assert wf.compile(lambda x: x.sum().item())(wf.tensor([1.0, 2.5])) == 3.5


def test_no_tensors_passed():
    w = random(3)
    c = compiled(lambda: w * 2)
    same(c(), w * 2)
    w.assign(random(3))
    same(c(), w * 2)


def test_arrays_and_sets_are_looked_at_every_time():
    """They may change and nothing would say so: such calls run eagerly."""
    c, a = wf.compile(lambda x: wf.asarray(x) * 2), np.ones(3, np.float32)
    with pytest.warns(CaptureWarning, match="an argument of type ndarray"):
        assert c(a).tolist() == [2, 2, 2]
    a[0] = 5
    assert c(a).tolist() == [10, 2, 2]
    with pytest.raises(CaptureError, match="type set"):
        compiled(lambda x, s: x * len(s))(random(3), {1, 2})


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [((), {}), ((1, 2, 3), {}), ((1.0,), {"z": 1}), (("a", None), {}), ((None,), {})],
)
def test_wrong_arguments_raise_what_the_function_raises(args, kwargs):
    f = lambda x, y=1.5: x * y
    want = outcome(f, *args, **kwargs)
    assert want is not None and outcome(wf.compile(f), *args, **kwargs) == want


def test_shapes_that_do_not_fit_raise_what_the_function_raises():
    f = lambda x, w: (x @ w).exp()
    c = wf.compile(f)
    xs = random(2, 3), random(3, 4)
    same(c(*xs), f(*xs))
    for shapes in (((2, 3), (4, 5)), ((3,), (4,)), ((), ())):
        xs = [wf.ones(s) for s in shapes]
        want, got = outcome(f, *xs), outcome(c, *xs)
        assert want is not None and got is not None and got[0] is want[0]
    x = wf.ones((2, 3), dtype=wf.bool)
    assert outcome(c, x, x.T)[0] is outcome(f, x, x.T)[0]


def test_exceptions_are_those_of_the_function():
    cell = wf.zeros(3)

    def f(x, i, fail):
        cell.assign(cell + 1)
        noise = wf.randn(3)
        if fail:
            raise KeyError("so it is")
        return wf.take(x, i, axis=0) + noise[0]

    c, x = compiled(f), random(3)
    c(x, wf.tensor([1]), False)
    for i, fail, kind in (([1], True, KeyError), ([7], False, IndexError)):
        before, state = cell.tolist(), wf.get_rng_state()
        with pytest.raises(kind):
            c(x, wf.tensor(i), fail)
        assert cell.tolist() == before and wf.get_rng_state() == state
    assert cell.tolist() == [1, 1, 1]
    c(x, wf.tensor([2]), False)
    assert cell.tolist() == [2, 2, 2]


def test_an_index_out_of_range_names_the_line():
    def f(x, i):
        y = x * 2
        return wf.take(y, i, axis=0)

    with pytest.raises(IndexError, match=r"test_calls\.py.*got 9"):
        compiled(f)(random(3), wf.tensor([9]))


def test_methods():
    class Scaled:
        def __init__(self):
            self.w = random(3)

        @wf.compile
        def plain(self, x, k=2):
            return x * self.w * k

        def bound(self, x):
            return x * self.w

    a, b, x = Scaled(), Scaled(), random(3)
    for k in (2, 3):
        same(a.plain(x, k=k), x * a.w * k)
        same(b.plain(x, k), x * b.w * k)
    c = compiled(a.bound)
    same(c(x), a.bound(x))
    a.w = random(3)
    same(c(x), a.bound(x))


def test_closures_and_globals():
    k, table = 2.0, {"k": 1.0}
    f = lambda x: x * k + table["k"]
    c, x = compiled(f), random(3)
    for value in (2.0, 3.0, 2.0):
        k = value
        table["k"] = value + 1
        same(c(x), f(x))


def test_compiled_inside_compiled():
    inner = wf.compile(lambda x: x.exp() + 1)
    f = lambda x: inner(x) * 2
    x = random(4)
    same(compiled(f)(x), f(x))


def test_without_gradients():
    w = random(3, grad=True)

    def f(x):
        with wf.no_grad():
            y = x * w
        return y, y * w, (x * w).detach(), x * 2

    c, x = compiled(f), random(3)
    same(c(x), f(x))
    with wf.no_grad():
        same(c(x), f(x))
    same(c(x), f(x))


def test_numbers_of_every_dtype():
    def f(x, i):
        y = F.layer_norm(x.astype(wf.float16), (8,)).astype(wf.bfloat16) * 2
        return y, i // 3, i % 4, i << 2, i.sum(), x.argmax(), (x > 0).sum(), x.astype(wf.float64)

    x, i = random(4, 8), wf.arange(12, dtype=wf.int8)
    same(compiled(f)(x, i), f(x, i))


def test_copies_and_pickles():
    layer = wf.nn.Linear(4, 3)
    c, x = compiled(layer), random(2, 4)
    want = c(x)
    again = copy.deepcopy(c)
    same(again(x), want)
    again.weight.assign(wf.zeros((3, 4)))
    same(c(x), want)
    same(pickle.loads(pickle.dumps(c))(x), want)


def test_what_a_compiled_function_is_called():
    @wf.compile
    def named(x):
        """What it does."""
        return x

    assert named.__name__ == "named" and named.__doc__ == "What it does."


def test_a_function_that_can_not_be_captured_runs_eagerly():
    seen = []

    def f(x):
        seen.append(x.sum().item())
        return x * 2

    c, x = wf.compile(f), random(3)
    with pytest.warns(CaptureWarning, match="test_calls.py"):
        same(c(x), x * 2)
    same(c(x), x * 2)  # without another warning
    assert len(seen) == 2
    assert c.captures == 0
    with pytest.raises(CaptureError):
        compiled(f)(x)
    assert len(seen) == 2, "a capture that failed left something behind"


def test_random_numbers_go_on_where_they_were():
    def f():
        return (
            wf.rand(3),
            wf.randn(4),
            wf.randint(0, 10, (5,)),
            wf.permutation(6),
            wf.bernoulli(wf.full((5,), 0.5)),
        )

    def run(f):
        wf.manual_seed(5)
        return [f(), wf.rand(2), f(), wf.get_rng_state()]

    same(run(compiled(f)), run(f))

    def g():
        wf.manual_seed(3)
        return wf.rand(3)

    c = wf.compile(g)
    with pytest.warns(CaptureWarning, match="manual_seed"):
        same([c(), wf.rand(2), c()], [g(), wf.rand(2), g()])


def test_fast_math_is_asked_for():
    def f(x, w):
        return ((x * w + 0.3) / x.sum(axis=1, keepdims=True) / 3.0).sum()

    x, w = random(33, 17), random(17, grad=True)
    plain, fast = wf.compile(f, fallback=False), wf.compile(f, fallback=False, fast_math=True)
    same(plain(x, w), f(x, w))
    assert abs(fast(x, w).item() - f(x, w).item()) < 1e-4
    ops = [op for kernel in fast.explain(x, w).kernels for op in kernel]
    assert "fma" in ops and "fast math" in str(fast.explain(x, w))
    assert "fma" not in str(plain.explain(x, w))
    (g,) = wf.grad(lambda w: fast(x, w), (0,))(w)
    (known,) = wf.grad(lambda w: f(x, w), (0,))(w)
    assert abs(g - known).max().item() < 1e-4


@pytest.mark.parametrize("label", [-1, -101, 5, 99])
def test_an_index_out_of_range_is_the_one_that_was_given(label):
    least = 0 if label < 0 else -5  # what may not count from the end is said so
    run = wf.compile(lambda x, y: wf.nn.functional.cross_entropy(x, y))
    with pytest.raises(IndexError, match=rf"expected indices in \[{least}, 5\), got {label}$"):
        run(wf.zeros((3, 5)), wf.tensor([0, label, 1]))


def test_a_compiled_function_says_what_it_is():
    f = wf.compile(lambda x: x)
    f(wf.ones(2))
    assert repr(f) == "<wf.compile of <lambda>, 1 captures>"
