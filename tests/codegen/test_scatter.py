import numpy as np
import pytest
from extern_lab import KernelError, Run, dense, layout
from spelled import dtype_of

from weft.codegen.jit import AVX2, SSE2
from weft.errors import DTypeError, ShapeError
from weft.schedule.scatter import plan_scatter
from weft.types import DTYPES
from weft.types.dtype import bool_

SHAPES = [
    ((11,), 0),
    ((7, 5), 0),
    ((7, 5), 1),
    ((3, 9, 4), 1),
    ((50, 2), 0),
    ((4, 300), 0),
    ((3, 70), 1),
]
RUNS = [
    Run(),
    Run(guard=False),
    Run(threads=3, split=1),
    Run(split=1000),
    Run(target=AVX2),
    Run(target=SSE2),
]


def scattered(base, index, source, axis, op):
    """The definition, one index after the other."""
    wide = base.dtype if op != "add" else dtype_of(base.dtype).compute.np
    out = np.moveaxis(base.astype(wide), axis, 0)
    source = np.moveaxis(source, axis, 0)
    index = (
        np.moveaxis(
            np.broadcast_to(index.reshape([-1] + [1] * (base.ndim - 1)), source.shape), 0, 0
        )
        if (index.ndim == 1)
        else np.moveaxis(index, axis, 0)
    )
    for i in range(len(source)):
        for rest in np.ndindex(source.shape[1:]):
            to, new = (index[(i, *rest)], *rest), source[(i, *rest)]
            old = out[to]
            if op == "add":
                with np.errstate(over="ignore"):
                    out[to] = old + new.astype(wide)
            elif (
                op == "assign"
                or (new > old if op == "max" else new < old)
                or (new != new and old == old)
            ):
                out[to] = new
    return np.moveaxis(out.astype(base.dtype), 0, axis)


def problem(shape, axis, k, along, dtype=np.float32, seed=0):
    rng = np.random.default_rng(seed)
    n = shape[axis]
    given = (*shape[:axis], k, *shape[axis + 1 :])
    index = rng.integers(-n, n, given if along else k)
    if dtype == np.bool_:
        return rng.random(shape) < 0.5, index, rng.random(given) < 0.5
    base, source = (
        (rng.standard_normal(shape) * 9).astype(dtype),
        (rng.standard_normal(given) * 9).astype(dtype),
    )
    return base, index, source


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("along", [False, True])
@pytest.mark.parametrize("op", ["add", "assign"])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_is_in_index_order(shape, axis, op, along, run):
    for k in (1, 13):
        base, index, source = problem(shape, axis, k, along)
        launch = plan_scatter(shape, layout(index), layout(source), axis, op, base=layout(base))
        (out,) = run(launch, base, index, source)
        assert np.array_equal(out, scattered(base, index, source, axis, op))
        (out,) = run(plan_scatter(shape, layout(index), layout(source), axis, op), index, source)
        assert np.array_equal(out, scattered(np.zeros_like(base), index, source, axis, op))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("op", ["add", "assign", "max", "min"])
@pytest.mark.parametrize("inner", [1, 3, 70])
def test_every_dtype(dtype, op, inner):
    if dtype is bool_ and op == "add":
        return
    for along in (False, True):
        base, index, source = problem((2, 5, inner), 1, 8, along, dtype.np)
        if dtype.is_float and op != "assign":
            source.flat[3] = np.nan
        launch = plan_scatter(base.shape, layout(index), layout(source), 1, op, base=layout(base))
        (out,) = Run()(launch, base, index, source)
        assert np.array_equal(
            out.view(f"u{out.itemsize}"),
            scattered(base, index, source, 1, op).view(f"u{out.itemsize}"),
        )


def test_half_sums_round_once():
    source, index = np.full((5000, 3), 0.25, np.float16), np.zeros(5000, np.int64)
    (out,) = Run()(plan_scatter((2, 3), layout(index), layout(source), 0, "add"), index, source)
    assert np.array_equal(out, np.array([[1250] * 3, [0] * 3], np.float16))


@pytest.mark.parametrize("shape", [(1000, 200), (100_000,), (64, 2000)])
def test_bits_do_not_depend_on_threads(shape):
    rng = np.random.default_rng(3)
    index = rng.integers(0, shape[0], 30_000 if len(shape) == 1 else 900)
    source = rng.standard_normal((len(index), *shape[1:])).astype(np.float32)
    launch = plan_scatter(shape, layout(index), layout(source), 0, "add")
    want = np.zeros(shape, np.float32)
    np.add.at(want, index, source)
    for threads in (1, 2, 3, 7):
        assert np.array_equal(Run(threads=threads)(launch, index, source)[0], want)


def test_columns_are_cut_without_changing_bits():
    base, index, source = problem((9, 1500), 0, 100, True)
    want = scattered(base, index, source, 0, "add")
    for threads in (1, 2, 8):
        launch = plan_scatter(
            base.shape, layout(index), layout(source), 0, "add", base=layout(base), threads=threads
        )
        assert launch.phases[1].tasks == min(threads, 4)
        assert np.array_equal(Run(threads=threads)(launch, base, index, source)[0], want)


@pytest.mark.parametrize("inner", [1, 5])
@pytest.mark.parametrize("along", [False, True])
@pytest.mark.parametrize("place", [0, 8, 18])
@pytest.mark.parametrize("bad", [9, -10, 2**62, -(2**63)])
def test_out_of_range_is_named(inner, along, place, bad):
    source = np.zeros((19, inner), np.float32)
    index = np.zeros((19, inner) if along else 19, np.int64)
    index[place] = bad
    with pytest.raises(KernelError) as e:
        Run()(plan_scatter((9, inner), layout(index), layout(source), 0, "add"), index, source)
    assert (e.value.code, e.value.detail) == (1, bad)


def test_sizes_of_zero():
    none = np.zeros(0, np.int64)
    base, source = np.ones((3, 4), np.float32), np.zeros((0, 4), np.float32)
    launch = plan_scatter((3, 4), layout(none), layout(source), 0, "add", base=layout(base))
    assert np.array_equal(Run()(launch, base, none, source)[0], base)
    index, source = np.zeros(2, np.int64), np.zeros((2, 4), np.float32)
    with pytest.raises(KernelError):
        Run()(plan_scatter((0, 4), layout(index), layout(source), 0, "add"), index, source)
    source = np.zeros((2, 0), np.float32)
    assert Run()(plan_scatter((3, 0), layout(index), layout(source), 0, "add"), index, source)[
        0
    ].shape == (3, 0)


def test_bad_arguments_are_refused():
    with pytest.raises(ShapeError, match="dense"):
        plan_scatter((6, 4), dense((6,), "i64"), layout(np.zeros((4, 6)).T), 0, "add")
    with pytest.raises(DTypeError):
        plan_scatter((6,), dense((6,), "i64"), dense((6,), "bool"), 0, "add")


@pytest.mark.parametrize("inner", [1, 3])
def test_a_long_task_can_be_stopped(inner):
    source, index = (
        np.zeros((2_000_000 // inner, inner), np.float32),
        np.zeros(2_000_000 // inner, np.int64),
    )
    launch = plan_scatter((5, inner), layout(index), layout(source), 0, "add")
    with pytest.raises(KernelError) as e:
        Run(stop_after=1, guard=None)(launch, index, source)
    assert e.value.code == 2
