"""Lists that grow."""

import weft as wf
from control_programs.case import X, Y, case


@case("list.append in a loop", (X, Y), (-X, Y))
def grown(x, y):
    h, out = x * 0, []
    for i in range(20):
        if h.sum() > 1:
            h = h * 0.25
        h = (h + x * h).tanh() + y * i
        out.append(h)
    return wf.stack(out) * len(out) - out[-1] + out[2]


@case("lists that two loops append to, and one goes through", (X, Y))
def passed_on(x, y):
    out, sums, total = [y], [], x
    for _ in range(18):
        x = x * 0.5 + y.sin()
        out.append(x)
        out.append(x * y)
    for i in range(17):
        out.append(y * i)
    for i, v in enumerate(out):
        total = total * 0.5 + v * v * i
        if total.sum() < 0:
            total = total + v
        sums.append(total)
    return wf.concat(sums), sum(out), [v * 2 for v in sums[:2]]


@case("numbers in a list that grows", (X, Y), (-X, Y))
def grown_numbers(x, y):
    found, n = [], 0
    for i in range(20):
        n = n + 2 if x.sum() * i > 9 else n - 1
        found.append(n)
    return x * found[7] + y * sum(found), found[-1]


@case("lists of lists that grow", (X, Y))
def nested_lists(x, y):
    out = []
    for _ in range(17):
        rows = []
        for _ in range(18):
            x = x * 0.9 + y
            rows.append(x)
        out.append(wf.stack(rows).mean(axis=0))
        out.extend(rows)
    last = out.pop()
    return wf.stack(out, axis=1) * last.sum()


@case("a list of an object, in a loop", (X, Y))
def of_object(x, y):
    class Log:
        def __init__(self):
            self.seen = []

        def step(self, v):
            self.seen.append(v)
            return v * 0.5 + y

    log = Log()
    for _ in range(18):
        x = log.step(x)
    return wf.stack(log.seen) + x


@case("comprehensions over what loops append", (X, Y))
def over_grown(x, y):
    rows = [x * i for i in range(20)]
    out = []
    for r in rows:
        y = (y + r).sin()
        out.append(y)
    both = [a * b for a, b in zip(out, reversed(rows), strict=True)]
    return wf.stack(both) + wf.stack(out[3:5]).sum()


@case("list.append in a loop on tensors", (X * X, Y), (X, -Y), (X * 9, Y), lengths=True)
def until(x, y):
    out = [y]
    while x.sum() < 50:
        x = x * 1.5 + x.sin() * y + 2
        out.append(x)
    return wf.stack(out) * len(out), out[-1]


@case("list.append before and behind a break", (X * X, Y), (X * 9, Y), (X, Y * 0), lengths=True)
def broken_off(x, y):
    before, after = [], []
    for i in range(30):
        x = x * 1.25 + i
        before.append(x * y)
        if x.sum() > 40:
            break
        after.append(x)
    total = y
    for v in before:
        total = total * 0.5 + v
    return total, wf.concat([*after, x]), len(after)


@case("list.append on one path", (X, Y), (-X, Y), (X, -Y), lengths=True)
def on_one_path(x, y):
    out = [x]
    if x.sum() > 0:
        out.append(y)
        if y.max() > 1:
            out.append(x * y)
    return wf.stack(out).sum(axis=0) * len(out), out


@case("list.append on one path in a loop", (X, Y), (-X, Y), (X, -Y * 5), lengths=True)
def on_one_path_in_a_loop(x, y):
    out, signs = [x], []
    for i in range(20):
        x = x * 0.75 + y * i
        if x[0] > 2:
            out.append(x * y)
        elif x[1] > 1:
            out.append(x)
            signs.append(i)
    return wf.stack(out).mean(axis=0), sum(v * 0.5 for v in out), signs


@case("conditions of comprehensions", (X, Y), (-X, Y), (X * 100, Y * 100), lengths=True)
def filtered(x, y):
    kept = [v * 2 for v in x if v > -300]
    small = [v * i for i, v in enumerate([x, y, x * y]) if v.sum() < 2 if v.max() < 50]
    return wf.stack(kept), sum(small, y) * len(small)
