"""The words of the text form, and errors that point at them."""

from __future__ import annotations

import difflib
import json
import re
import struct
from collections.abc import Iterable
from typing import NamedTuple

from weft.errors import ProgramError

_STRING = r'"(?:[^"\\\n]|\\.)*"'
_TOKEN = re.compile(
    rf"""(?P<space>(?:[ \t\r\n]|\#[^\n]*)+)
    |(?P<value>%(?:\w+(?:\.\w+)*|{_STRING})(?:~\d+)?)
    |(?P<number>-?(?:inf\b|nan(?::0x[0-9a-f]{{1,16}})?\b|\d+(?:\.\d+)?(?:[eE][-+]?\d+)?))
    |(?P<word>[^\W\d]\w*(?:\.\w+)*)
    |(?P<string>{_STRING})
    |(?P<mark>->|//|[()\[\]{{}},:=@<>*+-])""",
    re.VERBOSE,
)
_LONGEST_NUMBER = 400


class Token(NamedTuple):
    kind: str  # value, number, word, string, mark or end
    text: str
    at: int
    starts_line: bool = False


class Source:
    """A text, where it came from, and its words."""

    def __init__(self, text: str, file: str) -> None:
        self.text, self.file = text, file
        self.tokens: list[Token] = []
        at, fresh = 0, True
        while at < len(text):
            m = _TOKEN.match(text, at)
            if m is None:
                raise self.error(at, "a word of the text form", repr(text[at]), _lexical(text[at]))
            kind, found = str(m.lastgroup), m.group()
            if kind == "space":
                fresh = fresh or "\n" in found
            else:
                self.tokens.append(Token(kind, found, at, fresh))
                fresh = False
            at = m.end()
        self.tokens.append(Token("end", "", at, True))

    def error(
        self, at: int, expected: str, got: str = "", hint: str = "", what: str = ""
    ) -> ProgramError:
        """An error at an offset of the text, with its line and a caret below, about `what`."""
        line = self.text.count("\n", 0, at) + 1
        start = self.text.rfind("\n", 0, at) + 1
        end = self.text.find("\n", start)
        shown = self.text[start : end if end >= 0 else len(self.text)].replace("\t", " ")
        column, number = at - start, str(line)
        if column > 100 or len(shown) > 160:  # a line of data
            first = max(column - 60, 0)
            shown, caret = shown[first : first + 120], column - first
        else:
            caret = column
        excerpt = f"  {number} | {shown}\n  {' ' * len(number)} | {' ' * caret}^"
        place = f'"{self.file}":{line}:{column + 1}{f", {what}" if what else ""}'
        return ProgramError(place, expected=expected, got=got, hint=hint, excerpt=excerpt)

    def string(self, token: Token, text: str | None = None) -> str:
        """What a quoted string says."""
        try:
            said: str = json.loads(token.text if text is None else text)
        except ValueError as e:
            raise self.error(token.at, "a string as JSON has it", token.text, str(e)) from None
        return said

    def number(self, token: Token) -> int | float:
        """What a number says."""
        text = token.text
        if len(text) > _LONGEST_NUMBER:
            raise self.error(token.at, f"at most {_LONGEST_NUMBER} digits", f"{len(text)}")
        if ":" in text:
            bits = int(text.partition(":")[2], 16)
            x: float = _from_bits(bits)
            if x == x:
                raise self.error(token.at, "the bits of a NaN", text)
            return x
        return float(text) if any(c in text for c in ".eEn") else int(text)


def _from_bits(bits: int) -> float:
    (x,) = struct.unpack("d", struct.pack("Q", bits))
    return float(x)


def _lexical(c: str) -> str:
    return "the string is not closed on its line" if c == '"' else ""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint, where something known is spelled much like `name`."""
    near = difflib.get_close_matches(name, list(known), 3, 0.6)
    return f"did you mean {' or '.join(near)}?" if near else ""
