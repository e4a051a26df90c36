"""Whether a graph is a program: every node as its op says, every function closed.

An error shows the statement among its neighbours, and the user's line.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from weft.errors import ProgramError, WeftError
from weft.ir.language import Language, Types
from weft.ir.lexer import did_you_mean
from weft.ir.literals import Data, attribute, type_text
from weft.ir.node import Function, Module, Node
from weft.ir.printer import Lines, dims_of, is_literal
from weft.types import Dim, TensorType

_AROUND = 3  # lines shown on either side


def verify(program: Function | Module, language: Language) -> None:
    """Raise ProgramError unless every node follows its op's rule, every function is closed, and
    the whole keeps the language's rules.
    """
    functions = program.functions if isinstance(program, Module) else (program,)
    sizes: dict[str, Dim] = {}
    for f in functions:
        _Verifier(f, language).run()
        for fault in (fault for rule in language.rules for fault in rule(f)):
            inner = _Verifier(fault.function, language)
            raise inner.error(fault.node, fault.expected, fault.got, fault.hint)
        for d in dims_of(f):
            if sizes.setdefault(d.name, d) != d:
                raise ProgramError(f"fn {f.name}", expected="one meaning of a size", got=repr(d))


def verify_part(f: Function, language: Language, known: dict[Node, Types]) -> None:
    """The same of a function that may be part of a program. Nodes that are `known` are not typed
    again: nodes never change.
    """
    _Verifier(f, language, known).run()


class _Verifier:
    """The checks of one function."""

    def __init__(
        self, f: Function, language: Language, known: dict[Node, Types] | None = None
    ) -> None:
        self.f, self.language = f, language
        self.known = {} if known is None else known
        self.several: dict[Node, tuple[Any, ...]] = {}  # types of nodes with several results

    def run(self) -> None:
        for i, p in enumerate(self.f.params):
            self.param(i, p)
        for n in self.f.order:
            self.node(n)
        for r in self.f.results:
            if r in self.several:
                raise self.error(r, "a result picked from its several", "all of them")

    def param(self, i: int, p: Node) -> None:
        if p.op is not self.language.parameter or p.inputs:
            raise self.error(p, f"a {self.language.parameter.name}", p.op.name)
        if p in self.f.params[:i]:
            raise self.error(p, "parameters that differ", f"one twice, at {i}")
        attrs = dict(p.attrs)
        if attrs.get("type", p.type) is not p.type:
            raise self.error(p, _type(attrs["type"]), _type(p.type))

    def node(self, n: Node) -> None:
        known = self.language.ops.get(n.op.name)
        if known is not n.op:
            hint = did_you_mean(n.op.name, self.language.ops) if known is None else ""
            raise self.error(n, "an op of the table", n.op.name, hint)
        if n.op is self.language.parameter:
            hint = "captured values are inputs; a region or function is closed"
            raise self.error(n, "values of this function only", "another's parameter", hint)
        names = [name for name, _ in n.attrs]
        if len(set(names)) < len(names):
            raise self.error(n, "every attribute once", ", ".join(names))
        if n.op is self.language.result:
            self.pick(n)
            return
        for i in n.inputs:
            if i in self.several:
                raise self.error(n, "an operand picked from several results", "all of them")
        for name, value in () if is_literal(n) else n.attrs:
            if "<" in _unquoted(value):
                raise self.error(n, f"{name}: a value with a text form", repr(value))
        for region in n.regions:
            _Verifier(region, self.language, self.known).run()
        if is_literal(n):
            self.literal(n)
        self.types(n)

    def pick(self, n: Node) -> None:
        types = self.several.get(n.inputs[0]) if len(n.inputs) == 1 else None
        if types is None or not n.is_pick:
            got = ", ".join(i.op.name for i in n.inputs)
            raise self.error(n, "a pick of an op with several results", f"one of {got}")
        position, type_ = n.attr("position"), n.type
        if position >= len(types):
            raise self.error(n, f"a position below {len(types)}", str(position))
        if types[position] is not type_ or n.attrs[1][1] is not type_:
            raise self.error(n, _type(types[position]), _type(type_))

    def literal(self, n: Node) -> None:
        value = n.attrs[0][1]
        found = value.layout.type if hasattr(value, "layout") else type(value)
        if found is not n.type:
            raise self.error(n, f"a value of {_type(n.type)}", _type(found))

    def types(self, n: Node) -> None:
        found = self.known.get(n) or self.inferred(n)
        if isinstance(found, tuple):
            self.several[n] = found
        first = found[0] if isinstance(found, tuple) else found
        if first is not n.type:
            raise self.error(n, _type(first), _type(n.type))
        self.known[n] = found

    def inferred(self, n: Node) -> Types:
        try:
            return self.language.infer(
                n.op, tuple(i.type for i in n.inputs), dict(n.attrs), n.regions
            )
        except WeftError as e:
            raise self.error(n, e.expected or "a call that fits", e.got, e.hint) from e
        except Exception as e:  # a type rule is not ours: this node led it there
            got = f"{type(e).__name__}: {e}"
            raise self.error(n, "operands and attributes that fit", got) from e

    def error(self, n: Node, expected: str, got: str, hint: str = "") -> ProgramError:
        place = f"{n.op.name} in fn {self.f.name}"
        if n.loc is not None and n.loc.file:
            place += f" at {n.loc}"
        excerpt = "\n".join(_neighbourhood(self.f, n))
        return ProgramError(place, expected=expected, got=got, hint=hint, excerpt=excerpt)


def _neighbourhood(f: Function, n: Node) -> Iterator[str]:
    said = Lines(f, Data())
    at = said.line_of.get(n, 0)
    for i in range(max(at - _AROUND, 0), min(at + _AROUND + 1, len(said.lines))):
        line = said.lines[i]
        yield f"{'>' if i == at else ' '} {line if len(line) < 200 else line[:197] + '...'}"


def _type(t: Any) -> str:
    return type_text(t) if isinstance(t, (TensorType, type)) else repr(t)


def _unquoted(value: Any) -> str:
    """The text of a value without what its strings say."""
    text, out, inside, i = attribute(value), [], False, 0
    while i < len(text):
        if inside and text[i] == "\\":
            i += 1
        elif text[i] == '"':
            inside = not inside
        elif not inside:
            out.append(text[i])
        i += 1
    return "".join(out)
