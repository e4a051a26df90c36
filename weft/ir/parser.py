"""Text to program: docs/ir.md has the grammar.

Every statement is typed as it is read; what is wrong is said with line, column and the word that
was expected. No text raises anything but ProgramError.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from weft.errors import WeftError
from weft.ir.constants import fitted
from weft.ir.language import Language, Types
from weft.ir.lexer import Source, Token, did_you_mean
from weft.ir.literals import type_text
from weft.ir.location import Location
from weft.ir.node import MOST_RESULTS, Function, Module, Node
from weft.ir.reader import Reader
from weft.types import Dim

Scope = dict[str, Node]


def parse(text: str, language: Language, file: str = "<text>") -> Module:
    """The program that a text says."""
    p = Parser(Source(text, file), language)
    p.read_data()
    while p.accept("word", "dim"):
        p.dim()
    functions = [p.function()]
    starts = [p.source.tokens[0]]
    while p.here.text == "fn" and p.here.kind == "word":
        starts.append(p.here)
        functions.append(p.function())
        if functions[-1].name in {f.name for f in functions[:-1]}:
            raise p.error("a name of its own", functions[-1].name, starts[-1])
    while p.accept("word", "data"):
        p.skip_data()
    p.expect("end")
    return Module(tuple(functions))


class Parser(Reader):
    """Functions and statements."""

    def __init__(self, source: Source, language: Language) -> None:
        super().__init__(source, language.records)
        self.language = language

    def dim(self) -> None:
        """`dim B in (1, 64)`"""
        name = self.name("the name of a size")
        low, high = 0, None
        if self.accept("word", "in"):
            self.expect("mark", "(")
            low = self.integer()
            high = self.integer() if self.accept("mark", ",") else None
            self.expect("mark", ")")
        self.dims[name] = Dim(name, low, high)

    def function(self) -> Function:
        self.expect("word", "fn")
        with self.nested():
            name = self.name("the name of a function")
            scope: Scope = {}
            self.expect("mark", "(")
            params: list[Node] = []
            while not self.accept("mark", ")"):
                if params:
                    self.expect("mark", ",")
                params.append(self.param(len(params), scope))
            self.expect("mark", "->")
            types, _ = self.types()
            self.expect("mark", "{")
            while self.here.kind == "value" or self.here.text == "_":
                self.statement(scope)
            at = self.expect("word", "return", hint="a statement is %name = op ...")
            results = self.operands(scope)
            self.expect("mark", "}")
        given = [r.type for r in results]
        if types != given:
            expected = f"{_listed(types)}, as fn {name} says it returns"
            raise self.error(expected, _listed(given), at)
        return Function(name, tuple(params), tuple(results))

    def param(self, i: int, scope: Scope) -> Node:
        token = self.expect("value")
        name = self.value_name(token)
        self.expect("mark", ":")
        type_ = self.value_type()
        attrs: tuple[tuple[str, Any], ...] = (("position", i), ("type", type_))
        if self.here.text == "{" and self.here.kind == "mark":
            attrs = self.attributes()
        node = Node(self.language.parameter, (), attrs, type_, _named(self.place(), name))
        self.define(token, node, scope)
        return node

    def define(self, token: Token, node: Node, scope: Scope) -> None:
        if scope.setdefault(token.text, node) is not node:
            raise self.error("a name of its own", f"{token.text} again", token)

    def operands(self, scope: Scope) -> list[Node]:
        """`%x, 0.5, %y`: values, and Python numbers in their place."""
        out: list[Node] = []
        while self.here.kind == "value" or self.is_number():
            token = self.here
            if token.kind != "value":
                out.append(self.number())
            elif token.text in scope:
                out.append(scope[self.next().text])
            else:
                hint = did_you_mean(token.text, scope)
                raise self.error("a value defined above", token.text, token, hint)
            if not self.accept("mark", ","):
                return out
        if out:
            self.expect("value")
        return out

    def number(self) -> Node:
        x = self.attribute()
        attrs = (("value", x), ("type", type(x)))
        return Node(self.language.constant, (), attrs, type(x))  # type: ignore[arg-type]

    # statements

    def statement(self, scope: Scope) -> None:
        """`%a, %b = op %x, %y {k = v} : (t, t)  @ "f.py":1:2-3 "text"`, then regions."""
        names = [self.target()]
        while self.accept("mark", ","):
            names.append(self.target())
        self.expect("mark", "=")
        at = self.here
        op = self.op()
        inputs: list[Node] = []
        attrs: tuple[tuple[str, Any], ...] = ()
        literal: Any = None
        literal_at = self.here
        is_literal = op is self.language.constant and self.is_literal()
        if is_literal:
            literal = self.literal()
        else:
            inputs = self.operands(scope) if not self.here.starts_line else []
            if self.here.text == "{" and self.here.kind == "mark":
                attrs = self.attributes()
        types, several = None, False
        if self.accept("mark", ":"):
            type_at = self.here
            types, several = self.types(blanks=True)
        loc = self.place()
        regions = []
        while self.here.kind == "word" and self.here.text == "fn":
            regions.append(self.function())
        if is_literal:
            value, type_ = fitted(self, literal, types[0] if types else None, literal_at)
            attrs = (("value", value), ("type", type_))
        found = self.infer(op, inputs, attrs, tuple(regions), at)
        if types is not None:
            self.check(types, several, found, type_at)
        self.finish(names, op, inputs, attrs, found, loc, tuple(regions), scope, at)

    def target(self) -> Token:
        token = self.here
        if token.text != "_":
            return self.expect("value")
        return self.next()

    def op(self) -> Any:
        token = self.here
        name = self.name("the name of an op")
        op = self.language.ops.get(name)
        if op in (None, self.language.parameter, self.language.result):  # the text has its own form
            hint = did_you_mean(name, self.language.ops)
            raise self.error("the name of an op", name, token, hint)
        return op

    def infer(
        self,
        op: Any,
        inputs: list[Node],
        attrs: tuple[tuple[str, Any], ...],
        regions: tuple[Function, ...],
        at: Token,
    ) -> Types:
        try:
            return self.language.infer(op, tuple(i.type for i in inputs), dict(attrs), regions)
        except WeftError as e:
            said = self.error(e.expected or "a call that fits", e.got, at, e.hint, e.place)
            raise said from e
        except Exception as e:  # a type rule is not ours: whatever it met, this text led there
            said = self.error("operands and attributes that fit", f"{type(e).__name__}: {e}", at)
            raise said from e

    def check(self, types: list[Any], several: bool, found: Types, at: Token) -> None:
        """That declared types, where they are said, are those inferred."""
        all_ = found if isinstance(found, tuple) else (found,)
        fits = several == isinstance(found, tuple) and len(types) <= len(all_)
        if not fits or any(t is not None and t is not f for t, f in zip(types, all_, strict=False)):
            said = ", ".join(map(type_text, all_))
            got = ", ".join("_" if t is None else type_text(t) for t in types)
            expected = f"({said})" if isinstance(found, tuple) else said
            raise self.error(expected, f"({got})" if several else got, at)

    def finish(
        self,
        names: list[Token],
        op: Any,
        inputs: list[Node],
        attrs: tuple[tuple[str, Any], ...],
        found: Types,
        loc: Location | None,
        regions: tuple[Function, ...],
        scope: Scope,
        at: Token,
    ) -> None:
        """Make the node, or the node and its picks, and name them."""
        types = found if isinstance(found, tuple) else (found,)
        if len(names) > min(len(types), MOST_RESULTS):
            raise self.error(f"at most {len(types)} names", str(len(names)), names[-1])
        said = ["" if n.text == "_" else self.value_name(n) for n in names]
        name = next((s for n, s in zip(names, said, strict=True) if n.text != "_"), "")
        if not types:
            raise self.error("an op with results", str(op.name), at)
        node = Node(op, tuple(inputs), attrs, types[0], _named(loc, name), regions)
        if not isinstance(found, tuple):
            if names[0].text != "_":
                self.define(names[0], node, scope)
            return
        for i, (token, own) in enumerate(zip(names, said, strict=True)):
            if token.text != "_":
                pick_attrs = (("position", i), ("type", types[i]))
                pick_loc = _named(loc, own)
                pick = Node(self.language.result, (node,), pick_attrs, types[i], pick_loc)
                self.define(token, pick, scope)

    def place(self) -> Location | None:
        """`@ "f.py":12:9-14 "x + 1"`"""
        if not self.accept("mark", "@"):
            return None
        file = self.source.string(self.expect("string"))
        self.expect("mark", ":")
        line, column, end, text = self.integer(), 0, 0, ""
        if self.accept("mark", ":"):
            column = self.integer()
            if self.here.kind == "number" and self.here.text.startswith("-"):
                end = -self.integer(least=None)
        if self.here.kind == "string":
            text = self.source.string(self.next())
        return Location(file, line, column, end, "", text)


def _listed(types: list[Any]) -> str:
    return f"({', '.join(map(type_text, types))})" if len(types) != 1 else type_text(types[0])


def _named(loc: Location | None, name: str) -> Location | None:
    if not name:
        return loc
    return Location(name=name) if loc is None else replace(loc, name=name)
