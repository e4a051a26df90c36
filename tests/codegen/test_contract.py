"""Contractions: every kernel gives the bits of the definition, whatever the layout, the blocks, the
threads, the target.
"""

import ctypes
import random
import time
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from contract_lab import laid_out, oracle, random_contraction, turn_images, values
from launches import TARGETS, KernelError, Run, layout, run

from weft.codegen import jit
from weft.codegen.contract import lower
from weft.codegen.parts import apart
from weft.codegen.text import SELDOM
from weft.errors import DTypeError, ShapeError
from weft.ops.contraction import Contraction, Window
from weft.schedule.contract import plan_contract
from weft.schedule.contract_spec import SQUARE, ContractSpec
from weft.types.dtype import float32

VECTOR = {"host": jit.vector_bytes(), "avx2": 32, "sse2": 16}
bfloat16 = np.dtype(ml_dtypes.bfloat16)
SIZES = [
    (1, 1, 1), (1, 9, 40), (2, 3, 33), (3, 17, 5), (5, 40, 15), (7, 5, 64), (13, 8, 31),
    (14, 7, 32), (15, 33, 17), (16, 16, 16), (29, 10, 37), (40, 31, 1), (33, 64, 6), (1, 37, 1),
]  # fmt: skip
MATMUL = Contraction(("i", "k"), ("k", "j"), ("i", "j"))
BATCHED = Contraction(("b", "i", "k"), ("b", "k", "j"), ("b", "i", "j"))
on_targets = pytest.mark.parametrize("target", list(VECTOR))


def computed(a, b, c, target="host", threads=1, **how):
    """`c` of two arrays, between walls."""
    launch = plan_contract(layout(a), layout(b), c, threads, VECTOR[target])
    return run(launch, a, b, target=TARGETS[target], threads=threads, **how)


def same(x, y):
    """Equal bits."""
    assert x.dtype == y.dtype
    assert x.shape == y.shape
    np.testing.assert_array_equal(x.view(f"u{x.itemsize}"), y.view(f"u{y.itemsize}"))


def conv(x, w, stride=1, pad=0, dilation=1):
    """The contraction of a 2-d convolution, and its gradients' by x and by w."""
    d = ("y0", "t0", stride, dilation, pad), ("y1", "t1", stride, dilation, pad)
    size = [
        (n + 2 * pad - dilation * (k - 1) - 1) // stride + 1
        for n, k in zip(x.shape[2:], w.shape[2:], strict=True)
    ]
    y = (("y0", size[0]), ("y1", size[1]))
    windows = tuple(Window(*a) for a in d)
    forward = Contraction(("n", "c", *windows), ("o", "c", "t0", "t1"), ("n", "o", "y0", "y1"), y)
    back = tuple(Window(f"x{i}", f"t{i}", 1, -dilation, -pad, stride) for i in range(2))
    to_x = Contraction(("n", "o", *back), ("o", "c", "t0", "t1"), ("n", "c", "x0", "x1"),
                       (("x0", x.shape[2]), ("x1", x.shape[3])))  # fmt: skip
    to_w = Contraction(("n", "o", "y0", "y1"), ("n", "c", *windows), ("o", "c", "t0", "t1"),
                       (("t0", w.shape[2]), ("t1", w.shape[3])))  # fmt: skip
    return forward, to_x, to_w


def put_in_order(launch, *operands):
    """The operands as a launch takes them that wants one packed ahead."""
    i, wanted = launch.ahead
    x = operands[i]
    strides = [s * x.itemsize for s in wanted.strides]
    packed = np.ascontiguousarray(np.lib.stride_tricks.as_strided(x, wanted.type.shape, strides))
    return *operands[:i], packed, *operands[i + 1 :]


@on_targets
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_weights_packed_ahead_give_the_same_bits(dtype, target, monkeypatch):
    """Of images whose channels are neighbours in the result, so that these are the columns."""
    monkeypatch.setattr("weft.schedule.contract.WORTH", np.inf)
    rng = np.random.default_rng(3)
    shapes = [
        (1, 8, 14, 64, 3, 1, 1), (2, 12, 7, 64, 3, 1, 1), (1, 3, 22, 32, 7, 2, 3),
        (1, 160, 4, 32, 3, 1, 1), (3, 30, 9, 64, 2, 1, 0),
    ]  # fmt: skip
    for n, c, h, o, k, stride, pad in shapes[: 5 if dtype == "f4" else 2]:
        x, w = values(rng, (n, c, h, h), dtype), values(rng, (o, c, k, k), dtype)
        forward = replace(conv(x, w, stride, pad)[0], out=("n", "y0", "y1", "o"))
        want = oracle(x, w, forward)
        turned = np.ascontiguousarray(w.transpose(2, 3, 1, 0)).transpose(3, 2, 0, 1)
        for weights, threads in ((w, 1), (w, 2), (turned, 3)):
            said = layout(x), layout(weights), forward, threads, VECTOR[target]
            launch = plan_contract(*said, fixed=frozenset({0, 1}))
            assert launch.ahead is not None
            assert launch.ahead[0] == 1
            operands = put_in_order(launch, x, weights)
            same(run(launch, *operands, target=TARGETS[target], threads=threads), want)


def test_weights_packed_ahead_of_results_that_are_turned():
    rng = np.random.default_rng(3)
    x, w = values(rng, (2, 36, 7, 7), "f4"), values(rng, (64, 36, 3, 3), "f4")
    forward, *_ = conv(x, w, 1, 1)
    launch = plan_contract(layout(x), layout(w), forward, 2, fixed=frozenset({1}))
    if VECTOR["host"] == 64:
        assert launch.phases[0].spec.turned
        assert launch.ahead is not None
    operands = put_in_order(launch, x, w) if launch.ahead else (x, w)
    same(run(launch, *operands, threads=2), oracle(x, w, forward))


@on_targets
def test_the_columns_of_a_product_packed_ahead(target, monkeypatch):
    monkeypatch.setattr("weft.schedule.contract.WORTH", np.inf)
    rng = np.random.default_rng(4)
    for a, b, c in [
        (values(rng, (70, 130), "f4"), values(rng, (130, 192), "f4"), MATMUL),
        (values(rng, (70, 1300), "f4"), values(rng, (192, 1300), "f4").T, MATMUL),
    ]:
        shapes = layout(a), layout(b), c, 2, VECTOR[target]
        launch = plan_contract(*shapes, fixed=frozenset({0, 1}))
        assert launch.ahead is not None
        got = run(launch, *put_in_order(launch, a, b), target=TARGETS[target], threads=2)
        same(got, oracle(a, b, c))


@on_targets
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", bfloat16, "i1", "u2", "i4", "u8"], ids=str)
def test_random_contractions_have_the_bits_of_the_definition(dtype, target):
    for seed in range(60 if dtype == "f4" else 15):
        rnd, rng = random.Random(seed), np.random.default_rng(seed)
        c, *shapes = random_contraction(rnd, 4000)
        a, b = (laid_out(rnd, rng, s, dtype) for s in shapes)
        got = computed(a, b, c, target, guard=bool(seed % 2))
        same(got, oracle(a, b, c))


@pytest.mark.parametrize("transposed", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_matrix_products_of_every_small_size(transposed):
    rng = np.random.default_rng(0)
    for m, k, n in SIZES:
        a = values(rng, (k, m), "f4").T if transposed[0] else values(rng, (m, k), "f4")
        b = values(rng, (n, k), "f4").T if transposed[1] else values(rng, (k, n), "f4")
        same(computed(a, b, MATMUL), oracle(a, b, MATMUL))


@on_targets
@pytest.mark.parametrize("dtype", ["f4", "f2", bfloat16, "i1"], ids=str)
def test_long_sums_go_on_where_the_block_before_stopped(dtype, target):
    rng = np.random.default_rng(1)
    m, k, n = (5, 2600, 19) if target != "sse2" else (3, 1100, 5)
    for a, b in [
        (values(rng, (m, k), dtype), values(rng, (k, n), dtype)),
        (values(rng, (m, k), dtype), values(rng, (n, k), dtype).T),
        (values(rng, (k, m), dtype).T, values(rng, (k, n), dtype)),
    ]:
        same(computed(a, b, MATMUL, target), oracle(a, b, MATMUL))


@on_targets
@pytest.mark.parametrize(
    ("stride", "pad", "dilation", "taps"),
    [(1, 1, 1, 3), (2, 1, 1, 3), (1, 2, 2, 3), (2, 3, 1, 5), (3, 0, 1, 2), (1, 0, 1, 1)],
)
def test_convolutions_and_their_gradients(stride, pad, dilation, taps, target):
    rng = np.random.default_rng(2)
    x = values(rng, (2, 3, 9, 20 if target != "sse2" else 7), "f4")
    w = values(rng, (4, 3, taps, taps), "f4")
    forward, to_x, to_w = conv(x, w, stride, pad, dilation)
    y = computed(x, w, forward, target)
    same(y, oracle(x, w, forward))
    same(computed(y, w, to_x, target), oracle(y, w, to_x))
    same(computed(y, x, to_w, target), oracle(y, x, to_w))


def test_images_with_channels_last_and_reversed():
    rng = np.random.default_rng(3)
    x, w = values(rng, (2, 9, 11, 5), "f4"), values(rng, (3, 3, 5, 7), "f4")
    sizes = (("y", 9), ("z", 11))
    windows = Window("y", "s", pad=1), Window("z", "t", pad=1)
    c = Contraction(("n", *windows, "c"), ("s", "t", "c", "o"), ("n", "y", "z", "o"), sizes)
    same(computed(x, w, c), oracle(x, w, c))
    same(computed(x[:, ::-1, ::-1], w, c), oracle(x[:, ::-1, ::-1], w, c))
    same(
        computed(x.transpose(0, 2, 1, 3)[:, :9], w, c), oracle(x.transpose(0, 2, 1, 3)[:, :9], w, c)
    )


@pytest.mark.parametrize("kind", ["plain", "depth packed", "half", "batched", "image"])
def test_threads_and_order_of_tasks_change_no_bit(kind):
    rng = np.random.default_rng(4)
    c = MATMUL
    if kind == "image":
        a, b = values(rng, (3, 8, 20, 31), "f4"), values(rng, (40, 8, 3, 3), "f4")
        c = conv(a, b, 1, 1)[0]
    elif kind == "batched":
        a, b, c = values(rng, (37, 20, 40), "f4"), values(rng, (37, 40, 50), "f4"), BATCHED
    else:
        dtype = "f2" if kind == "half" else "f4"
        a, b = values(rng, (150, 900), dtype), values(rng, (900, 130), dtype)
        if kind == "depth packed":
            a, b = np.asfortranarray(a), np.asfortranarray(b)
    one = computed(a, b, c)
    for threads in (2, 3, 7):
        launch = plan_contract(layout(a), layout(b), c, threads)
        assert launch.heavy
        assert launch.phases[-1].tasks >= threads
        same(run(launch, a, b, threads=threads), one)
        for seed in range(2):
            same(run(launch, a, b, threads=threads, split=1, shuffle=seed, guard=None), one)


def test_rows_do_not_depend_on_how_many_there_are():
    rng = np.random.default_rng(5)
    a, b = values(rng, (64, 300), "f4"), values(rng, (300, 70), "f4")
    whole = computed(a, b, MATMUL)
    for rows in (1, 2, 5, 15, 33):
        same(computed(a[:rows], b, MATMUL), whole[:rows])
    for cols in (1, 4, 15, 40):
        same(computed(a, b[:, :cols], MATMUL), whole[:, :cols])


@pytest.mark.parametrize("dtype", ["f4", "f2"])
def test_not_a_number_infinity_and_signed_zero(dtype):
    rng = np.random.default_rng(6)
    a, b = values(rng, (20, 33), dtype), values(rng, (33, 40), dtype)
    a[3, 5], a[7, 0], b[4, 4], b[9, 9] = np.nan, np.inf, -np.inf, np.finfo(dtype).max
    a[11], b[:, 30] = -0.0, 0.0
    got, want = computed(a, b, MATMUL), oracle(a, b, MATMUL)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(
        np.signbit(got)[~np.isnan(got)], np.signbit(want)[~np.isnan(want)]
    )


def test_windows_multiply_by_zero_outside():
    """An infinite weight over the border makes NaN, in every path."""
    x, w = np.ones((1, 1, 5, 40), "f4"), np.full((20, 1, 3, 3), np.inf, "f4")
    y = computed(x, w, conv(x, w, 1, 1)[0])
    assert np.isnan(y[0, :, 0]).all()
    assert np.isnan(y[0, :, :, -1]).all()
    assert np.isposinf(y[0, :, 1:-1, 1:-1]).all()


def test_empty_operands():
    f = np.float32
    same(computed(np.ones((3, 0), f), np.ones((0, 4), f), MATMUL), np.zeros((3, 4), f))
    assert (
        plan_contract(layout(np.ones((0, 3), f)), layout(np.ones((3, 4), f)), MATMUL, 2).phases
        == ()
    )
    x, w = np.ones((2, 0, 5, 5), f), np.ones((3, 0, 3, 3), f)
    same(computed(x, w, conv(x, w, 1, 1)[0]), np.zeros((2, 3, 5, 5), f))


def test_many_labels():
    rng = np.random.default_rng(7)
    a, b = values(rng, (2,) * 9, "f4"), values(rng, (2,) * 9, "f4")
    c = Contraction(tuple("abcdefghi"), tuple("ihcbajklm"), tuple("mdajekblfcg"))
    same(computed(a, b, c), oracle(a, b, c))


def test_a_long_sum_can_be_interrupted():
    a, b = np.ones((2, 1 << 20), "f4"), np.ones((1 << 20, 2), "f4")
    launch = plan_contract(layout(a), layout(b), MATMUL, 1)
    how = Run(guard=None, stop_after=0)
    with pytest.raises(KernelError) as e:
        how(launch, a, b)
    assert e.value.code == 2
    assert how.polls == 1
    assert run(launch, a, b, guard=None).max() == 1 << 20


def test_agrees_with_numpy_at_size():
    rng = np.random.default_rng(8)
    for m, k, n in [(300, 700, 260), (1, 900, 1500), (700, 900, 3)]:
        a, b = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
        np.testing.assert_allclose(computed(a, b, MATMUL, guard=None), a @ b, atol=1e-3)


def test_what_cannot_be_contracted_is_said():
    f, d = np.ones((2, 3), "f4"), np.ones((3, 2), "f8")
    for a, b, c, error in [
        (f, d, MATMUL, DTypeError),
        (f > 0, d > 0, MATMUL, DTypeError),
        (f, f, MATMUL, ShapeError),
        (f, f[None], MATMUL, ShapeError),
        (f, f.T, Contraction(("i", "k"), ("l", "j"), ("i", "j")), ShapeError),
        (f, f.T, Contraction(("i", "k"), ("k", "j"), ("i", "i")), ShapeError),
        (f, f.T, Contraction(("i", "k"), ("k", "j"), ("i", "x")), ShapeError),
        (f, f.T, Contraction((Window("i", "p"), "k"), ("k", "j"), ("i", "j")), ShapeError),
    ]:
        with pytest.raises(error):
            plan_contract(layout(a), layout(b), c, 1)


@pytest.mark.parametrize("modes", [("place", "place"), ("depth", "near"), ("any", "even")])
def test_a_kernel_is_compiled_in_time(modes):
    """Within 60 ms on a quiet machine; here there is room for a busy one."""
    spec = ContractSpec(float32, SQUARE[64], *modes, slab_r="dense" if modes[1] == "even" else "")
    assert any(_seconds(spec) < 0.12 for _ in range(20))


def test_only_what_runs_once_a_task_is_compiled_as_fast_as_can_be():
    main, *parts = apart(lower(ContractSpec(float32, SQUARE[64], "place", "near")))
    assert SELDOM in main
    seldom = [p for p in parts if p.count(SELDOM) == p.count("define ")]
    assert len(seldom) == 1
    assert "call void @part_" in seldom[0]  # the tiles
    others = [p for p in parts if p not in seldom]
    assert any("= call <" in p and "@llvm.fma" in p for p in others)
    assert "= call <" not in main + seldom[0]


def _seconds(spec):
    start = time.process_time()
    jit.compile_object(lower(spec))
    return time.process_time() - start


@pytest.fixture
def always_turned(monkeypatch):
    turn_images(monkeypatch)


@on_targets
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
@pytest.mark.parametrize(("stride", "pad", "taps"), [(1, 1, 3), (2, 1, 3), (2, 3, 5), (3, 1, 2)])
def test_channels_as_lanes(stride, pad, taps, dtype, target, always_turned):
    rng = np.random.default_rng(2)
    for size, channels in [(14, 17), (7, 40)] if target != "sse2" else [(7, 9)]:
        x = values(rng, (2, 3, 9, size), dtype)
        w = values(rng, (channels, 3, taps, taps), dtype)
        forward, to_x, _ = conv(x, w, stride, pad)
        launch = plan_contract(layout(x), layout(w), forward, 1, VECTOR[target])
        assert launch.phases[-1].spec.turned
        y = computed(x, w, forward, target)
        same(y, oracle(x, w, forward))
        same(computed(y, w, to_x, target, guard=False), oracle(y, w, to_x))


def test_channels_as_lanes_in_several_blocks_and_threads(always_turned):
    rng = np.random.default_rng(3)
    x, w = values(rng, (5, 70, 8, 15), "f4"), values(rng, (50, 70, 3, 3), "f4")
    c = conv(x, w, 1, 1)[0]
    one = computed(x, w, c)
    same(one, oracle(x, w, c))
    for threads in (2, 3):
        for how in ({}, {"split": 1, "shuffle": 1}):
            same(computed(x, w, c, threads=threads, **how), one)


@on_targets
def test_strides_multiply_no_inserted_zeros(target):
    """An infinite weight meets only what a transposed convolution places it on."""
    y, w = np.ones((1, 1, 4, 20), "f4"), np.ones((1, 2, 3, 3), "f4")
    w[0, 0, 1, 1] = np.inf
    x = np.zeros((1, 2, 7, 39), "f4")
    got = computed(y, w, conv(x, w, 2, 1)[1], target)
    assert np.isposinf(got[0, 0, ::2, ::2]).all()
    assert np.isfinite(got[0, 0, 1::2]).all()
    assert np.isfinite(got[0, 0, :, 1::2]).all()


@pytest.mark.parametrize("taps", [1, 2, 3, 5])
def test_classes_of_every_stride(taps):
    rng = np.random.default_rng(4)
    for stride, dilation, pad in [(2, 1, 0), (3, 2, 2), (4, 2, 1), (5, 1, 3), (2, 2, 1)]:
        x, w = values(rng, (2, 3, 17, 23), "f4"), values(rng, (4, 3, taps, taps), "f4")
        forward, to_x, _ = conv(x, w, stride, pad, dilation)
        y = computed(x, w, forward)
        same(computed(y, w, to_x, threads=2), oracle(y, w, to_x))


@pytest.mark.parametrize(
    ("stride", "pad", "dilation"),
    [(2, 1, 1), (3, 2, 1), (3, 2, 2), (2, 3, 1), (2, 3, 2), (2, 3, 3), (2**40, 1, 1)],
)
def test_one_position_is_of_one_class(stride, pad, dilation):
    """There is no other part, but this one need not begin where its operands do, nor have terms."""
    rng = np.random.default_rng(6)
    x, w = values(rng, (2, 3, 1, 1), "f4"), values(rng, (4, 3, 3, 3), "f4")
    forward, to_x, _ = conv(x, w, stride, pad, dilation)
    y = computed(x, w, forward)
    same(computed(y, w, to_x, threads=2), oracle(y, w, to_x))


@pytest.mark.parametrize("shape", [(2, 2), (1, 4), (5, 1)])
def test_classes_of_one_position_beside_larger_ones(shape):
    """The operands play the same roles in all."""
    rng = np.random.default_rng(5)
    channels, filters = shape
    for size, taps, stride in [(4, 3, 3), (5, 3, 3), (7, 3, 4), (6, 2, 4), (9, 2, 7)]:
        x = values(rng, (2, channels, size, size), "f4")
        w = values(rng, (filters, channels, taps, taps), "f4")
        forward, to_x, to_w = conv(x, w, stride)
        y = computed(x, w, forward)
        for c, a, b in ((to_x, y, w), (to_w, y, x)):
            same(computed(a, b, c), oracle(a, b, c))


class Asked(Run):
    """Sees to it that polls come with the frame of the launch, whose detail is 0."""

    def _poll(self, frame, worker):
        self.strange = ctypes.c_int64.from_address(frame).value
        return super()._poll(frame, worker)


def test_each_class_asks_whether_to_stop_with_the_launch_s_frame():
    y, w = np.ones((1, 1 << 18, 2, 2), "f4"), np.ones((1 << 18, 1, 3, 3), "f4")
    x = np.zeros((1, 1, 3, 3), "f4")
    launch = plan_contract(layout(w), layout(y), _to_x(x, w), 1)
    assert launch.phases[-1].spec.parts
    how = Asked(guard=None)
    (got,) = how(launch, w, y)
    assert got[0, 0].tolist() == [[n * 2.0**18 for n in row] for row in _meetings()]
    assert how.polls
    assert how.strange == 0


def _to_x(x, w):
    c = conv(x, w, 2, 1)[1]
    return Contraction(c.b, c.a, c.out, c.sizes)


def _meetings():
    """How many inputs of 2 x 2 a 3 x 3 filter of stride 2 brings to each of 3 x 3 results."""
    return [[1, 2, 1], [2, 4, 2], [1, 2, 1]]
