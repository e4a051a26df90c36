"""How many threads a launch runs on.

The threads live in native code (native/workers.ll): plain pthreads that never touch Python. They
are started by the first launch that wants them, never by an import; a forked child finds that it
has none and starts its own; the end of the process ends them.
"""

from __future__ import annotations

import ctypes
import operator
import os
import threading
from collections.abc import Callable
from typing import Any

from weft.errors import DeviceError, ShapeError

MAX_THREADS = 1024

#: how long an idle thread stays awake for the next job: some 100 µs
SPIN_CYCLES = 300_000


class Pool:
    """The threads of one engine. `address(name)`: where it keeps a variable or function."""

    def __init__(self, address: Callable[[str], int]) -> None:
        self._size = ctypes.c_int64.from_address(address("pool_size"))
        self._workers = ctypes.c_int64.from_address(address("workers"))
        self._spin = ctypes.c_int64.from_address(address("spin_cycles"))
        self._main = ctypes.c_int64.from_address(address("main_thread"))
        self._resize = ctypes.PYFUNCTYPE(None, ctypes.c_int64)(address("set_pool_size"))
        self._main.value = threading.main_thread().ident or 0
        os.register_at_fork(after_in_child=self._forked)
        self.resize(default_size())

    @property
    def size(self) -> int:
        """Threads that work on a launch, the launching one included."""
        return self._size.value

    @property
    def workers(self) -> int:
        """Threads started so far, besides the program's own."""
        return self._workers.value

    def resize(self, n: Any) -> None:
        """Use `n` threads from the next launch on."""
        try:
            size = operator.index(n)
        except TypeError:
            size = 0
        if isinstance(n, bool) or not 1 <= size <= MAX_THREADS:
            raise ShapeError(
                "set_num_threads", expected=f"an integer from 1 to {MAX_THREADS}", got=repr(n)
            )
        # threads that wait awake for a core another one needs only slow it down
        self._spin.value = SPIN_CYCLES if size <= _cores() else 0
        self._resize(size)

    def _forked(self) -> None:
        self._main.value = threading.get_ident()


def default_size() -> int:
    """WEFT_NUM_THREADS, else the number of cores this process may use."""
    said = os.environ.get("WEFT_NUM_THREADS", "").strip()
    if not said:
        return min(_cores(), MAX_THREADS)
    if not said.isdecimal() or not 1 <= int(said) <= MAX_THREADS:
        raise DeviceError(
            "WEFT_NUM_THREADS", expected=f"an integer from 1 to {MAX_THREADS}", got=repr(said)
        )
    return int(said)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
