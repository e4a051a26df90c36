"""A kernel's module taken apart: functions that many kernels have in common are modules of their
own, so that each is compiled once.

Contractions are where this matters: what differs between two of them is what they go on with and
how operands are packed; the tiles in registers, most of the code, are the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b

#: letters of a function from which on a module of its own is worth it
LEAST = 500

_NAME = re.compile(r"@([\w.]+)")
_BEGIN, _END = "define internal ", " noinline nounwind "


def apart(text: str) -> list[str]:
    """The module that is left, and the modules of the functions it calls.

    >>> apart("define i64 @kernel() {\\n  ret i64 0\\n}")
    ['define i64 @kernel() {\\n  ret i64 0\\n}']
    """
    if _END not in text:
        return [text]
    return _Module(text).apart()


@dataclass(frozen=True)
class _Part:
    name: str  # by content
    head: str  # its declaration
    text: str


class _Module:
    def __init__(self, text: str) -> None:
        self.text = text
        self.functions = dict(_functions(text))
        self.calls = {n: set(_NAME.findall(x)) - {n} for n, x in self.functions.items()}
        lines = (line for line in text.splitlines() if line.startswith("declare "))
        self.declared = {m[1]: line for line in lines if (m := _NAME.search(line))}
        self.parts: dict[str, _Part | None] = {}

    def apart(self) -> list[str]:
        parts = {n: p for n in self.functions if (p := self._part(n)) is not None}
        left = self.text
        for name in parts:
            left = left.replace(self.functions[name], "")
        heads = [p.head for p in parts.values()]
        left = "\n".join([*heads, _renamed(left, parts)])
        return [left, *dict.fromkeys(p.text for p in parts.values())]

    def _part(self, name: str) -> _Part | None:
        """A function as a part; None for one that is small, seen from outside, or needs more than
        functions.
        """
        if name not in self.parts:
            self.parts[name] = None
            self.parts[name] = self._made(name)
        return self.parts[name]

    def _made(self, name: str) -> _Part | None:
        own = self.functions[name]
        head = own.partition("{")[0]
        if len(own) < LEAST or not own.startswith(_BEGIN) or not head.endswith(_END):
            return None
        others: dict[str, _Part] = {}
        lines: set[str] = set()
        inner, stack = {name}, [name]
        while stack:
            for n in self.calls[stack.pop()] - inner:
                if n in self.declared:
                    lines.add(self.declared[n])
                elif n not in self.functions:
                    return None
                elif (part := self._part(n)) is not None:
                    others[n] = part
                    lines.add(part.head)
                else:
                    inner.add(n)
                    stack.append(n)
        helpers = [self.functions[n] for n in sorted(inner - {name})]
        whole = "\n".join([*sorted(lines), *helpers, own.replace(_BEGIN, "define ", 1)])
        whole = _renamed(whole, others)
        called = f"part_{blake2b(whole.encode(), digest_size=12).hexdigest()}"
        part = _Part(called, "", "")
        head = _renamed(head.replace(_BEGIN, "declare ", 1).removesuffix(_END), {name: part})
        return _Part(called, head, _renamed(whole, {name: part}))


def _functions(text: str) -> Iterator[tuple[str, str]]:
    """The functions of a module, by name."""
    *found, _ = f"{text}\n".split("\n}\n")
    for x in found:
        own = x[x.index("define ") :]
        name = _NAME.search(own)
        assert name is not None
        yield name[1], own + "\n}"


def _renamed(text: str, parts: dict[str, _Part]) -> str:
    """The text with functions by the names of their parts."""
    return _NAME.sub(lambda m: f"@{parts[m[1]].name}" if m[1] in parts else m[0], text)
