"""A launch with its sizes compiled in: every param a constant, one call over all tasks, and LLVM's
full optimisation instead of the few passes that Weft runs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from launches import Array, Run

from tests.laws.lab import Case, good
from tests.laws.watch import Seen
from weft.codegen import jit
from weft.codegen.lower import lower
from weft.ops.define import Op
from weft.schedule.launch import Phase

#: the dtypes that reductions, scans and the like are tried with
DTYPES = ("float32", "float16", "int64", "int8", "bool")

_WORD = re.compile(r"^  (%\w+) = getelementptr i64, ptr %frame, i64 (\d+)$", re.M)
_LOAD = re.compile(r"(%\w+) = load i64, ptr (%\w+), align 8")
_FUNCTION = re.compile(r"^define .*?^}", re.M | re.S)


def representatives(op: Op) -> list[Case]:
    """Samples that between them have the op's kinds of kernels."""
    if op.scalar is not None:
        return [max(good(op), key=lambda c: sum(map(np.size, c.sample.args)))]
    return [
        c
        for c in good(op)
        if all(a.dtype.name in DTYPES for a in c.sample.args if isinstance(a, np.ndarray))
    ]


def specialised(text: str, phases: Sequence[Phase], first: int, params: tuple[int, ...]) -> str:
    """A module with the frame words from `first` on replaced by `params`, and a function for each
    phase that runs all of it.
    """
    runs = [
        f"""
define i64 @{whole(p)}(ptr %frame) {{
  %status = call i64 @{p.function}(ptr %frame, i64 0, i64 {p.tasks}, i64 0)
  ret i64 %status
}}
"""
        for p in phases
    ]
    return _FUNCTION.sub(lambda f: _constant(f[0], first, params), text) + "".join(runs)


def whole(phase: Phase) -> str:
    """The name of the function that runs all of a phase."""
    return f"whole_{phase.function}_{phase.tasks}"


def _constant(function: str, first: int, params: tuple[int, ...]) -> str:
    words = {name: int(n) for name, n in _WORD.findall(function)}

    def constant(load: re.Match[str]) -> str:
        n = words.get(load[2], -1) - first
        return f"{load[1]} = add i64 {params[n]}, 0" if 0 <= n < len(params) else load[0]

    return _LOAD.sub(constant, function)


class Optimiser:
    """LLVM's own pipeline at its highest level."""

    def __init__(self) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        target = jit.host()
        self.machine = llvm.Target.from_default_triple().create_target_machine(
            cpu=target.cpu, features=target.features, opt=3, jit=True
        )
        tuning = llvm.create_pipeline_tuning_options(speed_level=3)
        self.builder = llvm.create_pass_builder(self.machine, tuning)

    def code(self, text: str) -> jit.Code:
        module = llvm.parse_assembly(text, llvm.create_context())
        module.verify()
        self.builder.getModulePassManager().run(module, self.builder)  # its inliner runs but once
        return jit.Code(self.machine.emit_object(module))


def run(optimiser: Optimiser, seen: Seen) -> list[Array]:
    """The results of a launch whose kernels know their sizes."""
    first = 3 + len(seen.operands) + len(seen.results)
    codes = {}
    for spec in dict.fromkeys(p.spec for p in seen.launch.phases):
        own = {(p.function, p.tasks): p for p in seen.launch.phases if p.spec == spec}
        text = specialised(lower(spec), list(own.values()), first, seen.launch.params)
        codes[spec] = optimiser.code(text)
    functions = [codes[p.spec].address(whole(p)) for p in seen.launch.phases]
    return Whole(guard=None).raw(seen.launch, functions, seen.operands)


class Whole(Run):
    """One call per phase."""

    def _phase(self, fn: Any, frame: int, tasks: int, grain: int) -> int:
        return int(fn(frame, 0, tasks, 0)) if tasks else 0
