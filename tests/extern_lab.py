"""Runs one Launch on NumPy arrays: any target, number of threads and split into tasks, buffers
against guard pages.
"""

from __future__ import annotations

import ctypes
import itertools
import mmap
import threading
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from spelled import dtype_of

from weft.buffer import Layout
from weft.codegen.jit import Code, Target, compile_object
from weft.codegen.lower import lower
from weft.schedule.launch import KernelSpec, Launch
from weft.types import TensorType

PAGE = mmap.PAGESIZE
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_KERNEL = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64
)
_POLL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)


class KernelError(Exception):
    """A kernel returned `code`, with `detail` in its frame."""

    def __init__(self, code: int, detail: int) -> None:
        super().__init__(f"code {code}, detail {detail}")
        self.code, self.detail = code, detail


def layout(x: np.ndarray) -> Layout:
    """The layout of a NumPy array."""
    return Layout(TensorType(x.shape, dtype_of(x.dtype)), [s // x.itemsize for s in x.strides])


def dense(shape: tuple[int, ...], dtype: object) -> Layout:
    return Layout.dense(TensorType(shape, dtype_of(dtype)))


class Guarded:
    """Memory of exactly `size` bytes, an unreadable page right behind it (or right before it)."""

    def __init__(self, size: int, behind: bool) -> None:
        body = -(-max(size, 1) // PAGE) * PAGE
        self._map = mmap.mmap(-1, body + 2 * PAGE)
        base = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        for wall in (base, base + PAGE + body):
            if _libc.mprotect(wall, PAGE, 0):
                raise OSError(ctypes.get_errno(), "mprotect")
        self._walls = (base, base + PAGE + body)
        start = PAGE + (body - size if behind else 0)
        self.bytes = np.frombuffer(self._map, np.uint8, size, start)
        self.address = base + start


@cache
def compiled(spec: KernelSpec, target: Target | None) -> Code:
    return Code(compile_object(lower(spec), target))


@dataclass
class Run:
    """How to run: `split` cuts every phase into claims of that many tasks (None: the launch's own
    grain).
    """

    threads: int = 1
    split: int | None = None
    target: Target | None = None
    guard: bool | None = (
        True  # True: guard page right behind, False: right before, None: plain arrays
    )
    stop_after: int | None = None  # polls until the kernel is told to stop
    polls: int = field(default=0, init=False)

    def __call__(self, launch: Launch, *inputs: np.ndarray) -> list[np.ndarray]:
        keep: list[object] = []
        outs, addresses = [], []
        for x in inputs:
            addresses.append(self._place(np.ascontiguousarray(x), keep))
        for o in launch.outs:
            y = np.full(o.type.nbytes, 0xA5, np.uint8)
            if self.guard is None:
                keep.append(y)
                addresses.append(y.ctypes.data)
            else:
                g = Guarded(y.nbytes, self.guard)
                g.bytes[:] = y
                y = g.bytes
                keep.append(g)
                addresses.append(g.address)
            outs.append(
                y.view(o.type.dtype.np).reshape(o.type.shape)
                if y.nbytes
                else np.empty(o.type.shape, o.type.dtype.np)
            )
        room = launch.scratch + launch.worker_scratch * self.threads
        scratch = Guarded(-(-room // 64) * 64, behind=True)
        scratch.bytes[:] = 0x5A
        poll = _POLL(self._poll)
        words = [
            0,
            ctypes.cast(poll, ctypes.c_void_p).value,
            scratch.address,
            *addresses,
            *launch.params,
        ]
        frame = np.array(words, np.int64)
        for phase in launch.phases:
            fn = _KERNEL(compiled(phase.spec, self.target).address(phase.function))
            code = self._phase(fn, frame.ctypes.data, phase.tasks, self.split or phase.grain)
            if code:
                raise KernelError(code, int(frame[0]))
        self._keep = keep
        return outs

    def _place(self, x: np.ndarray, keep: list[object]) -> int:
        if self.guard is None:
            keep.append(x)
            return x.ctypes.data
        g = Guarded(x.nbytes, self.guard)
        if x.nbytes:
            g.bytes[:] = x.reshape(-1).view(np.uint8)
        keep.append(g)
        return g.address

    def _poll(self, frame: int, worker: int) -> int:
        self.polls += 1
        return int(self.stop_after is not None and self.polls > self.stop_after)

    def _phase(self, fn: ctypes._CFuncPtr, frame: int, tasks: int, grain: int) -> int:
        claims, codes = itertools.count(), []

        def work(worker: int) -> None:
            while (lo := next(claims) * grain) < tasks:
                if code := fn(frame, lo, min(lo + grain, tasks), worker):
                    codes.append(code)
                    return

        if self.threads == 1:
            work(0)
        else:
            team = [threading.Thread(target=work, args=(w,)) for w in range(self.threads)]
            for th in team:
                th.start()
            for th in team:
                th.join()
        return codes[0] if codes else 0
