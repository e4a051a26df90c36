"""Words, types and literals of the text form."""

from __future__ import annotations

import base64
import binascii
import dataclasses
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from weft.errors import ProgramError, WeftError
from weft.ir.language import DTYPE_OF, WEAK, WORDS
from weft.ir.lexer import Source, Token, did_you_mean
from weft.types import Dim, DType, TensorType

DEEPEST = 64


@dataclasses.dataclass(frozen=True)
class Dense:
    """A nested list of numbers, read but not yet given a type."""

    shape: tuple[int, ...]
    numbers: tuple[Any, ...]


@dataclasses.dataclass(frozen=True)
class Blob:
    """A reference to the data at the end of the text."""

    number: int


class Reader:
    """A cursor over the words of a text."""

    def __init__(self, source: Source, records: Mapping[str, type]) -> None:
        self.source, self.records = source, records
        self.i = 0
        self.here = source.tokens[0]
        self.dims: dict[str, Dim] = {}
        self.data: dict[int, bytes] = {}
        self.depth = 0

    def error(
        self,
        expected: str,
        got: str = "",
        at: Token | None = None,
        hint: str = "",
        what: str = "",
    ) -> ProgramError:
        token = at or self.here
        return self.source.error(token.at, expected, got or _shown(token), hint, what)

    def next(self) -> Token:
        token = self.here
        if self.i + 1 < len(self.source.tokens):
            self.i += 1
            self.here = self.source.tokens[self.i]
        return token

    def accept(self, kind: str, text: str) -> bool:
        found = self.here.kind == kind and self.here.text == text
        if found:
            self.next()
        return found

    def expect(self, kind: str, text: str = "", hint: str = "") -> Token:
        token = self.here
        if token.kind != kind or (text and token.text != text):
            if not text and not hint and kind == "end":
                hint = "a program is functions, then data"
            raise self.error(text or _KINDS[kind], hint=hint)
        return self.next()

    @contextmanager
    def nested(self) -> Iterator[None]:
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.error(f"at most {DEEPEST} levels")
        yield
        self.depth -= 1

    def name(self, what: str) -> str:
        token = self.here
        if token.kind not in ("word", "string"):
            raise self.error(what)
        self.next()
        return token.text if token.kind == "word" else self.source.string(token)

    def value_name(self, token: Token) -> str:
        """The variable behind `%y~1`; none behind `%12`."""
        stem = token.text[1:]
        if stem.startswith('"'):
            return self.source.string(token, stem[: stem.rindex('"') + 1])
        stem = stem.partition("~")[0]
        return "" if stem.isdecimal() else stem

    def integer(self, least: int | None = 0) -> int:
        token = self.expect("number")
        x = self.source.number(token)
        if not isinstance(x, int) or (least is not None and x < least):
            raise self.error("a whole number", at=token)
        return x

    # types

    def value_type(self) -> Any:
        """`f32[B, 784]`, or `float` for a Python number."""
        token = self.expect("word")
        if self.here.kind == "mark" and self.here.text == "[" and token.text in DTYPE_OF:
            return self.tensor_type(DTYPE_OF[token.text], token)
        if token.text in WEAK:
            return WEAK[token.text]
        hint = did_you_mean(token.text, [*DTYPE_OF, *WEAK])
        raise self.error("a type such as f32[2, 3]", at=token, hint=hint)

    def tensor_type(self, dtype: DType, at: Token) -> TensorType:
        self.expect("mark", "[")
        sizes: list[int | Dim] = []
        while not self.accept("mark", "]"):
            if sizes:
                self.expect("mark", ",")
            sizes.append(self.size())
        try:
            return TensorType(sizes, dtype)
        except WeftError as e:
            raise self.error(e.expected, e.got, at) from e

    def size(self) -> int | Dim:
        """`B`, `4*B + 1` or `(B + 1)//2`; a name that is said first is declared by that."""
        with self.nested():
            return self.computed(self.factor())

    def computed(self, first: int | Dim) -> int | Dim:
        """What follows a first factor, added and multiplied."""
        out = self.product(first)
        while self.here.text in ("+", "-") or self.here.text.startswith("-"):
            at = self.here
            if at.kind == "number":
                out = out + self.integer(least=None)
            elif self.next().text == "-":
                out = out - self.product(self.factor())
            else:
                out = out + self.product(self.factor())
        return out

    def product(self, out: int | Dim) -> int | Dim:
        while self.here.text in ("*", "//"):
            sign = self.next()
            by = self.factor()
            if sign.text == "*":
                out = out * by
            elif by == 0:
                raise self.error("a divisor that is not 0", at=sign)
            else:
                out = out // by
        return out

    def factor(self) -> int | Dim:
        if self.here.kind == "number":
            return self.integer(least=None)
        if self.accept("mark", "("):
            inner = self.size()
            self.expect("mark", ")")
            return inner
        token = self.here
        if token.kind != "word":
            raise self.error("a size: a number, a name, or a sum of such")
        name = self.next().text
        if name == "dim" and self.accept("mark", "("):
            name = self.source.string(self.expect("string"))
            self.expect("mark", ")")
        return self.dims.setdefault(name, Dim(name))

    def types(self, blanks: bool = False) -> tuple[list[Any], bool]:
        """A type, or several in parentheses (`_` for one that is not said)."""
        if not self.accept("mark", "("):
            return [self.value_type()], False
        out: list[Any] = []
        while not self.accept("mark", ")"):
            if out:
                self.expect("mark", ",")
            out.append(None if blanks and self.accept("word", "_") else self.value_type())
        return out, True

    # literals

    def attributes(self) -> tuple[tuple[str, Any], ...]:
        """`{axis = 1, keepdims = false}`"""
        out: dict[str, Any] = {}
        self.expect("mark", "{")
        while not self.accept("mark", "}"):
            if out:
                self.expect("mark", ",")
            token = self.here
            name = self.name("the name of an attribute")
            if name in out:
                raise self.error("an attribute once", f"{name} again", token)
            self.expect("mark", "=")
            out[name] = self.attribute()
        return tuple(out.items())

    def attribute(self) -> Any:
        token = self.here
        if token.kind == "number":
            x = self.source.number(self.next())
            return self.computed(x) if type(x) is int and self._computes() else x
        if token.kind == "string":
            return self.source.string(self.next())
        if token.kind == "mark" and token.text == "(":
            return self.sequence()
        if token.kind == "word":
            self.next()
            return self.word(token)
        hint = "this value was printed, but it has no text form" if token.text == "<" else ""
        raise self.error("a value: a number, a string, a dtype, a tuple", hint=hint)

    def sequence(self) -> Any:
        """A tuple; or a size that begins with parentheses."""
        out: list[Any] = []
        with self.nested():
            self.expect("mark", "(")
            while not self.accept("mark", ")"):
                out.append(self.attribute())
                if not self.accept("mark", ","):
                    close = self.expect("mark", ")")
                    if len(out) > 1:
                        break
                    if self._computes() and isinstance(out[0], (int, Dim)):
                        return self.computed(out[0])
                    raise self.error(",", at=close, hint="a tuple of one is (x,)")
        return tuple(out)

    def _computes(self) -> bool:
        """Whether an operator of sizes stands here."""
        return self.here.kind == "mark" and self.here.text in ("*", "//", "+", "-")

    def word(self, token: Token) -> Any:
        """true, false, none, a dtype, a type, a symbolic size or a record."""
        name, follows = token.text, self.here
        bracket = follows.text if follows.kind == "mark" else ""
        if name in WORDS:
            return WORDS[name]
        if name in DTYPE_OF:
            dtype = DTYPE_OF[name]
            return self.tensor_type(dtype, token) if bracket == "[" else dtype
        if name.startswith("python.") and name[7:] in WEAK:
            return WEAK[name[7:]]
        if name == "dim" and bracket == "(":
            self.i -= 1
            self.here = token
            return self.size()
        if name in self.records and bracket == "(":
            return self.record(self.records[name], token)
        if name in self.dims:
            return self.computed(self.dims[name])
        known = [*WORDS, *DTYPE_OF, *self.records, *self.dims]
        raise self.error("a value", at=token, hint=did_you_mean(name, known))

    def record(self, kind: type, at: Token) -> Any:
        """`Window(pos = "i", tap = "k")`"""
        said: dict[str, Any] = {}
        with self.nested():
            self.expect("mark", "(")
            while not self.accept("mark", ")"):
                if said:
                    self.expect("mark", ",")
                name = self.name("the name of a field")
                self.expect("mark", "=")
                said[name] = self.attribute()
        try:
            return kind(**said)
        except (TypeError, ValueError, AttributeError) as e:
            fields = ", ".join(f.name for f in dataclasses.fields(kind) if f.init)
            raise self.error(f"{kind.__name__} of {fields}", str(e), at) from e

    def is_number(self) -> bool:
        """Whether a Python number stands here."""
        kind, text = self.here.kind, self.here.text
        return kind == "number" or (kind == "word" and text in ("true", "false"))

    def is_literal(self) -> bool:
        """Whether a constant's value stands here."""
        kind, text = self.here.kind, self.here.text
        return kind in ("number", "string", "word") or (kind == "mark" and text in "[(<")

    def literal(self) -> Any:
        """The value of a constant."""
        if self.here.kind == "mark" and self.here.text == "[":
            return self.dense()
        if self.here.kind == "word" and self.here.text == "data":
            token = self.next()
            self.expect("mark", "(")
            number = self.integer()
            self.expect("mark", ")")
            if number not in self.data:
                raise self.error("data of this text", f"data({number})", token)
            return Blob(number)
        return self.attribute()

    def dense(self) -> Dense:
        """`[[1.0, 2.0], [3.0, 4.0]]`; nothing but [] where there are no elements."""
        at = self.expect("mark", "[")
        parts: list[Dense] = []
        with self.nested():
            while not self.accept("mark", "]"):
                if parts:
                    self.expect("mark", ",")
                if self.here.kind == "mark" and self.here.text == "[":
                    parts.append(self.dense())
                else:
                    parts.append(Dense((), (self.attribute(),)))
        if len({p.shape for p in parts}) > 1:
            raise self.error("rows of equal length", at=at)
        inner = parts[0].shape if parts else ()
        return Dense((len(parts), *inner), tuple(x for p in parts for x in p.numbers))

    # data

    def read_data(self) -> None:
        """Look ahead to the data, which stand behind what refers to them."""
        start = self.i
        for i, (word, number, sign) in enumerate(
            zip(self.source.tokens, self.source.tokens[1:], self.source.tokens[2:], strict=False)
        ):
            if (word.text, number.kind, sign.text) == ("data", "number", "="):
                self.i, self.here = i, word
                self.next()
                self.skip_data()
        self.i, self.here = start, self.source.tokens[start]

    def skip_data(self) -> None:
        """`data 0 = "base64" "base64"`"""
        number = self.integer()
        self.expect("mark", "=")
        at, parts = self.here, []
        while self.here.kind == "string":
            parts.append(self.next().text[1:-1])
        if not parts:
            self.expect("string")
        try:
            self.data[number] = base64.b64decode("".join(parts), validate=True)
        except (binascii.Error, ValueError) as e:
            raise self.error("base64", str(e), at) from None


_KINDS = {
    "value": "a value such as %x",
    "number": "a number",
    "word": "a word",
    "string": "a string",
    "mark": "a mark",
    "end": "the end of the text",
}


def _shown(token: Token) -> str:
    text = token.text if len(token.text) < 60 else f"{token.text[:57]}..."
    return "the end of the text" if token.kind == "end" else text
