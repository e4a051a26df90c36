"""Syntax that not every supported Python has: functions are written down here as text."""

import linecache
import sys

import pytest

import weft as wf

SYNTAX = {
    "a function of types": ((3, 12), """
def f[T](x: T, n: int = 2) -> T:
    type Pair = list[T]
    both: Pair = [x, x]
    if x.sum() > 0:
        return both[0] * n
    return -x
"""),
    "a function of types inside": ((3, 12), """
def f(x):
    def inner[T](a: T) -> T:
        return a * 2 if a.sum() > 0 else a
    return inner(x) + inner(-x)
"""),
    "a class of types": ((3, 12), """
class Box[T]:
    def __init__(self, value: T):
        self.value = value
    def get[U: int](self, k: U) -> T:
        if self.value.sum() > 0:
            return self.value * k
        return self.value

def f(x):
    return Box(x).get(3)
"""),
    "quotes inside of an f-string": ((3, 12), """
def f(x):
    print(f"{f"{x.sum()}"!r:>20}")
    return x
"""),
    "annotations of names that are nowhere": ((3, 14), """
def f(x: NotThere) -> Neither:
    y: Undefined = x * 2
    def inner(a: Missing) -> Absent:
        return a if a.sum() > 0 else -a
    return inner(y)
"""),
    "a template": ((3, 14), """
def f(x):
    said = t"the sum is {x.sum()}!"
    return x * len(said.strings)
"""),
    "several errors without brackets": ((3, 14), """
def f(x):
    y = x * 0
    try:
        if x.sum() > 0:
            raise ValueError("above")
        y = x + 1
    except ValueError, TypeError:
        y = x * 2
    return y
"""),
    "unpacking in a comprehension": ((3, 15), """
def f(x):
    rows = [[x, x + 1], [x * 2]]
    named = {**given for given in [{"a": x}, {"b": -x}]}
    return sum([*row for row in rows], start=x * 0) + named["a"] - named["b"]
"""),
    "an import that waits": ((3, 15), """
lazy import json

def f(x):
    json.dumps([1])
    return x if x.sum() > 0 else -x
"""),
}  # fmt: skip


@pytest.mark.parametrize(("since", "text"), SYNTAX.values(), ids=SYNTAX)
def test_compiled_equals_eager(since, text, tmp_path, capsys):
    if sys.version_info < since:
        with pytest.raises((SyntaxError, NameError)):
            exec(compile(text, "text", "exec"), {})
        return
    path = tmp_path / "newer.py"
    path.write_text(text, encoding="utf-8")
    linecache.checkcache()
    world = {}
    exec(compile(text, str(path), "exec"), world)
    compiled = wf.compile(world["f"], fallback=False)
    for sign in (1.0, -1.0):
        x = wf.tensor([sign, 2 * sign])
        assert compiled(x).numpy().tobytes() == world["f"](x).numpy().tobytes()
    assert compiled.captures == 1
    said = capsys.readouterr().out.splitlines()
    assert said[::2] == said[1::2]
