"""Scratch memory of threads in one place, from step to step."""

import pytest

import weft as wf
import weft.nn.functional as F
from weft.schedule.launch import Launch, Phase
from weft.schedule.map import MapSpec
from weft.schedule.settle import NEAR, settle
from weft.schedule.steps import Block, Step

pytestmark = pytest.mark.tiny

SPEC = MapSpec((), (), "", 0)


def step(i, worker, shared=0, heavy=True, threads=2):
    launch = Launch(
        (), (Phase(SPEC, 8),), (worker, i), shared, heavy, worker_scratch=worker, slices=(0,)
    )
    return Step(launch, (), Block(shared + worker * threads, i, i), ())


def settled(*steps):
    steps = list(steps)
    blocks = [s.scratch for s in steps]
    settle(steps, blocks, 2)
    return steps, [b for b in blocks if b.over is None]


def slices(step):
    """Where the slices begin, and how far apart they are."""
    return step.scratch.offset + step.launch.scratch, step.launch.params[0]


def test_every_thread_has_its_slice_at_one_place():
    (a, b, c), (block,) = settled(step(3, 640), step(5, 6400, 128), step(9, 64, 1280))
    assert len({slices(s) for s in (a, b, c)}) == 1
    assert (block.birth, block.death) == (3, 9)
    start, apart = slices(a)
    for s, size in ((a, 640), (b, 6400), (c, 64)):
        assert apart >= size and s.launch.params[1] == s.scratch.birth
        assert block.offset <= s.scratch.offset
        assert start + 2 * apart <= block.offset + block.size


def test_what_has_no_slices_or_too_large_ones_is_left_alone():
    light, far, none = step(1, 64, heavy=False), step(2, NEAR + 64), step(3, 0, 4096)
    wide = step(4, 64, NEAR + 64)
    steps, blocks = settled(step(0, 64), light, far, none, wide, step(5, 64))
    assert [s.scratch.over is None for s in steps] == [False, True, True, True, True, False]
    assert steps[1:5] == [light, far, none, wide] and len(blocks) == 5


def test_one_step_alone_is_left_alone():
    one = step(2, 64)
    assert settled(one) == ([one], [one.scratch])


def test_a_program_of_convolutions_gives_the_bits_of_eager():
    x = wf.rand(1, 16, 28, 28)
    ws = [wf.rand(16, 16, 3, 3) - 0.5, wf.rand(48, 16, 3, 3) - 0.5, wf.rand(8, 48, 1, 1) - 0.5]

    def f(x, ws):
        for w in ws:
            x = wf.relu(F.conv2d(x, w, padding=w.shape[-1] // 2) * 0.25)
        return x

    compiled = wf.compile(f, fallback=False)
    assert compiled(x, ws).tolist() == f(x, ws).tolist()
    steps = [s for s in compiled.explain(x, ws).forward.steps if s.launch.slices]
    assert len({slices(s)[0] for s in steps if s.scratch.over}) <= 1
    if wf.get_num_threads() > 1:
        assert any(s.scratch.over for s in steps)
