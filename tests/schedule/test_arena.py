"""The arena: lives that overlap never share a byte, and little is wasted."""

import itertools

import pytest
from hypothesis import given, settings, strategies as st

from weft.schedule.arena import ALIGN, place

pytestmark = pytest.mark.tiny

blocks = st.lists(
    st.tuples(
        st.one_of(st.integers(0, 300), st.sampled_from([0, 64, 128, 4096])),
        st.integers(0, 30),
        st.integers(0, 12),
    ),
    max_size=40,
)


@settings(max_examples=300)
@given(blocks)
def test_lives_that_overlap_never_share_a_byte(found):
    sizes = [n for n, _, _ in found]
    births = [b for _, b, _ in found]
    deaths = [b + life for _, b, life in found]
    offsets, top = place(sizes, births, deaths)
    for at, n in zip(offsets, sizes, strict=True):
        assert at % ALIGN == 0
        assert at >= 0 and at + n <= top
    for i, j in itertools.combinations(range(len(found)), 2):
        both = births[i] <= deaths[j] and births[j] <= deaths[i]
        if both and sizes[i] and sizes[j]:
            apart = offsets[i] + sizes[i] <= offsets[j] or offsets[j] + sizes[j] <= offsets[i]
            assert apart, (i, j)
    rounded = [-(-n // ALIGN) * ALIGN for n in sizes]
    alive = [
        sum(n for n, b, d in zip(rounded, births, deaths, strict=True) if b <= t <= d)
        for t in range(50)
    ]
    assert max(alive) <= top <= sum(rounded)


def test_a_chain_of_equal_blocks_needs_two():
    assert place([100] * 50, range(50), range(1, 51))[1] == 256


def test_a_block_fills_the_gap_that_fits_best():
    #         A holds 0..1; the gap of 192 and the gap of 64 are free at 2: 64 takes the small one
    sizes, births, deaths = [192, 64, 64, 64, 64], [0, 0, 0, 0, 2], [1, 3, 1, 3, 3]
    offsets, top = place(sizes, births, deaths)
    assert offsets[4] == offsets[2]
    assert top == 384


def test_a_gap_too_small_is_not_left_behind():
    # in the order they are made, 64 lies behind 128 and keeps 192 from using the room of both
    sizes, births, deaths = [128, 64, 192], [0, 0, 1], [0, 1, 1]
    offsets, top = place(sizes, births, deaths)
    assert top == 256
    assert offsets[2] == 0


def test_nothing_to_place():
    assert place([], [], []) == ([], 0)
    assert place([0, 0], [0, 0], [9, 9]) == ([0, 0], 0)
