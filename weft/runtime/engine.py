"""The native engine of eager mode: one call from Python arguments to Python results.

`native/*.ll` is LLVM IR written by hand, one module: the call itself (launch, results), the caching
allocator (memory), Python numbers as operands (scalar), threads (pool, workers), Ctrl-C
(interrupts), and what depends on CPython (python) or on the machine (system). Here it is compiled,
or found in the kernel cache, and given the classes whose instances it makes.

An engine is never unloaded: memory blocks may die, and threads sleep in it, until the process ends.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from hashlib import blake2b
from typing import Any

from weft.buffer import Layout
from weft.errors import (
    AllocationError,
    DepthError,
    DeviceError,
    DTypeError,
    IndexRangeError,
    NumericsError,
    WeftError,
)
from weft.ir import Location
from weft.ops.indexing import BELOW
from weft.runtime import kernels
from weft.runtime.plan import KEEP_OUTPUT, MAX_CHUNKS, PhaseWord, Plan, Status, Word
from weft.runtime.pool import MAX_THREADS, Pool
from weft.schedule.steps import When
from weft.types import DTYPES
from weft.types.record import dataclass

SOURCES = (
    "python", "system", "memory", "scalar", "pool", "workers", "interrupts", "results", "program",
    "calls", "beside", "host", "launch",
)  # fmt: skip

# words before a frame's first: what poll needs to know of the launch around it
_CONTEXT = {
    "frame_stop": -1, "frame_deadline": -2, "frame_thread": -3, "frame_forked": -4,
    "frame_bases": -5, "frame_phase": -6, "frame_calls": -7, "frame_depth": -8,
}  # fmt: skip
#: calls inside each other that a program may have under way
MOST_CALLS = 1_000_000
_METH_NOARGS, _METH_FASTCALL = 0x0004, 0x0080
_COUNTS = ("bytes_used", "bytes_cached", "bytes_peak", "blocks_made", "blocks_freed")

OnError = Callable[[Plan | None, int, int, tuple[Any, ...]], object]


@dataclass(frozen=True)
class MemoryStats:
    """Bytes in tensors, kept for the next ones, and the most there ever were in tensors; blocks got
    from the system and given back.
    """

    used: int
    cached: int
    peak: int
    blocks_made: int
    blocks_freed: int


class LayoutChange(Exception):
    """An input of a program lies in memory otherwise than planned: another plan is needed."""


class Engine:
    """The engine over the classes whose instances it is to make. A process needs one.

    `resolve_keep(plan)` sets a plan's keep mask when its first gradient is wanted; `grad_mode` says
    whether notes are made, and is asked only while a `pause` is open; `on_error(plan, status,
    detail, args)` raises what a failed launch means (by default `raise_error`).
    """

    launch: Callable[..., Any]  # launch(plan, *args) -> the result, or a tuple of several
    trim: Callable[[], int]  # gives cached memory back to the system: how many bytes
    pause: Callable[[], None]  # a no_grad block opens
    resume: Callable[[], None]  # it closes
    next_serial: Callable[[], int]  # the number of a note made in Python
    enter_mode: Callable[[], int]  # sets the standard floating-point mode: the host's, or 0
    leave_mode: Callable[[int], None]  # back to the host's

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
        name = f"engine {blake2b(text.encode(), digest_size=16).hexdigest()}"
        self.code = kernels.load(name, lambda: [text])
        self._alive: list[Any] = []
        given = {
            "tensor_type": tensor,
            "buffer_type": buffer,
            "note_type": note,
            "plan_type": Plan,
            "block_type": self._block_type(),
            "grad_mode": grad_mode,
            "resolve_keep": resolve_keep,
            "on_error": on_error or raise_error,
        }
        for variable, value in given.items():
            self._variable(variable).value = id(value)
        self._alive.append(given)
        self._variable("cache_limit").value = _memory() // 8
        self._variable("calls_limit").value = _memory() // 4
        self._variable("huge_pages").value = int(_huge_pages())
        self._counts = [self._variable(name) for name in _COUNTS]
        self._allocate = self._function("allocate", _METH_FASTCALL)
        self.launch = self._function("launch", _METH_FASTCALL)
        self.trim = self._function("trim", _METH_NOARGS)
        self.pause = self._function("pause", _METH_NOARGS)
        self.resume = self._function("resume", _METH_NOARGS)
        self.next_serial = self._function("next_serial", _METH_NOARGS)
        self.enter_mode = self._function("enter_mode", _METH_NOARGS)
        self.leave_mode = self._function("leave_mode", _METH_FASTCALL)
        self.pool = Pool(self.code.address)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))  # never unloaded

    def allocate(self, layout: Layout) -> Any:
        """A Buffer of that layout, its contents undefined."""
        return self._allocate(layout, layout.type.nbytes)

    def memory_stats(self) -> MemoryStats:
        """What the allocator holds."""
        return MemoryStats(*(count.value for count in self._counts))

    def _variable(self, name: str) -> ctypes.c_int64:
        return ctypes.c_int64.from_address(self.code.address(name))

    def _function(self, name: str, flags: int) -> Callable[..., Any]:
        definition = _PyMethodDef(name.encode(), self.code.address(name), flags, None)
        self._alive.append(definition)
        made: Callable[..., Any] = _NEW_FUNCTION(ctypes.addressof(definition), None, __name__)
        return made

    def _block_type(self) -> type:
        """The type of memory blocks: see native/memory.ll."""
        dealloc, doc = 52, 56  # of CPython's typeslots.h, part of the stable ABI
        about = ctypes.create_string_buffer(b"Memory that is used again once no buffer needs it.")
        slots = (_PyTypeSlot * 3)(
            _PyTypeSlot(dealloc, self.code.address("free_block")),
            _PyTypeSlot(doc, ctypes.addressof(about)),
        )
        default, no_new, immutable = 1 << 18, 1 << 7, 1 << 8
        flags = default | no_new | immutable
        spec = _PyTypeSpec(f"{__name__}.Block".encode(), 64, 0, flags, slots)
        self._alive += [about, slots, spec]
        made: type = _NEW_TYPE(ctypes.addressof(spec))
        return made


def native_text(tensor: type, buffer: type, note: type) -> str:
    """The engine's LLVM module for classes laid out like these."""
    constants = {
        "object_type": 8,
        "tuple_items": tuple.__basicsize__,
        "max_threads": MAX_THREADS,
        "max_chunks": MAX_CHUNKS,
        "keep_output": KEEP_OUTPUT,
        "phase_words": len(PhaseWord),
        "frame_context": len(_CONTEXT),
        "most_calls": MOST_CALLS,
        "frame_words": len(_CONTEXT) + 3,
        **_CONTEXT,
        **{f"plan_{w.name.lower()}": int(w) for w in Word},
        **{f"phase_{w.name.lower()}": int(w) for w in PhaseWord},
        **{f"jump_{w.name.lower()}": int(w) for w in When},
        **{f"status_{s.name.lower()}": int(s) for s in Status},
    }
    classes = {
        "plan_slot": (Plan, ("address", "call", "layouts")),
        "tensor": (tensor, ("data", "note", "leaf")),
        "buffer": (buffer, ("layout", "address", "owner")),
        "note": (note, ("call", "parents", "saved", "output", "serial")),
    }
    for prefix, (cls, slots) in classes.items():
        constants |= {f"{prefix}_{slot}": slot_offset(cls, slot) for slot in slots}
    folder = os.path.join(os.path.dirname(__file__), "native")
    text = "\n".join(_read(os.path.join(folder, f"{name}.ll")) for name in SOURCES)
    return re.sub(r"\{\{(\w+)\}\}", lambda m: str(constants[m[1]]), text)


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def slot_offset(cls: type, name: str) -> int:
    """Where instances of `cls` hold slot `name`, in bytes: found by putting an object there.

    >>> from weft.buffer import Buffer
    >>> sorted(slot_offset(Buffer, n) for n in ("layout", "address", "owner"))
    [16, 24, 32]
    """
    probe: Any = object.__new__(cls)
    found = object()
    getattr(cls, name).__set__(probe, found)
    words = list((ctypes.c_void_p * (cls.__basicsize__ // 8)).from_address(id(probe)))
    if id(found) not in words:
        raise DeviceError("engine", expected="slots that hold pointers", got=sys.version)
    return 8 * words.index(id(found))


def raise_error(plan: Plan | None, status: int, detail: int, args: tuple[Any, ...]) -> object:
    """Raise what a failed launch means: in a program, on the user's own line."""
    if status == Status.LAYOUT:
        raise LayoutChange
    error = _meaning(plan, status, detail, args)
    loc = plan.location if plan is not None else None
    if loc is not None:
        raise_at(error, loc)
    raise error


def raise_at(error: WeftError, loc: Location) -> None:
    """Raise with the user's line in the traceback, as if it had been run by itself."""
    code = compile("\n" * (loc.line - 1) + "raise error", loc.file, "exec")
    exec(code, {"error": error})


def _meaning(plan: Plan | None, status: int, detail: int, args: tuple[Any, ...]) -> WeftError:
    place = plan.place if plan is not None else "launch"
    if status == Status.INDEX:
        n = plan.reach if plan is not None else None
        below = detail < -BELOW // 2  # one that does not count from the end
        least = 0 if below else f"-{n}"
        expected = "indices within the axis" if n is None else f"indices in [{least}, {n})"
        return IndexRangeError(place, expected=expected, got=str(detail + BELOW * below))
    if status == Status.MEMORY:
        return AllocationError(
            place,
            expected=f"{detail:,} bytes more",
            got="none from the system",
            hint="drop tensors you no longer need, or work in smaller pieces",
        )
    if status == Status.DEPTH:
        return DepthError(
            place,
            expected=f"at most {MOST_CALLS:,} calls inside each other, in a quarter of the memory",
            got=f"{detail:,} and no end in sight",
        )
    if status == Status.SCALAR and plan is not None:
        dtype = DTYPES[plan.kind(detail) - 1]
        return NumericsError(place, expected=f"a number {dtype.name} holds", got=repr(args[detail]))
    if status == Status.ARGUMENT:
        got = type(args[detail]).__name__
        return DTypeError(place, expected=f"a tensor or number as argument {detail}", got=got)
    if status == Status.INTERRUPTED:
        return WeftError(place, got="a fork in a signal handler while it ran")
    return WeftError(place, got=f"status {status}, detail {detail}")


class _PyMethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class _PyTypeSlot(ctypes.Structure):
    _fields_ = (("slot", ctypes.c_int), ("value", ctypes.c_void_p))


class _PyTypeSpec(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("basicsize", ctypes.c_int),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.POINTER(_PyTypeSlot)),
    )


_NEW_FUNCTION = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.py_object
)(("PyCFunction_NewEx", ctypes.pythonapi))
_NEW_TYPE = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p)(
    ("PyType_FromSpec", ctypes.pythonapi)
)


def _check_interpreter() -> None:
    """What the engine takes for granted of objects, looked at in some of them."""
    fits = sys.implementation.name == "cpython" and getattr(sys, "_is_gil_enabled", lambda: True)()
    probe = object()
    pair = (probe, object)
    fits = fits and object.__basicsize__ == 16 and _word(probe, 8) == id(object)
    items = [_word(pair, tuple.__basicsize__ + 8 * i) for i in range(2)] if fits else []
    if items != [id(x) for x in pair]:
        raise DeviceError(
            "engine",
            expected="64-bit CPython with the GIL, objects laid out as in 3.11 to 3.15",
            got=sys.version,
            hint="make an environment with such a Python",
        )


def _word(x: object, offset: int) -> int | None:
    return ctypes.c_void_p.from_address(id(x) + offset).value


def _check_symbols(text: str) -> None:
    """LLVM ends the process over a symbol it cannot find, so ask first."""
    names = re.findall(r"^declare .*@(\w+)\(|^@(\w+) = external", text, re.MULTILINE)
    missing = [f or v for f, v in names if not hasattr(ctypes.pythonapi, f or v)]
    if missing:
        got = f"none with {', '.join(missing)}"
        raise DeviceError("engine", expected="CPython 3.11 or later on Linux", got=got)


def _memory() -> int:
    """Bytes of memory this process may use: the machine's, or its control group's."""
    found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        with suppress(OSError):
            limit = _read(f"/sys/fs/cgroup/{name}").strip()
            found = min(found, int(limit)) if limit.isdecimal() else found
    return found


def _huge_pages() -> bool:
    """Does the system give huge pages to who asks for them?"""
    try:
        said = _read("/sys/kernel/mm/transparent_hugepage/enabled")
    except OSError:
        return False
    return "[never]" not in said
