"""Branches, loops, recursion and lists inside `no_grad()`: what they pass on keeps its history."""

import pytest
from control_lab import agree
from control_programs import X, Y

import weft as wf


@wf.no_grad()
def larger(x, y):
    return x if x.sum() > y.sum() else y


def branch(x, y):
    return larger(x, y) * x


def element(x, y):
    with wf.no_grad():
        found = [x, y, x][int((x > 0).sum()) % 3]
    return found * y


def loop(x, y):
    best = None
    with wf.no_grad():
        for v in x:
            if best is None or v > best:
                best = v
    return best * y


def key(x, y):
    d = {"x": x}
    with wf.no_grad():
        if x.sum() > 0:
            d["y"] = y
    return d.get("y", x) * 2


def halved(x, n):
    with wf.no_grad():
        if n <= 0:
            return x
    return halved(x * 0.5, n - 1)


def recursion(x, y):
    with wf.no_grad():
        z = halved(y, (x > 0).sum())
    return halved(x, (y > 0).sum()) * z


def twice(x, n):
    if n <= 0:
        return x * 1
    with wf.no_grad():
        y = twice(x * 0.5, n - 1)
    return twice(x * 0.75, n - 1) * y


def recursion_with_and_without(x, y):
    return twice(y, (x > 0).sum())


def read_where_it_grows(x, y):
    out = []
    for v in x:
        out.append(y * v)
        with wf.no_grad():
            z = out[0]
    return z * x, out


def stack(x, y):
    out = [x * 1]
    for v in y:
        with wf.no_grad():
            if v > 0:
                out.append(x)
            z = out[0].sin()
    return out, z


def whole(x, y):
    out = []
    while x.sum() < 30:
        x = x * 0.5 + 9
        out.append(x * y)
    with wf.no_grad():
        rows, again, total = wf.stack(out), [v for v in out if True], sum(out)
    return rows * x, again, total * x, out[0]


@pytest.mark.parametrize("f", [branch, element, loop, key, recursion, recursion_with_and_without,
                               read_where_it_grows, stack, whole])  # fmt: skip
def test_what_is_passed_on_keeps_its_history(f):
    for x, y in ((X, Y), (-X, Y), (X.abs(), -Y)):
        agree(f, x, y)
