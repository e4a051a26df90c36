"""Functions whose path depends on tensors: one per construct, with arguments that take every path.

The table in docs/control_flow.md is made of these.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import weft as wf


@dataclass(frozen=True)
class Case:
    name: str
    function: Callable[..., Any]
    arguments: tuple[tuple[Any, ...], ...]
    gradient: bool = True


CASES: list[Case] = []
X, Y = wf.tensor([1.0, -2.0, 3.0]), wf.tensor([0.5, 2.0, -1.0])


def case(name: str, *arguments: tuple[Any, ...], gradient: bool = True) -> Callable[..., Any]:
    def add(f: Callable[..., Any]) -> Callable[..., Any]:
        CASES.append(Case(name, f, arguments, gradient))
        return f

    return add


BOTH = ((X, Y), (-X, Y), (X, -Y), (X * 100, Y))


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


@case("while", (X, Y), (X * 100, Y))
def while_(x, y):
    n = 0
    while (x * x).sum() < 1000:
        x = x * 1.5 + y
        n += 1
    return x, n


@case("while, never run", (X, Y), (X, Y * 1e6))
def while_none(x, y):
    while y.sum() > 100:
        y = y * 0.5
    return y * x


@case("while with the start used inside", (X, Y))
def while_power(x, y):
    z = x
    while z.sum() < 50:
        z = z * x * x
    return z


@case("while True with break", (X, Y), (X * 40, Y))
def while_true(x, y):
    while True:
        x = x + y.abs() + 1
        if x.min() > 5:
            break
    return x * y


@case("break, continue", (X, Y), (-X, Y))
def break_continue(x, y):
    z = x
    k = 0
    while k < 9:
        k += 1
        if z.abs().max() > 30:
            break
        if z[1] < -10:
            z = z * 0.5
            continue
        z = z * x + z
        y = y * 1.1
    return z + y


@case("while, else", (X, Y), (X * 0.01, Y))
def while_else(x, y):
    n = 0
    while n < 5:
        n += 1
        x = x * 1.5
        if x.max() > 10:
            break
    else:
        x = x - y
    return x


@case("return in a loop", (X, Y), (X * 0.01, Y))
def return_in_loop(x, y):
    i = 0
    while True:
        x = x * 1.25
        i += 1
        if x.max() > 50:
            return x * y
        if i > 7:
            return x - y


@case("for over range, with break", (X, Y), (X, -Y))
def for_break(x, y):
    for i in range(30):
        x = x + y * i
        if x.sum() > 20:
            break
    else:
        x = x * 0
    return x


@case("for over a range of a tensor", (X, wf.tensor(4)), (X, wf.tensor(0)))
def for_tensor(x, n):
    t = x * 0
    for i in range(n):
        if i == 2:
            continue
        t = t + x * i
    return t


@case("for down a range of tensors", (X, wf.tensor(1)), (X, wf.tensor(9)))
def for_down(x, n):
    t = x * 0
    for i in range(6, n, -2):
        t = t * 0.5 + x * i
    return t


@case("for over tensors", (X, Y))
def for_rows(x, y):
    s = x * 0
    for a in x:
        for b in y:
            if a * b > 1:
                s = s + a * b
                continue
            if a < -1:
                break
            s = s - b
    return s


@case("zip, enumerate, reversed", (X, Y), (-X, Y))
def for_zip(x, y):
    s = x * 0
    for i, (a, b) in enumerate(zip(x, reversed([y, x, y * 2]), strict=True)):
        if a > 0:
            s = s + b * i
        else:
            s = s - a
    return s


@case("nested loops with return", (X, Y), (-X, -Y))
def nested_return(x, y):
    for i in range(5):
        for j in range(3):
            x = x + y + i
            if x[0] > 4:
                return x * j
    return y * 1


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


@case("names defined on one path", (X, Y), (-X, Y))
def one_path(x, y):
    if x.sum() > 0:
        t = x * 2
        z = t + 1
    else:
        z = y * 1
    return z


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


@case("numbers that branches choose", (X, Y), (-X, Y))
def numbers(x, y):
    k = 1
    if x.sum() > 0:
        k = 3
    return x * k + y


@case("floats that branches choose", (X, Y), (-X, Y))
def floats(x, y):
    rate = 0.1
    if x.sum() > 0:
        rate = 0.3 / 7
    rate = rate * 2 + 0.01
    return x * rate, y.astype(wf.float16) * rate, x.astype(wf.float64) / rate


@case("counters beside narrow integers", (X, Y))
def narrow(x, y):
    n = 0
    while x.sum() < 20:
        x = x + 1
        n += 1
    return wf.tensor([1, 2], dtype=wf.int8) * n, n // 2 + n % 3, x / (n + 1)


@case("item(), int(), float(), bool()", (X, Y), (-X, Y))
def items(x, y):
    scale = x.abs().sum().item()
    if float(y.max()) > 1.5:
        scale = scale * 2
    k = int((x > 0).sum())
    return x / scale if bool(x[0] > 0) else x * k


@case("len, shape", (X, Y), (-X, Y))
def lengths(x, y):
    s = x * 0
    for i in range(len(x)):
        if x[i] > 0:
            s = s + y[x.shape[0] - 1 - i]
    return s


@case("index by a counter", (X, Y), (-X, Y))
def by_counter(x, y):
    i = 0
    while i < 3 and x[i] < 2.5:
        y = y + x[i]
        i = i + 1
    return y


@case("walrus", (X, Y), (-X, Y))
def walrus(x, y):
    if (s := x.sum()) > 0:
        return y * s
    return y - s


@case("slices assigned in branches", (X, Y), (-X, Y))
def slices(x, y):
    z = x * 1
    if x.sum() > 0:
        z[1:] = y[:2]
        z[0] += 5.0
    return z * y


@case("sets, tuples, unpacking", (X, Y), (-X, Y))
def unpacking(x, y):
    a, (b, *rest) = x, (y, x, y)
    if a.sum() > 0:
        a, b = b, a
    return a - b * len(rest)


@case("with", (X, Y), (-X, Y))
def with_(x, y):
    with wf.no_grad():
        if x.sum() > 0:
            w = y * 2
        else:
            w = y - 1
    return x * w


@case("detach and no_grad inside", (X, Y), (-X, Y))
def detached(x, y):
    if x.sum() > 0:
        z = x.detach() * x
    else:
        with wf.no_grad():
            z = y * 2
        z = z * y
    return z


@case("max, min, any, all", (X, Y), (-X, Y))
def builtins_(x, y):
    z = max(x.sum(), y.sum()) * x
    if any(x > 2.5) and not all(v > 0 for v in y):
        z = z + min(x[0], y[0])
    return z


@case("methods of classes defined inside", (X, Y), (-X, Y))
def local_class(x, y):
    class Holder:
        def __init__(self, value):
            self.value = value

        def get(self):
            return self.value * 2 if self.value.sum() > 0 else -self.value

    return Holder(x).get() + y


@case("flags that loops set", (X, Y))
def flags(x, y):
    done = False
    n = 0
    while not done:
        x = x * 1.5
        n = n + 1
        done = x.max() > 20 or n > 6
    return x


@case("cond", (X, Y), (-X, Y))
def by_hand_cond(x, y):
    return wf.cond(x.sum() > 0, lambda a, b: a * b, lambda a, b: a - b, x, y)


@case("switch", (X, wf.tensor(0)), (X, wf.tensor(1)), (X, wf.tensor(7)))
def by_hand_switch(x, i):
    return wf.switch(i, [lambda a: a * 2, lambda a: a.exp(), lambda a: a - 1], x)


@case("while_loop", (X, Y))
def by_hand_while(x, y):
    grown = wf.while_loop(
        lambda s: s[0].sum() < 100, lambda s: (s[0] * 1.5 + s[1], s[1] * 1.1), (x, y.abs())
    )
    return grown[0] - grown[1]


@case("fori_loop", (X, wf.tensor(5)), (X, 3))
def by_hand_fori(x, n):
    return wf.fori_loop(0, n, lambda i, s: s * 1.5 + i, x)


@case("scan", (X, wf.tensor([[1.0, 2.0, 3.0], [0.5, -1.0, 2.0]])))
def by_hand_scan(x, rows):
    def step(s, row):
        s = s * row if row.sum() > 3 else s - row
        return s, s.sum()

    return wf.scan(step, x, rows)


@case("print", *BOTH)
def printed(x, y):
    print("start", x, sep=" | ", end=" |\n")
    if x.sum() > 0:
        print("positive", {"y": [y, 1]}, (x.sum(),), None, True)
    n = 0
    while x.sum() < 9 and n < 3:
        x = x + y.abs()
        n += 1
        print(n, x.detach())
    print()
    return x


@case("f-strings and methods of text", *BOTH)
def formatted(x, y):
    loss = (x * y).sum()
    text = f"{loss.item():.3f} {x.detach()!r:>40} {loss.detach():+.1e} {'done':>{8}}|"
    braces, percent = "{} {:5.1f}", "%d: %s"
    for k in range(3):
        if x[k] > 0:
            print(text.upper() + ", " + braces.format(k, y[k].item()))
        else:
            print(percent % (k, " and ".join([f"{x[k].item()}", "no"])))
    return x * loss


@case("text of tensors, returned", (X, Y), (-X, Y))
def returned_text(x, y):
    total = (x * y).sum()
    text = f"{total.item():.2f}"
    if total > 0:
        total = total * 2
    return total, {"said": [text, text.upper()]}


@case("assert", (X, Y), (-X, Y), (X * 100, Y))
def asserted(x, y):
    n = 0
    while x.max() < 200:
        assert x.sum() > 0, f"the sum is {x.sum().item():.1f} after {n} steps"
        x = x * 2
        n += 1
        assert n < 9
    return x * y


@case("assert before what fails", (X, wf.tensor([0, 2])), (X, wf.tensor([0, 7])), gradient=False)
def guarded(table, i):
    assert (i < len(table)).all(), f"at most {i.max().item()}"
    row = wf.take(table, i, axis=0)
    print("taken", row)
    return row * 2


class Refusal(ValueError):
    def __init__(self, what, code):
        super().__init__(f"refused: {what}")
        self.code = code


@case("raise", *BOTH)
def raising(x, y):
    if x.sum() > 100:
        raise ValueError
    if x.sum() > 0:
        raise Refusal(f"{x.sum().item()}", y[0].item()) from KeyError("why")
    for k in range(3):
        if y[k] < -1:
            raise IndexError(k)
        y = y + x
    return x * y


@case("try, finally around raise", *BOTH)
def finally_(x, y):
    try:
        print("try")
        if x.sum() > 3:
            raise ValueError("large")
        y = y * x
    finally:
        print("finally", y.detach())
    return y


@case("return inside with", *BOTH)
def return_in_with(x, y):
    with wf.no_grad():
        if x.sum() > 0:
            return x * 2
        y = y + 1
    return x * y


@case("break, continue inside with", *BOTH)
def break_in_with(x, y):
    for _ in range(4):
        with wf.enable_grad():
            if x.sum() > 50:
                break
            if y[0] > 1:
                y = y - 1
                continue
            x = x * 1.5 + 1
        y = y * 1.1
    return x + y


@case("return inside try", *BOTH)
def return_in_try(x, y):
    try:
        if x.sum() > 50:
            return x
        y = y * x
        if y[1] > 0:
            return x + y
    except ValueError:
        y = y * 0
    else:
        y = y - 1
    finally:
        print("finally", y.detach())
    return y * 2


@case("except", *BOTH)
def handled(x, y):
    try:
        print("try")
        if x.sum() > 50:
            raise ValueError("large", x.sum().item())
        if x.sum() > 0:
            raise KeyError(f"{x[0].item()}")
        assert y.sum() > 0, "a negative sum"
        y = y * x
    except ValueError as e:
        print(e, e.args[1])
        y = y * e.args[1]
    except (KeyError, IndexError) as e:
        print(f"missing {e}")
        return x
    except AssertionError:
        raise RuntimeError("no way out") from None
    else:
        y = y + 1
    finally:
        print("finally")
    return y * 2


@case("try in a loop", *BOTH)
def try_in_loop(x, y):
    n = 0
    while n < 4:
        n += 1
        try:
            if x.max() > 3:
                raise OverflowError
            x = x + y.abs()
        except OverflowError:
            y = y * 0.5
            if n > 2:
                break
            continue
        finally:
            x = x * 1.25
    return x + y


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


@case("division, power, round and math of numbers", (X, Y), (-X, Y), (X * 0, Y), (X * 7.3, Y))
def arithmetic(x, y):
    a, n = x.sum().item(), int(y.max().item() * 3)
    b = (a // 0.7, a % 0.7, a**2, abs(a) ** 0.5, round(a, 1), round(a), int(a), divmod(n, 4))
    c = math.exp(a / 10) + math.floor(a) + math.atan2(a, 2.0)
    if math.isfinite(c) and n > 0:
        c = c / a + 7 // n
    return x * c, b


@case("a condition of a loop that prints and assigns", (X, Y), (X * 100, Y))
def loud_condition(x, y):
    def asked(total):
        print("asked", total.item())
        return total < 40

    n = 0
    while asked(s := x.abs().sum()):
        x = x * 2
        n += 1
        if y[0] * n > 1:
            break
    else:
        y = y + 1
    return x * s + n * y
