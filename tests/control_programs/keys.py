"""Keys and attributes that only some paths define, and classes with special methods."""

import weft as wf
from control_programs.case import BOTH, case


@case("a key added to a dict on one path", *BOTH)
def key_on_one(x, y):
    found = {"x": x}
    if x.sum() > 0:
        found["y"] = y * 2
    if "y" in found:
        x = x + found["y"]
    elif "y" not in found and y.sum() > 0:
        found["z"] = x
    size = len(found)
    return found.get("y", x) * size + found.setdefault("z", y), found["y"]


@case("keys that a loop adds", *BOTH)
def keys_of_a_loop(x, y):
    best = {}
    while x.sum() < 40:
        if "best" not in best:
            best["best"] = x
        elif x.max() > best["best"].max():
            best["best"] = x * y
        x = x.abs() * 2 + 1
        best["n"] = best.get("n", 0) + 1
    try:
        return x + best["best"] * best["n"]
    except KeyError:
        return x * 2


@case("attributes that one path defines", *BOTH)
def attribute_on_one(x, y):
    class State:
        scale = 2.0

    state = State()
    if x.sum() > 0:
        state.seen = y
    if hasattr(state, "seen"):
        x = x * state.seen
    for i in range(20):
        if hasattr(state, "last"):
            x = x * 0.5 + state.last * i
        state.last = x.sin()
    return x * state.scale + getattr(state, "seen", x), state.last * state.seen


@case("`+=` of lists and dicts on one path", *BOTH, lengths=True)
def augmented(x, y):
    out = [x]
    same, table = out, {"x": x}
    other = table
    if x.sum() > 0:
        out += [y]
        table |= {"x": y}
    return wf.stack(same), len(same), other["x"]


@case("special methods", *BOTH)
def special_methods(x, y):
    class Vector:
        def __init__(self, v):
            self.v = v

        def __getitem__(self, i):
            return self.v[i] if self.v.sum() > 0 else self.v[-i]

        def __len__(self):
            if self.v.sum() > 0:
                return 2
            return 3

        def __iter__(self):
            return iter([self.v if self.v.max() > 2 else -self.v, y])

        def __contains__(self, n):
            return (self.v == n).any() if self.v.sum() > 0 else False

        def __enter__(self):
            if self.v.sum() > 0:
                self.v = self.v * 2
            return self.v

        def __exit__(self, *error):
            if self.v.sum() > 3:
                self.v = self.v + 1

    a = Vector(x)
    with a as v:
        total = v * a[1]
    for piece in a:
        total = total + piece * len(a)
    return total if 3.0 in a else total + a.v


@case("special methods of operators", *BOTH)
def operators(x, y):
    class Vector:
        def __init__(self, v):
            self.v = v

        def __add__(self, other):
            other = other.v if isinstance(other, Vector) else other
            return Vector(self.v + other if self.v.sum() > 0 else self.v - other)

        def __radd__(self, other):
            return self + other

        def __mul__(self, k):
            return Vector(self.v * k if self.v.max() > 2 else self.v)

        def __neg__(self):
            return Vector(-self.v if self.v.max() > 2 else self.v)

        def __lt__(self, other):
            if self.v.sum() > 0:
                return self.v.sum() < other.v.sum()
            return self.v.max() < other.v.max()

    a, b = Vector(x), Vector(y)
    c = 1 + -(a + b) * 3 + y
    c += x
    return c.v if a < b else c.v * 2


@case("generator expressions that functions go through", *BOTH)
def gathered(x, y):
    total = sum(v * 2 if v > 0 else v for v in x)
    return total * y, max(v for v in x), tuple(v if v < 2 else v * total for v in y)
