"""Expressions: reads and calls become operators, lazy expressions take what is lazy as functions.

`weft__` is what converted code calls the module of operators.
"""

from __future__ import annotations

import ast
from typing import Any, TypeVar

from weft.capture.source.names import children, inside

OPERATORS = "weft__"
#: functions that look at the frame that calls them
_FRAME = {"super", "locals", "globals", "vars", "dir", "eval", "exec", "breakpoint"}
_SYMBOL = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip
#: functions that go through all elements at once
_GATHERING = {"sum", "list", "tuple", "max", "min", "sorted", "set"}
_LISTS = (ast.List, ast.ListComp)
N = TypeVar("N", bound=ast.AST)


def at(place: ast.AST, node: N) -> N:
    """A new tree, all of it where `place` is, but for the parts that have a place."""
    new: list[ast.AST] = [node]
    while new:
        n = new.pop()
        if "lineno" in n._attributes:
            if hasattr(n, "lineno"):
                continue
            ast.copy_location(n, place)
        new += children(n)
    return node


def placed(tree: N) -> N:
    """A tree in which what has no place is where the part around it is."""
    stack: list[tuple[ast.AST, ast.AST]] = [(n, n) for n in children(tree)]
    while stack:
        node, place = stack.pop()
        if "lineno" in node.__dict__:
            place = node
        elif "lineno" in node._attributes:
            ast.copy_location(node, place)
        stack += [(n, place) for n in children(node)]
    return tree


def operator(name: str) -> ast.expr:
    return ast.Attribute(ast.Name(OPERATORS, ast.Load()), name, ast.Load())


def op(place: ast.AST, name: str, *args: ast.expr) -> ast.expr:
    """A call of an operator."""
    return at(place, ast.Call(operator(name), list(args), []))


def thunk(body: ast.expr) -> ast.Lambda:
    """A function of nothing that gives the expression."""
    return at(body, ast.Lambda(define("", [], []).args, body))


def define(name: str, body: list[Any], params: list[str]) -> ast.FunctionDef:
    """A function."""
    args = ast.arguments(
        posonlyargs=[], args=[ast.arg(p) for p in params], vararg=None,
        kwonlyargs=[], kw_defaults=[], kwarg=None, defaults=[],
    )  # fmt: skip
    fields: dict[str, Any] = {"decorator_list": [], "returns": None, "type_params": []}
    return ast.FunctionDef(name=name, args=args, body=body, **fields)


def copied(node: Any) -> Any:
    """A copy, for a second place."""
    if isinstance(node, list):
        return [copied(n) for n in node]
    if not isinstance(node, ast.AST):
        return node
    new = node.__class__.__new__(node.__class__)  # its fields are given below
    fields = new.__dict__
    for name, x in node.__dict__.items():  # where it is and what is marked, too
        fields[name] = copied(x) if x.__class__ is list or isinstance(x, ast.AST) else x
    return new


def is_bool(test: ast.expr) -> bool:
    """Whether an expression is a Python bool whatever its operands are."""
    if isinstance(test, ast.BoolOp):
        return all(map(is_bool, test.values))
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return is_bool(test.operand)
    return isinstance(test, ast.Constant)


def _known(x: ast.expr) -> ast.expr:
    return x if isinstance(x, ast.Constant) else op(x, "known", x)


def _tested(x: ast.expr) -> None:
    """Mark what is `and` and `or` of conditions."""
    if isinstance(x, ast.BoolOp):
        x.tested = True  # type: ignore[attr-defined]
        for v in x.values:
            _tested(v)
    elif isinstance(x, ast.UnaryOp) and isinstance(x.op, ast.Not):
        _tested(x.operand)


def _compares_lists(node: ast.Compare) -> bool:
    """Whether it may be lists or dicts that are compared."""
    sides = (node.left, node.comparators[0])
    number = any(isinstance(x, ast.Constant | ast.UnaryOp | ast.BinOp) for x in sides)
    return isinstance(node.ops[0], ast.Eq | ast.NotEq) and not number


def _binds(node: ast.AST) -> bool:
    """Whether an expression can't be put into a function of its own."""
    kinds = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
    return any(isinstance(n, kinds) for n in inside([node]))


class Expressions(ast.NodeTransformer):
    """Converts expressions in place. `owner`: the class whose private names are meant; `operating`:
    whether `+`, `<` and the like are calls too.
    """

    operating = False
    first = ""  # the first parameter: in a method, what `super()` is of

    def __init__(self, owner: str) -> None:
        self.owner = owner.lstrip("_")

    def _mangled(self, name: str) -> str:
        private = name.startswith("__") and not name.endswith("__") and "." not in name
        return f"_{self.owner}{name}" if private and self.owner else name

    def visit_Name(self, node: ast.Name) -> Any:
        node.id = self._mangled(node.id)
        if isinstance(node.ctx, ast.Load) and hasattr(node, "unsure"):
            return self.bound(node)
        return node

    def bound(self, node: ast.Name) -> ast.expr:
        """The read of a variable that may have no value."""
        read: Any = op(node, "bound", thunk(at(node, ast.Name(node.id, ast.Load()))))
        read.args += [ast.Constant(node.id), ast.Constant(node.unsure)]  # type: ignore[attr-defined]
        read.unsure = True
        return at(node, read)  # type: ignore[no-any-return]

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        self.generic_visit(node)
        node.attr = self._mangled(node.attr)
        if not isinstance(node.ctx, ast.Load):
            return node
        return op(node, "attr", node.value, ast.Constant(node.attr))

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            return node
        if any(isinstance(n, ast.Slice) for n in inside([node.slice])):
            node.value = op(node, "seen", node.value)
            return op(node, "new", node)
        return op(node, "item", node.value, node.slice)

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        if self.operating:
            lists = isinstance(node.left, _LISTS) or isinstance(node.right, _LISTS)
            self.generic_visit(node)
            how = ast.Constant(type(node.op).__name__)
            made = op(node, "binary", node.left, how, node.right)
            return op(node, "new", made) if lists else made
        if isinstance(node.op, ast.Mod) and not isinstance(node.left, ast.List):
            self.generic_visit(node)
            return op(node, "mod", node.left, node.right)
        if isinstance(node.op, ast.BitOr):
            self.generic_visit(node)
            return op(node, "union", node.left, node.right)
        lists = isinstance(node.left, _LISTS) or isinstance(node.right, _LISTS)
        self.generic_visit(node)
        return op(node, "new", node) if lists else node

    def visit_Call(self, node: ast.Call) -> Any:
        plain = isinstance(node.func, ast.Name) and node.func.id in _FRAME
        if plain and node.func.id == "breakpoint":  # type: ignore[attr-defined]
            return self._breakpoint(node)
        given = node.args[0] if len(node.args) > 0 else None
        known = isinstance(node.func, ast.Name) and node.func.id in _GATHERING
        if known and isinstance(given, ast.GeneratorExp) and not _binds(given):
            whole = ast.copy_location(ast.ListComp(given.elt, given.generators), given)
            ways = [thunk(self.visit(copied(given))), thunk(self.visit(whole))]
            node.args[0] = op(given, "gathered", copied(node.func), *ways)
            rest: list[Any] = [self.visit(x) for x in (*node.args[1:], *node.keywords)]
            n = len(node.args)
            node.args, node.keywords = [node.args[0], *rest[: n - 1]], rest[n - 1 :]
            node.func = self.visit(node.func)
        else:
            self.generic_visit(node)
        if plain:
            if node.func.id == "super" and self.first and not node.args:  # type: ignore[attr-defined]
                names = ("__class__", self.first)  # in a path, a function, it finds neither itself
                node.args = [at(node, ast.Name(n, ast.Load())) for n in names]
            return node
        return at(node, ast.Call(operator("call"), [node.func, *node.args], node.keywords))

    def visit_keyword(self, node: ast.keyword) -> Any:
        self.generic_visit(node)
        if node.arg is None:
            node.value = op(node.value, "seen", node.value)
        return node

    def visit_Starred(self, node: ast.Starred) -> Any:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            node.value = op(node, "seen", node.value)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        plain = is_bool(node) or any(map(_binds, node.values[1:]))
        first = _binds(node.values[0])
        names = [isinstance(v, ast.Name | ast.Attribute | ast.Subscript) for v in node.values]
        self.generic_visit(node)
        if plain:
            return node
        if hasattr(node, "tested"):
            pairs = zip(node.values, names, strict=True)
            node.values = [op(v, "filled", v) if yes else v for v, yes in pairs]
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        ways: list[ast.expr] = [*map(thunk, node.values)]
        if first:  # what it binds is bound here
            ways[0] = op(node.values[0], "same", node.values[0])
        return op(node, name, *ways)

    def test(self, x: ast.expr) -> ast.expr:
        """A condition of which only the truth matters."""
        _tested(x)
        return self.visit(x)  # type: ignore[no-any-return]

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        plain = not isinstance(node.op, ast.Not) or is_bool(node.operand)
        _tested(node)
        self.generic_visit(node)
        other = not isinstance(node.op, ast.Not) and not isinstance(node.operand, ast.Constant)
        if other and self.operating:
            return op(node, "unary", ast.Constant(type(node.op).__name__), node.operand)
        return node if plain else op(node, "not_", node.operand)

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        plain = is_bool(node.test) or _binds(node.body) or _binds(node.orelse)
        _tested(node.test)
        self.generic_visit(node)
        if plain:
            return node
        return op(node, "choose", node.test, thunk(node.body), thunk(node.orelse))

    def visit_Compare(self, node: ast.Compare) -> Any:
        plain = any(map(_binds, node.comparators))
        self.generic_visit(node)
        if plain:
            if any(isinstance(o, ast.In | ast.NotIn | ast.Is | ast.IsNot) for o in node.ops):
                node.left, *node.comparators = map(_known, (node.left, *node.comparators))
            return node
        plainly = not any(isinstance(o, ast.In | ast.NotIn | ast.Is | ast.IsNot) for o in node.ops)
        alone = len(node.ops) == 1 and plainly and not _compares_lists(node)
        if alone and not self.operating:
            return node
        symbols = ast.Tuple([ast.Constant(_SYMBOL[type(o)]) for o in node.ops], ast.Load())
        return op(node, "compare", node.left, symbols, *map(thunk, node.comparators))

    def visit_withitem(self, node: ast.withitem) -> Any:
        self.generic_visit(node)
        node.context_expr = op(node.context_expr, "manager", node.context_expr)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> Any:
        self.generic_visit(node)
        if not node.is_async:
            node.iter = op(node.iter, "iterate", node.iter)
        node.ifs = [op(test, "test", test) for test in node.ifs]
        return node

    def _made(self, node: ast.expr) -> Any:
        self.generic_visit(node)
        return node if isinstance(getattr(node, "ctx", None), ast.Store) else op(node, "made", node)

    def visit_Dict(self, node: ast.Dict) -> Any:
        self.generic_visit(node)
        pairs = zip(node.keys, node.values, strict=True)
        node.values = [op(v, "seen", v) if k is None else v for k, v in pairs]
        return op(node, "made", node)

    visit_List = visit_Set = visit_DictComp = visit_SetComp = _made

    def visit_ListComp(self, node: ast.ListComp) -> Any:
        """`[f(x) for x in xs]` as `comprehension(xs, lambda items_: [f(x) for x in items_])`; where
        there is a condition, with `kept(condition, lambda: f(x))` for f(x).
        """
        (first, *more) = node.generators
        if more or first.is_async or _binds(node):
            return self._made(node)
        items = self.visit(first.iter)
        first.iter = at(node, ast.Name("items_", ast.Load()))
        first.target = self.visit(first.target)
        tests, first.ifs = [self.visit(test) for test in first.ifs], []
        node.elt = self.visit(node.elt)
        kept = [ast.Constant(True)] if tests else []
        if tests:
            both = tests[0] if len(tests) == 1 else op(node, "and_", *map(thunk, tests))
            node.elt = op(node.elt, "kept", both, thunk(node.elt))
        piece = thunk(node)
        piece.args.args.append(ast.arg("items_"))
        return op(node, "made", op(node, "comprehension", items, at(node, piece), *kept))

    def visit_JoinedStr(self, node: ast.JoinedStr) -> Any:
        return op(node, "text", *[self.visit(v) for v in node.values])

    def visit_FormattedValue(self, node: ast.FormattedValue) -> Any:
        parts = [self.visit(node.value), ast.Constant("")]
        if node.conversion >= 0:
            parts[1] = ast.Constant(chr(node.conversion))
        if node.format_spec is not None:
            parts.append(self.visit(node.format_spec))
        return op(node, "formatted", *parts)

    def _breakpoint(self, node: ast.Call) -> Any:
        """The debugger where it was called, or in a program, with the variables there."""
        names = sorted(self.variables())
        reads = [op(node, "load", thunk(at(node, ast.Name(n, ast.Load())))) for n in names]
        variables = ast.Dict([ast.Constant(n) for n in names], reads)
        later = op(node, "breakpoint_", variables)
        return at(node, ast.IfExp(op(node, "is_captured"), later, node))

    def variables(self) -> frozenset[str]:
        """The names of the function, as far as they are known."""
        return frozenset()
