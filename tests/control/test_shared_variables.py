"""Variables that a path assigns to, and on another path a function that is called there."""

import pytest
from control_lab import agree
from control_programs import X, Y


def called_on_the_other_path(x, y):
    def triple():
        nonlocal x
        x = x * 3

    if x.sum() > 0:
        x = x * 0.5
    else:
        triple()
    return x * y


def called_first(x, y):
    def triple():
        nonlocal x
        x = x * 3

    if x.sum() > 0:
        triple()
    elif y.sum() > 0:
        x = y * 0.5
    return x * y


def called_in_a_branch_of_the_other(x, y):
    best = None

    def note(v):
        nonlocal best
        if best is None or v.sum() > best.sum():
            best = v

    for v in (x, y, x * y):
        if v.max() > 2:
            best = v * 0.5
        elif v.min() < -1:
            note(v)
    return best, x * 2 if best is None else best * y


def in_a_loop(x, y):
    count = 0

    def more(v):
        nonlocal x, count
        x, count = x * 0.5 + v, count + 1

    for v in y:
        if v > 1:
            more(v)
        elif x.sum() > 0:
            x, count = x - v, count + 2
    return x, count


def in_a_loop_inside_of_a_loop(x, y):
    def more(v):
        nonlocal x
        if v.sum() > 0:
            x = x * 0.5 + v

    n = 0
    while n < 3 and x.max() < 9:
        n += 1
        for v in y:
            x = (x + v).tanh()
        more(y)
    return x, n


@pytest.mark.parametrize("f", [called_on_the_other_path, called_first,
                               called_in_a_branch_of_the_other, in_a_loop,
                               in_a_loop_inside_of_a_loop])  # fmt: skip
def test_each_path_leaves_what_it_assigned(f):
    for x, y in ((X, Y), (-X, Y), (X, -Y), (-X.abs(), -Y.abs())):
        agree(f, x, y)


def checked(x):
    if x[0] > 1:
        raise ValueError("large")
    return x * 0.75


def assigned_at_last(x, y):
    best = None
    try:
        x = checked(x)
    except LookupError:
        pass
    else:
        y = (x if best is None else best).sin()
    finally:
        best = y
    return x, y, best


def assigned_at_last_and_handled(x, y):
    best = None
    try:
        try:
            x = checked(x)
            y = (y if best is None else best) * 2
        finally:
            best = x * y
    except ValueError:
        return best * 3, x, y
    return x, y, best


def handled_behind(x, y):
    best = y * 2
    try:
        try:
            x = checked(x)
        finally:
            best, y = best + y, x
    except ValueError:
        x = best * 3
    return x, y, best


@pytest.mark.parametrize("f", [assigned_at_last, assigned_at_last_and_handled, handled_behind])
def test_what_finally_assigns_on_a_path_that_raises_is_of_that_path(f):
    for x, y in ((X, Y), (-X, Y), (X + 2, Y), (X - 5, -Y)):
        agree(f, x, y)
