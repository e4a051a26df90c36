"""Functions that run eagerly only: one per construct that can't be part of a program, with the
reason and what to write.

The tables in docs/control_flow.md are made of these and of `control_programs`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from control_programs import X, Y

import weft as wf


@dataclass(frozen=True)
class Refused:
    name: str
    reason: str
    instead: str
    function: Callable[..., Any]
    arguments: tuple[tuple[Any, ...], ...]


REFUSED: list[Refused] = []
BOTH = ((X, Y), (-X, Y))
ONE_VALUE = "a value has one type"
WHEN_RUN = "it is known when the program runs"


def refused(
    name: str, reason: str, instead: str, *arguments: tuple[Any, ...]
) -> Callable[..., Any]:
    def add(f: Callable[..., Any]) -> Callable[..., Any]:
        REFUSED.append(Refused(name, reason, instead, f, arguments or BOTH))
        return f

    return add


@refused("a variable of another shape on each path", ONE_VALUE, "`.reshape()`, `broadcast_to`")
def two_shapes(x, y):
    if x.sum() > 0:
        z = x
    else:
        z = x.sum()
    return z * y


@refused("a variable of another dtype on each path", ONE_VALUE, "`.astype()`")
def two_dtypes(x, y):
    if x.sum() > 0:
        z = x
    else:
        z = x.astype(wf.float16)
    return z * y


@refused("results of another form on each path", "results have one form", "results of one form")
def two_forms(x, y):
    if x.sum() > 0:
        return x
    return x, y


@refused("a shape that changes in a loop", ONE_VALUE, "a tensor of full size", (X * X, Y))
def growing_shape(x, y):
    while x.sum() < 50:
        x = wf.concat([x, y * y])
    return x


@refused("a dtype that changes in a loop", ONE_VALUE, "`.astype()` before the loop", (X * X, Y))
def changing_dtype(x, y):
    while x.sum() < 50:
        x = (x * 2).astype(wf.float64)
    return x


@refused(
    "a dict of which a key is there on one path only, returned",
    "its keys would depend on values",
    "its elements, or the key on both paths",
)
def key_on_one(x, y):
    found = {"x": x}
    if x.sum() > 0:
        found["y"] = y
    return found


@refused(
    "a tensor changed in place that is an element of a list that a loop appends to",
    "elements lie in one tensor",
    "`x = x + y`, `.clone()`",
)
def appended_in_place(x, y):
    h, out = x * 0, []
    for _ in range(20):
        h += y
        out.append(h)
    return wf.stack(out)


@refused("elements of a set added on one path", "they would depend on values", "a dict")
def set_on_one(x, y):
    seen = {1}
    if x.sum() > 0:
        seen.add(2)
    return x if 2 in seen else y


@refused(
    "a function made on one path that holds a tensor computed there",
    "it would be known on that path only",
    "make it behind the branch",
)
def made_on_one(x, y):
    def scaled(k):
        return lambda v: v * k

    f = scaled(x.max()) if x.sum() > 0 else scaled(y.max())
    return f(x)


@refused("generators with branches on tensors", "they stay Python's", "a list, or a function")
def generator(x, y):
    def pieces():
        for v in x:
            if v > 0:
                yield v * 2
            else:
                yield v

    return wf.stack(list(pieces())) + y


@refused(
    "recursion on tensors whose shapes change with the depth",
    "a function takes and gives values of one type",
    "tensors of full size",
    (X * X, Y),
)
def growing_recursion(x, y):
    return x.sum() + y if x.sum() > 50 else growing_recursion(wf.concat([x, y * y]), y)


@refused(
    "recursion on tensors that assigns to a variable of Python outside, or grows a list",
    "the depth is known when the program runs",
    "an argument that is returned, a tensor",
)
def counting_recursion(x, y):
    calls = 0

    def halved(z):
        nonlocal calls
        calls += 1
        return z if z.abs().sum() < 1 else halved(z * 0.5)

    return halved(x) * calls


@refused(
    "a tensor changed in place that has another name on one path, used",
    "the other would change on that path only",
    "`x = x + y`, `.clone()`",
)
def one_of_two(x, y):
    z = x * 1
    h = z if x.sum() > 0 else y * 1
    h += 1
    return z + h


@refused("text of tensors, compared", WHEN_RUN, "compare the tensor")
def compared_text(x, y):
    return x if f"{x.sum().item():.0f}" == "2" else y


@refused(
    "whole powers of an exponent that depends on tensors",
    "below zero Python gives a float",
    "a float",
)
def whole_power(x, y):
    return x * 2 ** int(y.max().item())


@refused("NumPy called on tensors", "it needs the elements", "Weft's function, `wf.py_call`")
def by_numpy(x, y):
    return wf.tensor(np.sort(x.numpy())) + y


SEEN: list[Any] = []


@refused(
    "a list, dict or object outside that is changed",
    "a program would not do it again",
    "`wf.py_call`, a tensor",
)
def outside(x, y):
    SEEN.clear()
    if x.sum() > 0:
        SEEN.append(1)
    return x * y


@refused("the time, Python's random numbers", "they would be frozen", "an argument, `wf.rand`")
def stamped(x, y):
    return x * (time.time() > 0) if x.sum() > 0 else y


SPACE: dict[str, Any] = {}
exec("def hidden(x, y):\n    return x if x.sum() > 0 else y", SPACE)
refused("code without source (`exec`, REPL)", "it can't be read", "put it into a file")(
    SPACE["hidden"]
)
