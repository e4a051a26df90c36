import numpy as np
import pytest
from extern_lab import KernelError, Run, dense, layout
from spelled import dtype_of

from weft.codegen.jit import AVX2, SSE2
from weft.errors import ShapeError
from weft.schedule import sort
from weft.schedule.sort import plan_sort, plan_topk
from weft.types import DTYPES
from weft.types.dtype import bool_, float32

LENGTHS = [1, 2, 15, 16, 17, 64, 65, 300, 9000]
RUNS = [Run(), Run(guard=False), Run(threads=3, split=1), Run(target=AVX2), Run(target=SSE2)]


def sample(dtype, shape, seed=0):
    """Few different numbers and, among floats, all that is special."""
    rng = np.random.default_rng(seed)
    if dtype is bool_:
        return rng.random(shape) < 0.5
    if dtype.is_int:
        info = np.iinfo(dtype.np)
        some = rng.integers(info.min, info.max, 200, dtype.np, endpoint=True)
        return rng.choice(np.append(some, np.array([info.min, info.max], dtype.np)), shape)
    x = np.rint(rng.standard_normal(shape) * 50).astype(dtype.np)
    for special in (0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e-40):
        x[rng.random(shape) < 0.03] = special
    return x


def order(x, descending):
    """Stable positions, from the definition: NaN above all, zeros equal."""
    if dtype_of(x.dtype).is_float:
        wide = x.astype(np.float64)
        nan = np.isnan(wide)
        rank, number = nan.astype(int), np.where(nan, 0, wide)
        keys = (-number, -rank) if descending else (number, rank)
        return np.lexsort(keys, axis=-1)
    rank = np.unique(x, return_inverse=True)[1].reshape(x.shape)
    return np.argsort(-rank if descending else rank, axis=-1, kind="stable")


def same(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def check(x, run, descending):
    where = order(x, descending)
    values = np.take_along_axis(x, where, -1)
    both = run(plan_sort(layout(x), descending=descending, indices=True), x)
    assert same(both[1], where)
    assert same(both[0], values)
    assert same(run(plan_sort(layout(x), descending=descending), x)[0], values)
    only = plan_sort(layout(x), descending=descending, values=False, indices=True)
    assert same(run(only, x)[0], where)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_is_stable_in_both_directions(dtype, n, descending):
    check(sample(dtype, (3, n)), Run(), descending)


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("n", [20, 300, 9000])
@pytest.mark.parametrize("name", ["float32", "float64", "bfloat16"])
def test_is_the_same_everywhere(name, n, run):
    check(sample(dtype_of(name), (5, n)), run, False)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize("name", ["float32", "float64", "int64", "uint8", "float16", "bool"])
def test_a_long_row_is_shared(name, threads, descending, monkeypatch):
    monkeypatch.setattr(sort, "SHARED", 9000)
    x = sample(dtype_of(name), (2, 9000))
    assert len(plan_sort(layout(x)).phases) > 3
    check(x, Run(threads=threads), descending)


def test_a_million():
    x = np.random.default_rng(0).standard_normal(1_000_000).astype(np.float32)
    run = Run(threads=2, guard=None)
    values, where = run(plan_sort(layout(x), indices=True), x)
    assert same(values, np.sort(x))
    assert same(x[where], values)


@pytest.mark.parametrize("already", ["up", "down", "equal"])
@pytest.mark.parametrize("n", [64, 1000, 10_000])
def test_patterns(already, n):
    x = np.arange(2.0 * n).astype(np.int32).reshape(2, n)
    x = {"up": x, "down": x[:, ::-1].copy(), "equal": np.zeros_like(x)}[already]
    for descending in (False, True):
        check(x, Run(), descending)
    for largest in (False, True):
        values, where = Run()(plan_topk(layout(x), 5, largest=largest), x)
        assert same(where, order(x, largest)[:, :5])
        assert same(values, np.take_along_axis(x, where, -1))


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("n", LENGTHS)
def test_topk_is_the_head_of_the_sorted_row(n, largest, run):
    x = sample(float32, (3, n))
    where = order(x, largest)
    for k in {1, min(n, 7), n // 2 + 1, n}:
        out = run(plan_topk(layout(x), k, largest=largest), x)
        assert same(out[1], where[:, :k])
        assert same(out[0], np.take_along_axis(x, where[:, :k], -1))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_topk_of_every_dtype(dtype):
    x = sample(dtype, (2, 1000))
    for largest in (False, True):
        values, where = Run()(plan_topk(layout(x), 30, largest=largest), x)
        assert same(where, order(x, largest)[:, :30])
        assert same(values, np.take_along_axis(x, where, -1))


def test_sizes_of_zero():
    for shape in ((0,), (0, 5), (5, 0)):
        x = np.zeros(shape, np.float32)
        assert [o.shape for o in Run()(plan_sort(layout(x), indices=True), x)] == [shape, shape]
    x = np.zeros((3, 4), np.float32)
    assert [o.shape for o in Run()(plan_topk(layout(x), 0), x)] == [(3, 0), (3, 0)]


def test_bad_arguments_are_refused():
    with pytest.raises(ShapeError, match="dense"):
        plan_sort(layout(np.zeros((4, 6)).T))
    with pytest.raises(ShapeError, match="axis"):
        plan_sort(dense((), "f32"))
    with pytest.raises(ShapeError, match=r"2\*\*32"):
        plan_sort(dense((2**32,), "u8"))
    for k in (-1, 5):
        with pytest.raises(ShapeError, match="k from 0"):
            plan_topk(dense((4,), "f32"), k)


def test_a_long_task_can_be_stopped():
    x = np.zeros((64, 600_000), np.float32)
    for launch in (plan_topk(layout(x), 5), plan_sort(layout(x))):
        with pytest.raises(KernelError) as e:
            Run(stop_after=1, guard=None)(launch, x)
        assert e.value.code == 2


def test_shapes_do_not_make_new_kernels():
    specs = {plan_sort(dense((r, n), "f32")).phases[0].spec for r in (1, 9) for n in (100, 900)}
    assert len(specs) == 1
    assert (
        len({plan_topk(dense((9, n), "f32"), k).phases[0].spec for n in (10, 900) for k in (1, 9)})
        == 1
    )
