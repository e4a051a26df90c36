"""Blocks of `with` and `try` that branches may leave: return, break, continue, raise.

    with a:                  def block_1():
        if x > 0:                …               # gives None, BREAK, CONTINUE, Return(value)
            return y         with a:
        z = x                    signal_1 = block_1()
    rest                     if weft__.returned(signal_1): return weft__.returned_value(signal_1)
                             rest

The block is a function, whose branches take what follows them in it along, as those of a loop's
body do. What it ends with is looked at behind the statement. An error that a handler of the same
statement takes is one of the ways to leave the block; `caught` goes on from it in the program.
"""

from __future__ import annotations

import ast
from typing import Any

from weft.capture.source.expressions import at, copied, op, thunk
from weft.capture.source.names import breaks, escapes, parts, returns, stored

_LEAVING = (ast.Return, ast.Break, ast.Continue)


def is_guarded(s: ast.stmt) -> bool:
    """Whether a branch inside such a statement may leave it."""
    if not isinstance(s, ast.With | ast.Try):
        return False
    if isinstance(s, ast.Try) and s.handlers:
        return True
    blocks = [b for b in parts(s) if b is not getattr(s, "finalbody", None)]
    inside = [x for b in blocks for x in b if not isinstance(x, _LEAVING)]
    return escapes(inside)


def guard(
    c: Any, s: Any, inner: Any, handled: Any, loop: bool
) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """The statement, and what is still to be converted that comes right behind it.

    `c` is the converter; `inner` says where the blocks stand, `handled` where one stands whose
    errors are handled; `loop`, whether the statement is in the body of a loop.
    """
    return _Guard(c, s, inner, handled, loop).run()


class _Guard:
    def __init__(self, c: Any, s: Any, inner: Any, handled: Any, loop: bool) -> None:
        c.count += 1
        self.c, self.s, self.inner, self.n = c, s, inner, c.count
        self.handled, self.loop = handled, loop
        self.signal = f"signal_{self.n}"
        self.made: list[ast.stmt] = []

    def run(self) -> tuple[list[ast.stmt], list[ast.stmt]]:
        s, c = self.s, self.c
        behind = after(s, self.signal, self.loop)
        if isinstance(s, ast.With):
            if not getattr(s, "ready", False):
                s.items = [c.visit(item) for item in s.items]
            s.body = [self._run("block", s.body)]
            out: list[ast.stmt] = [s]
        else:
            out = self._try(s)
        start = at(s, ast.Assign([ast.Name(self.signal, ast.Store())], ast.Constant(None)))
        return [*self.made, start, *out], behind

    def _run(self, name: str, body: list[ast.stmt], error: str = "", inner: Any = None) -> ast.stmt:
        """A block as a function, and its call."""
        name = f"{name}_{self.n}"
        params = [error] if error else []
        function = self.c._function(name, body, inner or self.inner, stored(body), params)
        self.made.append(function)
        args: list[ast.expr] = [ast.Name(p, ast.Load()) for p in params]
        call = ast.Call(ast.Name(name, ast.Load()), args, [])
        return at(self.s, ast.Assign([ast.Name(self.signal, ast.Store())], call))

    def _try(self, s: ast.Try) -> list[ast.stmt]:
        c, n = self.c, self.n
        out: list[ast.stmt] = [s]
        bound = stored([*s.body, *s.orelse])
        kinds = c.kinds_of(s)
        s.body = [self._run("block", s.body, inner=self.handled if s.handlers else None)]
        block, begun = f"try_{n}", ast.Name(f"try_{n}", ast.Load())
        if s.handlers:
            s.body = [c.handling(s, kinds, f"get_{n}", block)]
        names = bound
        functions: list[ast.expr] = []
        for i, h in enumerate(s.handlers):
            error = f"error{i}_{n}"
            if h.name:
                named = ast.Assign([ast.Name(h.name, ast.Store())], ast.Name(error, ast.Load()))
                h.body = [at(h, named), *h.body]
            names += [x for x in stored(h.body) if x not in names]
            c.errors.append(error)
            h.body = [self._run(f"handler{i}", h.body, error)]
            c.errors.pop()
            functions.append(ast.Name(f"handler{i}_{n}", ast.Load()))
            h.type, h.name = (c.visit(h.type) if h.type else None), error
        if s.orelse:
            taken = stored(s.orelse)
            self._run("else", s.orelse)
            c.count += 1
            head = at(s, ast.Name(self.signal, ast.Load()))
            function = f"else_{n}"
            call = c._call(head, "orelse", c.count, taken, head, function, None, self.made, begun)
            s.orelse = [at(s, ast.Assign([ast.Name(self.signal, ast.Store())], call))]
        if s.handlers:
            pairs: list[ast.expr] = [
                ast.Tuple([thunk(copied(k)), f], ast.Load())
                for k, f in zip(kinds, functions, strict=True)
            ]
            head = ast.Name(self.signal, ast.Load())
            made: list[ast.stmt] = []
            more = ast.Tuple(pairs, ast.Load())
            call = c._call(at(s, head), "caught", n, names, head, None, None, made, begun, more)
            s.handlers.insert(0, refusals(s))
            caught = at(s, ast.Assign([ast.Name(self.signal, ast.Store())], call))
            out = [*made, s, caught]
        return out


def refusals(s: ast.stmt) -> ast.ExceptHandler:
    """What comes before the handlers of a try: it lets pass what is not of the function's doing."""
    return at(s, ast.ExceptHandler(op(s, "refusals"), None, [ast.Raise(None, None)]))


def after(s: ast.stmt, signal: str, loop: bool) -> list[ast.stmt]:
    """What the ways to leave the blocks of a statement mean behind it."""
    out: list[ast.stmt] = []

    def leave(test: str, then: ast.stmt) -> None:
        asked = op(s, test, ast.Name(signal, ast.Load()))
        out.append(_marked(at(s, ast.If(asked, [then], []))))

    if returns([s]):
        value = op(s, "returned_value", ast.Name(signal, ast.Load()))
        if loop:
            value = op(s, "Return", value)
        leave("returned", _marked(at(s, ast.Return(value))))
    if breaks([s]):
        leave("broke", at(s, ast.Break()))
    if breaks([s], ast.Continue):
        leave("skipped", at(s, ast.Continue()))
    return out


def _marked(node: Any) -> Any:
    """A statement whose expressions are converted already."""
    node.ready = True
    return node
