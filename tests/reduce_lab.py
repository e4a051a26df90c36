"""Launches run on NumPy arrays: any target, any split of the tasks, any number of threads."""

from __future__ import annotations

import ctypes
import mmap
import random
import threading
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from spelled import dtype_of

from weft.buffer import Layout
from weft.codegen import jit, map, reduce, rows
from weft.schedule.launch import KernelSpec, Launch
from weft.schedule.map import MapSpec
from weft.schedule.reduce_spec import ReduceSpec
from weft.schedule.rows import RowSpec
from weft.types import TensorType

Array = np.ndarray[Any, Any]
TARGETS = {"host": None, "avx2": jit.AVX2, "sse2": jit.SSE2}
Kernel = Callable[[int, int, int, int], int]


LOWER: dict[type, Callable[[Any], str]] = {
    ReduceSpec: reduce.lower,
    RowSpec: rows.lower,
    MapSpec: map.lower,
}


@cache
def kernel(
    spec: KernelSpec, target: jit.Target | None = None, function: str = "kernel"
) -> tuple[Kernel, jit.Code]:
    code = jit.Code(jit.compile_object(LOWER[type(spec)](spec), target))
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, *[ctypes.c_int64] * 3)
    return kind(code.address(function)), code


def layout(a: Array) -> Layout:
    return Layout(TensorType(a.shape, dtype_of(a.dtype)), [s // a.itemsize for s in a.strides])


def guarded(nbytes: int, front: bool) -> tuple[int, mmap.mmap]:
    """Memory between pages that nobody may touch, right behind the first or right before the last
    of them.
    """
    page = mmap.PAGESIZE
    inside = -(-max(nbytes, 1) // page) * page
    memory = mmap.mmap(-1, inside + 2 * page)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    protect = ctypes.CDLL(None).mprotect
    for at in (base, base + page + inside):
        assert protect(ctypes.c_void_p(at), ctypes.c_size_t(page), 0) == 0
    return base + page + (0 if front else inside - nbytes), memory


def in_guard(shape: Sequence[int], dtype: Any, front: bool = False) -> tuple[Array, mmap.mmap]:
    """An array whose last byte is the last before a forbidden page (or its first the first behind
    one).
    """
    d = np.dtype(dtype)
    nbytes = int(np.prod(shape, dtype=np.int64)) * d.itemsize
    address, memory = guarded(nbytes, front)
    raw = (ctypes.c_uint8 * max(nbytes, 1)).from_address(address)
    return np.frombuffer(raw, np.uint8, nbytes).view(d).reshape(shape), memory


def run(
    launch: Launch,
    *arrays: Array,
    target: jit.Target | None = None,
    threads: int = 1,
    shuffle: int | None = None,
    guard: bool = False,
) -> Any:
    """The results of a launch; tasks one by one in a random order where `shuffle` is a seed."""
    keep: list[Any] = []
    outs = []
    for o in launch.outs:
        if guard:
            a, m = in_guard(o.type.shape, o.type.dtype.np)  # type: ignore[arg-type]
            keep.append(m)
        else:
            a = np.empty(o.type.shape, o.type.dtype.np)  # type: ignore[arg-type]
        a.view(np.uint8).fill(0xA5) if a.ndim else None
        outs.append(a)
    scratch = np.full(launch.scratch + launch.worker_scratch * threads + 64, 0xA5, np.uint8)
    at = -(-scratch.ctypes.data // 64) * 64
    pointers = [a.ctypes.data for a in (*arrays, *outs)]
    frame = np.array([0, 0, at, *pointers, *launch.params], np.int64)
    for phase in launch.phases:
        call, _ = kernel(phase.spec, target, phase.function)
        pieces = [
            (lo, min(lo + phase.grain, phase.tasks)) for lo in range(0, phase.tasks, phase.grain)
        ]
        if shuffle is not None:
            pieces = [(i, i + 1) for i in range(phase.tasks)]
            random.Random(shuffle).shuffle(pieces)

        def work(mine: list[tuple[int, int]], worker: int, call: Kernel = call) -> None:
            for lo, hi in mine:
                assert call(frame.ctypes.data, lo, hi, worker) == 0

        if threads == 1:
            work(pieces, 0)
        else:
            each = -(-len(pieces) // threads)
            hands = [
                threading.Thread(target=work, args=(pieces[k * each : (k + 1) * each], k))
                for k in range(threads)
            ]
            for h in hands:
                h.start()
            for h in hands:
                h.join()
    outs = [o.copy() for o in outs]  # out of the guarded memory, which goes now
    return outs[0] if len(outs) == 1 else tuple(outs)
