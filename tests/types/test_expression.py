"""Integer expressions: equal ones are spelled alike, and mean what Python computes."""

import math
import random

from weft.types.expression import (
    Symbol,
    Table,
    combined,
    constant,
    evaluated,
    product,
    reduced,
    value_of,
)


def table():
    t = Table()
    return t, [(((t.number(Symbol(n, i, 0), (0, math.inf)),), 1),) for i, n in enumerate("abc")]


def test_equal_sums_are_equal():
    _, (a, b, _) = table()
    assert combined(product(a, b), a) == combined(a, product(b, a))
    assert combined(a, a, -1) == ()
    assert product(combined(a, b), combined(a, b, -1)) == combined(product(a, a), product(b, b), -1)
    assert reduced(combined(product(a, constant(6)), constant(4))) == combined(
        product(a, constant(3)), constant(2)
    )
    assert value_of(constant(7)) == 7
    assert value_of(()) == 0
    assert value_of(a) is None


def test_whole_quotients_are_exact():
    t, (a, b, _) = table()
    assert t.quotient(product(product(a, b), constant(6)), product(b, constant(3))) == product(
        a, constant(2)
    )
    assert t.remainder(product(a, b), b) == ()
    assert t.quotient(combined(product(a, constant(4)), constant(7)), constant(4)) == combined(
        a, constant(1)
    )
    assert t.quotient((), a) == t.remainder((), a) == ()
    assert t.quotient(combined(product(a, b), b), combined(a, constant(1))) == b


def test_texts():
    t, (a, b, _) = table()
    assert t.text(combined(product(product(a, b), constant(2)), constant(3), -1)) == "2*a*b - 3"
    assert t.text(t.quotient(combined(a, constant(1), -1), constant(2))) == "((a - 1) // 2)"
    assert t.text(()) == "0"
    assert t.source(a) == "v[0].type.shape[0]"


def test_bounds_are_tightened_by_what_is_known_of_one_symbol():
    t, (a, b, _) = table()
    assert t.range(combined(a, constant(3), -1)) == (-3, math.inf)
    t.tighten(combined(product(a, constant(2)), constant(5), -1), 0, math.inf)  # 2a - 5 >= 0
    assert t.range(a) == (3, math.inf)
    t.tighten(combined(a, b, -1), 0, 0)  # says nothing of one alone
    assert t.range(b) == (0, math.inf)


def test_random_expressions_mean_what_python_computes():
    rng = random.Random(0)
    for _ in range(500):
        t, symbols = table()
        sizes = [rng.randint(1, 9) for _ in symbols]
        pool = [(s, n) for s, n in zip(symbols, sizes, strict=True)]
        pool += [(constant(n), n) for n in (-3, 0, 1, 2, 5)]
        for _ in range(12):
            (a, x), (b, y) = rng.choice(pool), rng.choice(pool)
            made = [
                (combined(a, b), x + y),
                (combined(a, b, -1), x - y),
                (product(a, b), x * y),
            ]
            if y:
                made += [(t.quotient(a, b), x // y), (t.remainder(a, b), x % y)]
            pool.append(rng.choice(made))
        atoms = t.values(lambda s, sizes=sizes: sizes[s.leaf])
        for terms, value in pool:
            assert evaluated(terms, atoms) == value
            low, high = t.range(terms)
            assert low <= value <= high
