"""The pipeline: a Python function, captured, rewritten, scheduled, turned into one native program.

    capture -> passes -> schedule -> codegen -> run

`compile` is what users call; `build_captured` is the pipeline, a line per stage.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar, overload

from weft.capture import placeholders
from weft.capture.capture import Captured, Unsized, capture
from weft.capture.instantiate import with_names
from weft.capture.signature import specified
from weft.capture.source import operators
from weft.capture.structure import flatten
from weft.control.rules import check_stores
from weft.deploy.compiled import Compiled, Instances
from weft.deploy.lengths import Lengths
from weft.deploy.program import Program
from weft.errors import DTypeError, ProgramError, WeftError
from weft.ir import Function, Node, rewrite
from weft.ir.language import Types
from weft.ir.literals import type_text
from weft.ir.verify import verify_part
from weft.ops.define import Value, installed, placeholder
from weft.ops.language import LANGUAGE
from weft.passes.fold import fold
from weft.passes.hasten import hasten
from weft.passes.hoist import hoist
from weft.passes.inline import inline
from weft.passes.join import join
from weft.passes.simplify import simplify
from weft.passes.sink import sink
from weft.passes.split import split
from weft.passes.turn import turn
from weft.runtime.executable import Executable
from weft.runtime.gradient import Gradient
from weft.runtime.native_program import Native
from weft.runtime.start import engine, machine
from weft.tensor.elsewhere import says_keywords

P = ParamSpec("P")
R = TypeVar("R")

#: the passes, in order. Each keeps every bit
PASSES: tuple[Callable[[Function], Function], ...] = (
    inline,
    fold,
    sink,
    simplify,
    join,
    turn,
    hoist,
)


def optimise(f: Function, fast: bool = False) -> Function:
    """The function after all passes, what its branches and loops do included; `fast`, also those
    that keep the value and not every bit. With WEFT_VERIFY=1 it is verified after each pass.
    """

    def inner(n: Node, inputs: tuple[Node, ...]) -> Node | None:
        regions = tuple([optimise(r, fast) for r in n.regions])
        return Node(n.op, inputs, n.attrs, n.type, n.loc, regions) if regions else None

    f = rewrite(f, inner)
    passes = (*PASSES, hasten) if fast else PASSES
    if os.environ.get("WEFT_VERIFY") == "1":
        return verified(f, passes)
    for apply in passes:
        f = apply(f)
    return f


def verified(f: Function, passes: Sequence[Callable[[Function], Function]]) -> Function:
    """The function after these passes, which is verified after each; an error names the pass."""
    known: dict[Node, Types] = {}
    verify_part(f, LANGUAGE, known)
    for apply in passes:
        before, place = f, f"pass {apply.__name__}"
        try:
            f = apply(f)
            verify_part(f, LANGUAGE, known)
        except ProgramError as e:
            said = {"expected": e.expected, "got": e.got, "hint": e.hint, "excerpt": e.excerpt}
            raise ProgramError(f"{place}: {e.place}", **said) from e
        except WeftError:
            raise
        except Exception as e:  # of a rule
            raise ProgramError(place, got=f"{type(e).__name__}: {e}") from e
        was, now = ([n.type for n in (*g.params, *g.results)] for g in (before, f))
        if now != was:
            expected = f"parameters and results {', '.join(map(type_text, was))}"
            raise ProgramError(place, expected=expected, got=", ".join(map(type_text, now)))
    return f


def build_captured(captured: Captured) -> Executable:
    """A captured call as an executable."""
    f = captured.function
    slopes: tuple[Node, ...] = tuple(g for _, g in captured.slopes)
    later = (*captured.seeds, *(s for _, s in captured.sums))
    joint = Function(f.name, (*f.params, *later), (*f.results, *slopes))
    check_stores(joint)
    whole = optimise(joint, captured.fast)
    if not slopes:
        return Executable(captured, Native(whole, machine, captured.read_only), None, whole)
    forward, gradient, kept = split(whole, len(f.params), len(f.results))
    pulled = Gradient(captured, gradient, kept)
    return Executable(captured, Native(forward, machine), pulled, whole)


def trace(fn: Callable[..., Any], *examples: Any, **named: Any) -> Program:
    """The program that `fn` runs on arguments like these. Python's control flow is followed as it
    goes for them; a branch on a tensor's value is an error, since it would be frozen.

    A type may stand for a tensor; a `Dim` among its sizes is left open.

    >>> import weft as wf
    >>> double = wf.trace(lambda x: x * 2, wf.zeros((2,)))
    >>> double(wf.tensor([1.0, 2.0]))
    tensor([2., 4.])
    """
    return traced(fn, examples, named)


def traced(
    fn: Callable[..., Any],
    examples: tuple[Any, ...],
    named: dict[str, Any],
    converted: bool = False,
) -> Program:
    """The program of a function for arguments like the examples; `converted`, control flow on
    tensors is part of it.
    """
    _expect_callable("trace", fn)
    engine()
    leaves, form = flatten((examples, named))
    leaves, marks = specified(leaves)
    seen: set[int] = set()
    for i, x in enumerate(leaves):  # an example given twice stands for two arguments
        if isinstance(x, Value):
            leaves[i] = installed.tensor(x.data, x.note) if id(x) in seen else x
            seen.add(id(x))
    name = getattr(fn, "__name__", type(fn).__name__)
    try:
        captured = capture(fn, leaves, form, operators.call if converted else None, marks)
    except Unsized as e:  # there is no call yet to find sizes in
        raise e.failure from None
    return _program(name, captured, _names(fn), form, leaves)


def build(inputs: Any, outputs: Any) -> Program:
    """The program that computes `outputs` from placeholders.

    >>> import weft as wf
    >>> x = wf.placeholder("x", (None, 3))
    >>> total = wf.build([x], x.sum(axis=1))
    >>> total(wf.ones((2, 3)))
    tensor([3., 3.])
    """
    engine()
    captured, names = placeholders.captured(inputs, outputs)
    stands = [installed.tensor(p) for p in captured.function.params[: len(names)]]
    leaves, form = flatten((tuple(stands), {}))
    return _program("program", captured, names, form, leaves)


def _program(
    name: str, captured: Captured, names: Sequence[str], form: Any, leaves: list[Any]
) -> Program:
    symbols = captured.symbols
    if symbols is None or not symbols.has_sizes:
        return Program(name, build_captured(captured), names, form, leaves)
    examples = [placeholder(symbols.example(x.type)) if isinstance(x, Value) else x for x in leaves]
    graph = with_names(captured)
    for i, p in zip(captured.inputs.arguments, graph.params, strict=False):
        leaves[i] = installed.tensor(p)
    if captured.found:
        lengths = Lengths(captured, build_captured)
        first = lengths.at([*examples, *(n.hint for n in symbols.found)])
        program = Program(name, first, names, form, leaves, lengths.at, lengths.full)
    else:
        instances = Instances(captured, build_captured)
        program = Program(name, instances.at(examples), names, form, leaves, instances.at)
    program.graph = graph
    return program


def _names(fn: Callable[..., Any]) -> tuple[str, ...]:
    """What the positional parameters of a function are called."""
    try:
        found = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return ()
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return tuple(p.name for p in found if p.kind in kinds)


@overload
def compile(
    fn_or_module: None = None,
    *,
    dynamic: bool | None = None,
    fallback: bool = True,
    fast_math: bool = False,
) -> Callable[[Callable[P, R]], Compiled[P, R]]: ...
@overload
def compile(
    fn_or_module: Callable[P, R],
    *,
    dynamic: bool | None = None,
    fallback: bool = True,
    fast_math: bool = False,
) -> Compiled[P, R]: ...
@says_keywords
def compile(
    fn_or_module: Any = None,
    *,
    dynamic: bool | None = None,
    fallback: bool = True,
    fast_math: bool = False,
) -> Any:
    """A function, or a module, that runs as one native program with the same bits; with
    `fast_math`, with fewer operations and perhaps other last bits.

    >>> import weft as wf
    >>> @wf.compile
    ... def f(x):
    ...     return (x * 2 + 1).sum()
    >>> f(wf.tensor([1.0, 2.0]))
    tensor(8.)
    """
    if fn_or_module is None:
        return functools.partial(compile, dynamic=dynamic, fallback=fallback, fast_math=fast_math)
    _expect_callable("compile", fn_or_module)
    name = getattr(fn_or_module, "__name__", type(fn_or_module).__name__)
    return Compiled(fn_or_module, build_captured, fallback, name, dynamic, fast_math)


def _expect_callable(place: str, f: Any) -> None:
    if not callable(f):
        raise DTypeError(place, expected="a function or a module", got=type(f).__name__)
