"""What became of a function: captured, guarded, fused, saved, placed.

Read off the plan itself, so it says what runs, not what was meant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from weft.capture.capture import Captured
from weft.debug.saved import loops_within, saved_within
from weft.ir import Node
from weft.runtime.executable import Executable
from weft.runtime.native_program import Native
from weft.schedule.steps import ARENA, Enter, ProgramPlan, Step, When
from weft.types import TensorType


class Explanation:
    """A report; printing it gives the text. `kernels`, `arena`, `saved` and `peak` give figures."""

    def __init__(self, name: str, executable: Executable, reasons: Sequence[str] = ()) -> None:
        self.name, self.executable = name, executable
        self.reasons = tuple(reasons)  # of every capture so far
        self.forward = _planned(executable.forward)
        gradient = executable.gradient
        self.gradient = None if gradient is None else _planned(gradient.usual)

    @property
    def kernels(self) -> tuple[tuple[str, ...], ...]:
        """The ops of each kernel, in the order they run; what it does, if no op asked for it."""
        steps = [s for part in self.forward.parts for s in part.steps]
        return tuple(_ops(s) for s in steps if s.jump is None)

    @property
    def arena(self) -> int:
        """Bytes of intermediate values that live at once, at most."""
        return self.forward.arena

    @property
    def peak(self) -> int:
        """Bytes that a call holds at once, at most: what it is given and what was made of that
        ahead, what it gives, the arena.
        """
        plan = self.forward
        held = (*plan.function.params, *plan.function.results)
        sizes = [n.type.nbytes for n in held if isinstance(n.type, TensorType)]
        return plan.arena + sum(sizes) + self.ahead

    @property
    def ahead(self) -> int:
        """Bytes of state that is kept a second time, in the order its kernels read it in."""
        return sum(x.layout.type.nbytes for x in self.forward.packed)

    @property
    def saved(self) -> tuple[tuple[str, int, str], ...]:
        """What is kept for the gradient: the user's line, bytes, op."""
        captured = self.executable.captured
        if self.gradient is None:
            if not any(w.cell is not None and w.cell.is_grad and w.result for w in captured.writes):
                return ()
            outputs = [o.result for o in captured.outputs if o.result is not None]
            kept = saved_within(self.forward, outputs) if outputs else []
            return tuple((_line(n), size, n.op.name) for n, size in kept)
        results = len(captured.function.results)
        later = self.executable.forward.function.results[results:]
        return tuple((_line(n), n.type.nbytes, n.op.name) for n in later)

    @property
    def loops(self) -> tuple[tuple[str, int, int], ...]:
        """What loops keep for going back through them: the user's line, bytes of a step's state,
        and of how many steps at most (0: all; else those between are computed again).
        """
        plans = [self.forward] if self.gradient is None else [self.forward, self.gradient]
        found = [kept for plan in plans for kept in loops_within(plan.function)]
        return tuple((_line(n), size, most) for n, size, most in found)

    def __str__(self) -> str:
        parts = [self._captured(self.executable.captured), self._plan("program", self.forward)]
        if self.ahead:
            said = f"{self.ahead:,} bytes in {len(self.forward.packed)} values"
            parts.append(f"packed ahead: {said}, made again when the state holds another value")
        saved = self.saved
        if saved or self.gradient is not None:
            total = sum(b for _, b, _ in saved)
            lines = [f"saved for the gradient: {total:,} bytes in {len(saved)} values"]
            lines += [f"  {bytes_:>12,}  {op:<16} {line}" for line, bytes_, op in saved]
            parts.append("\n".join(lines))
        if self.loops:
            lines = ["loops keep for their gradients the state before"]
            for line, size, most in self.loops:
                steps = f"at most {most:,} steps" if most else "every step"
                lines.append(f"  {steps}, {size:,} bytes each  {line}".rstrip())
            parts.append("\n".join(lines))
        if self.gradient is not None:
            parts.append(self._plan("gradient", self.gradient))
        parts.append(f"peak: {self.peak:,} bytes of arguments, state, results and the above")
        return "\n\n".join(parts)

    __repr__ = __str__

    def _captured(self, c: Captured) -> str:
        lines = [f"{self.name}: {len(c.function.order)} ops captured"]
        params = c.function.params
        lines += [f"  argument  {p.type}" for p in params[: len(c.inputs.arguments)]]
        cells = Counter(str(x.node.type) for x in c.inputs.cells if x.node is not None)
        lines += [
            f"  state     {n} x {t}" if n > 1 else f"  state     {t}" for t, n in cells.items()
        ]
        if c.inputs.numbers:
            lines.append(f"  numbers   {len(c.inputs.numbers)} read at every call")
        lines += [f"  capture   {i}: {said}" for i, said in enumerate(self.reasons, 1)]
        if c.symbols is not None:
            lines += c.symbols.described()
        if c.fast:
            lines.append("  fast math  a*b + c rounded once, divisions as products")
        if c.inputs.random:
            drawn = f"{c.drawn:,}" if c.counter is None else "as many as it draws"
            lines.append(f"  random    {drawn} numbers a call")
        if c.writes:
            lines.append(f"  updates   {len(c.writes)} values in place")
        return "\n".join(lines)

    def _plan(self, title: str, plan: ProgramPlan) -> str:
        specs = {p.spec.key() for part in plan.parts for s in part.steps for p in s.launch.phases}
        count = sum(s.jump is None for part in plan.parts for s in part.steps)
        launches = f"{count} kernel launches of {len(specs)} kernels"
        memory = f"{plan.arena:,} bytes of intermediate values at most"
        lines = [f"{title}: {launches}, {memory}, {plan.threads} threads"]
        lines += self._steps(plan)
        for r in plan.routines:
            assert r.plan is not None
            lines.append(f"  function {r.name}: {r.plan.arena:,} bytes of its own in every call")
            if r.keeps:
                lines.append(f"    {r.name} keeps {r.keeps:,} bytes of every call for its gradient")
            lines += self._steps(r.plan)
        return "\n".join(lines)

    def _steps(self, plan: ProgramPlan) -> list[str]:
        counts = plan.together or (1,) * len(plan.steps)
        return [self._step(i, s, counts[i]) for i, s in enumerate(plan.steps)]

    def _step(self, i: int, s: Step, count: int) -> str:
        if isinstance(s.jump, Enter):
            assert s.jump.routine is not None
            return f"  {i:>4}  call      {s.jump.routine.name}  {_line(s.nodes[0])}".rstrip()
        if s.jump is not None and s.jump.when == When.FORGET:
            return f"  {i:>4}  records   of the next call"
        if s.jump is not None:
            when = ("always", "if true", "if false")[s.jump.when]
            return f"  {i:>4}  jump      {when}  ->  {s.jump.target}"
        family = type(s.launch.phases[0].spec).__name__.removesuffix("Spec").lower()
        ops = " ".join(_ops(s))
        made = s.operands[-len(s.launch.outs) :]
        placed = ", ".join(
            f"{x.layout}" + (f" at {x.block.offset:,}" if x.base == ARENA and x.block else "")
            for x in made
        )
        where = _line(s.nodes[-1]) if s.nodes else ""
        threads = "all threads" if s.launch.heavy else "one thread"
        if count != 1:
            threads = f"at the same time as the next {count - 1}" if count else "with those before"
        return f"  {i:>4}  {family:<9} {ops}  ->  {placed}  ({threads})  {where}".rstrip()


def _ops(s: Step) -> tuple[str, ...]:
    """The ops of a kernel: where no node asked for it, what is done to a stack, or a copy."""
    if s.nodes:
        return tuple([n.op.name for n in s.nodes])
    return (getattr(s.launch.phases[0].spec, "what", "copy"),)


def _line(n: Node) -> str:
    return str(n.loc) if n.loc is not None else ""


def _planned(native: Native) -> ProgramPlan:
    """The plan of the last call, or one for dense inputs."""
    if native.last is None:
        native.prepare_dense()
    assert native.last is not None
    return native.last
