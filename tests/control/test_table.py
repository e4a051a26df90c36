"""The tables of constructs in docs/control_flow.md are what came of running them.

`--update-golden` writes them.
"""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from control_lab import bits, outcome, slopes
from control_programs import CASES
from control_refused import REFUSED

import weft as wf
from weft.capture.structure import flatten
from weft.errors import CaptureError, CaptureWarning, WeftError

PAGE = Path(__file__).parents[2] / "docs" / "control_flow.md"
WAYS = ("eager", "compile", "trace", "gradient", "second")
OTHERS = ("AutoGraph", "Dynamo", "Paddle", "MindSpore")

#: constructs without `if`, `while`, ternary or `and` on a tensor: all others break Dynamo's graph
WHOLE = {
    "for over a range of a tensor", "for down a range of tensors", "cond", "switch", "while_loop",
    "fori_loop", "scan", "assert before what fails",
    "numbers that depend on tensors as indices of lists", "match on tensors",
    "NumPy called on tensors", "whole powers of an exponent that depends on tensors",
    "conditions of comprehensions", "division, power, round and math of numbers",
    "text of tensors, compared",
}  # fmt: skip
#: what their converters do with a construct, found by reading them, as far as it was looked for
AUTOGRAPH = {
    **dict.fromkeys(["if, else", "if without else", "elif", "while", "and, or, not"], "works"),
    **dict.fromkeys(["try, finally around raise", "return inside try", "except"], "no"),
    **dict.fromkeys(["try in a loop", "while, else", "for over range, with break"], "no"),
    "list.append in a loop on tensors": "by a flag",
    "print": "while tracing",
    "recursion": "no",
    "code without source (`exec`, REPL)": "as it is, with a warning",
}
PADDLE = {
    **dict.fromkeys(["if, else", "if without else", "elif", "while", "break, continue"], "works"),
    "and, or, not": "not lazy",
    "assert": "message dropped",
    "NumPy called on tensors": "`.numpy()` dropped",
    "while, else": "`else` dropped",
    "for over range, with break": "`else` dropped",
    "recursion": "no",
}
MINDSPORE = {
    **dict.fromkeys(["recursion", "raise"], "works"),
    **dict.fromkeys(["try, finally around raise", "return inside try", "except"], "no"),
    "try in a loop": "no",
    **dict.fromkeys(
        ["a variable of another shape on each path", "a variable of another dtype on each path"],
        "no",
    ),
}


def others(name: str) -> list[str]:
    dynamo = "–" if name in WHOLE else "breaks"
    return [AUTOGRAPH.get(name, "–"), dynamo, PADDLE.get(name, "–"), MINDSPORE.get(name, "–")]


def came(run, f, arguments, signed_zeros=True, exactly=True) -> str:
    """'works', where it does what `f` does on all of these; or the name of Weft's error. Unless it
    has to be so `exactly`, 'last bits' where these may differ.
    """
    said = "works"
    try:
        for args in arguments:
            got = outcome(run, *args, signed_zeros=signed_zeros)
            want = outcome(f, *args, signed_zeros=signed_zeros)
            if got != want:
                assert not exactly
                assert close(run(*args), f(*args))
                said = "last bits"
    except WeftError as e:
        return type(e).__name__
    return said


def close(x, y) -> bool:
    """Whether floats are equal but for roundings."""
    pairs = zip(flatten(x)[0], flatten(y)[0], strict=True)
    arrays = ((a.numpy(), b.numpy()) for a, b in pairs)
    return all(np.abs(a - b).max() <= 1e-5 * np.abs(b).max() for a, b in arrays)


def traced(f, arguments):
    """A program of the first arguments, made when it is first called."""
    program = None

    def run(*args):
        nonlocal program
        program = program or wf.trace(f, *arguments[0])
        return program(*args)

    return run


def row(case) -> list[str]:
    """What comes of a construct, each way of running it."""
    f, arguments = case.function, case.arguments
    found = [came(f, f, arguments), came(wf.compile(f, fallback=False), f, arguments)]
    found.append(came(traced(f, arguments), f, arguments))
    places = [
        i for i, x in enumerate(arguments[0]) if isinstance(x, wf.Tensor) and x.dtype.is_float
    ]
    again = f
    for way in ("gradient", "second"):
        again = slopes(again, places)
        slope = wf.compile(again, fallback=False)
        gradient = getattr(case, "gradient", True)
        first = way == "gradient"
        found.append(came(slope, again, arguments, False, first) if gradient else "–")
    return found


def written(header, rows) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines).replace(" --- ", "---")


def replaced(text: str, table: str) -> str:
    """The page, with the table of this header."""
    header = table.split("\n")[0]
    before, _, rest = text.partition(header)
    assert rest, f"{PAGE.name} has no table {header}"
    after = rest.partition("\n\n")[2]
    return f"{before}{table}\n\n{after}"


def test_the_page_says_what_comes_of_every_construct(golden):
    rows = [[c.name, *row(c), *others(c.name)] for c in (*CASES, *REFUSED)]
    assert all(r[1:3] == ["works", "works"] for r in rows[: len(CASES)])
    text = replaced(PAGE.read_text(encoding="utf-8"), written(["construct", *WAYS, *OTHERS], rows))
    why = [[c.name, c.reason, c.instead] for c in REFUSED]
    golden(PAGE, replaced(text, written(["construct", "reason", "what to write"], why)))


def test_what_others_do_is_said_of_constructs_that_there_are():
    known = {c.name for c in (*CASES, *REFUSED)}
    assert not {*WHOLE, *AUTOGRAPH, *PADDLE, *MINDSPORE} - known


@pytest.mark.parametrize("case", REFUSED, ids=lambda c: c.name)
def test_what_is_refused_runs_eagerly_and_its_error_names_the_line(case):
    compiled = wf.compile(case.function)
    with pytest.warns(CaptureWarning) as said:
        got = [bits(compiled(*args)) for args in case.arguments]
    assert got == [bits(case.function(*args)) for args in case.arguments]
    assert len(said) == 1
    with pytest.raises(CaptureError) as e:
        wf.compile(case.function, fallback=False)(*case.arguments[0])
    code = case.function.__code__
    named = re.search(rf'"{re.escape(code.co_filename)}"(?::|, line )(\d+)', str(e.value))
    lines = inspect.getsourcelines(code)[0] if "exec" not in case.name else ["", ""]
    assert 0 <= int(named[1]) - code.co_firstlineno < len(lines)
