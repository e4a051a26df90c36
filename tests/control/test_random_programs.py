"""Random functions with branches and loops on tensors: every way to run them gives the same bits,
gradients included.
"""

from __future__ import annotations

import itertools
import linecache
from typing import Any

from control_lab import agree
from hypothesis import HealthCheck, given, settings, strategies as st

import weft as wf

NAMES = ["a", "b", "c"]
_count = itertools.count()

names = st.sampled_from(NAMES)
numbers = st.sampled_from(["0.5", "-1.25", "2", "0.75"])
expressions = st.recursive(
    names,
    lambda e: st.one_of(
        st.builds("({} + {})".format, e, e),
        st.builds("({} - {})".format, e, numbers),
        st.builds("({} * {})".format, e, e),
        st.builds("{}.tanh()".format, e),
        st.builds("{}.sum()".format, e).map(lambda s: f"(a * 0 + {s} * 0.125)"),
    ),
    max_leaves=4,
)
scalars = st.one_of(
    st.builds("{}.sum() > {}".format, names, numbers),
    st.builds("{}.max() < {}.min()".format, names, names),
    st.builds("0 < {}[0] < 1".format, names),
)
conditions = st.recursive(
    scalars,
    lambda c: st.one_of(
        st.builds("({} and {})".format, c, c),
        st.builds("({} or {})".format, c, c),
        st.builds("(not {})".format, c),
    ),
    max_leaves=3,
)


def indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


assignment = st.builds(
    lambda n, e, how: [f"{n} {how} ({e}).tanh()"],
    names,
    expressions,
    st.sampled_from(["=", "=", "="]),
)
ternary = st.builds(
    # two names for one tensor would add up gradients in another order
    lambda n, c, x, y: [f"{n} = {x} * 1 if {c} else {y} * 1"],
    names,
    conditions,
    expressions,
    expressions,
)
early = st.builds(lambda c, n: [f"if {c}:", f"    return {n} * 1, b, c"], conditions, names)
leaving = st.builds(
    lambda c, word: [f"if {c}:", f"    {word}"], conditions, st.sampled_from(["break", "continue"])
)


@st.composite
def blocks(draw: Any, depth: int = 2, loop: bool = False) -> list[str]:
    out: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        out += draw(statements(depth, loop))
    return out


def statements(depth: int, loop: bool) -> Any:
    kinds = [assignment, ternary]
    if depth:
        kinds += [branches(depth - 1, loop), whiles(depth - 1), ranges(depth - 1), by_hand(), early]
    if loop:
        kinds.append(leaving)
    return st.one_of(kinds)


@st.composite
def branches(draw: Any, depth: int, loop: bool) -> list[str]:
    out = [f"if {draw(conditions)}:", *indented(draw(blocks(depth, loop)))]
    if draw(st.booleans()):
        out += ["else:", *indented(draw(blocks(depth, loop)))]
    return out


@st.composite
def whiles(draw: Any, depth: int) -> list[str]:
    k = f"k{next(_count)}"
    body = [f"{k} = {k} + 1", *draw(blocks(depth, True))]
    bound = draw(st.integers(1, 4))
    return [f"{k} = 0", f"while {k} < {bound} and {draw(conditions)}:", *indented(body)]


@st.composite
def ranges(draw: Any, depth: int) -> list[str]:
    i = f"i{next(_count)}"
    bound = draw(st.sampled_from(["3", "n", "n + 1", "12", "20"]))
    body = [*draw(blocks(depth, True)), f"{draw(names)} = a * 0.5 + {i}"]
    return [f"for {i} in range({bound}):", *indented(body)]


@st.composite
def by_hand(draw: Any) -> list[str]:
    """A loop said with a function."""
    x, y, number = draw(names), draw(names), draw(numbers)
    kept = draw(st.sampled_from(["None", "False", "2", "5"]))
    less = f"(s[1] < {draw(st.integers(0, 5))}) & (s[0].sum() < {draw(numbers)})"
    bound, copies = draw(st.sampled_from(["3", "n", "20"])), draw(st.sampled_from([1, 10]))
    step = f"lambda i, s: (s * {number} + {y} + i * 0.125).tanh()"
    fori = f"{x} = wf.fori_loop(0, {bound}, {step}, {x} * 1, checkpoint={kept})"
    step = f"lambda s: ((s[0] * {number} + {y}).tanh(), s[1] + 1)"
    start = f"({x} * 1, wf.tensor(0))"
    loop = f"{x} = wf.while_loop(lambda s: {less}, {step}, {start}, checkpoint={kept})[0]"
    step = f"lambda s, v: ((s * 0.5 + v).tanh(), s * v + {y})"
    rows = f"wf.stack([{x}, {y}] * {copies})"
    scan = f"{x} = wf.scan({step}, {x} * 1, {rows}, checkpoint={kept})[1].sum(axis=0).tanh()"
    return [draw(st.sampled_from([fori, loop, scan]))]


def function(lines: list[str]) -> Any:
    """A function of these lines, whose source Python finds."""
    text = "\n".join(["def f(a, b, c, n):", *indented(lines), "    return a, b, c", ""])
    file = f"<random program {next(_count)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    space: dict[str, Any] = {"wf": wf}
    exec(compile(text, file, "exec"), space)
    return space["f"], text


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(
    blocks(),
    st.lists(st.floats(-2, 2, width=16), min_size=9, max_size=9),
    st.integers(0, 4),
)
def test_every_way_to_run_gives_the_same_bits(lines, values, n):
    f, text = function(lines)
    a, b, c = (wf.tensor(values[i : i + 3]) for i in (0, 3, 6))
    try:
        agree(f, a, b, c, wf.tensor(n))
    except Exception as e:
        e.add_note(text)
        raise
