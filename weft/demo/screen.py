"""What `weft demo` prints: headings, text, code, progress, and claims that are kept count of."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from typing import TextIO, TypeVar

T = TypeVar("T")
_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "cyan": "36"}


class Screen:
    """A place to print to. Colours and moving bars where `out` is a terminal, unless `plain`.

    >>> s = Screen(plain=True)
    >>> s.claim("one and one are two", 1 + 1 == 2)
      ok      one and one are two
    >>> s.failed
    []
    """

    def __init__(self, plain: bool = False, out: TextIO | None = None) -> None:
        self.out = out or sys.stdout
        self.lively = not plain and self.out.isatty() and "NO_COLOR" not in os.environ
        self.empty = True  # whether the last line printed was
        self.kept: list[str] = []  # claims that held
        self.failed: list[str] = []  # and those that did not

    def title(self, text: str) -> None:
        """A heading."""
        self._print("\n" + self._paint(text, "bold", "cyan"))
        self._gap()

    def say(self, text: str = "") -> None:
        """A line of text, or several."""
        self._print("\n".join(f"  {line}".rstrip() for line in text.split("\n")))

    def code(self, text: str) -> None:
        """Something to be read closely: source, a graph, a message."""
        lines = text.rstrip().split("\n")
        self._gap()
        self._print("\n".join(self._paint(f"    {s}", "dim") for s in lines))
        self._gap()

    def claim(self, text: str, true: bool) -> None:
        """Something that is promised, and whether it is so."""
        (self.kept if true else self.failed).append(text)
        mark = self._paint("ok    ", "green") if true else self._paint("FAILED", "bold", "red")
        self._print(f"  {mark}  {text}")

    def progress(self, xs: Iterable[T], n: int) -> Iterator[T]:
        """The items, with a bar that fills as they are used; nothing where none can move."""
        for i, x in enumerate(xs, 1):
            yield x
            if self.lively and (i == n or i % max(1, n // 40) == 0):
                filled = 40 * i // n
                bar = self._paint("━" * filled, "cyan") + self._paint("━" * (40 - filled), "dim")
                self._print(f"\r  {bar} {i} of {n} ", end="")
        if self.lively:
            self._print()

    def _gap(self) -> None:
        """An empty line, unless there is one."""
        if not self.empty:
            self._print()
            self.empty = True

    def _paint(self, text: str, *colours: str) -> str:
        if not self.lively:
            return text
        return f"\x1b[{';'.join(_CODES[c] for c in colours)}m{text}\x1b[0m"

    def _print(self, text: str = "", end: str = "\n") -> None:
        print(text, end=end, file=self.out, flush=True)
        self.empty = False
