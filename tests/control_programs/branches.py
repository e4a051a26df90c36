"""Branches."""

from dataclasses import dataclass
from typing import Any

from control_programs.case import BOTH, X, Y, case


@case("if, else", *BOTH)
def if_else(x, y):
    if x.sum() > 0:
        z = x * y
    else:
        z = x - y
    return z + x


@case("if without else", *BOTH)
def if_alone(x, y):
    if x.sum() > 0:
        x = x * y
    return x + y


@case("elif", *BOTH)
def elif_(x, y):
    if x.sum() > 50:
        z = x
    elif x.sum() > 0:
        z = x * y
    elif y.sum() > 0:
        z = y
    else:
        z = x - y
    return z * z


@case("return in a branch", *BOTH)
def early_return(x, y):
    if x.sum() > 100:
        return x * y * y
    elif y.max() > 1:
        w = x.exp()
        return w * x
    return x - y


@case("ternary", *BOTH)
def ternary(x, y):
    return x * y if x.sum() > 5 else (y * y if y[0] > 0 else x - y)


@case("and, or, not", *BOTH)
def logic(x, y):
    a = (x.sum() > 0 and y.sum() > 0) or not x[0] > 1
    return x * 2 if a else y * 1


@case("chained comparison", *BOTH)
def chained(x, y):
    return x * y if 0 < x[0] < 5 <= x[2] + 4 else x + y


@case("names defined on one path", (X, Y), (-X, Y))
def one_path(x, y):
    if x.sum() > 0:
        t = x * 2
        z = t + 1
    else:
        z = y * 1
    return z


@case("walrus", (X, Y), (-X, Y))
def walrus(x, y):
    if (s := x.sum()) > 0:
        return y * s
    return y - s


@case("match, with returns under branches", *BOTH)
def matched(x, y):
    for kind in ("double", ("scale", 3), [1, 2]):
        match kind:
            case "double":
                if x.sum() > 50:
                    return x * 2
                y = y * 2
            case ("scale", k):
                if y[0] > 1:
                    continue
                y = y * k
            case _:
                if x.sum() > 0:
                    break
        x = x + y
    return x * y


@case("match on tensors", *BOTH)
def matched_tensor(x, y):
    match x.argmax():
        case 0:
            return x
        case 2 if y[0] > 0:
            z = y
        case k:
            z = x - y * k
    return z * x


class Kind:
    ODD, EVEN = 1, 2


@dataclass
class Point:
    at: Any
    kind: int


@case("match: or, value, class, sequence and mapping patterns with parts on tensors", *BOTH)
def patterns(x, y):
    count = int((x > 0).sum())
    match Point(x, count), {"y": y, "count": count}:
        case [Point(at, 0), _]:
            z = at * 2
        case [Point(kind=Kind.ODD) as p, {"y": v, **rest}] if v[0] > 0:
            z = p.at * v + rest["count"]
        case [Point(at, 1 | Kind.EVEN), {"count": 2 | 3 as n}]:
            z = at - n
        case [_, *others]:
            z = others[0]["y"] * 3
    return z


@case("match in a loop, with break, continue and return", *BOTH)
def match_in_loop(x, y):
    for i in range(5):
        match int((x > 0).sum()), x.sum() > 20:
            case 0, _:
                return y * i
            case 2, False:
                y = y * 1.5
                continue
            case _, large if large:
                break
        x = x + y + 1
    return x * y


@case("a branch inside a test of None", (X, Y), (-X, Y), (X * 100, Y))
def inside_a_test(x, y, z=None):
    for _ in range(2):
        if z is None:
            x = x + 1
            if x.sum() > 50:
                break
        y = y + x
    if z is None:
        x = x * 2
        if x.sum() > 0:
            return y
    return x * y
