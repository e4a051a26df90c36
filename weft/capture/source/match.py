"""`match`: cases become patterns and functions, which an operator goes through.

    match x:                 def case_1_0():
        case 0:                  …
            …                def case_1_1():
        case [a, b] if a > 0:    …
            …                def bind_1_1(a_, b_):
                                 nonlocal a, b
                                 a, b = (a_, b_)
                             weft__.match(x, get_1, set_1, ("a", "b"), (
                                 (weft__.equals(lambda: 0), None, None, case_1_0),
                                 (weft__.sequence(weft__.named("a"), weft__.named("b")),
                                  bind_1_1, lambda: a > 0, case_1_1)))

A case that may leave (return, break, continue) gives a signal, as blocks of `with` do.
"""

from __future__ import annotations

import ast
from typing import Any

from weft.capture.source.expressions import at, define, op, thunk
from weft.capture.source.guarded import after
from weft.capture.source.names import escapes, stored


def match(c: Any, s: ast.Match, inner: Any, loop: bool) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """The statement, and what is still to be converted that comes right behind it."""
    c.count += 1
    n = c.count
    leaves = escapes([s])
    behind = after(s, f"signal_{n}", loop) if leaves else []
    names = stored(s.cases)
    made: list[ast.stmt] = []
    cases: list[ast.expr] = []
    head = c.visit(s.subject)
    for i, case in enumerate(s.cases):
        bind: ast.expr = ast.Constant(None)
        bound = stored([case.pattern])
        if bound:
            bind = ast.Name(f"bind_{n}_{i}", ast.Load())
            made.append(at(case.pattern, _binding(c, f"bind_{n}_{i}", bound)))
        guard: ast.expr = ast.Constant(None)
        if case.guard is not None:
            guard = ast.Name(f"guard_{n}_{i}", ast.Load())
            names_ = stored([case.guard])
            asked = define(f"guard_{n}_{i}", [ast.Return(c.visit(case.guard))], [])
            made.append(at(case.guard, c._declare(asked, names_)))
        body = f"case_{n}_{i}"
        made.append(c._function(body, case.body, inner, stored(case.body)))
        parts = [_pattern(c, case.pattern), bind, guard, ast.Name(body, ast.Load())]
        cases.append(at(case.pattern, ast.Tuple(parts, ast.Load())))
    every = ast.Tuple(cases, ast.Load())
    call = c._call(at(s, head), "match", n, names, head, None, None, made, every)
    if leaves:
        made.append(at(s, ast.Assign([ast.Name(f"signal_{n}", ast.Store())], call)))
    else:
        made.append(at(s, ast.Expr(call)))
    return made, behind


def _binding(c: Any, name: str, bound: list[str]) -> ast.stmt:
    """A function that binds what a pattern has captured."""
    values = [f"{x}_" for x in bound]
    targets = ast.Tuple([ast.Name(x, ast.Store()) for x in bound], ast.Store())
    found = ast.Tuple([ast.Name(v, ast.Load()) for v in values], ast.Load())
    return c._declare(define(name, [ast.Assign([targets], found)], values), bound)  # type: ignore[no-any-return]


def _pattern(c: Any, p: ast.pattern) -> ast.expr:
    """The call that makes a pattern."""

    def parts(found: list[ast.pattern]) -> list[ast.expr]:
        return [_pattern(c, x) for x in found]

    if isinstance(p, ast.MatchValue):
        return op(p, "equals", thunk(c.visit(p.value)))
    if isinstance(p, ast.MatchSingleton):
        return op(p, "is_", ast.Constant(p.value))
    if isinstance(p, ast.MatchSequence):
        return op(p, "sequence", *parts(p.patterns))
    if isinstance(p, ast.MatchStar):
        return op(p, "rest", ast.Constant(p.name))
    if isinstance(p, ast.MatchMapping):
        keys = ast.Tuple([thunk(c.visit(k)) for k in p.keys], ast.Load())
        return op(p, "mapping", ast.Constant(p.rest), at(p, keys), *parts(p.patterns))
    if isinstance(p, ast.MatchClass):
        names = ast.Tuple([ast.Constant(c._mangled(x)) for x in p.kwd_attrs], ast.Load())
        found = parts([*p.patterns, *p.kwd_patterns])
        return op(p, "instance", thunk(c.visit(p.cls)), at(p, names), *found)
    if isinstance(p, ast.MatchOr):
        return op(p, "either", *parts(p.patterns))
    assert isinstance(p, ast.MatchAs)
    return op(p, "named", ast.Constant(p.name), *parts([p.pattern] if p.pattern else []))
