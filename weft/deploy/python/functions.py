"""Functions in Python source: those that call themselves, and regions that no statement says."""

from __future__ import annotations

import keyword
from typing import TYPE_CHECKING, Any

from weft.deploy.python.spelling import ATOM, Said, argument, symbol
from weft.ir import Node


def variable(name: str, type_: Any, stand: Any = None) -> Said:
    """What a name stands for."""
    return Said(name, ATOM, symbol(type_) if stand is None else stand, frozenset((name,)))


class Functions:
    """The part of a block's writer that is about functions."""

    if TYPE_CHECKING:
        writer: Any
        depth: int
        lines: list[str]
        env: dict[Node, Said]
        picks: dict[Node, dict[int, list[Node]]]

        def __init__(self, writer: Any, f: Any, env: dict[Node, Said], depth: int) -> None: ...
        def write(self, line: str) -> None: ...
        def give(self, results: list[str]) -> None: ...
        def run(self) -> list[Said]: ...

    def called(self, n: Node) -> None:
        """An op with regions that has no statement of Python's: regions are functions."""
        names = [self.writer.fresh(r.name or n.op.name) for r in n.regions]
        around = dict(self.writer.functions)
        if n.op.name == "recursion":
            pairs = zip(n.regions, names, strict=True)
            self.writer.functions.update((r.name, (name, False)) for r, name in pairs)
        for r, name in zip(n.regions, names, strict=True):
            inner = self.writer.function(r, name, local=True)
            self.lines += ["    " * self.depth + line for line in inner]
        self.writer.functions = around
        given = [self.env[i].text for i in n.inputs]
        given.append(f"regions=({', '.join(names)},)")
        given += [f"{k}={argument(v)}" for k, v in n.attrs]
        head = f"ops.{n.op.name}" if n.op.name.isidentifier() else f"getattr(ops, {n.op.name!r})"
        head = f'getattr(ops, "{n.op.name}")' if keyword.iskeyword(n.op.name) else head
        self.results(n, f"{head}({', '.join(given)})", True)

    def recursion(self, n: Node) -> None:
        """A function, which reads what it captured from around it, and its call."""
        (f,) = n.regions
        name, count = self.writer.fresh(f.name), own_operands(n)
        env = {p: self.env[x] for p, x in zip(f.params[count:], n.inputs[count:], strict=True)}
        own = []
        for i, p in enumerate(f.params[:count]):
            own.append(self.writer.fresh(p.name or "xyzuvw"[i % 6]))
            env[p] = variable(own[-1], p.type)
        around = dict(self.writer.functions)
        self.writer.functions[f.name] = name, True
        inner = type(self)(self.writer, f, env, self.depth + 1)
        inner.give([x.text for x in inner.run()])
        self.writer.functions = around
        self.write(f"def {name}({', '.join(own)}):")
        self.lines += inner.lines
        given = [self.env[i].text for i in n.inputs[:count]]
        self.results(n, f"{name}({', '.join(given)})", count_of(n) > 1)

    def enter(self, n: Node) -> None:
        """A call of a function around."""
        given = [self.env[i].text for i in n.inputs]
        name, plain = self.writer.functions[n.attr("name")]
        if plain:
            self.results(n, f"{name}({', '.join(given)})", count_of(n) > 1)
            return
        attrs = {**dict(n.attrs), "name": name}
        given += [f"{k}={argument(v)}".replace("'", '"') for k, v in attrs.items()]
        self.results(n, f"ops.call({', '.join(given)})", True)

    def results(self, n: Node, said: str, several: bool) -> None:
        """What a call gives, in variables."""
        outs = []
        for i in range(count_of(n)):
            picks = self.picks.get(n, {}).get(i, [])
            outs.append(self.writer.fresh(picks[0].name or "t" if picks else "unused"))
            for p in picks:
                self.env[p] = variable(outs[-1], p.type)
        comma = "," if several and len(outs) == 1 else ""
        self.write(f"{', '.join(outs)}{comma} = {said}")


def own_operands(n: Node) -> int:
    """The operands of an op with regions that are written where it stands."""
    if n.op.name == "cond":
        return 1
    if n.op.name == "recursion" and len(n.regions) == 1:
        return len(n.inputs) - int(n.attr("captured"))
    return len(n.regions[1].results) if n.op.name == "while" and not n.attrs else 0


def count_of(n: Node) -> int:
    """How many results a node has."""
    if n.op.name == "cond":
        return len(n.regions[0].results)
    types: Any = n.op.infer(  # type: ignore[attr-defined]
        *(i.type for i in n.inputs),
        **dict(n.attrs),
        **({"regions": n.regions} if n.regions else {}),
    )
    return len(types) if isinstance(types, tuple) else 1
