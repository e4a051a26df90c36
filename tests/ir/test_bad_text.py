"""Text that is no program: always the one error, with line, column and what was expected."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.ir.toy import TOY
from weft.errors import ProgramError
from weft.ir import Module
from weft.ir.parser import parse as parse_with
from weft.ops.language import parse

HERE = Path(__file__).parent
GOOD = """\
fn f(%x: f32[2, 3], %n: int) -> (f32[2], f32[2, 3]) {
  %c = constant [1.0, 2.0, 3.0] : f32[3]
  %y = add %x, %c : f32[2, 3]  @ "m.py":3:5-10 "x + c"
  %s = sum %y {axes = (1,), keepdims = false} : f32[2]
  %top, %at = topk %y {k = 1, largest = true} : (f32[2, 1], i64[2, 1])
  %z = multiply %y, 2.5 : f32[2, 3]
  return %s, %z
}
"""

#: what is written, what stands there instead, where the error is and what it says
BAD = {
    "op": ("add %x", "addd %x", "3:8", "did you mean add"),
    "value": ("add %x", "add %xx", "3:12", "a value defined above, got %xx; did you mean %x"),
    "twice": ("%s = sum", "%y = sum", "4:3", "a name of its own, got %y again"),
    "type": (": f32[2]\n", ": f32[3]\n", "4:49", "expected f32[2], got f32[3]"),
    "several": (": (f32[2, 1], i64[2, 1])", ": f32[2, 1]", "5:49", "(f32[2, 1], i64[2, 1])"),
    "dtype": ("%x: f32", "%x: f23", "1:10", "a type such as f32[2, 3], got f23; did you mean f32"),
    "size": ("f32[2, 3], %n", "f32[2, -3], %n", "1:10", "sizes of 0 or more"),
    "huge": ("%n: int", "%n: f32[9223372036854775807]", "1:25", "less than 2**62 bytes"),
    "attribute": ("keepdims = false", "keepdims = fals", "4:40", "did you mean false"),
    "attribute name": ("keepdims", "keepdim", "4:8", "fit sum"),
    "attribute twice": ("axes = (1,),", "axes = (1,), axes = (1,),", "4:29", "axes again"),
    "attribute kind": ("(1,)", '"1"', "4:8", "axes: a tuple of integers"),
    "tuple of one": ("(1,)", "(1)", "4:25", "a tuple of one is (x,)"),
    "shape": ("[1.0, 2.0, 3.0]", "[1.0, 2.0]", "2:17", "elements of f32[3], got f32[2]"),
    "ragged": ("[1.0, 2.0, 3.0]", "[[1.0], 2.0]", "2:17", "rows of equal length"),
    "element": ("[1.0, 2.0, 3.0]", "[1.0, 2.0, true]", "2:17", "an element of float32"),
    "no data": ("[1.0, 2.0, 3.0]", "data(3)", "2:17", "data of this text"),
    "opaque": ("(1,)", '<"an object">', "4:23", "has no text form"),
    "operands": ("add %x, %c", "add %x", "3:8", "2 operands"),
    "comma": ("add %x, %c", "add %x, ", "3:17", "a value such as %x"),
    "result": ("-> (f32[2], f32", "-> (f32[3], f32", "7:3", "as fn f says it returns"),
    "no return": ("  return %s, %z\n", "", "7:1", "expected return, got }"),
    "brace": ("%z\n}", "%z\n", "9:1", "expected }"),
    "string": ('"x + c"', '"x + c', "3:48", "not closed on its line"),
    "escape": ('"m.py"', '"m\\qpy"', "3:34", "a string as JSON has it"),
    "character": ("add %x", "add ? %x", "3:12", "a word of the text form"),
    "picked": ("%y, 2.5", "%y, %top, 2.5", "6:8", "2 operands"),
    "names": ("%top, %at", "%top, %at, %more", "5:14", "at most 2 names"),
    "own form": ("add %x, %c", "parameter {position = 0, type = f32[2, 3]}", "3:8", "an op"),
    "after": ("%z\n}", "%z\n}\n}", "9:1", "the end of the text"),
}


@pytest.mark.tiny
def test_the_text_that_is_spoilt_is_good():
    assert len(parse(GOOD).entry.order) == 5  # the picks go unused


@pytest.mark.tiny
@pytest.mark.parametrize("name", BAD)
def test_an_error_says_where_and_what(name):
    old, new, place, said = BAD[name]
    assert GOOD.count(old) == 1, "the spoilt place is not one"
    with pytest.raises(ProgramError) as e:
        parse(GOOD.replace(old, new), "p.wir")
    at = e.value.place.partition(", ")[0]
    assert at == f'"p.wir":{place}' and said in str(e.value), str(e.value)
    line, column = map(int, place.split(":"))
    shown, caret = e.value.excerpt.splitlines()
    assert shown.startswith(f"  {line} | ") and caret.index("^") == len(f"  {line} | ") + column - 1


def test_messages(golden):
    said = []
    for name, (old, new, _, _) in BAD.items():
        with pytest.raises(ProgramError) as e:
            parse(GOOD.replace(old, new), "p.wir")
        said.append(f"{name}\n{e.value}\n")
    golden(HERE / "bad_text.txt", "\n".join(said))


def _spoil(text: str, rng: random.Random) -> str:
    """The text with something cut, doubled, swapped or put in."""
    a, b = sorted(rng.randrange(len(text) + 1) for _ in range(2))
    b = min(b, a + rng.choice((1, 2, 5, 40)))
    kind = rng.randrange(5)
    if kind == 0:
        return text[:a]
    if kind == 1:
        return text[:a] + text[b:]
    if kind == 2:
        return text[:b] + text[a:]
    if kind == 3:
        put = rng.choice('(){}[]<>,:=@%#"\\~-_ \n0123456789.eE\x00é\udc80') * rng.choice((1, 1, 3))
        return text[:a] + put + text[a:]
    c, d = sorted(rng.randrange(len(text) + 1) for _ in range(2))
    return text[:a] + text[c : min(d, c + 9)] + text[b:]


@pytest.mark.parametrize("seed", range(5))
def test_no_text_raises_anything_else(seed):
    rng = random.Random(seed)
    sources = [GOOD, *(p.read_text(encoding="utf-8") for p in sorted(HERE.glob("*.wir")))]
    failed = 0
    for _ in range(200):
        text = rng.choice(sources)
        for _ in range(rng.choice((1, 1, 2, 4))):
            text = _spoil(text, rng)
        failed += not _is_program(text)
    assert failed > 100


def _is_program(text: str) -> bool:
    try:
        return isinstance(parse(text), Module)
    except ProgramError as e:
        said = e
    assert said.place.startswith('"<text>":') and said.expected and "^" in said.excerpt
    return False


@pytest.mark.tiny
def test_every_beginning_of_a_text_is_refused():
    for text in (GOOD, (HERE / "captured.wir").read_text(encoding="utf-8")):
        for end in range(text.rindex("}")):
            with pytest.raises(ProgramError):
                parse(text[:end])


@pytest.mark.tiny
def test_depth_and_length_have_bounds():
    deep = "(" * 5000
    for text in (
        f"fn f() -> () {{ %x = twist {{a = {deep}",
        "fn f() -> () { %x = twist " * 500,
        f"fn f() -> () {{ %x = constant {'[' * 500}",
        f"fn f() -> () {{ %x = twist {{a = {'9' * 10_000}}} }}",
        "",
        "%",
        'data 0 = "a"',
    ):
        with pytest.raises(ProgramError):
            parse_with(text, TOY)


@pytest.mark.tiny
def test_data_must_be_whole():
    text = 'fn f() -> f32[20] {{ %x = constant data(0) : f32[20] return %x }} data 0 = "{}"'
    with pytest.raises(ProgramError, match="80 bytes"):
        parse(text.format("AAAA"))
    with pytest.raises(ProgramError, match="base64"):
        parse(text.format("AAA!"))
