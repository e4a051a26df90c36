"""The caching allocator."""

import ctypes

import engine_lab as lab
import numpy as np
import pytest
from engine_lab import engine, launch, layout, numpy, plan, run_script, tensor

from weft.errors import AllocationError
from weft.runtime.plan import Status

F4 = layout((4,))
X = np.arange(4, dtype=np.float32)
Y = np.full(4, 0.5, np.float32)


def error(*args):
    """What a launch raises, and what on_error was told."""
    with pytest.raises(AllocationError) as e:
        launch(*args)
    return e.value, lab.errors.pop()


@pytest.mark.parametrize(
    "size", [0, 1, 63, 64, 65, 4096, 4097, 100_000, 262_080, 1 << 20, (4 << 20) + 1]
)
def test_blocks_are_aligned_writable_and_reused(size):
    def allocate():
        return engine.allocate(layout((size,), "u8"))

    b = allocate()
    first = b.address
    assert first % 64 == 0
    ctypes.memset(first, 255, size)
    other = allocate()
    assert abs(other.address - first) >= size
    del b
    assert allocate().address == first


def test_statistics_and_trim():
    engine.trim()
    before = engine.memory_stats()
    b = engine.allocate(layout((3 << 20,), "u8"))
    held = engine.memory_stats()
    assert 3 << 20 <= held.used - before.used < 4 << 20
    assert held.peak >= held.used and held.blocks_made == before.blocks_made + 1
    del b
    after = engine.memory_stats()
    assert after.used == before.used and after.cached >= 3 << 20
    assert engine.trim() >= 3 << 20
    assert engine.memory_stats().cached == 0


def test_the_cache_has_a_limit():
    limit = ctypes.c_int64.from_address(engine.code.address("cache_limit"))
    old, limit.value = limit.value, 1 << 20
    try:
        engine.trim()
        for size in (100_000, 200_000, 300_000, 5000, 70_000, 2 << 20):
            blocks = [engine.allocate(layout((size,), "u8")) for _ in range(6)]
            del blocks
            assert engine.memory_stats().cached <= 1 << 20
        assert engine.memory_stats().cached > 1 << 19
    finally:
        limit.value = old


def test_more_memory_than_there_is():
    p = plan("add", outs=[layout((1 << 45,))], tasks=4)
    x, y = tensor(X), tensor(Y)
    for _ in range(3):
        e, told = error(p, x, y)
        assert isinstance(e, MemoryError)
        assert told[1:3] == (Status.MEMORY, 1 << 47) and f"{1 << 47:,} bytes" in str(e)
        error(plan("add", outs=[F4], scratch=1 << 60), x, y)
        assert numpy(launch(plan("add", outs=[F4]), x, y)).tolist() == (X + Y).tolist()
    with pytest.raises(AllocationError):
        engine.allocate(layout((1 << 50,)))


LIMITED = """
import resource
from engine_lab import *
from weft.errors import AllocationError
x = tensor(np.ones(4, "f"))
limit = int(open("/proc/self/statm").read().split()[0]) * 4096 + (256 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
held = []
p = plan("add", outs=[layout((4 << 20,))], tasks=4)  # 16 MiB each
try:
    while True: held.append(launch(p, x, x))
except AllocationError as e:
    assert "16,777,216" in str(e), e
assert 8 < len(held) < 17, len(held)
del held[:]
assert engine.memory_stats().cached > 100 << 20
big = plan("add", outs=[layout((30 << 20,))], tasks=4)  # what is cached must go first
assert ctypes.c_float.from_address(launch(p, x, x).data.address).value == 2
assert launch(big, x, x).data.layout.type.nbytes == 120 << 20
"""


def test_a_full_memory_is_an_error_and_then_none():
    done = run_script(LIMITED)
    assert done.returncode == 0, done.stderr
