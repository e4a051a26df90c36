"""The syntax tree of a function, from the file it was written in.

The whole file is parsed once, so that lines and columns are the user's own.
"""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Iterator
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
    found = [
        (node, owner)
        for node, owner in _definitions("".join(lines), code.co_firstlineno)
        if _name(node) == code.co_name and _arguments(node) == code.co_varnames[: _count(code)]
    ]
    if len(found) > 1:
        places = [p for p in code.co_positions() if None not in p and p[2:] != (0, 0)]
        found = [
            (n, o)
            for n, o in found
            if isinstance(n, ast.Lambda) and all(_is_inside(p, n.body) for p in places)
        ]
    return found[0] if len(found) == 1 else None


@functools.lru_cache(256)
def _parsed(text: str) -> ast.AST | None:
    try:
        return ast.parse(text)
    except SyntaxError:
        return None


def _definitions(text: str, line: int) -> list[tuple[Definition, str]]:
    """The functions that begin on a line."""
    tree = _parsed(text)
    return [] if tree is None else list(_walk(tree, "", line))


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
