"""Values know where they come from and what they are called."""

from __future__ import annotations

import time

import pytest

import weft as wf
from weft.ir import Location, location
from weft.ops.define import placeholder
from weft.types import TensorType
from weft.types.dtype import float32

pytestmark = pytest.mark.tiny

X = placeholder(TensorType((2, 3), float32))


def loc(x):
    return x.data.loc


def test_place_name_and_text_of_an_expression():
    y = wf.exp(X + 1.0)
    here = test_place_name_and_text_of_an_expression.__code__.co_firstlineno + 1
    assert loc(y) == Location(__file__, here, 9, 24, "y", "wf.exp(X + 1.0)")
    inner = y.data.inputs[0].loc
    assert inner == Location(__file__, here, 16, 23, "", "X + 1.0")
    assert str(loc(y)) == f'"{__file__}":{here}:9'


def test_names():
    plain = -X
    annotated: object = X * 2
    first = second = X - 1
    first += 1
    (walrus := X.abs()) + 1
    pair = (X + 1, X + 2)
    a, b = wf.topk(X, 1)

    def inside():
        cell = X + 3
        return lambda: cell

    kept = inside()()
    assert [loc(v).name for v in (plain, annotated, second, first, walrus, kept)] == [
        "plain", "annotated", "first", "first", "walrus", "cell",
    ]  # fmt: skip
    assert [loc(v).name for v in (*pair, a, b)] == [""] * 4
    box = {"y": X + 1}
    assert loc(box["y"]).name == ""


def test_free_variables():
    free = None

    def f():
        nonlocal free
        free = X + 1

    f()
    assert loc(free).name == "free"


def test_module_level_names_and_sources_that_are_gone():
    space = {"wf": wf, "X": X}
    exec(compile("y = wf.exp(X)\nglobal_ = X + 1", "<nowhere>", "exec"), space)
    assert loc(space["y"]) == Location("<nowhere>", 1, 5, 14, "y", "")
    assert loc(space["global_"]).line == 2


def test_many_locals():
    names = [f"v{i}" for i in range(300)]
    body = "\n".join(f"    {n} = X + {i}" for i, n in enumerate(names))
    space = {"X": X}
    exec(f"def f():\n{body}\n    return {', '.join(names)}", space)
    assert [loc(v).name for v in space["f"]()] == names


def test_several_lines_and_other_alphabets():
    größe = wf.maximum(
        X,
        0.5,
    )
    assert loc(größe).name == "größe" and loc(größe).text == "wf.maximum( …"
    ünïcode = "äöü" and X + 1
    assert loc(ünïcode).text == "X + 1" and loc(ünïcode).column == 25


def test_the_users_frame_is_found_behind_ours_and_pythons():
    def f(v):
        return wf.exp(v)

    y, *_ = map(f, [X])
    assert loc(y).text == "wf.exp(v)"
    z = wf.nn.functional.gelu(X)
    assert loc(z).text == "wf.nn.functional.gelu(X)" and loc(z).file == __file__
    assert location.is_internal(time.__spec__.origin) is False  # built in: no file
    assert location.is_internal(location.linecache.__file__)
    assert not location.is_internal(pytest.__file__)


def test_a_place_seen_before_is_cheap():
    def ask():
        return location.user_location()

    ask()
    best = min(_timed(ask) for _ in range(5))
    assert best < 20e-6  # about 0.5 µs; far from what decoding positions costs

    location._known.clear()
    for _ in range(3):
        assert loc(X + 1).line
    assert len(location._known) == 1


def _timed(f):
    start = time.process_time()
    for _ in range(200):
        f()
    return (time.process_time() - start) / 200
