"""Control flow said by the names of `weft`."""

import weft as wf
from control_programs.case import X, Y, case


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
