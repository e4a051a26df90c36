"""Tensors with two names where a path or a step passes them on: what is changed in place through
one is seen through the other, or refused where that holds on one path only.
"""

import pytest
from control_lab import agree
from control_programs import X, Y

import weft as wf
from weft.errors import CaptureError

HINT = "write x = x \\+ y instead of x \\+= y, or start from .clone\\(\\)"


def same_pair_on_both_paths(x, y):
    if x.sum() > 0:
        z = w = x * 3
    else:
        z = w = x * 2
    w += 1
    return z + w


def old_name_that_nobody_reads(x, y):
    h = x @ wf.eye(3)
    if h.sum() > 0:
        h = wf.relu(h)
    h += y
    return h


def swapped_then_changed(x, y):
    z, w = x * 1, y * 1
    if x.sum() > 0:
        z, w = w, z
    t = z
    z += 1
    return z + w * t


def element_of_a_list(x, y):
    xs = [x * 1, y * 1]
    first, n = xs[0], 0
    while n < 3 and x.sum() > 0:
        xs[0] += y
        n += 1
    return xs[0] + first


def attribute_with_another_name(x, y):
    class Box:
        pass

    box = Box()
    box.value = x * 1
    w = box.value
    if x.sum() > 0:
        box.value += y
    else:
        box.value = box.value * 3
    return box.value + w * y


def chosen_in_a_loop(x, y):
    h, n = x * 1, 0
    while n < 4 and x.sum() > -3:
        if h.sum() > 3:
            h = h * 2
        h += y
        n += 1
    return h


def passed_on_in_a_loop(x, y):
    a, z, n = x * 1, y * 1, 0
    while n < 3 and x.sum() > 0:
        a += y
        z = a
        n += 1
    return z


def swapped_in_a_loop(x, y):
    z, w, n = x * 1, y * 1, 0
    while n < 3 and x.sum() > 0:
        z, w = w, z
        z += 1
        n += 1
    return z - w * 2


def returned_from_a_loop(x, y):
    def f(v):
        for i in range(3):
            v += 1
            if v.sum() > 5 + i:
                return v
        return v * 2

    a = x * 1
    return f(a) + a


def bools_are_no_tensors(x, y):
    flag = False
    if x.sum() > 0:
        flag = True
    c, before = y[0] > 0, flag
    flag |= c
    print(before, f"{before}", type(before), isinstance(before, int))
    return (x if flag else y), before, c


WORK = [
    same_pair_on_both_paths, old_name_that_nobody_reads, swapped_then_changed, element_of_a_list,
    attribute_with_another_name, chosen_in_a_loop, passed_on_in_a_loop, swapped_in_a_loop,
    returned_from_a_loop, bools_are_no_tensors,
]  # fmt: skip


@pytest.mark.parametrize("f", WORK, ids=lambda f: f.__name__)
def test_what_is_changed_in_place_is_seen_through_both_names(f):
    for args in ((X, Y), (-X, Y), (X, -Y), (X * 100, Y)):
        agree(f, *args)


def changed_behind_a_branch(x, y):
    z = x * 1
    w = z
    if x.sum() > 0:
        z = z * 3
    w += 1
    return z + w


def one_name_on_one_path(x, y):
    if x.sum() > 0:
        z = w = x * 3
    else:
        z, w = x * 2, y * 1
    w += 1
    return z + w


def argument_on_one_path(x, y):
    h = x if x.sum() > 0 else y * 2
    h += 1
    return h


def changed_behind_a_loop(x, y):
    z = x * 1
    w = z
    while z.sum() < 50:
        z = z + y.abs() + 1
    z += 1
    return z + w


def passed_on_and_changed_behind(x, y):
    a, z, n = x * 1, y * 1, 0
    while n < 3 and x.sum() > 0:
        a += y
        z = a
        n += 1
    a += 1
    return z


def best_so_far(x, y):
    best, z = x * 1, x * 1
    for _ in range(20):
        z = z * 0.9 + y
        if z.sum() > best.sum():
            best = z
        z += 1
    return best - z


def element_on_one_path(x, y):
    xs = [x * 1, y * 1]
    if x.sum() > 0:
        xs[0] = xs[1]
    xs[1] += 1
    return xs[0] + xs[1]


def another_name_in_a_loop(x, y):
    z, n = x * 1, 0
    w = z
    while n < 3 and x.sum() > 0:
        z += 1
        y = y + w
        z = z * 2
        n += 1
    return y, z


REFUSED = [
    changed_behind_a_branch, one_name_on_one_path, argument_on_one_path, changed_behind_a_loop,
    passed_on_and_changed_behind, best_so_far, element_on_one_path, another_name_in_a_loop,
]  # fmt: skip


@pytest.mark.parametrize("f", REFUSED, ids=lambda f: f.__name__)
def test_what_would_change_on_one_path_only_is_refused(f):
    with pytest.raises(CaptureError, match=HINT) as e:
        wf.compile(f, fallback=False)(X, Y)
    assert f'"{__file__}":' in str(e.value)
