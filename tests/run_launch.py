"""Runs a Launch on NumPy arrays through ctypes: any number of threads, any order of tasks."""

from __future__ import annotations

import ctypes
import random
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np

from weft.buffer import Layout
from weft.codegen import contract, jit
from weft.schedule.launch import KernelSpec, Launch
from weft.types import TensorType
from spelled import dtype_of

KERNEL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, *[ctypes.c_int64] * 3)
POLL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)


@cache
def compiled(spec: KernelSpec, target: jit.Target) -> jit.Code:
    return jit.Code(jit.compile_object(contract.lower(spec), target))  # type: ignore[arg-type]


@cache
def entry(spec: KernelSpec, target: jit.Target, function: str) -> Any:
    return KERNEL(compiled(spec, target).address(function))


def layout_of(x: np.ndarray[Any, Any]) -> Layout:
    """The layout of an array whose strides are whole elements."""
    return Layout(TensorType(x.shape, dtype_of(x.dtype)), [s // x.itemsize for s in x.strides])

#: of any test here
MOST_THREADS = 8


class Runner:
    """A launch bound to its operands. Calling it runs all phases."""

    def __init__(
        self,
        launch: Launch,
        ins: list[np.ndarray[Any, Any]],
        outs: list[np.ndarray[Any, Any]] | None = None,
        target: jit.Target | None = None,
        poll: Any = None,
    ) -> None:
        self.launch, self.ins, self.target = launch, ins, target or jit.host()
        self.outs = outs or [np.empty(o.type.shape, o.type.dtype.np) for o in launch.outs]
        scratch = launch.scratch + launch.worker_scratch * MOST_THREADS
        memory = np.full(scratch + 64, 0xFF, np.uint8)  # scratch memory holds NaN at first
        start = -memory.ctypes.data % 64
        self.memory, self.poll = memory, POLL(poll or (lambda frame, worker: 0))
        self.frame = np.array(
            [
                0,
                ctypes.cast(self.poll, ctypes.c_void_p).value,
                memory.ctypes.data + start,
                *(x.ctypes.data for x in (*ins, *self.outs)),
                *launch.params,
            ],
            np.int64,
        )
        self.functions = [entry(p.spec, self.target, p.function) for p in launch.phases]

    def __call__(self, pool: ThreadPoolExecutor | None = None, threads: int = 1) -> list[Any]:
        address = self.frame.ctypes.data
        for phase, f in zip(self.launch.phases, self.functions, strict=True):
            if pool is None:
                assert f(address, 0, phase.tasks, 0) == 0
                continue
            left = iter(range(0, phase.tasks, phase.grain))

            def work(worker: int, left: Any = left, phase: Any = phase, f: Any = f) -> None:
                for lo in left:
                    assert f(address, lo, min(lo + phase.grain, phase.tasks), worker) == 0

            jobs = [pool.submit(work, w) for w in range(1, threads)]
            work(0)
            for j in jobs:
                j.result()
        return self.outs

    def shuffled(self, seed: int, workers: int) -> list[Any]:
        """One task at a time, in random order, each as if on some worker."""
        rng = random.Random(seed)
        for phase, f in zip(self.launch.phases, self.functions, strict=True):
            order = list(range(phase.tasks))
            rng.shuffle(order)
            for task in order:
                assert f(self.frame.ctypes.data, task, task + 1, rng.randrange(workers)) == 0
        return self.outs
