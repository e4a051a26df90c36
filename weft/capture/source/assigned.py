"""Which reads of variables may come before a value was assigned.

Marks those names (`unsure`: "local", or "free" of a function inside); their reads become operators,
and branches and loops say of these variables whether they have a value.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable
from typing import Any

from weft.capture.source.names import bound_by, children, declared, inside, parameters, stored

State = frozenset[str]
#: from Python 3.12 on comprehensions are no functions of their own
_INLINED = sys.version_info >= (3, 12)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def mark(node: Any) -> frozenset[str]:
    """Mark the reads in a function, and give the names of variables that are read so."""
    found = _Reads(node)
    found.block(node.body, found.given)
    return frozenset(found.unsure)


class _Reads:
    """Follows control through a function: what is assigned for certain wherever a name is read."""

    def __init__(self, node: Any) -> None:
        far = declared(node.body, ast.Global, ast.Nonlocal)
        self.given: State = frozenset(parameters(node.args))
        self.every: State = (self.given | frozenset(stored(node.body))) - far
        #: what a function inside finds when it is called, wherever it is defined
        self.later: State = frozenset(x for s in node.body for x in bound_by(s)) | self.given
        self.unsure: set[str] = set()
        self.breaks: list[list[State]] = []

    # statements: what is assigned after them, of what is before; all, where control doesn't come

    def block(self, body: Iterable[ast.stmt], state: State) -> State:
        for s in body:
            state = self.statement(s, state)
        return state

    def statement(self, s: Any, state: State) -> State:
        how = getattr(self, f"_{type(s).__name__}", None)
        if how is not None:
            return how(s, state)  # type: ignore[no-any-return]
        return self.expression(s, state)

    def _Assign(self, s: Any, state: State) -> State:
        state = self.expression(s.value, state) if s.value is not None else state
        for t in getattr(s, "targets", None) or [s.target]:
            state = self.expression(t, state)
        return state if s.value is None else state | self._bound(s)

    _AnnAssign = _Assign

    def _AugAssign(self, s: ast.AugAssign, state: State) -> State:
        if isinstance(s.target, ast.Name):
            self._read(s.target, state, "local")
        else:
            state = self.expression(s.target, state)
        return self.expression(s.value, state) | self._bound(s)

    def _Delete(self, s: ast.Delete, state: State) -> State:
        for t in s.targets:
            if isinstance(t, ast.Name):
                self._read(t, state, "local")
                state -= {t.id}
            else:
                state = self.expression(t, state)
        return state

    def _Return(self, s: ast.stmt, state: State) -> State:
        self.expression(s, state)
        return self.every

    _Raise = _Continue = _Return

    def _Break(self, s: ast.Break, state: State) -> State:
        if self.breaks:
            self.breaks[-1].append(state)
        return self.every

    def _Assert(self, s: ast.Assert, state: State) -> State:
        holds, fails = self.test(s.test, state)
        if s.msg is not None:
            self.expression(s.msg, fails)
        return holds

    def _If(self, s: ast.If, state: State) -> State:
        holds, fails = self.test(s.test, state)
        return self.block(s.body, holds) & self.block(s.orelse, fails)

    def _While(self, s: ast.While, state: State) -> State:
        holds, fails = self.test(s.test, state - _deleted(s.body))
        return self._loop(s, holds, fails)

    def _For(self, s: Any, state: State) -> State:
        state = self.expression(s.iter, state) - _deleted(s.body)
        state = self.expression(s.target, state)
        return self._loop(s, state | (frozenset(stored([s.target])) & self.every), state)

    _AsyncFor = _For

    def _loop(self, s: Any, inside_: State, behind: State) -> State:
        self.breaks.append([])
        self.block(s.body, inside_)
        out = self.block(s.orelse, behind)
        for state in self.breaks.pop():
            out &= state
        return out

    def _Try(self, s: Any, state: State) -> State:
        at_least = state - _deleted(s.body)
        out = self.block(s.orelse, self.block(s.body, state))
        for h in s.handlers:
            began = self.expression(h.type, at_least) if h.type is not None else at_least
            named = frozenset([h.name] if h.name else ())
            out &= self.block(h.body, began | named) - named
        at_least -= _deleted([*s.handlers, *s.orelse])
        last = self.block(s.finalbody, at_least)
        return (out | (last - at_least)) - _deleted(s.finalbody)

    _TryStar = _Try

    def _With(self, s: Any, state: State) -> State:
        for item in s.items:
            state = self.expression(item.context_expr, state)
            if item.optional_vars is not None:
                state = self.expression(item.optional_vars, state)
                state |= frozenset(stored([item.optional_vars])) & self.every
        out = self.block(s.body, state)
        ends_early = any("suppress" in ast.dump(i.context_expr) for i in s.items)
        return state & out if ends_early else out

    _AsyncWith = _With

    def _Match(self, s: ast.Match, state: State) -> State:
        state = self.expression(s.subject, state)
        out = self.every
        for case in s.cases:
            began = state | (frozenset(stored([case.pattern])) & self.every)
            if case.guard is not None:
                began, _ = self.test(case.guard, began)
            out &= self.block(case.body, began)
        last = s.cases[-1]
        certain = isinstance(last.pattern, ast.MatchAs) and last.pattern.pattern is None
        return out if certain and last.guard is None else out & state

    def _FunctionDef(self, s: Any, state: State) -> State:
        for x in (*s.decorator_list, *s.args.defaults, *filter(None, s.args.kw_defaults)):
            state = self.expression(x, state)
        state |= frozenset([s.name]) & self.every
        self._function(s, state)
        return state

    _AsyncFunctionDef = _FunctionDef

    def _ClassDef(self, s: ast.ClassDef, state: State) -> State:
        for x in (*s.decorator_list, *s.bases):
            state = self.expression(x, state)
        return state | (frozenset([s.name]) & self.every)

    def _Import(self, s: ast.stmt, state: State) -> State:
        return state | self._bound(s)

    _ImportFrom = _Import

    def _bound(self, s: ast.stmt) -> State:
        return frozenset(bound_by(s)) & self.every

    # expressions

    def test(self, x: ast.expr, state: State) -> tuple[State, State]:
        """What is assigned where a condition holds, and where it does not."""
        if isinstance(x, ast.UnaryOp) and isinstance(x.op, ast.Not):
            holds, fails = self.test(x.operand, state)
            return fails, holds
        if isinstance(x, ast.BoolOp):
            ends: list[State] = []
            for part in x.values:
                holds, fails = self.test(part, state)
                goes_on, ended = (holds, fails) if isinstance(x.op, ast.And) else (fails, holds)
                ends.append(ended)
                state = goes_on
            short = frozenset.intersection(*ends)
            return (state, short) if isinstance(x.op, ast.And) else (short, state)
        state = self.expression(x, state)
        if isinstance(x, ast.Constant):  # the other way is never gone
            return (state, self.every) if x.value else (self.every, state)
        return state, state

    def expression(self, x: Any, state: State) -> State:
        if isinstance(x, ast.Name):
            if isinstance(x.ctx, ast.Load):
                self._read(x, state, "local")
            return state
        if isinstance(x, ast.NamedExpr):
            return self.expression(x.value, state) | (frozenset([x.target.id]) & self.every)
        if isinstance(x, ast.BoolOp):
            holds, fails = self.test(x, state)
            return holds & fails
        if isinstance(x, ast.IfExp):
            holds, fails = self.test(x.test, state)
            return self.expression(x.body, holds) & self.expression(x.orelse, fails)
        if isinstance(x, ast.Lambda):
            for d in (*x.args.defaults, *filter(None, x.args.kw_defaults)):
                state = self.expression(d, state)
            self._function(x, state)
            return state
        if isinstance(x, _COMPREHENSIONS):
            return self._comprehension(x, state)
        for child in children(x):
            state = self.expression(child, state)
        return state

    def _read(self, x: ast.Name, state: State, how: str) -> None:
        if x.id in self.every and x.id not in state:
            x.unsure = how  # type: ignore[attr-defined]
            self.unsure.add(x.id)

    # what has names of its own

    def _function(self, node: Any, state: State) -> None:
        body = node.body if isinstance(node.body, list) else [node.body]
        own = set(stored(body)) - declared(body, ast.Nonlocal) | set(parameters(node.args))
        self._inner(body, own, state | self.later)

    def _comprehension(self, x: Any, state: State) -> State:
        first = x.generators[0]
        state = self.expression(first.iter, state)
        own = set(stored([g.target for g in x.generators]))
        rest = [c for c in children(x) if c is not first]
        inlined = _INLINED and not isinstance(x, ast.GeneratorExp)
        how = "local" if inlined else "free"
        self._inner([*rest, first.target, *first.ifs], own, state, how)
        return state

    def _inner(
        self, nodes: Iterable[ast.AST], own: set[str], state: State, how: str = "free"
    ) -> None:
        for n in nodes:
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id not in own:
                self._read(n, state, how)
            elif isinstance(n, _FUNCTIONS):
                body = n.body if isinstance(n.body, list) else [n.body]
                more = set(stored(body)) - declared(body, ast.Nonlocal)
                self._inner(body, own | more | set(parameters(n.args)), state)
                continue
            more = set()
            if isinstance(n, _COMPREHENSIONS):
                more = set(stored([g.target for g in n.generators]))
            if not isinstance(n, ast.ClassDef):
                inlined = how == "local" and not isinstance(n, ast.GeneratorExp)
                inside_ = "local" if inlined else "free"
                self._inner(children(n), own | more, state, inside_)


def _deleted(nodes: Iterable[ast.AST]) -> State:
    """Names that statements may take their values from."""
    found = [n for n in inside(nodes) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Del)]
    handlers = [n.name for n in inside(nodes) if isinstance(n, ast.ExceptHandler) and n.name]
    return frozenset([*(n.id for n in found), *handlers])
