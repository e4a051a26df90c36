"""LLVM text -> machine code in memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import llvmlite.binding as llvm

from weft.errors import DeviceError


@dataclass(frozen=True)
class Target:
    """What code is generated for: an LLVM CPU name and features. `host()` is this machine."""

    cpu: str
    features: str

    @property
    def fingerprint(self) -> str:
        return f"llvm{'.'.join(map(str, llvm.llvm_version_info))} {self.cpu} {self.features}"


@cache
def host() -> Target:
    return Target(llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())


#: x86-64 baselines, to check that the same bits come out whatever the vector width
AVX2 = Target("haswell", "")
SSE2 = Target("x86-64", "")


@cache
def _ready() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    try:
        llvm.check_jit_execution()
    except OSError as e:
        raise DeviceError(
            "code generation",
            expected="a host that lets a process make memory executable",
            got=str(e),
            hint="this host forbids JIT compilation (PR_SET_MDWE, SELinux execmem or a hardened kernel); allow it for this process",
        ) from None


def _machine(target: Target) -> Any:
    _ready()
    return llvm.Target.from_default_triple().create_target_machine(
        opt=2, cpu=target.cpu, features=target.features, jit=True
    )


_compiler = cache(_machine)  # one to compile with; every engine takes another for its own


def compile_object(text: str, target: Target | None = None) -> bytes:
    """Verify, optimise and assemble a module to a relocatable object."""
    machine = _compiler(target or host())
    mod = llvm.parse_assembly(text)
    mod.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = False
    options.slp_vectorization = False
    options.loop_unrolling = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(mod, builder)
    return bytes(machine.emit_object(mod))


class Code:
    """Machine code in memory. One engine each, freed when this object is dropped."""

    def __init__(self, obj: bytes) -> None:
        empty = llvm.parse_assembly("")
        self._engine = llvm.create_mcjit_compiler(empty, _machine(host()))
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(obj))
        self._engine.finalize_object()

    def address(self, name: str) -> int:
        found: int = self._engine.get_function_address(name)
        return found
