"""Functions and modules as text: docs/ir.md has the grammar.

The text is whole: `parse` gives an equal program again. Values are called what the user called
them; `%y~1` is the second `y`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from weft.ir.language import WEAK, is_value_name
from weft.ir.literals import Data, attribute, quoted, type_text, word
from weft.ir.location import Location
from weft.ir.node import Function, Module, Node
from weft.ir.sizes import named_in
from weft.types import Dim


def to_text(program: Function | Module) -> str:
    """The text of a program."""
    functions = program.functions if isinstance(program, Module) else (program,)
    data = Data()
    parts = [_dims(functions)]
    parts += [Lines(f, data).lines for f in functions]
    parts.append(data.section())
    return "\n\n".join("\n".join(p) for p in parts if p) + "\n"


Function.to_text = staticmethod(to_text)


class Lines:
    """The lines of one function, and which of them each node has."""

    def __init__(self, f: Function, data: Data, indent: str = "") -> None:
        self.data, self.indent = data, indent
        self.lines: list[str] = []
        self.line_of: dict[Node, int] = {}
        self.names = names = _Names(f)
        params = ", ".join(self._param(i, p) for i, p in enumerate(f.params))
        types = [type_text(r.type) for r in f.results]
        given = types[0] if len(types) == 1 else f"({', '.join(types)})"
        self._write(f"fn {word(f.name)}({params}) -> {given} {{")
        for p in f.params:
            self.line_of[p] = 0
        for n in f.order:
            if n in self.names.inline:
                continue
            if n in self.names.folded:
                self.line_of[n] = self.line_of[n.inputs[0]]
            else:
                self.line_of.update((m, len(self.lines)) for m in n.inputs if m in names.inline)
                self.line_of[n] = len(self.lines)
                self._node(n)
        results = ", ".join(self.names[r] for r in f.results)
        self._write(f"  return {results}".rstrip())
        self._write("}")

    def _write(self, line: str) -> None:
        self.lines.append(self.indent + line)

    def _param(self, i: int, p: Node) -> str:
        usual = (("position", i), ("type", p.type))
        attrs = f" {_attributes(p.attrs)}" if p.attrs != usual else ""
        return f"{self.names[p]}: {type_text(p.type)}{attrs}{_place(p.loc)}"

    def _node(self, n: Node) -> None:
        names, types = self.names[n], type_text(n.type)
        if n in self.names.picks:
            picks = self.names.picks[n]
            shown = [picks.get(i) for i in range(max(picks) + 1)]
            names = ", ".join("_" if p is None else self.names[p] for p in shown)
            types = f"({', '.join('_' if p is None else type_text(p.type) for p in shown)})"
        said = [f"  {names} = {word(n.op.name)}"]
        if is_literal(n):
            said.append(self.data.constant(n.attrs[0][1]))
        else:
            if n.inputs:
                said.append(", ".join(self.names[i] for i in n.inputs))
            if n.attrs:
                said.append(_attributes(n.attrs))
        self._write(f"{' '.join(said)} : {types}{_place(n.loc)}")
        for region in n.regions:
            self.lines += Lines(region, self.data, self.indent + "    ").lines


class _Names:
    """What each value of a function is called: distinct, and after the user's variables."""

    def __init__(self, f: Function) -> None:
        inside = {n for n in f.order if not n.is_pick}
        self.folded = {n for n in f.order if n.is_pick and n.inputs[0] in inside}
        self.picks: dict[Node, dict[int, Node]] = {}
        for n in f.order:
            if n in self.folded:
                self.picks.setdefault(n.inputs[0], {}).setdefault(n.attr("position"), n)
        self.inline = _numbers(f)
        self.said: dict[Node, str] = {}
        self.count: dict[str, int] = {}
        for n in (*f.params, *f.order):
            if n in self.inline:
                self.said[n] = attribute(n.attrs[0][1])
            elif n in self.picks:
                picks = [p for _, p in sorted(self.picks[n].items())]
                self.said.update((p, self._fresh(p.name)) for p in picks)
                self.said[n] = f"({', '.join(self.said[p] for p in picks)})"
            elif n in self.folded:
                first = self.picks[n.inputs[0]][n.attr("position")]
                self.said[n] = self.said[first]
            else:
                self.said[n] = self._fresh(n.name)

    def __getitem__(self, n: Node) -> str:
        return self.said[n]

    def _fresh(self, name: str) -> str:
        seen = self.count[name] = self.count.get(name, -1) + 1
        if not name:
            return f"%{seen}"
        stem = f"%{name}" if is_value_name(name) else f"%{quoted(name)}"
        return stem if seen == 0 else f"{stem}~{seen}"


def _numbers(f: Function) -> set[Node]:
    """Python numbers that one operand is: they stand in its place."""
    users = Counter(i for n in f.order for i in n.inputs)
    users.update(r for r in f.results for _ in range(2))
    alone = (n for n in f.order if users[n] == 1 and n.loc is None and is_literal(n))
    return {n for n in alone if (type(n.attrs[0][1]), n.type) in _NUMBERS}


_NUMBERS: set[Any] = {(t, t) for t in WEAK.values()}


def is_literal(n: Node) -> bool:
    """Whether a node is no more than a value: it is written in place of operands."""
    return (
        not n.inputs
        and not n.regions
        and [name for name, _ in n.attrs] == ["value", "type"]
        and n.attrs[1][1] is n.type
    )


def _attributes(attrs: Iterable[tuple[str, Any]]) -> str:
    return f"{{{', '.join(f'{word(k)} = {attribute(v)}' for k, v in attrs)}}}"


def _place(loc: Location | None) -> str:
    if loc is None or not loc.file:
        return ""
    column = f":{loc.column}" if loc.column else ""
    end = f"-{loc.end_column}" if loc.column and loc.end_column else ""
    text = f" {quoted(loc.text)}" if loc.text else ""
    return f"  @ {quoted(loc.file)}:{loc.line}{column}{end}{text}"


# sizes with bounds


def _dims(functions: tuple[Function, ...]) -> list[str]:
    """The lines that declare them; one without bounds is declared by the types of parameters."""
    shown = {d for p in functions[0].params for d in named_in(p.type) if d == Dim(d.name)}
    found = {d.name: d for f in functions for d in dims_of(f) if d not in shown}
    return [f"dim {word(name)}{_bounds(d)}" for name, d in sorted(found.items())]


def _bounds(d: Dim) -> str:
    if d == Dim(d.name):
        return ""
    return f" in ({d.min})" if d.max is None else f" in ({d.min}, {d.max})"


def dims_of(f: Function) -> Iterator[Dim]:
    """Every symbolic size that a function mentions."""
    for n in (*f.params, *f.order):
        yield from named_in(n.type)
        for _, value in n.attrs:
            yield from named_in(value)
        for region in n.regions:
            yield from dims_of(region)
