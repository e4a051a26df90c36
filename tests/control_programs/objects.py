"""Containers, objects, functions and assignment in place."""

from typing import Any, NamedTuple

import weft as wf
from control_programs.case import BOTH, X, Y, case


@case("assignment in place", (X, Y), (X, -Y))
def in_place(x, y):
    z = x * 1
    w = z
    if y.sum() > 0:
        z += y
        z[0] = 7.0
    else:
        z *= 2
    return z + w


@case("assignment in place in a loop", (X, Y))
def in_place_loop(x, y):
    z = x * 1
    w = z
    while z.sum() < 100:
        z += y + 3
    return z + w


@case("in place on one path, another tensor on the other", (X, Y), (-X, Y))
def in_place_or_new(x, y):
    z = x * 1
    w = z
    if x.sum() > 0:
        z += y
    else:
        z = z * 3
    return z - w * y


@case("`x += y` and `x = y` of one tensor in one step of a loop", (X * X, Y), (X * 100, Y))
def two_ways(x, y):
    z, w = x * 1, y
    while z.sum() < 50:
        z += 1
        w = z
        z = z * 2 if y.sum() > 0 else z + w
    return z - w


@case("slices assigned in branches", (X, Y), (-X, Y))
def slices(x, y):
    z = x * 1
    if x.sum() > 0:
        z[1:] = y[:2]
        z[0] += 5.0
    return z * y


@case("lists and dicts", (X, Y), (-X, -Y))
def containers(x, y):
    out = [x, y]
    d = {"a": x}
    if x.sum() > 0:
        out[0] = out[0] * 2
    if y[0] > 0:
        d["a"] = y
    else:
        d["a"] = d["a"] * 3
    return out[0] + d["a"]


@case("list.append on both paths", (X, Y), (-X, -Y))
def appended(x, y):
    out = [x]
    if x.sum() > 0:
        out.append(x * y)
    else:
        out.append(x - y)
    return wf.stack(out)


@case("sets, tuples, unpacking", (X, Y), (-X, Y))
def unpacking(x, y):
    a, (b, *rest) = x, (y, x, y)
    if a.sum() > 0:
        a, b = b, a
    return a - b * len(rest)


class Pair(NamedTuple):
    first: Any
    second: Any


@case("named tuples and dataclasses", (X, Y), (-X, Y))
def structures(x, y):
    p = Pair(x, y)
    if x.sum() > 0:
        p = Pair(p.second, p.first * 2)
    return p.first - p.second


class Box:
    def __init__(self, value):
        self.value = value

    def grow(self):
        self.value = self.value * 2


@case("attributes of objects made inside", (X, Y), (-X, Y))
def attributes(x, y):
    box = Box(x)
    if x.sum() > 0:
        box.grow()
        box.value = box.value + y
    return box.value


@case("methods of classes defined inside", (X, Y), (-X, Y))
def local_class(x, y):
    class Holder:
        def __init__(self, value):
            self.value = value

        def get(self):
            return self.value * 2 if self.value.sum() > 0 else -self.value

    return Holder(x).get() + y


class Doubled:
    def step(self, x):
        return x * 2 + 1


class Tripled(Doubled):
    def step(self, x):
        if x.sum() > 0:
            x = super().step(x)
        while x.sum() < 9:
            x = super().step(x) * 1.5 + 2
        return x


@case("super() in branches and loops", (X, Y), (-X, Y))
def inherited(x, y):
    return Tripled().step(x) + y


@case("functions, closures, nonlocal, lambdas", (X, Y), (-X, Y))
def closures(x, y):
    total = x * 0

    def add(v):
        nonlocal total
        if v.sum() > 0:
            total = total + v
        return total

    add(x)
    add(y)
    f = lambda v: v * 2 if v.sum() > 0 else v - 1
    return f(total) + f(x)


@case("variables that functions called in branches and loops assign to", *BOTH)
def rebound(x, y):
    total, n = x * 0, 0

    def add(v):
        nonlocal total, n
        total = total + v
        n += 1
        return total

    if x.sum() > 0:
        add(x)
    while total.sum() < 10:
        add(y.abs() + 1)
    z = add(y) if y.sum() > 0 else x
    return total * n + z


@case("comprehensions", (X, Y), (-X, Y))
def comprehensions(x, y):
    rows = [a * 2 if a > 0 else a - 1 for a in x]
    return wf.stack(rows) * y


@case("star arguments and defaults", (X, Y), (-X, Y))
def stars(x, y):
    def f(a, *rest, k=2.0, **more):
        if a.sum() > 0:
            return a * k + rest[0]
        return more["z"] - a

    named = {"z": y}
    return f(*[x, y], **named)
