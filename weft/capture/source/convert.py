"""A function, converted: the same function, whose reads, calls and control flow go through
operators (`weft.capture.source.operators`).

The new code keeps file, lines and columns, so that tracebacks and the places of ops are the
user's; it shares globals, closure cells and defaults with the function it was made from.
"""

from __future__ import annotations
import __future__

import ast
import functools
import inspect
import threading
import types
from typing import Any

from weft.capture.implicit import is_users
from weft.capture.refusal import NO_SOURCE
from weft.capture.source.expressions import OPERATORS, at, copied, placed
from weft.capture.source.find import definition
from weft.capture.source.statements import Statements

_FUTURE = functools.reduce(
    lambda a, n: a | getattr(__future__, n).compiler_flag, __future__.all_feature_names, 0
)

#: by id of the code, and whether operators are converted too; the code is held so that its id
#: stays its own
_converted: dict[tuple[int, bool], tuple[types.CodeType, types.CodeType | None, str]] = {}
_own: dict[int, types.CodeType] = {}  # of functions inside converted ones
_MOST = 1 << 14


class _Operating(threading.local):
    """Whether `+`, `<` and the like are converted too, for classes of the user's that have them."""

    on = False

    def __enter__(self) -> None:
        self.on = True

    def __exit__(self, *_: object) -> None:
        self.on = False


operating = _Operating()


def was_operator(error: BaseException) -> bool:
    """Whether an error came out of a special method that ran as it is, called by an operator."""
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        trace = found.__traceback__
        while trace is not None:
            code = trace.tb_frame.f_code
            special = code.co_name.startswith("__") and code.co_name.endswith("__")
            if special and is_users(code.co_filename) and OPERATORS not in code.co_freevars:
                return _own.get(id(code)) is not code
            trace = trace.tb_next
        found = found.__cause__ or found.__context__
    return False


def is_converted(f: Any) -> bool:
    code = f.__code__
    return OPERATORS in code.co_freevars or _own.get(id(code)) is code


def convert(f: Any) -> Any:
    """`f` converted; `f` itself if it has no source (see `why_not`)."""
    code, _ = _code(f.__code__)
    if code is None:
        return f
    cells = dict(zip(f.__code__.co_freevars, f.__closure__ or (), strict=True))
    cells[OPERATORS] = _operators
    closure = tuple(cells[n] if n in cells else types.CellType() for n in code.co_freevars)
    new = types.FunctionType(code, f.__globals__, f.__name__, f.__defaults__, closure)
    new.__kwdefaults__, new.__qualname__ = f.__kwdefaults__, f.__qualname__
    new.__doc__, new.__module__ = f.__doc__, f.__module__
    new.__dict__.update(f.__dict__)
    return new


def why_not(f: Any) -> str:
    """Why a function runs as it is, or ""."""
    return _code(f.__code__)[1]


#: the closure cell that converted functions find their operators in
_operators = types.CellType()


def install(operators: Any) -> None:
    """Say which module the operators are."""
    _operators.cell_contents = operators


def source(f: Any) -> str:
    """The converted function as Python text."""
    found = definition(f.__code__)
    if found is None:
        return ""
    return ast.unparse(_tree(*found))


def _code(code: types.CodeType) -> tuple[types.CodeType | None, str]:
    key = id(code), operating.on
    known = _converted.get(key)
    if known is None:
        if len(_converted) >= _MOST:
            _converted.clear()
        known = _converted[key] = (code, *_make(code))
    return known[1], known[2]


def _make(code: types.CodeType) -> tuple[types.CodeType | None, str]:
    place = f"{code.co_name} at {code.co_filename}:{code.co_firstlineno}"
    found = definition(code)
    if found is None:
        return None, f"the source of {place} {NO_SOURCE}"
    tree = _tree(*found)
    if isinstance(tree, ast.FunctionDef | ast.AsyncFunctionDef):
        tree.name = f"{OPERATORS}function"  # what the user's name means inside is the user's
    free = [n for n in code.co_freevars if n != OPERATORS]
    args = ast.arguments(
        posonlyargs=[], args=[ast.arg(n) for n in (OPERATORS, *free)], vararg=None,
        kwonlyargs=[], kw_defaults=[], kwarg=None, defaults=[],
    )  # fmt: skip
    fields: dict[str, Any] = {"decorator_list": [], "returns": None, "type_params": []}
    outer = ast.FunctionDef(name="outer", args=args, body=[tree], **fields)
    module = ast.Module([at(tree, outer)], [])
    flags = code.co_flags & _FUTURE
    try:
        whole = compile(placed(module), code.co_filename, "exec", flags, True)
    except (SyntaxError, ValueError, RecursionError) as e:
        return None, f"{place} can't be converted: {e}"
    new = _inner(_inner(whole))
    _claim(new)
    return new.replace(co_name=code.co_name, co_qualname=code.co_qualname), ""


def _tree(node: Any, owner: str) -> Any:
    """A definition converted, as a statement or (lambdas) an expression statement."""
    node = copied(node)
    _no_defaults(node.args)
    node.returns = None
    converter = Statements(owner)
    converter.operating = operating.on
    if isinstance(node, ast.Lambda):
        node.body = converter.visit(node.body)
        return at(node, ast.Expr(node))
    node.type_params = []  # of `def f[T](x)`, since 3.12: those of the function itself, free here
    return converter.function(node)


def _no_defaults(args: ast.arguments) -> None:
    """Defaults come from the function itself; only their number matters, to the compiler."""
    args.defaults = [ast.copy_location(ast.Constant(None), d) for d in args.defaults]
    args.kw_defaults = [d and ast.copy_location(ast.Constant(None), d) for d in args.kw_defaults]
    for a in (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg):
        if a is not None:
            a.annotation = None


def _claim(code: types.CodeType) -> None:
    """Remember functions defined inside as converted, whether they call operators or not."""
    for c in code.co_consts:
        if inspect.iscode(c) and c.co_flags & inspect.CO_NEWLOCALS:  # not the body of a class
            _own[id(c)] = c
            _claim(c)


def _inner(code: types.CodeType) -> types.CodeType:
    return next(c for c in code.co_consts if inspect.iscode(c))
