"""A function that is captured call by call: which program is right for a call, and when another
one is needed.
"""

from __future__ import annotations

import functools
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Generic, ParamSpec, TypeVar

from weft.autodiff.mode import recording
from weft.capture.capture import Captured, Unsized, capture
from weft.capture.instantiate import instantiate, with_names
from weft.capture.refusal import shortened
from weft.capture.roomy import Rows, candidates, roomy
from weft.capture.signature import Marks, Policy, kind, signature, why
from weft.capture.source import operators
from weft.capture.structure import flatten
from weft.debug.explain import Explanation
from weft.deploy.lengths import Lengths
from weft.errors import CaptureError, CaptureWarning
from weft.ir import Function
from weft.ops.define import Value, capturing
from weft.runtime.executable import Executable, fits, unchanged
from weft.runtime.pending import Pending, start
from weft.runtime.start import engine

#: captures of one function, beyond which it is run eagerly
BUDGET = 64
#: kinds of calls that run eagerly that are remembered
MOST_EAGER = 1024
#: captures after which lists should have the lengths that were found
_TRIES = 4
#: instances of one program of symbolic sizes that are kept
INSTANCES = 256

Build = Callable[[Captured], Executable]
P = ParamSpec("P")
R = TypeVar("R")


class Compiled(Generic[P, R]):
    """A function that runs as native programs, one for each kind of call."""

    def __init__(
        self,
        f: Callable[P, R],
        build: Build,
        fallback: bool,
        name: str,
        dynamic: bool | None = None,
        fast_math: bool = False,
    ) -> None:
        self.function, self.build, self.fallback, self.name = f, build, fallback, name
        self.programs: dict[Any, list[Executable]] = {}
        self.policy, self.fast_math = Policy(dynamic), fast_math
        self.symbolic: dict[Any, list[Any]] = {}  # programs of open sizes, by kind of call
        self.quick: dict[Any, Executable] = {}  # by the layouts of arguments that are tensors
        self.eager: dict[Any, str] = {}  # kinds of calls that can't be captured, and why
        self.lock = threading.RLock()
        self.captures = 0
        self.seconds = 0.0, 0.0  # that the latest capture took, and making a program of it
        self.reasons: list[str] = []  # of each capture
        self.said = False  # whether it was warned of the budget
        self.latest: tuple[Any, Executable] | None = None  # signature and program
        functools.update_wrapper(self, f, updated=())

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if capturing.now is not None:  # part of what is being captured
            return operators.call(self.function, *args, **kwargs)  # type: ignore[no-any-return]
        quick = None if kwargs else _quick_key(args)
        program = self.quick.get(quick)
        if program is not None and program.guarded():
            return program.call(args)  # type: ignore[no-any-return]
        leaves, form = flatten((args, kwargs))
        key = signature(leaves, form)
        for program in self.programs.get(key, ()):
            if program.fits(leaves):
                whole = program.direct and len(program.arguments) == len(args)  # no tensor twice
                if quick is not None and whole and len(self.programs[key]) == 1:
                    self._remember(quick, program)
                return program(leaves)  # type: ignore[no-any-return]
        if key in self.eager:
            return self.function(*args, **kwargs)
        try:
            program = self._capture(key, leaves, form)
        except Exception as e:
            e.__traceback__ = shortened(e)
            raise
        if program is None:
            return self.function(*args, **kwargs)
        return program(leaves)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"<wf.compile of {self.name}, {self.captures} captures>"

    def _remember(self, quick: Any, program: Executable) -> None:
        if len(self.quick) >= BUDGET:
            self.quick.clear()
        self.quick[quick] = program

    def start(self, *args: Any, **kwargs: Any) -> Pending:
        """A call on another thread: `await` it, or ask its `result()`."""
        return start(self, args, kwargs)

    def graph(self, *args: Any, **kwargs: Any) -> Function:
        """The captured graph of a call with these arguments; printing it gives its text."""
        captured = self._program(args, kwargs).captured
        return with_names(captured) if captured.found else captured.function

    def explain(self, *args: Any, **kwargs: Any) -> Explanation:
        """What becomes of a call with these arguments: captured, fused, saved, placed."""
        program: Any = self._program(args, kwargs)
        if isinstance(program, Lengths):
            program = program.at(program.full(flatten((args, kwargs))[0]))
        return Explanation(self.name, program, self.reasons)

    def _program(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        leaves, form = flatten((args, kwargs))
        key = signature(leaves, form)
        made = next((p for p in self.programs.get(key, ()) if p.fits(leaves)), None)
        made = made or self._capture(key, leaves, form)
        if made is not None and getattr(made.captured, "roomy", None) is not None:
            found = (i for all_ in self.symbolic.values() for i in all_)
            return next(i for i in found if made in i.roomy.values()).at(leaves)
        if made is None:
            raise CaptureError(
                self.name,
                got=f"a call that runs eagerly: {self.eager.get(key, 'the budget is used up')}",
            )
        return made

    def __getattr__(self, name: str) -> Any:
        if name == "function":
            raise AttributeError(name)
        return getattr(self.function, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__ or "__wrapped__" not in self.__dict__:
            object.__setattr__(self, name, value)
        else:  # of the module, say: what is read from here is read there
            setattr(self.function, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return Compiled, (
            self.function,
            self.build,
            self.fallback,
            self.name,
            self.policy.dynamic,
            self.fast_math,
        )

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return self if owner is None else functools.partial(self, owner)

    def _capture(self, key: Any, leaves: list[Any], form: Any) -> Any:
        with self.lock:
            program: Any
            for program in self.programs.get(key, ()):  # another thread may have been here
                if program.fits(leaves):
                    return program
            engine()
            of = kind(leaves, form)
            for instances in reversed(self.symbolic.get(of, ())):
                if instances.fit(leaves):
                    return instances.for_call(self.programs, key, leaves)
            try:
                if self.captures >= BUDGET:
                    raise CaptureError(
                        self.name,
                        expected=f"at most {BUDGET} kinds of calls",
                        got=self._reason(key, leaves),
                        hint="pass values that change as tensors",
                    )
                start = time.perf_counter()
                captured = self._captured(of, leaves, form)
                if self.fast_math:
                    captured = replace(captured, fast=True)
                made = time.perf_counter()
                sized = captured.symbols is not None and captured.symbols.has_sizes
                if captured.found:
                    program = self._finding(captured, of, leaves, form)
                elif sized:
                    found = Instances(captured, self.build)
                    program = found.for_call(self.programs, key, leaves)
                else:
                    program = self.build(captured)
                self.seconds = made - start, time.perf_counter() - made
            except CaptureError as e:
                if not self.fallback:
                    raise
                spent = self.captures >= BUDGET
                if len(self.eager) < MOST_EAGER:
                    self.eager[key] = str(e)
                if not (spent and self.said):  # once, not for every further kind of call
                    self.said = spent
                    warnings.warn(f"{self.name} runs eagerly: {e}", CaptureWarning, stacklevel=3)
                return None
            self.captures += 1
            self.reasons.append(self._reason(key, leaves))
            self.latest = key, program
            self.quick.clear()
            if captured.found:
                self.symbolic.setdefault(of, []).append(program)
                self.programs.setdefault(key, []).append(program)
            elif sized:
                self.symbolic.setdefault(of, []).append(found)
            else:
                self.programs.setdefault(key, []).append(program)
            return program

    def _reason(self, key: Any, leaves: list[Any]) -> str:
        """Why the programs there are do not do for a call."""
        if self.latest is None:
            return "the first call"
        old, program = self.latest
        symbols = program.captured.symbols
        failed = symbols.failure(leaves, symbols.live()) if symbols is not None else None
        guards = program.captured.guards
        return (
            why(old, key)
            or (f"no longer {failed}" if failed else "")
            or (guards.check() if guards is not None else "")
            or "gradients are not where they were"
        )

    def _finding(self, captured: Captured, of: Any, leaves: list[Any], form: Any) -> Lengths:
        """A program that finds sizes, right for a call: captured again with those it finds there,
        if it matters which they are.
        """
        for _ in range(_TRIES):
            program = Lengths(captured, self.build)
            if program.fits(leaves) or program.found is None:
                program.prepare()
                return program
            captured = self._captured(of, leaves, form, program.found)
            captured = replace(captured, fast=self.fast_math)
        raise CaptureError(
            self.name,
            expected="lists whose lengths are the same whenever the function is captured",
            got=f"{program.found} and others",
        )

    def _captured(
        self, of: Any, leaves: list[Any], form: Any, hints: tuple[int, ...] = ()
    ) -> Captured:
        """A capture with what the policy leaves open; closed, where the code can't take that."""
        if self.latest is not None and self.latest[1].captured.guards is not None:
            self.policy.outside |= set(self.latest[1].captured.guards.changed())
        marks = self.policy.marks(of, leaves)
        for tried in (marks, marks.certain()) if marks.guessed else (marks,):
            try:
                found = self._sized(leaves, form, tried, hints)
            except Exception:
                if not tried.opens(leaves):
                    raise
            else:
                if found.symbols is not None:
                    self.policy.captured(of, leaves, found.symbols)
                return found
        closed = Marks(numbers=False)
        captured = self._sized(leaves, form, closed, hints)
        self.policy.closed.add(of)
        return captured

    def _sized(
        self, leaves: list[Any], form: Any, marks: Marks, hints: tuple[int, ...]
    ) -> Captured:
        """A capture; again with the sizes that the program finds, where it fails without."""
        try:
            return capture(self.function, leaves, form, operators.call, marks, hints)
        except Unsized as e:
            lengths = Lengths(e.captured, self.build)
            found = lengths.sizes(lengths.full(leaves))
            return self._sized(leaves, form, marks, found)


class Instances:
    """A program of symbolic sizes, and its instances at the sizes of calls."""

    def __init__(self, captured: Captured, build: Build) -> None:
        self.captured, self.build = captured, build
        self.made: dict[Any, Executable] = {}
        self.left: list[int] | None = None  # sizes that one program might do for all values of
        self.roomy: dict[Any, Executable] = {}  # such programs, by the other sizes

    def fit(self, leaves: list[Any]) -> bool:
        """Whether the program is right for a call."""
        symbols = self.captured.symbols
        assert symbols is not None
        known = symbols.failure(leaves) is None and unchanged(self.captured)
        return known and fits(self.captured, leaves)

    def for_call(
        self, programs: dict[Any, list[Executable]], key: Any, leaves: list[Any]
    ) -> Executable:
        """A program for a call: one that does for all lengths, if there is one."""
        if self.left is None:
            self.left = candidates(self.captured)
        while self.left:
            others = Rows(self.captured, leaves, self.left[0]).others
            if others not in self.roomy:
                captured = roomy(self.captured, leaves, self.left[0])
                if captured is None:
                    del self.left[0]
                    continue
                self.roomy[others] = self.build(captured)
            program = self.roomy[others]
            if not program.fits(leaves):
                break
            self.keep(programs, key, program)
            return program
        return self.make(programs, key, leaves)

    def make(
        self, programs: dict[Any, list[Executable]], key: Any, leaves: list[Any]
    ) -> Executable:
        """The instance for a call. Kernels take sizes, so no code is generated for it."""
        program = self.build(instantiate(self.captured, leaves))
        self.keep(programs, key, program)
        return program

    def at(self, leaves: list[Any]) -> Executable:
        """The instance for the sizes of a call."""
        key = tuple([x.type for x in leaves if isinstance(x, Value)])
        found = self.made.get((key, ()))
        return self.make({}, key, leaves) if found is None else found

    def keep(self, programs: dict[Any, list[Executable]], key: Any, program: Executable) -> None:
        """Remember an instance; beyond the limit the oldest is forgotten."""
        if len(self.made) >= INSTANCES:
            oldest = next(iter(self.made))
            gone = self.made.pop(oldest)
            programs[oldest[0]] = [p for p in programs.get(oldest[0], ()) if p is not gone]
        self.made[key, program.captured.exact] = program
        programs.setdefault(key, []).append(program)


def _quick_key(args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The key of a call on tensors alone; None for others, and where some want gradients of which
    two are one.
    """
    try:
        key = [x.data.layout for x in args]
        noted = [x.note is not None for x in args]
    except AttributeError:
        return None
    if True in noted:
        if len(set(map(id, args))) < len(args):
            return None
        key += noted
    key.append(recording.get())
    return tuple(key)
