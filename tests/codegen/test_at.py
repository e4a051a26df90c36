"""Kernels of index functions: right values for every way of reading, and nothing read outside."""

import numpy as np
import pytest
from at_lab import compiled, place, run
from spelled import dtype_of

from weft.codegen import jit
from weft.codegen.at import lower
from weft.codegen.at_levels import Levels
from weft.ops import movement, random_bits
from weft.ops.rules import Flat
from weft.ops.scalar import const, index, param, select
from weft.schedule.at import plan_at
from weft.types import TensorType
from weft.types.dtype import float32, int64

SHAPES = [(1, 1), (5, 6), (3, 130), (40, 3), (2, 64)]
TARGETS = {"host": None, "avx2": jit.AVX2, "sse2": jit.SSE2}


def arrays(shape, dtype="f4"):
    """The same numbers laid out in several ways."""
    x = np.random.default_rng(0).integers(0, 200, shape).astype(dtype)
    wide = np.zeros((shape[0], shape[1] * 2), dtype)
    wide[:, ::2] = x
    return [x, np.asfortranarray(x), x[::-1, ::-1], wide[:, ::2], np.broadcast_to(x[:1], shape)]


@pytest.mark.parametrize("behind", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_guarded_loads_stay_inside(shape, behind):
    def shifted(i, x, *, down, right):
        p, q = i[0] - down, i[1] - right
        n, m = x.shape
        return x((p, q), where=(p >= 0) & (p < n) & (q >= 0) & (q < m), otherwise=-1)

    for x in arrays(shape):
        for down, right in [(0, 0), (1, 2), (-1, -2), (300, 0), (0, 300)]:
            grown = (shape[0] + 2, shape[1] + 5)
            got = run(
                shifted,
                x,
                shape=grown,
                dtype="f4",
                attrs={"down": down, "right": right},
                behind=behind,
            )
            want = np.full(grown, -1, "f4")
            for i in range(grown[0]):
                for j in range(grown[1]):
                    if 0 <= i - down < shape[0] and 0 <= j - right < shape[1]:
                        want[i, j] = x[i - down, j - right]
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("target", list(TARGETS))
@pytest.mark.parametrize("dtype", ["f4", "f8", "u2", "i1", "?"])
def test_rows_of_any_length_read_at_any_step(dtype, target):
    """Vectors of every element or of every second one; the last of a row may overlap the one
    before. Nothing outside is read.
    """

    def skipping(i, x, *, step, first):
        at = i[1] * step - first
        there = x((i[0], at), where=(i[1] >= first) & (i[1] >= 0), otherwise=0)
        return select(there > 0, there, x((i[0], at + first))) if dtype != "?" else there

    rng = np.random.default_rng(1)
    for width in (1, 2, 5, 15, 16, 17, 31, 33, 63, 64, 65, 70):
        for step in (1, 2, 3):
            for first in (0, 1):
                x = rng.integers(-3, 4, (2, (width - 1) * step + 1)).astype(dtype)
                for behind in (True, False):
                    attrs = {"step": step, "first": first}
                    got = run(
                        skipping, x, shape=(2, width), dtype=dtype, attrs=attrs, behind=behind,
                        target=TARGETS[target],
                    )  # fmt: skip
                    j = np.arange(width)
                    at = np.maximum(j * step - first, 0)
                    there = np.where(j >= first, x[:, at], 0).astype(dtype)
                    rest = x[:, j * step]
                    want = there if dtype == "?" else np.where(there > 0, there, rest)
                    np.testing.assert_array_equal(got, want)


def test_a_guarded_load_of_an_empty_operand_reads_nothing():
    def rule(i, x):
        return x(i, where=i[0] < x.shape[0], otherwise=7)

    got = run(rule, np.zeros((0,), "f8"), shape=(70,), dtype="f8")
    np.testing.assert_array_equal(got, np.full(70, 7.0))


@pytest.mark.parametrize("target", TARGETS)
def test_indices_that_turn_around_within_a_row(target):
    def mirrored(i, x, *, width):
        q, n = i[1] - width, x.shape[1]
        return x((i[0], select(q < 0, -q, select(q < n, q, 2 * (n - 1) - q))))

    for x in arrays((3, 37)):
        got = run(
            mirrored, x, shape=(3, 57), dtype="f4", attrs={"width": 10}, target=TARGETS[target]
        )
        np.testing.assert_array_equal(got, np.pad(x, ((0, 0), (10, 10)), mode="reflect"))


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u1", "?"])
def test_every_width_of_element(dtype):
    for x in arrays((5, 70), dtype):
        got = run(
            lambda i, x, *, k: x(i, where=i[1] - i[0] <= k, otherwise=0),
            x, shape=(5, 70), dtype=x.dtype, attrs={"k": 3},
        )  # fmt: skip
        np.testing.assert_array_equal(got, np.tril(x, 3))


def test_division_of_the_last_index():
    for x in arrays((4, 6)):
        got = run(movement.reshape.at, x, shape=(3, 8), dtype="f4", attrs={"shape": (3, 8)})
        np.testing.assert_array_equal(got, x.reshape(3, 8))


def test_looking_an_index_up():
    table = np.array([4, 0, 2, 2, 1], np.int64)
    x = np.arange(35, dtype="f4").reshape(5, 7)
    got = run(lambda i, x, t: x((t((i[0],)), t((i[1],)))), x, table, shape=(5, 5), dtype="f4")
    np.testing.assert_array_equal(got, x[np.ix_(table, table)])


def test_zero_axes_and_numbers():
    got = run(
        lambda i, a, b: a(()) + b(()).cast(float32), np.array(2.5, "f4"), 4, shape=(), dtype="f4"
    )
    assert got == 6.5


def test_splits_into_tasks_change_nothing():
    x = np.random.default_rng(1).random((7, 50_000)).astype("f4")
    whole = run(movement.unslice.at, x, shape=(9, 50_003), dtype="f4", split=1000,
                attrs={"shape": (9, 50_003), "starts": (1, 2), "steps": (1, 1)})  # fmt: skip
    parts = run(movement.unslice.at, x, shape=(9, 50_003), dtype="f4", split=1,
                attrs={"shape": (9, 50_003), "starts": (1, 2), "steps": (1, 1)})  # fmt: skip
    np.testing.assert_array_equal(whole, parts)
    np.testing.assert_array_equal(whole[1:8, 2:50_002], x)


@pytest.mark.parametrize("target", ["avx2", "sse2"])
def test_the_same_bits_at_every_vector_width(target):
    rule = Flat(lambda n, key, offset: random_bits.normal(key(()), offset(()) + n, float32))
    attrs = {"shape": (3, 41)}
    wide = run(rule, 5, 9, shape=(3, 41), dtype="f4", attrs=attrs)
    narrow = run(rule, 5, 9, shape=(3, 41), dtype="f4", attrs=attrs, target=TARGETS[target])
    assert wide.tobytes() == narrow.tobytes()


def test_sizes_starts_and_strides_are_parameters():
    """A new shape, a new start or another layout is the same kernel."""
    specs = set()
    for shape, start in [((5, 6), (1, 2)), ((9, 40), (3, 1))]:
        for x in arrays(shape)[:4]:
            from_layout = plan_at(
                movement.slice_.at,
                [_layout(x)],
                {"starts": start, "sizes": (2, 3), "steps": (1, 1)},
                TensorType((2, 3), float32),
            )
            specs.add(from_layout.phases[0].spec)
    assert len(specs) == 1
    assert compiled(specs.pop(), None) is not None


def _layout(x):
    return place(x, True, [])[0]


def test_conditions_cut_rows_and_divisions_do_not():
    i, j, k = index(0), index(1), param(0)
    cut = Levels(select(j - i <= k, const(1, int64), const(0, int64)), axis=1)
    assert cut.linear and len(cut.breaks) == 1
    divided = Levels(j // k, axis=1)
    assert not divided.linear and not divided.breaks


def test_the_text_does_not_depend_on_when_it_is_made():
    spec = plan_at(
        lambda i, x, *, k: x(i, where=i[0] < k, otherwise=0),
        [_layout(np.zeros(4, "f4"))], {"k": 2}, TensorType((4,), dtype_of("f4")),
    ).phases[0].spec  # fmt: skip
    assert lower(spec) == lower(spec)
