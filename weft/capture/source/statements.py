"""Statements: branches and loops become operators on functions.

    if x > 0:            def if_1():                    def get_1():
        y = x                nonlocal y                     return (weft__.load(lambda: y),)
    else:                    y = x                      def set_1(y_):
        y = -x           def else_1():                      nonlocal y; …
                             nonlocal y
                             y = -x
                         weft__.if_(x > 0, if_1, else_1, get_1, set_1, ("y",))

A branch that may leave early (return, break, continue) takes what follows it along: after it there
is nothing left to do but to return what it gives. In the body of a loop that is a signal: None to
go on, `BREAK`, or `Return(value)`. Inside `with` and `try` this can't be said; there such a branch
stays Python's.
"""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import replace
from typing import Any

from weft.capture.source.assigned import mark
from weft.capture.source.assignments import Assignments
from weft.capture.source.expressions import at, copied, define, is_bool, op, operator, thunk
from weft.capture.source.guarded import guard, is_guarded, refusals
from weft.capture.source.match import match
from weft.capture.source.names import (
    breaks,
    declared,
    escapes,
    every,
    falls_through,
    inside,
    parameters,
    returns,
    stored,
)
from weft.types.record import dataclass

#: statements that leave a block, or go on in it, by themselves
_ENDS = (ast.Return, ast.Break, ast.Continue, ast.Raise, ast.Assert)


@dataclass(frozen=True)
class Context:
    """Where a block stands."""

    loop: bool = False  # in the body of a converted loop
    strict: bool = False  # inside with or try: nothing after a statement can be moved
    plain: bool = False  # a generator or coroutine: control flow stays as it is
    block: bool = False  # in a block that is a function: see `weft.capture.source.guarded`
    handled: bool = False  # likewise, of a statement that handles errors


class Statements(Assignments):
    """Converts one function; nested ones by converters of their own."""

    def __init__(
        self, owner: str, inner: frozenset[str] = frozenset(), unsure: frozenset[str] = frozenset()
    ) -> None:
        super().__init__(owner)
        self.inner = inner  # names of the converted functions around this one
        self.locals: frozenset[str] = inner
        self.unsure = unsure  # variables that may have no value when they are read
        self.count = 0
        self.globals: set[str] = set()
        self.nonlocals: set[str] = set()
        self.errors: list[str] = []  # what the handlers around call theirs
        self.shared: dict[str, None] = {}  # names that blocks as functions bind
        self.reads: Counter[str] = Counter()

    # functions

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Any:
        """The function converted, without its decorators."""
        body = node.body
        self.first = next((a.arg for a in (*node.args.posonlyargs, *node.args.args)), "")
        kinds = (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith)
        plain = isinstance(node, ast.AsyncFunctionDef) or any(
            isinstance(n, kinds) for n in inside(body)
        )
        self.globals = declared(body, ast.Global)
        self.nonlocals = declared(body, ast.Nonlocal)
        self.reads = _reads(body)
        bound = set(stored(body))
        own = set(parameters(node.args)) | bound
        theirs = self.globals | self.nonlocals
        self.unsure = self.unsure - (own - theirs) | mark(node)
        self.locals = self.inner | (own - self.globals - self.nonlocals)
        stated = [n for n in body if isinstance(n, ast.Global | ast.Nonlocal)]
        new = self.block(body, Context(plain=plain))
        mine = [n for n in self.shared if n not in self.globals and n not in self.nonlocals]
        if mine:  # bound by functions inside only: say that they are this one's
            targets: list[ast.expr] = [ast.Name(n, ast.Store()) for n in mine]
            binding = ast.Assign(targets, ast.Constant(None))
            new.insert(len(stated), at(body[0], ast.If(ast.Constant(False), [binding], [])))
        outside = self.globals | (self.nonlocals - self.inner)
        assigned = sorted(outside & bound)
        if assigned:
            names = ast.Tuple([ast.Constant(n) for n in assigned], ast.Load())
            new.insert(len(stated), at(body[0], ast.Expr(op(body[0], "outside", names))))
        far = {n for inner in _functions(body) for n in declared(inner.body, ast.Nonlocal)}
        told = {"owns": far & (self.locals - self.inner), "rebinds": self.nonlocals & self.inner}
        for name, names_ in told.items():
            if names_:
                each: list[ast.expr] = [ast.Name(n, ast.Load()) for n in sorted(names_)]
                cells = thunk(at(body[0], ast.Tuple(each, ast.Load())))
                new.insert(len(stated), at(body[0], ast.Expr(op(body[0], name, cells))))
        node.body = new
        node.decorator_list = []
        return node

    def visit_FunctionDef(self, node: Any) -> Any:
        decorators = [self.visit(d) for d in node.decorator_list]
        node.args = self.visit(node.args)
        converter = type(self)(self.owner, self.locals, self.unsure)
        converter.operating = self.operating
        made: list[Any] = [converter.function(node)]
        for d in reversed(decorators):
            target = ast.Name(node.name, ast.Store())
            call = ast.Call(operator("call"), [d, ast.Name(node.name, ast.Load())], [])
            made.append(at(node, ast.Assign([target], call)))
        return made

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        return node  # the methods are converted when they are called

    def variables(self) -> frozenset[str]:
        return self.locals

    # errors

    def visit_Raise(self, node: ast.Raise) -> Any:
        if node.exc is None and not self.errors:
            return node
        return at(node, ast.Raise(op(node, "error", *self._raised(node)), None))

    def _raised(self, node: ast.Raise) -> list[ast.expr]:
        """The error and its cause."""
        if node.exc is None:
            return [at(node, ast.Name(self.errors[-1], ast.Load()))]
        if getattr(node, "asserted", False):
            call: Any = node.exc
            call.args = [self.visit(a) for a in call.args]
            return [call]
        return [self.visit(x) for x in (node.exc, node.cause) if x is not None]

    def _assert(self, node: ast.Assert) -> ast.stmt:
        """`if not test: raise AssertionError(message)`"""
        message = [] if node.msg is None else [node.msg]
        error = ast.Raise(ast.Call(operator("failed"), message, []), None)
        fails = ast.UnaryOp(ast.Not(), node.test)
        return at(node, ast.If(fails, [_asserted(at(node, error))], []))

    # blocks

    def block(self, body: list[ast.stmt], ctx: Context) -> list[ast.stmt]:
        """Statements, converted."""
        out: list[ast.stmt] = []
        for i, s in enumerate(body):
            if isinstance(s, ast.Assert):
                s = self._assert(s)
            if isinstance(s, ast.Try) and s.finalbody and not escapes(s.finalbody):
                out.append(self._finished(s, ctx))
            if isinstance(s, ast.If) and not ctx.plain:
                new, rest_taken = self._if(s, body[i + 1 :], ctx)
                out += new
                if rest_taken:
                    return out
            elif isinstance(s, ast.While | ast.For) and not ctx.plain:
                new, after = self._loop(s, ctx)
                out += new
                if after:
                    return out + self.block([*after, *body[i + 1 :]], ctx)
            elif is_guarded(s) and not ctx.plain:
                inner = Context(loop=True, block=True)
                new, after = guard(self, s, inner, replace(inner, handled=True), ctx.loop)
                return [*out, *new, *self.block([*after, *body[i + 1 :]], ctx)]
            elif isinstance(s, ast.Match) and not ctx.plain:
                new, after = match(self, s, Context(loop=True, block=True), ctx.loop)
                return [*out, *new, *self.block([*after, *body[i + 1 :]], ctx)]
            else:
                out += self._statement(s, ctx)
        return out

    def _statement(self, s: ast.stmt, ctx: Context) -> list[ast.stmt]:
        if isinstance(s, ast.Return):
            if getattr(s, "ready", False):
                return [s]
            value = self.visit(s.value) if s.value is not None else ast.Constant(None)
            if isinstance(s.value, ast.Name | ast.Tuple | ast.List | ast.Dict):
                value = op(s, "given", at(s, value))
            s.value = op(s, "Return", at(s, value)) if ctx.loop else at(s, value)
            return [s]
        if isinstance(s, ast.Break) and ctx.loop:
            return [at(s, ast.Return(operator("BREAK")))]
        if isinstance(s, ast.Continue) and ctx.loop:
            gone_on = operator("CONTINUE") if ctx.block else ast.Constant(None)
            return [at(s, ast.Return(gone_on))]
        if isinstance(s, ast.Raise) and ctx.handled and s.exc is not None:
            return [at(s, ast.Return(op(s, "thrown", *self._raised(s))))]
        if isinstance(s, ast.Nonlocal | ast.Global):
            return [s]
        if isinstance(s, ast.If | ast.For | ast.While | ast.With | ast.AsyncFor | ast.AsyncWith):
            return [self._compound(s, replace(ctx, strict=True, handled=False))]
        if isinstance(s, ast.Try | ast.Match) or type(s).__name__ == "TryStar":
            return [self._compound(s, replace(ctx, strict=True, handled=False))]
        new = self.visit(s)
        return new if isinstance(new, list) else [new]

    def _compound(self, s: Any, ctx: Context) -> ast.stmt:
        """A statement that stays what it is around blocks that are converted."""
        starred = type(s).__name__ == "TryStar"
        if getattr(s, "handlers", None):
            s.body = [self.handling(s, self.kinds_of(s))]
        for name, value in ast.iter_fields(s):
            if name in ("body", "orelse", "finalbody"):
                setattr(s, name, self.block(value, ctx))
            elif name in ("handlers", "cases"):
                for part in value:
                    part.body = self.block(part.body, ctx)
                    for field in ("type", "guard"):
                        if getattr(part, field, None) is not None:
                            setattr(part, field, self.visit(getattr(part, field)))
            elif name == "items" and not getattr(s, "ready", False):
                s.items = [self.visit(item) for item in value]
            elif name in ("test", "iter", "subject"):
                setattr(s, name, self.visit(value))
        if getattr(s, "handlers", None) and not starred:
            s.handlers.insert(0, refusals(s))
        return s  # type: ignore[no-any-return]

    def kinds_of(self, s: ast.Try) -> list[ast.expr]:
        """The classes of errors that each handler takes."""
        everything: ast.expr = ast.Name("BaseException", ast.Load())
        kinds = [self.visit(copied(h.type)) if h.type else everything for h in s.handlers]
        return [op(h, "kinds", at(h, k)) for h, k in zip(s.handlers, kinds, strict=True)]

    def handling(
        self, s: ast.Try, kinds: list[ast.expr], get: str = "", name: str = ""
    ) -> ast.stmt:
        """The body of a try, with its handlers told of, and the variables it binds."""
        parts: list[ast.expr] = [ast.Starred(copied(k), ast.Load()) for k in kinds]
        given = at(s, ast.Tuple(parts, ast.Load()))
        more = [ast.Name(get, ast.Load())] if get else []
        target = ast.Name(name, ast.Store()) if name else None
        item = ast.withitem(op(s, "handling", thunk(given), *more), target)
        return at(s, _ready(ast.With([item], s.body)))  # type: ignore[no-any-return]

    def _finished(self, s: ast.Try, ctx: Context) -> ast.stmt:
        """The last part of a try as a function, which paths that raise call too."""
        self.count += 1
        name = f"finally_{self.count}"
        made = self._function(name, s.finalbody, ctx, stored(s.finalbody))
        last = ast.Name(name, ast.Load())
        inner: list[ast.stmt] = s.body
        if s.handlers:
            inner = [ast.Try(s.body, s.handlers, s.orelse, [])]
        item = ast.withitem(op(s, "finishing", last), None)
        call = ast.Call(ast.Name(name, ast.Load()), [], [])
        block = at(s, ast.With([item], [at(s, i) for i in inner]))
        s.body, s.handlers, s.orelse = [_ready(block)], [], []
        s.finalbody = [at(s, ast.Expr(call))]
        return made

    # branches

    def _if(self, s: ast.If, rest: list[ast.stmt], ctx: Context) -> tuple[list[ast.stmt], bool]:
        """The branch, and whether what follows went into it."""
        leaves = escapes([s], ctx.handled)
        ready = getattr(s, "ready", False)
        test = s.test if ready else self.test(s.test)
        inner = [b for b in (*s.body, *s.orelse) if not isinstance(b, _ENDS)]
        alone = is_bool(s.test) and not ready and not escapes(inner, ctx.handled)
        if alone or (leaves and ctx.strict):
            s.test = test if is_bool(s.test) else op(s, "test", test)
            s.body, s.orelse = self.block(s.body, ctx), self.block(s.orelse, ctx)
            return [s], False
        self.count += 1
        n = self.count
        body, orelse, made = list(s.body), list(s.orelse), []
        names = stored([*body, *orelse, *(rest if leaves else ())])
        if leaves and rest:
            ways = [b for b in (body, orelse) if falls_through(b)]
            if len(ways) > 1 and len(rest) > 1:
                made.append(self._function(f"rest_{n}", rest, replace(ctx), stored(rest)))
                call = ast.Call(ast.Name(f"rest_{n}", ast.Load()), [], [])
                binds = stored(rest)
                rest = [_ready(at(rest[0], ast.Return(call)))]
                rest[0].binds = binds  # type: ignore[attr-defined]
            if len(ways) > 1:
                ways[1] += [copied(r) for r in rest]
                ways[0] += rest
            elif ways:
                ways[0] += rest
        kept = names
        if leaves and not ctx.loop:  # nothing of this function is left to read them
            kept = [x for x in names if x in self.globals or x in self.nonlocals]
        made.append(self._function(f"if_{n}", body, ctx, names))
        made.append(self._function(f"else_{n}", orelse, ctx, names))
        names = kept + [x for x in names if x not in kept]
        paths = (f"if_{n}", f"else_{n}")
        outcome = self._call(s.test, "if_", n, names, test, *paths, made, kept=len(kept))
        if leaves:
            made.append(at(outcome, ast.Return(outcome)))
        else:
            made.append(at(outcome, ast.Expr(outcome)))
        return made, leaves

    # loops

    def _loop(self, s: ast.While | ast.For, ctx: Context) -> tuple[list[ast.stmt], list[ast.stmt]]:
        """The loop, and statements still to be converted that come right after it."""
        self.count += 1
        n = self.count
        leaves, otherwise = returns(s.body), s.orelse
        inner = Context(loop=True)
        made: list[ast.stmt] = []
        body = list(s.body)
        within = _reads([s])
        live = [x for x, k in self.reads.items() if k > within[x]]
        item: list[str] = []
        if isinstance(s, ast.For):
            item = [f"item_{n}"]
            value = ast.Name(item[0], ast.Load())
            names = stored([s.target, *body])
            taken = at(s.target, ast.Assign([s.target], value))
            head = self.visit(s.iter)
        else:
            names = stored([s.test, *body])
            taken = None
            test = define(f"test_{n}", [at(s.test, ast.Return(self.test(s.test)))], [])
            made.append(at(s.test, self._declare(test, stored([s.test]))))
            head = ast.Name(f"test_{n}", ast.Load())
        at(s.iter if isinstance(s, ast.For) else s.test, head)
        made.append(self._function(f"body_{n}", body, inner, names, item, taken))
        outside = ast.Tuple([ast.Constant(x) for x in names if x in live], ast.Load())
        name = "for_" if isinstance(s, ast.For) else "while_"
        call = self._call(head, name, n, names, head, f"body_{n}", None, made, outside)
        if not leaves and not otherwise:
            made.append(at(call, ast.Expr(call)))
            return made, []
        signal = f"signal_{n}"
        made.append(at(call, ast.Assign([ast.Name(signal, ast.Store())], call)))
        after: list[ast.stmt] = []
        if leaves:
            value = ast.Name(signal, ast.Load())
            result = op(s, "returned_value", value)
            if ctx.loop:
                result = op(s, "Return", result)
            out = _ready(at(s, ast.Return(result)))
            if _is_endless(s):
                return [*made, out], []
            test_ = op(s, "returned", ast.Name(signal, ast.Load()))
            after.append(_ready(at(s, ast.If(test_, [out], []))))
        if otherwise:
            test_ = op(s, "completed", ast.Name(signal, ast.Load()))
            after.append(_ready(at(s, ast.If(test_, otherwise, []))))
        return made, after

    # blocks as functions

    def _function(
        self,
        name: str,
        body: list[ast.stmt],
        ctx: Context,
        names: list[str],
        params: list[str] | None = None,
        first: ast.stmt | None = None,
    ) -> ast.stmt:
        """A block as a function that binds names of the function around it."""
        place = body[0] if body else None
        new = ([first] if first is not None else []) + self.block(body, replace(ctx, strict=False))
        made = define(name, new or [ast.Pass()], params or [])
        self._declare(made, names)
        if place is not None:
            at(place, made)
        return made

    def _declare(self, made: ast.FunctionDef, names: list[str]) -> ast.FunctionDef:
        for n in names:
            self.shared[n] = None
        far = [n for n in names if n in self.globals]
        near = [n for n in names if n not in self.globals]
        lines: list[ast.stmt] = []
        if near:
            lines.append(ast.Nonlocal(near))
        if far:
            lines.append(ast.Global(far))
        made.body = [
            at(made.body[0], x) if hasattr(made.body[0], "lineno") else x for x in lines
        ] + made.body
        return made

    def _call(
        self,
        s: ast.expr,
        name: str,
        n: int,
        names: list[str],
        head: ast.expr,
        first: str,
        second: str | None,
        made: list[Any],
        *more: ast.expr,
        kept: int | None = None,
    ) -> ast.expr:
        """The operator's call, after functions that read and bind its variables, of which the
        first `kept` matter afterwards.
        """
        reads = [op(s, "load", _thunk_name(x)) for x in names]
        get = define(f"get_{n}", [ast.Return(ast.Tuple(reads, ast.Load()))], [])
        made.append(at(s, get))
        values = [f"{x}_" for x in names]
        lines: list[ast.stmt] = []
        for x, v in zip(names, values, strict=True):
            lines.append(ast.Assign([ast.Name(x, ast.Store())], ast.Name(v, ast.Load())))
            gone = ast.Compare(ast.Name(v, ast.Load()), [ast.Is()], [operator("UNDEFINED")])
            lines.append(ast.If(gone, [ast.Delete([ast.Name(x, ast.Del())])], []))
        made.append(at(s, self._declare(define(f"set_{n}", lines or [ast.Pass()], values), names)))
        functions = [f for f in (first, second, f"get_{n}", f"set_{n}") if f is not None]
        said = ast.Tuple([self._said(s, x) for x in names[:kept]], ast.Load())
        args = [ast.Name(f, ast.Load()) for f in functions]
        for m in made:
            at(s, m)
        return op(s, name, head, *args, said, *more)

    def _said(self, s: ast.expr, name: str) -> ast.expr:
        constant = ast.Constant(name)
        return op(s, "Unsure", constant) if name in self.unsure else constant


def _is_endless(s: ast.While | ast.For) -> bool:
    """Whether a loop ends by nothing but a return."""
    forever = isinstance(s, ast.While) and isinstance(s.test, ast.Constant) and bool(s.test.value)
    return forever and not breaks(s.body)


def _reads(nodes: list[Any]) -> Counter[str]:
    names = [n for n in every(nodes) if isinstance(n, ast.Name)]
    return Counter([n.id for n in names if isinstance(n.ctx, ast.Load)])


def _functions(nodes: list[Any]) -> list[Any]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [n for n in every(nodes) if isinstance(n, kinds)]


def _asserted(node: Any) -> Any:
    """Marks a raise that an assert has become."""
    node.asserted = True
    return node


def _ready(node: Any) -> Any:
    """Marks a tree whose expressions are converted already."""
    node.ready = True
    return node


def _thunk_name(name: str) -> ast.Lambda:
    return ast.Lambda(define("", [], []).args, ast.Name(name, ast.Load()))
