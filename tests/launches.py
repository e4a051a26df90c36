"""Launches run by hand on NumPy arrays: any target, any split of the tasks, any number of threads,
and every operand in memory of its own between pages that nobody may touch.
"""

from __future__ import annotations

import ctypes
import itertools
import mmap
import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import mxcsr
import numpy as np
from spelled import dtype_of

from weft.buffer import Layout
from weft.codegen import jit
from weft.codegen.lower import lower
from weft.schedule.launch import KernelSpec, Launch
from weft.types import TensorType

Array = np.ndarray[Any, Any]
Kernel = Callable[[int, int, int, int], int]
TARGETS = {"host": None, "avx2": jit.AVX2, "sse2": jit.SSE2}
PAGE = mmap.PAGESIZE
KERNEL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, *[ctypes.c_int64] * 3)
POLL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
READ = 1  # PROT_READ
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
NAN, TINY = 0xFFFFFFFF, 0x00000001  # what scratch memory may be full of, as float32


class KernelError(Exception):
    """A kernel returned `code`, with `detail` in its frame."""

    def __init__(self, code: int, detail: int) -> None:
        super().__init__(f"code {code}, detail {detail}")
        self.code, self.detail = code, detail


# memory


class Guarded:
    """Memory of exactly `size` bytes, an unreadable page right behind it (or right before it)."""

    def __init__(self, size: int, behind: bool = True) -> None:
        body = -(-max(size, 1) // PAGE) * PAGE
        self._map = mmap.mmap(-1, body + 2 * PAGE)
        base = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        self._body = (base + PAGE, body)
        for wall in (base, base + PAGE + body):
            _protect(wall, PAGE, 0)
        start = PAGE + (body - size if behind else 0)
        self.bytes: Array = np.frombuffer(self._map, np.uint8, size, start)
        self.address = base + start

    def freeze(self) -> None:
        """From now on a write here is a fault too."""
        _protect(*self._body, READ)


def _protect(address: int, size: int, how: int) -> None:
    if _libc.mprotect(address, size, how):
        raise OSError(ctypes.get_errno(), "mprotect")


def span(layout: Layout) -> tuple[int, int]:
    """The offsets of the first and of the last byte (plus one) that elements lie in, from the
    first element.
    """
    size, item = layout.type.size, layout.type.dtype.itemsize
    if not size:
        return 0, 0
    reach = [(n - 1) * s for n, s in zip(layout.type.shape, layout.strides, strict=True)]  # type: ignore[operator]
    return sum(r for r in reach if r < 0) * item, (sum(r for r in reach if r > 0) + 1) * item


def place(address: int, layout: Layout, behind: bool = True) -> tuple[int, Guarded]:
    """The elements at `address` copied between walls; where the first one is now."""
    low, high = span(layout)
    g = Guarded(high - low, behind)
    if high > low:
        ctypes.memmove(g.address, address + low, high - low)
        g.freeze()
    return g.address - low, g


def in_guard(shape: Sequence[int], dtype: Any, behind: bool = True) -> tuple[Array, Guarded]:
    """A dense array between walls, to be filled."""
    d = np.dtype(dtype)
    g = Guarded(int(np.prod(shape, dtype=np.int64)) * d.itemsize, behind)
    return g.bytes.view(d).reshape(shape), g


def layout(x: Array) -> Layout:
    """The layout of an array whose strides are whole elements."""
    return Layout(TensorType(x.shape, dtype_of(x.dtype)), [s // x.itemsize for s in x.strides])


def dense(shape: Sequence[int], dtype: Any) -> Layout:
    return Layout.dense(TensorType(shape, dtype_of(dtype)))


# running


@cache
def compiled(spec: KernelSpec, target: jit.Target | None = None) -> jit.Code:
    return jit.Code(jit.compile_object(lower(spec), target))


@dataclass
class Run:
    """How to run a launch. `split` cuts every phase into claims of that many tasks (None: the
    launch's own grain); `shuffle` is the seed of a random order of the claims, each taken as if by
    some worker.
    """

    threads: int = 1
    split: int | None = None
    shuffle: int | None = None
    target: jit.Target | None = None
    guard: bool | None = True  # True: a wall right behind, False: right before, None: plain memory
    stop_after: int | None = None  # polls until the kernel is told to stop
    garbage: int = NAN  # what scratch memory is full of; as an index it is far out of range
    polls: int = field(default=0, init=False)
    denormal: bool = field(default=False, init=False)  # whether an operand was, in this thread

    def __call__(self, launch: Launch, *inputs: Array) -> list[Array]:
        """The results. Inputs keep their strides."""
        operands = [(x.ctypes.data, layout(x)) for x in inputs]
        functions = [compiled(p.spec, self.target).address(p.function) for p in launch.phases]
        return self.raw(launch, functions, operands)

    def raw(
        self, launch: Launch, functions: Sequence[int], operands: Sequence[tuple[int, Layout]]
    ) -> list[Array]:
        """The same with operands given by address and layout, and the functions of the phases
        by address.
        """
        keep: list[Any] = []
        addresses = []
        for address, shape in operands:
            if self.guard is not None:
                address, held = place(address, shape, self.guard)
                keep.append(held)
            addresses.append(address)
        outs = []
        for o in launch.outs:
            memory, held = self._memory(o.type.nbytes, 0xA5)
            keep.append(held)
            addresses.append(memory.ctypes.data)
            outs.append(memory.view(o.type.dtype.np).reshape(o.type.shape))  # type: ignore[arg-type]
        scratch = launch.scratch + launch.worker_scratch * self.threads
        room = Guarded(-(-scratch // 64) * 64)
        room.bytes.view(np.uint32)[:] = self.garbage
        poll = POLL(self._poll)
        words = [
            0,
            ctypes.cast(poll, ctypes.c_void_p).value,
            room.address,
            *addresses,
            *launch.params,
        ]
        frame = np.array(words, np.int64)
        for phase, function in zip(launch.phases, functions, strict=True):
            grain = self.split or phase.grain
            mxcsr.put(mxcsr.STANDARD)
            code = self._phase(KERNEL(function), frame.ctypes.data, phase.tasks, grain)
            self.denormal |= bool(mxcsr.get() & mxcsr.DENORMAL)
            if code:
                raise KernelError(code, int(frame[0]))
        return [np.array(o) for o in outs]  # out of the guarded memory, which goes now

    def _memory(self, size: int, fill: int) -> tuple[Array, Any]:
        if self.guard is None:
            plain = np.full(size, fill, np.uint8)
            return plain, plain
        g = Guarded(size, self.guard)
        g.bytes[:] = fill
        return g.bytes, g

    def _poll(self, frame: int, worker: int) -> int:
        self.polls += 1
        return int(self.stop_after is not None and self.polls > self.stop_after)

    def _phase(self, fn: Any, frame: int, tasks: int, grain: int) -> int:
        if self.shuffle is not None:
            return self._shuffled(fn, frame, tasks, grain)
        claims, codes = itertools.count(), []

        def work(worker: int) -> None:
            while (lo := next(claims) * grain) < tasks:
                if code := fn(frame, lo, min(lo + grain, tasks), worker):
                    codes.append(code)
                    return

        team = [threading.Thread(target=work, args=(w,)) for w in range(1, self.threads)]
        for th in team:
            th.start()
        work(0)
        for th in team:
            th.join()
        return codes[0] if codes else 0

    def _shuffled(self, fn: Any, frame: int, tasks: int, grain: int) -> int:
        rng = random.Random(self.shuffle)
        claims = list(range(0, tasks, grain))
        rng.shuffle(claims)
        for lo in claims:
            if code := fn(frame, lo, min(lo + grain, tasks), rng.randrange(self.threads)):
                return code
        return 0


def run(launch: Launch, *arrays: Array, **how: Any) -> Any:
    """The result of a launch, or the tuple of its results; `how` as for `Run`."""
    outs = Run(**how)(launch, *arrays)
    return outs[0] if len(outs) == 1 else tuple(outs)
