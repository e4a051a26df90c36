"""The native engine of eager mode: one call from Python arguments to Python results.

`native/*.ll` is LLVM IR written by hand, one module: the call itself (launch), the caching allocator (memory), Python numbers as operands
(scalar), threads and interrupts (pool), and what depends on CPython (python) or on the machine (system). Here it is compiled, or
found in the kernel cache, and given the classes whose instances it makes.

An engine is never unloaded: memory blocks may die, and threads sleep in it, until the process is gone.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from weft.buffer import Layout
from weft.errors import (
    AllocationError,
    DeviceError,
    DTypeError,
    IndexRangeError,
    NumericsError,
    WeftError,
)
from weft.runtime import kernels
from weft.runtime.plan import KEEP_OUTPUT, PhaseWord, Plan, Status, Word
from weft.runtime.pool import MAX_THREADS, Pool
from weft.types import DTYPES

SOURCES = ("python", "system", "memory", "scalar", "pool", "launch")

# words before a frame's first: what poll needs to know of the launch around it
_CONTEXT = {"frame_stop": -1, "frame_deadline": -2, "frame_thread": -3, "frame_forked": -4}
_CONTEXT_WORDS = 4
_METH_NOARGS, _METH_FASTCALL = 0x0004, 0x0080

OnError = Callable[[Plan | None, int, int, tuple[Any, ...]], object]


@dataclass(frozen=True)
class MemoryStats:
    """Bytes in use by tensors, kept for the next ones, and the most ever in use; blocks got from the system and given back."""

    used: int
    cached: int
    peak: int
    blocks_made: int
    blocks_freed: int


class Engine:
    """The engine over the classes whose instances it is to make. A process needs one."""

    launch: Callable[..., Any]  # launch(plan, *args) -> the result, or a tuple of several
    trim: Callable[[], int]  # gives cached memory back to the system: how many bytes
    pause: Callable[[], None]  # a no_grad block opens: from now on `grad_mode` is asked
    resume: Callable[[], None]  # it closes
    next_serial: Callable[[], int]  # the number of a note made in Python

    def __init__(
        self,
        *,
        tensor: type,
        buffer: type,
        note: type,
        grad_mode: ContextVar[bool],
        resolve_keep: Callable[[Plan], object],
        on_error: OnError | None = None,
    ) -> None:
        _check_interpreter()
        text = native_text(tensor, buffer, note)
        _check_symbols(text)
        self.code = kernels.load(
            f"engine {blake2b(text.encode(), digest_size=16).hexdigest()}", lambda: text
        )
        self._defs: list[Any] = []
        given = {
            "tensor_type": tensor, "buffer_type": buffer, "note_type": note, "plan_type": Plan, "grad_mode": grad_mode,
            "resolve_keep": resolve_keep, "on_error": on_error or raise_error, "block_type": self._block_type(),
        }  # fmt: skip
        for name, value in given.items():
            self._variable(name).value = id(value)
        self._given = given
        self._variable("cache_limit").value = _memory() // 8
        self._variable("huge_pages").value = int(_huge_pages())
        self.launch = self._function("launch", _METH_FASTCALL)
        self.trim = self._function("trim", _METH_NOARGS)
        self.pause = self._function("pause", _METH_NOARGS)
        self.resume = self._function("resume", _METH_NOARGS)
        self.next_serial = self._function("next_serial", _METH_NOARGS)
        self._allocate = self._function("allocate", _METH_FASTCALL)
        self._counts = [
            self._variable(n)
            for n in ("bytes_used", "bytes_cached", "bytes_peak", "blocks_made", "blocks_freed")
        ]
        self.pool = Pool(self.code.address)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))  # never unloaded

    def allocate(self, layout: Layout) -> Any:
        """A Buffer of that layout, its contents undefined."""
        return self._allocate(layout, layout.type.nbytes)

    def memory_stats(self) -> MemoryStats:
        return MemoryStats(*(c.value for c in self._counts))

    def _variable(self, name: str) -> ctypes.c_int64:
        return ctypes.c_int64.from_address(self.code.address(name))

    def _function(self, name: str, flags: int) -> Callable[..., Any]:
        definition = _PyMethodDef(name.encode(), self.code.address(name), flags, None)
        self._defs.append(definition)
        new = ctypes.PYFUNCTYPE(
            ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.py_object
        )(("PyCFunction_NewEx", ctypes.pythonapi))
        made: Callable[..., Any] = new(ctypes.addressof(definition), None, __name__)
        return made

    def _block_type(self) -> type:
        """The type of memory blocks: see native/memory.ll."""
        dealloc, doc, end = 52, 56, 0  # from CPython's typeslots.h, part of the stable ABI
        about = ctypes.c_char_p(
            b"Memory of Weft's allocator. It is reused when the last buffer over it is gone."
        )
        slots = (_PyType_Slot * 3)(
            (dealloc, self.code.address("free_block")),
            (doc, ctypes.cast(about, ctypes.c_void_p)),
            (end, None),
        )
        default, no_new, immutable = 1 << 18, 1 << 7, 1 << 8
        spec = _PyType_Spec(
            f"{__name__}.Block".encode(), 64, 0, default | no_new | immutable, slots
        )
        self._defs += [about, slots, spec]
        new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p)(
            ("PyType_FromSpec", ctypes.pythonapi)
        )
        made: type = new(ctypes.addressof(spec))
        return made


def native_text(tensor: type, buffer: type, note: type) -> str:
    """The engine's LLVM module for classes laid out like these."""
    constants = {
        "object_type": 8,
        "tuple_items": tuple.__basicsize__,
        "max_threads": MAX_THREADS,
        "keep_output": KEEP_OUTPUT,
        "phase_words": len(PhaseWord),
        "frame_context": _CONTEXT_WORDS,
        "frame_words": _CONTEXT_WORDS + 3,
        **_CONTEXT,
        **{f"plan_{w.name.lower()}": int(w) for w in Word},
        **{f"phase_{w.name.lower()}": int(w) for w in PhaseWord},
        **{f"status_{s.name.lower()}": int(s) for s in Status},
        **{f"plan_slot_{n}": slot_offset(Plan, n) for n in ("address", "call", "layouts")},
        **{f"tensor_{n}": slot_offset(tensor, n) for n in ("data", "note", "leaf")},
        **{f"buffer_{n}": slot_offset(buffer, n) for n in ("layout", "address", "owner")},
        **{
            f"note_{n}": slot_offset(note, n)
            for n in ("call", "parents", "saved", "output", "serial")
        },
    }
    folder = Path(__file__).parent / "native"
    text = "\n".join((folder / f"{name}.ll").read_text() for name in SOURCES)
    return re.sub(r"\{\{(\w+)\}\}", lambda m: str(constants[m[1]]), text)


def slot_offset(cls: type, name: str) -> int:
    """Where instances of `cls` hold slot `name`, in bytes: found by putting an object there.

    >>> from weft.buffer import Buffer
    >>> sorted(slot_offset(Buffer, n) for n in ("layout", "address", "owner"))
    [16, 24, 32]
    """
    probe, found = object.__new__(cls), object()
    getattr(cls, name).__set__(probe, found)
    words = (ctypes.c_void_p * (cls.__basicsize__ // 8)).from_address(id(probe))
    return 8 * list(words).index(id(found))


def raise_error(plan: Plan | None, status: int, detail: int, args: tuple[Any, ...]) -> object:
    """Raise what a failed launch means."""
    place = getattr(getattr(plan and plan.call, "op", None), "name", "launch")
    if status == Status.INDEX:
        raise IndexRangeError(place, expected="indices within the axis", got=str(detail))
    if status == Status.MEMORY:
        raise AllocationError(
            place,
            expected=f"{detail:,} bytes more",
            got="none from the system",
            hint="drop tensors you no longer need, or work in smaller pieces",
        )
    if status == Status.SCALAR:
        assert plan is not None
        dtype = DTYPES[plan.kind(detail) - 1]
        raise NumericsError(
            place, expected=f"a number that {dtype.name} holds", got=repr(args[detail])
        )
    if status == Status.ARGUMENT:
        raise DTypeError(
            place,
            expected=f"a tensor or number as argument {detail}",
            got=type(args[detail]).__name__,
        )
    if status == Status.INTERRUPTED:
        raise WeftError(place, expected="to finish", got="a fork in a signal handler during the op")
    raise WeftError(place, got=f"status {status} ({detail})")


class _PyMethodDef(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


class _PyType_Slot(ctypes.Structure):
    _fields_ = [("slot", ctypes.c_int), ("function", ctypes.c_void_p)]


class _PyType_Spec(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p), ("basicsize", ctypes.c_int), ("itemsize", ctypes.c_int), ("flags", ctypes.c_uint),
        ("slots", ctypes.POINTER(_PyType_Slot)),
    ]  # fmt: skip


def _check_interpreter() -> None:
    probe = object()
    if (
        sys.implementation.name != "cpython"
        or not getattr(sys, "_is_gil_enabled", lambda: True)()
        or object.__basicsize__ != 16
        or ctypes.c_void_p.from_address(id(probe) + 8).value != id(object)
    ):
        raise DeviceError("engine", expected="64-bit CPython with the GIL", got=sys.version)


def _check_symbols(text: str) -> None:
    """LLVM ends the process over a symbol it cannot find, so ask first."""
    names = re.findall(r"^declare .*@(\w+)\(|^@(\w+) = external", text, re.MULTILINE)
    missing = [f or v for f, v in names if not hasattr(ctypes.pythonapi, f or v)]
    if missing:
        raise DeviceError(
            "engine", expected="CPython 3.11 or later on Linux", got=f"no {', '.join(missing)}"
        )


def _memory() -> int:
    """Bytes of memory this process may use: the machine's, or its control group's."""
    found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        with suppress(OSError):
            limit = Path("/sys/fs/cgroup", name).read_text().strip()
            found = min(found, int(limit)) if limit.isdecimal() else found
    return found


def _huge_pages() -> bool:
    try:
        return "[never]" not in Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text()
    except OSError:
        return False
