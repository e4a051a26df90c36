"""LLVM text -> machine code in memory.

llvmlite holds one lock around every call, so threads would compile in turn. LLVM itself only asks
that threads share no context and no target machine; the two slow calls are therefore made past the
lock, and two threads compile two kernels at once (2.0 times as fast on two cores). A fork waits
until no compilation is under way: a child must not inherit a half-held lock of LLVM's.

llvmlite is loaded when code is first made or run: it is a seventh of importing Weft.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from weft.codegen.text import SELDOM
from weft.errors import AllocationError, DeviceError, WeftError
from weft.types.record import dataclass


@cache
def llvm() -> Any:
    """llvmlite's door to LLVM."""
    import llvmlite.binding

    return llvmlite.binding


@dataclass(frozen=True)
class Target:
    """What code is generated for: an LLVM CPU name and features. `host()` is this machine."""

    cpu: str
    features: str

    @property
    def fingerprint(self) -> str:
        """Everything outside this package that the machine code depends on."""
        import llvmlite

        versions = (
            f"llvmlite {llvmlite.__version__} llvm {'.'.join(map(str, llvm().llvm_version_info))}"
        )
        return f"{versions} {llvm().get_default_triple()} {self.cpu} {self.features}"


#: x86-64 baselines, to check that the same bits come out whatever the vector width
AVX2 = Target("haswell", "+avx2,+fma")
SSE2 = Target("x86-64", "")


@cache
def host() -> Target:
    """This machine, or the baseline that WEFT_CPU names ("haswell", "x86-64"). Results are the same
    to the bit.
    """
    said = os.environ.get("WEFT_CPU") or "native"
    known = {t.cpu: t for t in (AVX2, SSE2)}
    if said == "native":
        return Target(llvm().get_host_cpu_name(), llvm().get_host_cpu_features().flatten())
    if said not in known:
        raise DeviceError("WEFT_CPU", expected=f"native, {' or '.join(known)}", got=repr(said))
    return known[said]


def vector_bytes() -> int:
    """Bytes of a register of the host."""
    features = set(host().features.split(","))
    if {"+avx512f", "+avx512bw", "+avx512dq", "+avx512vl"} <= features:
        return 64
    return 32 if {"+avx2", "+fma"} <= features else 16


#: Kernels are explicit vector code without repeated subexpressions, whose loops test at their end,
#: so this is all they gain from: in a twentieth of the time of LLVM's standard pipeline it gives
#: code as fast. Every pass here can run again; LLVM's inliner pass, for one, cannot.
PASSES = ("always_inliner", "sroa")

#: Left out of LLVM's code generator, for the whole process, which has no other way: the strength
#: reduction of loops, a fifth of its time. Kernels say themselves which addresses go along.
OPTIONS = ("-disable-lsr",)

#: of LLVM's code generator: what 2 does beyond it makes no kernel faster and takes a tenth longer
LEVEL = 1

#: bytes that compiling any kernel takes at most
ROOM = 64 << 20


@cache
def _initialise() -> None:
    llvm().initialize_native_target()
    llvm().initialize_native_asmprinter()
    for option in OPTIONS:
        llvm().set_option("weft", option)


def _ready() -> None:
    """Raise unless this process may run code it makes. Without asking, the first call of a kernel
    would be a segfault.
    """
    _initialise()
    try:
        llvm().check_jit_execution()  # microseconds, and the answer can change while a process runs
    except OSError as e:
        if e.errno == errno.ENOMEM:
            raise _no_room() from None
        raise DeviceError(
            "code generation",
            expected="a host that lets a process make memory executable",
            got=str(e),
            hint="this host forbids JIT compilation (PR_SET_MDWE, SELinux execmem or a hardened "
            "kernel); allow it for this process: MemoryDenyWriteExecute=no in its systemd unit, or "
            "the SELinux boolean for execmem",
        ) from None
    try:
        mmap.mmap(-1, ROOM).close()  # LLVM ends the process when it runs out of memory: ask first
    except OSError:
        raise _no_room() from None


def _no_room() -> AllocationError:
    return AllocationError(
        "code generation",
        expected=f"{ROOM:,} bytes to compile in",
        got="none from the system",
        hint="drop tensors you no longer need, or compile kernels by using them earlier",
    )


def compile_object(text: str, target: Target | None = None) -> bytes:
    """Verify, optimise and assemble a module to a relocatable object."""
    _ready()
    with _compiling():
        # closed in this order, which garbage in a cycle (an error's traceback) would not be
        with llvm().create_context() as context, llvm().parse_assembly(text, context) as module:
            module.verify()
            with _compiler(target or host(), _level(text)) as compiler:
                return compiler.run(module)


class Compiler:
    """A target machine and a pass pipeline for it, used by one thread at a time.

    Kept and used again, also because llvmlite leaks 5 KiB with every pipeline it drops.
    """

    def __init__(self, target: Target, level: int) -> None:
        self._machine = _native().create_target_machine(
            opt=level, cpu=target.cpu, features=target.features, jit=True
        )
        self._builder = llvm().create_pass_builder(
            self._machine, llvm().create_pipeline_tuning_options(speed_level=2)
        )
        self._passes = llvm().create_new_module_pass_manager()
        for name in PASSES:
            getattr(self._passes, f"add_{name}_pass")()

    def run(self, module: Any) -> bytes:
        """Optimise a module and give its object file."""
        lib = llvm().ffi.lib
        _unlocked("LLVMPY_RunNewModulePassManager")(self._passes, module, self._builder)
        with llvm().ffi.OutputString() as problem:
            found = _unlocked("LLVMPY_TargetMachineEmitToMemory")(self._machine, module, 1, problem)
            if not found:
                raise RuntimeError(str(problem))
        try:
            return ctypes.string_at(
                lib.LLVMPY_GetBufferStart(found), lib.LLVMPY_GetBufferSize(found)
            )
        finally:
            lib.LLVMPY_DisposeMemoryBuffer(found)


def _level(text: str) -> int:
    """How well the code generator has to do on a module: a third of the time does for what runs
    seldom.
    """
    return 0 if text.count("\n" + SELDOM) == len(_DEFINED.findall(text)) else LEVEL


_DEFINED = re.compile("^define ", re.M)
_idle: dict[tuple[Target, int], list[Compiler]] = {}


@contextmanager
def _compiler(target: Target, level: int) -> Iterator[Compiler]:
    idle = _idle.setdefault((target, level), [])
    try:
        compiler = idle.pop()
    except IndexError:
        compiler = Compiler(target, level)
    yield compiler
    idle.append(compiler)  # not after an exception: nobody knows what state it left


class Code:
    """Machine code in memory, of an object file and those it calls. One engine each, freed when
    this object is dropped.
    """

    def __init__(self, *objects: bytes) -> None:
        _ready()
        with _compiling():
            nothing = llvm().parse_assembly("", _empty_context())
            machine = _native().create_target_machine(jit=True)  # the engine's own from here on
            self._engine = llvm().create_mcjit_compiler(nothing, machine)
            self._engine.remove_module(nothing)  # or the engine would compile it: 0.8 ms
            for x in objects:
                self._engine.add_object_file(llvm().ObjectFileRef.from_data(x))
            self._engine.finalize_object()

    def address(self, name: str) -> int:
        """Where the function of that name starts."""
        found: int = self._engine.get_function_address(name)
        if not found:
            raise WeftError(f"code generation: no function {name!r} in this module")
        return found


@cache
def _empty_context() -> Any:
    return llvm().create_context()


@cache
def _native() -> Any:
    return llvm().Target.from_default_triple()


@cache
def _unlocked(name: str) -> Any:
    """llvmlite's C function of that name, without llvmlite's lock around it."""
    lib = llvm().ffi.lib
    function, locked = getattr(ctypes.CDLL(lib._name), name), getattr(lib, name)
    function.argtypes, function.restype = locked.argtypes, locked.restype
    return function


_gate = threading.Condition()
_inside: set[int] = set()
_held: list[Any] = []  # llvmlite's lock while a fork is under way, if it is loaded


@contextmanager
def _compiling() -> Iterator[None]:
    me = threading.get_ident()
    with _gate:
        _inside.add(me)
    try:
        yield
    finally:
        with _gate:
            _inside.discard(me)
            _gate.notify_all()


def _before_fork() -> None:
    _gate.acquire()
    while _inside - {threading.get_ident()}:
        _gate.wait()
    ffi = sys.modules.get("llvmlite.binding.ffi")
    if ffi is not None:  # another thread may be freeing code, or be some other user of llvmlite
        ffi.lib._lock.__enter__()
        _held.append(ffi.lib._lock)


def _after_fork() -> None:
    while _held:
        _held.pop().__exit__()
    _gate.release()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
