"""The syntax tree of a function, from the file it was written in, with the lines and columns that
it has there.

A function that stands by itself is parsed by itself: files are long. Else the whole file is, once.
"""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Iterator
from itertools import pairwise
from types import CodeType
from typing import Any

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def definition(code: CodeType) -> tuple[Definition, str] | None:
    """The tree of a function with this code and the class it stands in ("" for none), or None
    where there is no source.
    """
    lines = linecache.getlines(code.co_filename)
    if not lines:
        return None
    found = _fitting(_parse(_alone(lines, code.co_firstlineno)), code, _owner(code))
    if len(found) != 1:
        found = _fitting(_parsed("".join(lines)), code)
    if len(found) > 1:
        places = [p for p in code.co_positions() if None not in p and p[2:] != (0, 0)]
        found = [
            (n, o)
            for n, o in found
            if isinstance(n, ast.Lambda) and all(_is_inside(p, n.body) for p in places)
        ]
    return found[0] if len(found) == 1 else None


def _fitting(tree: ast.AST | None, code: CodeType, owner: str = "") -> list[tuple[Definition, str]]:
    """The functions of a tree that a code may be of."""
    return [
        (node, found)
        for node, found in ([] if tree is None else _walk(tree, owner, code.co_firstlineno))
        if _name(node) == code.co_name and _arguments(node) == code.co_varnames[: _count(code)]
    ]


def _parse(text: str) -> ast.AST | None:
    try:
        return ast.parse(text)
    except SyntaxError:
        return None


_parsed = functools.lru_cache(256)(_parse)


def _alone(lines: list[str], first: int) -> str:
    """The text of the `def` on a line, up to the next line that is indented no more, in its place.
    Where that cuts something in two, it is no Python any more.
    """
    start = lines[first - 1 : first]
    if not start or not start[0].lstrip().startswith(("def ", "async def ")):
        return ""
    indent = start[0][: len(start[0]) - len(start[0].lstrip())]
    inside = tuple(indent + c for c in " \t)")  # the bracket that ends its arguments
    last = first
    while last < len(lines):
        line = lines[last].strip()
        if line and line[0] != "#" and not lines[last].startswith(inside):
            break
        last += 1
    before = "\n" * (first - 2) + "if True:\n" if indent else "\n" * (first - 1)
    return before + "".join(lines[first - 1 : last])


def _owner(code: CodeType) -> str:
    """The class that a function stands in, from its qualified name."""
    names = pairwise(code.co_qualname.split("."))  # the last is its own
    classes = [name for name, inner in names if "<locals>" not in (name, inner)]
    return classes[-1] if classes else ""


def _walk(tree: ast.AST, owner: str, line: int) -> Iterator[tuple[Definition, str]]:
    for node in ast.iter_child_nodes(tree):
        first, last = _first_line(node), getattr(node, "end_lineno", line)
        if first > line or last < line:
            continue
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) and first == line:
            yield node, owner
        yield from _walk(node, node.name if isinstance(node, ast.ClassDef) else owner, line)


def _name(node: Definition) -> str:
    return "<lambda>" if isinstance(node, ast.Lambda) else node.name


def _first_line(node: ast.AST) -> int:
    """That of its first decorator, if it has one; 0 for what has no place."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    lines: list[int] = [getattr(node, "lineno", 0), *(d.lineno for d in decorators)]
    return min(lines)


def _arguments(node: Definition) -> tuple[str, ...]:
    a = node.args
    several = [x for x in (a.vararg, a.kwarg) if x is not None]
    return tuple(x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs, *several))


def _count(code: CodeType) -> int:
    varargs, varkeywords = code.co_flags & 4, code.co_flags & 8
    return code.co_argcount + code.co_kwonlyargcount + bool(varargs) + bool(varkeywords)


def _is_inside(place: Any, node: ast.expr) -> bool:
    first, last, start, end = place
    begins = (node.lineno, node.col_offset) <= (first, start)
    return begins and (last, end) <= (node.end_lineno, node.end_col_offset)
