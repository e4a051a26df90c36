"""Assignments: to attributes and elements they become operators, to names they stay."""

from __future__ import annotations

import ast
from typing import Any

from weft.capture.source.expressions import Expressions, at, op, operator
from weft.capture.source.names import inside

#: what changes a list, dict or set in place
_CHANGING = (ast.Add, ast.Mult, ast.BitOr, ast.BitAnd, ast.BitXor, ast.Sub)


class Assignments(Expressions):
    """Converts assignments, augmented ones and deletions."""

    count = 0  # of names that were made up

    def visit_Assign(self, node: ast.Assign) -> Any:
        node.value = self.visit(node.value)
        if len(node.targets) > 1 and any(_is_place(n) for t in node.targets for n in ast.walk(t)):
            temporary = self._temporary()
            first = at(node, ast.Assign([ast.Name(temporary, ast.Store())], node.value))
            out: list[ast.stmt] = [first]
            for t in node.targets:
                out += self._assign(node, t, at(node, ast.Name(temporary, ast.Load())))
            return out
        if len(node.targets) == 1:
            return self._assign(node, node.targets[0], node.value)
        node.targets = [self.visit(t) for t in node.targets]
        return node

    def _assign(self, node: ast.stmt, target: ast.expr, value: ast.expr) -> list[ast.stmt]:
        if isinstance(target, ast.Attribute):
            name = ast.Constant(self._mangled(target.attr))
            return [at(node, ast.Expr(op(node, "set_attr", self.visit(target.value), name, value)))]
        if isinstance(target, ast.Subscript):
            where = self.visit(target.slice)
            if any(isinstance(n, ast.Slice) for n in inside([where])):
                where = _sliced(where)
            owner = self.visit(target.value)
            return [at(node, ast.Expr(op(node, "set_item", owner, where, value)))]
        if isinstance(target, ast.Tuple | ast.List):
            later: list[tuple[ast.expr, str]] = []
            target.elts = [self._elsewhere(t, later) for t in target.elts]
            out: list[ast.stmt] = [at(node, ast.Assign([target], op(node, "seen", value)))]
            for place, name_ in later:
                out += self._assign(node, place, at(node, ast.Name(name_, ast.Load())))
            return out
        return [at(node, ast.Assign([self.visit(target)], value))]

    def _elsewhere(self, target: ast.expr, later: list[tuple[ast.expr, str]]) -> ast.expr:
        """A temporary name instead of an attribute or element inside a tuple of targets."""
        if _is_place(target):
            later.append((target, self._temporary()))
            return at(target, ast.Name(later[-1][1], ast.Store()))
        if isinstance(target, ast.Tuple | ast.List):
            target.elts = [self._elsewhere(t, later) for t in target.elts]
            return target
        return self.visit(target)  # type: ignore[no-any-return]

    def _temporary(self) -> str:
        self.count += 1
        return f"value_{self.count}_"

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        value, target = self.visit(node.value), node.target
        if isinstance(target, ast.Name):
            known = isinstance(value, ast.Constant) or not isinstance(node.op, _CHANGING)
            if known and not self.operating:
                node.value, node.target = value, self.visit(target)
                return [*self._checked(target), node]
            read: ast.expr = at(target, ast.Name(self._mangled(target.id), ast.Load()))
            if hasattr(target, "unsure"):
                read = self.bound(target)
            called = "augmented" if self.operating else "augment"
            made = op(node, called, read, ast.Constant(type(node.op).__name__), value)
            return at(node, ast.Assign([self.visit(target)], made))
        how = ast.Constant(type(node.op).__name__)
        if isinstance(target, ast.Attribute):
            name = ast.Constant(self._mangled(target.attr))
            call = op(node, "augment_attr", self.visit(target.value), name, how, value)
        else:
            where = self.visit(target.slice)
            if any(isinstance(n, ast.Slice) for n in inside([where])):
                where = _sliced(where)
            call = op(node, "augment_item", self.visit(target.value), where, how, value)
        return at(node, ast.Expr(call))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        # a name that blocks share can't be annotated; what it says is nothing to a program
        if node.value is None:
            return at(node, ast.Pass())
        return self._assign(node, node.target, self.visit(node.value))

    def visit_Delete(self, node: ast.Delete) -> Any:
        out: list[ast.stmt] = []
        for t in node.targets:
            if isinstance(t, ast.Attribute):
                name = ast.Constant(self._mangled(t.attr))
                out.append(at(node, ast.Expr(op(node, "del_attr", self.visit(t.value), name))))
            elif isinstance(t, ast.Subscript):
                owner, where = self.visit(t.value), _sliced(self.visit(t.slice))
                out.append(at(node, ast.Expr(op(node, "del_item", owner, where))))
            else:
                name = self.visit(t)
                out += [*self._checked(name), at(node, ast.Delete([name]))]
        return out

    def _checked(self, name: ast.Name) -> list[ast.stmt]:
        """What has a variable hold its value, if it may have none."""
        if not hasattr(name, "unsure"):
            return []
        return [at(name, ast.Assign([ast.Name(name.id, ast.Store())], self.bound(name)))]


def _is_place(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store)


def _sliced(where: ast.expr) -> ast.expr:
    """An index with slices as an expression."""
    if isinstance(where, ast.Slice):
        parts = [p or ast.Constant(None) for p in (where.lower, where.upper, where.step)]
        return at(where, ast.Call(operator("slice"), parts, []))
    if isinstance(where, ast.Tuple):
        where.elts = [_sliced(w) for w in where.elts]
    return where
