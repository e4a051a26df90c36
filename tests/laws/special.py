"""A launch with its sizes compiled in: every param a constant, one call over all tasks, LLVM's full
optimisation.
"""

from __future__ import annotations

import re
from typing import Any

import llvmlite.binding as llvm
from launches import Array, Run

from tests.laws.watch import Seen
from weft.codegen import jit
from weft.codegen.lower import lower
from weft.schedule.launch import Phase

_WORD = re.compile(r"^  (%\w+) = getelementptr i64, ptr %frame, i64 (\d+)$", re.M)


def specialised(text: str, phase: Phase, first: int, params: tuple[int, ...]) -> str:
    """The module with the frame words from `first` on replaced by `params`, and a function that
    runs the whole phase.
    """
    text = re.sub(
        r"^define .*?^}", lambda f: _constant(f[0], first, params), text, flags=re.M | re.S
    )
    return f"""{text}
define i64 @special(ptr %frame, i64 %lo, i64 %hi, i64 %worker) {{
  %status = call i64 @{phase.function}(ptr %frame, i64 0, i64 {phase.tasks}, i64 0)
  ret i64 %status
}}
"""


def _constant(function: str, first: int, params: tuple[int, ...]) -> str:
    words = {name: int(n) for name, n in _WORD.findall(function)}

    def constant(load: re.Match[str]) -> str:
        n = words.get(load[2], -1) - first
        return f"{load[1]} = add i64 {params[n]}, 0" if 0 <= n < len(params) else load[0]

    return re.sub(r"(%\w+) = load i64, ptr (%\w+), align 8", constant, function)


class Optimiser:
    """LLVM's own pipeline instead of the few passes that Weft runs."""

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
    codes = []
    for p in seen.launch.phases:
        text = specialised(lower(p.spec), p, first, seen.launch.params)
        codes.append(optimiser.code(text))
    functions = [c.address("special") for c in codes]
    return Whole(guard=None).raw(seen.launch, functions, seen.operands)


class Whole(Run):
    """One call per phase."""

    def _phase(self, fn: Any, frame: int, tasks: int, grain: int) -> int:
        return int(fn(frame, 0, tasks, 0)) if tasks else 0
