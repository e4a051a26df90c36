"""A contraction with an epilogue has the bits of the contraction followed by the map, whatever the
layouts, the blocks, the threads, the target.
"""

import random

import ml_dtypes
import numpy as np
import pytest
from contract_lab import laid_out, oracle, random_contraction, turn_images, values
from launches import TARGETS, Run, layout, run

from weft.buffer import Layout
from weft.codegen import jit
from weft.codegen.contract import lower
from weft.codegen.lower import lower_apart
from weft.errors import ShapeError
from weft.ops.contraction import Contraction, Window
from weft.ops.math.error import erf
from weft.ops.scalar import const, index, input_, maximum, param, select, substitute
from weft.schedule.contract import plan_contract
from weft.schedule.contract_spec import Epilogue
from weft.schedule.map import plan_map
from weft.types import TensorType
from weft.types.dtype import bool_, float32, int64

VECTOR = {"host": jit.vector_bytes(), "avx2": 32, "sse2": 16}
bfloat16 = np.dtype(ml_dtypes.bfloat16)
MATMUL = Contraction(("i", "k"), ("k", "j"), ("i", "j"))
BATCHED = Contraction(("b", "i", "k"), ("b", "k", "j"), ("b", "i", "j"))
on_targets = pytest.mark.parametrize("target", list(VECTOR))


def conv(x, w, stride=1, pad=0, groups=1):
    """The contraction of a 2-d convolution, x and w with an axis of groups if there are any."""
    sizes = [
        (n + 2 * pad - k) // stride + 1 for n, k in zip(x.shape[-2:], w.shape[-2:], strict=True)
    ]
    windows = tuple(Window(f"y{i}", f"t{i}", stride, 1, pad) for i in range(2))
    g = ("g",) if groups > 1 else ()
    return Contraction(
        ("n", *g, "c", *windows),
        (*g, "o", "c", "t0", "t1"),
        ("n", *g, "o", "y0", "y1"),
        (("y0", sizes[0]), ("y1", sizes[1])),
    )


def same(x, y):
    """Equal bits."""
    assert x.dtype == y.dtype
    assert x.shape == y.shape
    np.testing.assert_array_equal(x.view(f"u{x.itemsize}"), y.view(f"u{y.itemsize}"))


def spread(x, shape):
    return np.broadcast_to(x, shape)


def check(a, b, c, rules, extras=(), target="host", numbers=(), plain=None, **how):
    """`rules` are functions of scalars; extras are arrays of the result's shape."""
    threads = how.get("threads", 1)
    if plain is None:
        one = plan_contract(layout(a), layout(b), c, threads, VECTOR[target])
        plain = run(one, a, b, target=TARGETS[target], threads=threads, guard=None)
    inputs = [input_(i, layout(x).type.dtype) for i, x in enumerate((plain, *extras))]
    said = tuple(rule(*inputs) for rule in rules)
    epilogue = Epilogue(said, tuple(layout(x) for x in extras), numbers)
    launch = plan_contract(layout(a), layout(b), c, threads, VECTOR[target], epilogue)
    assert [o.type.dtype for o in launch.outs] == [r.dtype for r in said]
    got = Run(target=TARGETS[target], **how)(launch, a, b, *extras)
    kind = TensorType(plain.shape, float32)
    operands = [np.ascontiguousarray(plain), *extras]
    for rule, result in zip(rules, got, strict=True):
        root = substitute(rule(*inputs), lambda n: _number(n, numbers))
        want = run(plan_map([root], [layout(x) for x in operands], kind), *operands, guard=None)
        same(result, want)


def _number(leaf, numbers):
    """What a param of a rule stands for."""
    return const(numbers[leaf.value], int64) if leaf.verb == "param" else None


def wide(x):
    return x.cast(x.dtype.compute) if x.dtype.is_float else x


def bias_relu(z, b):
    return maximum((wide(z) + wide(b)).cast(z.dtype).cast(z.dtype.compute), 0.0).cast(z.dtype)


def add(z, b):
    return (wide(z) + wide(b)).cast(z.dtype)


def gelu(z, b):
    x = z + b
    return x * 0.5 * (erf(x * 0.7071067811865476) + 1.0)


def scale_shift_add_relu(z, s, t, r):
    return maximum(z * s + t + r, 0.0)


def masked_by(z, m):
    return z * select(m > 0.0, m.like(1.0), m.like(0.0))


SIZES = [
    (1, 1, 1), (1, 9, 40), (2, 3, 33), (3, 17, 5), (5, 40, 15), (13, 8, 31), (14, 7, 32),
    (15, 33, 17), (29, 10, 37), (40, 31, 1), (33, 64, 6), (3, 0, 4), (70, 90, 75),
]  # fmt: skip


@on_targets
@pytest.mark.parametrize("transposed", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_matrix_products(transposed, target):
    rng = np.random.default_rng(0)
    for m, k, n in SIZES if target != "sse2" else SIZES[:10]:
        a = values(rng, (k, m), "f4").T if transposed[0] else values(rng, (m, k), "f4")
        b = values(rng, (n, k), "f4").T if transposed[1] else values(rng, (k, n), "f4")
        bias = spread(values(rng, (n,), "f4"), (m, n))
        column = spread(values(rng, (m, 1), "f4"), (m, n))
        full, turned = values(rng, (m, n), "f4"), values(rng, (n, m), "f4").T
        guard = bool((m + n) % 2)
        check(a, b, MATMUL, [bias_relu], [bias], target, guard=guard)
        everything = [bias, column, full[::-1, ::-1]]
        check(a, b, MATMUL, [scale_shift_add_relu], everything, target, guard=guard)
        check(a, b, MATMUL, [add, bias_relu], [turned], target, guard=guard)


@on_targets
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", bfloat16, "i1", "u2", "i8"], ids=str)
def test_dtypes_few_rows_and_long_sums(dtype, target):
    rng = np.random.default_rng(1)
    for m, k, n in [(5, 1700, 19), (2, 300, 40), (17, 40, 50)]:
        if target == "sse2":
            k //= 4
        for a, b in [
            (values(rng, (m, k), dtype), values(rng, (k, n), dtype)),
            (values(rng, (k, m), dtype).T, values(rng, (n, k), dtype).T),
        ]:
            other = values(rng, (m, n), dtype)
            check(a, b, MATMUL, [add, lambda z, e: wide(z) < wide(e)], [other], target)
            check(a, b, MATMUL, [lambda z: z, lambda z: z.cast(float32)], [], target)


@on_targets
def test_random_contractions(target):
    for seed in range(40):
        rnd, rng = random.Random(seed), np.random.default_rng(seed)
        c, *shapes = random_contraction(rnd, 2000)
        a, b = (laid_out(rnd, rng, s, "f4") for s in shapes)
        plain = oracle(a, b, c)
        extras = []
        for _ in range(2):
            some = [n if rnd.random() < 0.6 else 1 for n in plain.shape]
            extras.append(spread(laid_out(rnd, rng, tuple(some), "f4"), plain.shape))
        rules = [lambda z, p, q: z * p + q, lambda z, p, q: z < q]
        check(a, b, c, rules, extras, target, plain=plain, guard=bool(seed % 2))


@on_targets
@pytest.mark.parametrize(("stride", "pad", "taps"), [(1, 1, 3), (2, 1, 3), (2, 3, 7), (1, 0, 1)])
@pytest.mark.parametrize(("groups", "turned"), [(1, False), (2, False), (1, True)])
def test_convolutions(stride, pad, taps, groups, turned, target, monkeypatch):
    rng = np.random.default_rng(2)
    if turned:
        turn_images(monkeypatch)
    for size in (5, 9) if target != "sse2" else (5,):
        g = (groups,) if groups > 1 else ()
        out = 20 if turned else 4
        x, w = values(rng, (2, *g, 3, 9, size), "f4"), values(rng, (*g, out, 3, taps, taps), "f4")
        c = conv(x, w, stride, pad, groups)
        shape = plan_contract(layout(x), layout(w), c, 1).outs[0].type.shape
        channel = (*g, out, 1, 1)
        scale, shift = (spread(values(rng, channel, "f4"), shape) for _ in range(2))
        residual = values(rng, shape, "f4")
        check(x, w, c, [bias_relu], [shift], target)
        check(x, w, c, [scale_shift_add_relu], [scale, shift, residual], target, guard=False)
        last = np.moveaxis(values(rng, (*shape[:1], *shape[2:], shape[1]), "f4"), -1, 1)
        check(x, w, c, [masked_by, add], [last], target)


@on_targets
@pytest.mark.parametrize("turned", [False, True])
def test_transposed_convolutions(turned, target, monkeypatch):
    if turned:
        turn_images(monkeypatch)
    rng = np.random.default_rng(3)
    y, w = values(rng, (2, 3, 5, 6), "f4"), values(rng, (3, 20, 3, 3), "f4")
    back = tuple(Window(f"x{i}", f"t{i}", 1, -1, -1, 2) for i in range(2))
    sizes = (("x0", 9), ("x1", 12))
    c = Contraction(("o", "c", "t0", "t1"), ("n", "o", *back), ("n", "c", "x0", "x1"), sizes)
    shape = (2, 20, 9, 12)
    residual, bias = values(rng, shape, "f4"), spread(values(rng, (20, 1, 1), "f4"), shape)
    rules = [lambda z, p, q: z * p + q, lambda z, p, q: z < q]
    for guard in (True, False):
        check(w, y, c, rules, [bias, residual], target, guard=guard)
    check(w, y, c, [bias_relu], [residual[::-1]], target, threads=2)


@pytest.mark.parametrize("kind", ["plain", "packed", "half", "batched", "image"])
def test_threads_and_order_of_tasks_change_no_bit(kind):
    rng = np.random.default_rng(4)
    c = MATMUL
    if kind == "image":
        a, b = values(rng, (3, 8, 20, 31), "f4"), values(rng, (40, 8, 3, 3), "f4")
        c = conv(a, b, 1, 1)
    elif kind == "batched":
        a, b, c = values(rng, (37, 20, 40), "f4"), values(rng, (37, 40, 50), "f4"), BATCHED
    else:
        dtype = "f2" if kind == "half" else "f4"
        a, b = values(rng, (150, 900), dtype), values(rng, (900, 130), dtype)
        if kind == "packed":
            a, b = np.asfortranarray(a), np.asfortranarray(b)
    plain = run(plan_contract(layout(a), layout(b), c, 1), a, b, guard=None)
    bias = values(rng, (1, 40, 1, 1) if kind == "image" else plain.shape[-1:], a.dtype)
    extras = [spread(bias, plain.shape), values(rng, plain.shape, a.dtype)]
    rules = [lambda z, p, q: add(add(z, p), q), lambda z, p, q: bias_relu(z, p)]
    for threads in (1, 2, 3):
        check(a, b, c, rules, extras, plain=plain, threads=threads)
        check(a, b, c, rules, extras, plain=plain, threads=threads, split=1, shuffle=1, guard=None)


def test_what_layers_use():
    rng = np.random.default_rng(5)
    a, b = values(rng, (20, 33), "f4"), values(rng, (33, 40), "f4")
    full = values(rng, (20, 40), "f4")
    check(a, b, MATMUL, [gelu], [spread(full[0], full.shape)])
    check(a, b, MATMUL, [masked_by], [full])
    check(a, b, MATMUL, [lambda z, m: select(m, z, 0.0)], [full > 0])
    check(a, b, MATMUL, [lambda z: z * param(0).cast(float32)], numbers=(7,))


def test_numbers_and_sizes_are_no_part_of_the_kernel():
    def spec(m, n, number):
        a, b = (Layout.dense(TensorType(s, float32)) for s in ((m, 60), (60, n)))
        bias = Layout(TensorType((m, n), float32), (0, 1))
        rule = input_(0, float32) * param(0).cast(float32) + input_(1, float32)
        return (
            plan_contract(a, b, MATMUL, 1, 64, Epilogue((rule,), (bias,), (number,))).phases[0].spec
        )

    assert spec(50, 60, 3) == spec(70, 80, 4)
    assert spec(50, 60, 3).key() == spec(70, 80, 4).key()
    assert lower(spec(50, 60, 3)) == lower(spec(70, 80, 4))


def test_empty_results_and_what_cannot_be_said():
    f = np.float32
    rule = input_(0, float32) < input_(1, float32)
    a, b, e = (layout(np.ones(s, f)) for s in ((0, 3), (3, 4), (0, 4)))
    launch = plan_contract(a, b, MATMUL, 2, 64, Epilogue((rule,), (e,)))
    assert launch.phases == ()
    assert launch.outs[0].type.dtype is bool_
    with pytest.raises(ShapeError):
        plan_contract(a, b, MATMUL, 2, 64, Epilogue((rule,), (b,)))
    a, e = (layout(np.ones(s, f)) for s in ((2, 3), (2, 4)))
    with pytest.raises(TypeError, match="index"):
        plan_contract(a, b, MATMUL, 2, 64, Epilogue((index(0),), (e,)))


def test_kernels_that_only_end_otherwise_share_all_but_their_ends():
    a, b = (layout(np.zeros(s, "f4")) for s in ((70, 300), (300, 90)))
    x, y, z = (input_(i, float32) for i in range(3))
    one = layout(np.zeros((70, 90), "f4"))
    ends = (Epilogue((x + y,), (one,)), Epilogue((x * y - z, y), (one, one)))
    parts = []
    for epilogue in ends:
        spec = plan_contract(a, b, MATMUL, 2, 64, epilogue).phases[-1].spec
        parts.append(set(lower_apart(spec)[1:]))
    assert len(parts[0] & parts[1]) >= 8  # the tiles, tables of offsets, the tasks
    assert len(parts[0] - parts[1]) == 2  # the end of a tile, and what brings that near
