"""Strings, functions, modules and None that differ between paths."""

import enum

import weft as wf
from control_programs.case import BOTH, case


@case("a string that differs between paths", *BOTH)
def strings(x, y):
    mode = "up" if x.sum() > 0 else "down"
    scale = {"up": 2.0, "down": -1.0}[mode]
    if mode == "up" and y.sum() > 0:
        x = x * scale
    found = {"up": x, "down": y, "up!": x - y}
    print(f"{mode}: {x.sum().item():.1f}", mode.upper(), len(mode))
    return found[mode] * scale, found.get(mode + "!", y), "o" in mode, mode


@case("`d[k] += v` by a string that differs between paths", *BOTH)
def by_string(x, y):
    found, count = {"+": x[0] * 0, "-": x[0] * 0}, {"+": 0, "-": 0}
    for v in wf.concat([x, y] * 4):
        sign = "+" if v > 0 else "-"
        found[sign] += v
        count[sign] += 1
    return found, count


class Phase(enum.Enum):
    GROW = 1
    SHRINK = 2
    DONE = 3


@case("state machines", *BOTH)
def machine(x, y):
    state, phase, steps = "start", Phase.GROW, 0
    while state != "done":
        if state == "start":
            x = x.abs() + 1
            state = "work"
        elif phase is Phase.GROW:
            x = x * 2
            phase = Phase.SHRINK if x.sum() > 30 else phase
        elif phase == Phase.SHRINK:
            x = x - y.abs() * 3
            if x.sum() < 25:
                phase = Phase.DONE
        else:
            state = "done"
        steps += 1
    return x, steps, phase.name


@case("`match` on a string that differs between paths", *BOTH)
def matched(x, y):
    state = "a"
    for _ in range(20):
        match state:
            case "a":
                x = x * 0.5 + y
                state = "b" if x.sum() > 0 else "c"
            case "b" | "c":
                x = x - 0.25
                state = "a"
    return x, state


@case("functions that differ between paths", *BOTH)
def functions(x, y):
    k = y.max()

    def scaled(v, by=2.0):
        return v * k * by

    f = scaled if x.sum() > 0 else lambda v: v - k
    g = wf.sin if y.sum() > 0 else None
    z = f(x)
    k = k + 1
    return f(z) if g is None else g(z), callable(g)


first, second = wf.nn.Linear(3, 3), wf.nn.Linear(3, 3, bias=False)


@case("modules and classes that differ between paths", *BOTH)
def modules(x, y):
    class Once:
        def __call__(self, v):
            return v * 2

    class Twice(Once):
        def __call__(self, v):
            return v * 4

    layer = first if x.sum() > 0 else second
    kind = Once if y.sum() > 0 else Twice
    for _ in range(20):
        x = layer(x).tanh()
        layer = second if x.sum() > 0.1 else first
    return kind()(x) + layer.weight.sum(), layer.bias is None, issubclass(kind, Twice)


@case("None, or the best so far", *BOTH)
def best_so_far(x, y):
    best, at = None, None
    for i, v in enumerate(wf.concat([x, y] * 4)):
        if v < 0:
            continue
        if best is None or v > best:
            best, at = v, i
    low = None
    while x.sum() > 1 and y.sum() > 0:
        low = x if low is None else wf.minimum(low, x - 1)
        x = x * 0.5
    return best, at, y if low is None else low


@case("functions that return None on one path", *BOTH)
def searched(x, y):
    def find(items, least):
        for v in items:
            if v > least:
                return v
        return None

    def pair(v):
        if v.sum() > 1:
            return v.sum(), "large"
        return None

    a, b = find(x, 2.0), find(y, 1.0)
    total = x * (a if a is not None else 3.0)
    if b:
        total = total + b
    found = pair(x)
    if found is not None:
        size, name = found
        total = total * size
        print(name)
    return total, b, found


@case("attributes and elements that are None at first", *BOTH)
def none_at_first(x, y):
    class Tracker:
        def __init__(self):
            self.best, self.mode = None, "idle"

        def feed(self, v):
            if self.best is None or v > self.best:
                self.best, self.mode = v, "up"
            else:
                self.mode = "flat"

    tracker, found = Tracker(), {"last": None}
    for v in x:
        tracker.feed(v)
        found["last"] = v if v > 0 else found["last"]
    while y.abs().sum() > 1:
        tracker.feed(y.max())
        y = y * 0.7
    return tracker.best * x, tracker.mode, found


@case("None, used as a tensor", *BOTH)
def used(x, y):
    best = None
    for v in x:
        if v > 0 and y.sum() > 0:
            best = v
    try:
        x = x > best
    except TypeError as e:
        print(e)
    return y * best


@case("containers that have two names on one path", *BOTH)
def two_names(x, y):
    a, b = {"v": x}, {"v": y}
    one, two = [x], [y]
    first = a if x.sum() > 0 else b
    longer = one if y.sum() > 0 else two
    a["v"] = x * 2
    one.append(x + 1)
    longer.append(y - 1)
    return first["v"], len(longer), longer[-1], b["v"]


@case("any and all of generator expressions", *BOTH)
def any_and_all(x, y):
    return any(v > 2 for v in x), all(v > -2 for v in y), sum(v * v for v in x if v > -9)
