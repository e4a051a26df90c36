"""Which names a piece of a function binds, and whether control leaves it early."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

#: fields of each kind of nodes that may be nodes which say something of names
_fields: dict[type[ast.AST], tuple[str, ...]] = {}
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
#: fields that are words, numbers or operators
_SILENT = {
    *("id", "ctx", "op", "ops", "attr", "arg", "kind", "type_comment", "conversion", "is_async"),
    *("simple", "level", "module", "asname"),
}
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes that a node consists of, as `ast.iter_child_nodes` gives them, but for those that
    say nothing of names. Conversion asks for little else.
    """
    kind = node.__class__
    names = _fields.get(kind)
    if names is None:
        all_ = () if kind is ast.Constant else kind._fields
        names = _fields[kind] = tuple([x for x in all_ if x not in _SILENT])
    found: list[ast.AST] = []
    fields = node.__dict__
    for name in names:
        x = fields.get(name)
        if x.__class__ is list:
            found += [n for n in x if isinstance(n, ast.AST)]
        elif isinstance(x, ast.AST):
            found.append(x)
    return found


def every(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Every node, in no order that matters."""
    stack = [*nodes]
    while stack:
        node = stack.pop()
        yield node
        stack += children(node)


def inside(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Every node but those of functions and classes defined there."""
    stack = [*nodes][::-1]
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, _SCOPES):
            stack += children(node)[::-1]


def stored(nodes: Iterable[ast.AST]) -> list[str]:
    """The names that statements bind, in order. Those of comprehensions are their own."""
    found: dict[str, None] = {}

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found[node.name] = None
            return
        if isinstance(node, ast.Lambda):
            return
        found.update(dict.fromkeys(getattr(node, "binds", ())))  # a call of a converted block
        if isinstance(node, _COMPREHENSIONS):
            for walrus in inside([node]):
                if isinstance(walrus, ast.NamedExpr):
                    found[walrus.target.id] = None
            return
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found[node.id] = None
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            found[node.name] = None
        elif isinstance(node, ast.MatchMapping) and node.rest:
            found[node.rest] = None
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                found[(alias.asname or alias.name).split(".")[0]] = None
        for child in children(node):
            visit(child)

    for node in nodes:
        visit(node)
    return list(found)


def bound_by(s: ast.stmt) -> list[str]:
    """The names that a statement, once it is done, has bound for certain."""
    if isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [s.name]
    if isinstance(s, ast.Assign | ast.Import | ast.ImportFrom):
        return stored(s.targets if isinstance(s, ast.Assign) else [s])
    if isinstance(s, ast.AnnAssign | ast.AugAssign):
        return stored([s.target]) if s.value is not None else []
    return []


def parameters(args: ast.arguments) -> list[str]:
    """The names of a function's parameters."""
    given = [*args.posonlyargs, *args.args, *args.kwonlyargs]
    return [a.arg for a in (*given, *filter(None, (args.vararg, args.kwarg)))]


def loaded(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that are read, in functions defined there too."""
    return {n.id for n in every(nodes) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def declared(nodes: Iterable[ast.AST], *kind: type[ast.Global] | type[ast.Nonlocal]) -> set[str]:
    return {name for n in inside(nodes) if isinstance(n, kind) for name in n.names}


def escapes(nodes: Iterable[ast.stmt], raises: bool = False) -> bool:
    """Whether statements may leave by return, break or continue (of a loop around them), or by
    raising, if that counts.
    """
    for node in nodes:
        if isinstance(node, ast.Return | ast.Break | ast.Continue):
            return True
        if raises and isinstance(node, ast.Raise | ast.Assert):
            return True
        if isinstance(node, _SCOPES):
            continue
        if isinstance(node, ast.For | ast.AsyncFor | ast.While):
            if returns(node.body) or escapes(node.orelse, raises):
                return True
        elif any(escapes(part, raises) for part in parts(node)):
            return True
    return False


def breaks(nodes: Iterable[ast.stmt], kind: type[ast.stmt] = ast.Break) -> bool:
    """Whether statements may break off the loop they stand in, or continue it."""
    for node in nodes:
        if isinstance(node, kind):
            return True
        if isinstance(node, _SCOPES):
            continue
        loop = isinstance(node, ast.For | ast.AsyncFor | ast.While)
        if any(breaks(p, kind) for p in ([node.orelse] if loop else parts(node))):  # type: ignore[attr-defined]
            return True
    return False


def returns(nodes: Iterable[ast.AST]) -> bool:
    return any(isinstance(n, ast.Return) for n in inside(nodes))


def parts(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The blocks of a compound statement."""
    for name in ("body", "orelse", "finalbody"):
        yield getattr(node, name, [])
    for handler in getattr(node, "handlers", []):
        yield handler.body
    for case in getattr(node, "cases", []):
        yield case.body


def falls_through(nodes: list[ast.stmt]) -> bool:
    """Whether control may reach the end of a block."""
    if not nodes:
        return True
    last = nodes[-1]
    if isinstance(last, ast.Return | ast.Break | ast.Continue | ast.Raise):
        return False
    if isinstance(last, ast.If):
        return falls_through(last.body) or falls_through(last.orelse)
    return True
