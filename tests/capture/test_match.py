"""`match` of converted functions is Python's: the case taken, what is bound, what is raised."""

from dataclasses import dataclass
from typing import ClassVar

import pytest
from control_lab import agree
from control_programs import X, Y

import weft as wf
from weft.capture.source import operators
from weft.capture.source.convert import source


@dataclass
class Point:
    x: object
    y: object = 3


class Pair:
    __match_args__ = ("x", "y")

    def __init__(self, x, y):
        self.x, self.y = x, y


class Wrong:
    __match_args__: ClassVar = ["x"]


class Keys:
    one = uno = 1


def case_of(s):
    match s:
        case True:
            return "true"
        case None:
            return "none"
        case -1 | 7:
            return "number"
        case 2 + 3j:
            return "complex"
        case int(k) | float(k) if k != 5:
            return "real", k
        case "abc" | b"abc":
            return "text"
        case str(t):
            return t * 2
        case [a, [b, *c]]:
            return a, b, c
        case [a, _] as whole:
            return a, whole
        case [_, *_, Point()]:
            return "a point last"
        case [_, *rest]:
            return rest
        case {"a": q, **rest}:
            return q, rest
        case Point(p, y=2):
            return p
        case Point(x=[*_], y=y):
            return y
        case []:
            return "empty"
        case {}:
            return "mapping"
        case other:
            return repr(other)


SUBJECTS = [
    1, -1, 7, 5, 1.5, True, False, None, 2 + 3j, "abc", "x", b"abc", b"x", [1, 2], [1], [],
    (1, [2, 3]), [1, 2, Point(1)], [1, 2, 3], range(4), {"a": 1, "b": 2}, {"b": 2}, {}, int,
    Point(1, 2), Point(1), Point([1], 9),
]  # fmt: skip


@pytest.mark.parametrize("s", SUBJECTS, ids=repr)
def test_the_same_case_is_taken(s):
    assert operators.call(case_of, s) == case_of(s)
    kept = wf.compile(lambda x: (x, case_of(s)), fallback=False)(X)[1]
    assert kept == case_of(s)


def too_many(s):
    match s:
        case Pair(_, _, _):
            return 1


def of_itself(s):
    match s:
        case int(_, _):
            return 1


def twice(s):
    match s:
        case Pair(_, x=3):
            return 1


def wrong_args(s):
    match s:
        case Wrong(_):
            return 1


def same_key(s):
    match s:
        case {Keys.one: _, Keys.uno: _}:
            return 1


def no_class(s):
    match s:
        case Keys.one():
            return 1


ERRORS = [
    (too_many, Pair(1, 2)), (of_itself, 3), (twice, Pair(1, 2)), (wrong_args, Wrong()),
    (same_key, {1: 2, 2: 3}), (no_class, 1),
]  # fmt: skip


@pytest.mark.parametrize(("f", "s"), ERRORS, ids=lambda x: getattr(x, "__name__", ""))
def test_the_same_errors_are_raised(f, s):
    with pytest.raises((TypeError, ValueError)) as want:
        f(s)
    with pytest.raises(want.type) as got:
        operators.call(f, s)
    assert str(got.value) == str(want.value)


def test_names_are_bound_when_a_pattern_fits_and_not_before():
    def f(x, y):
        a = y
        match x.argmax():
            case 0 as a:
                pass
            case a if a > 1:
                x = x * a
        return a * x

    for args in ((X, Y), (-X, Y), (X * 0, Y)):
        agree(f, *args)


def test_captures_of_alternatives_are_joined():
    def f(x, y):
        match int((x > 0).sum()), x, y:
            case (0, a, b) | (1, b, a):
                return a - b
            case (2, a, b) | (_, b, a):
                return a * 2 - b

    for args in ((X, Y), (-X, Y), (X * 0, Y), (X.abs(), Y)):
        agree(f, *args)


def test_a_bool_of_the_program_is_true_or_false():
    def f(x, y):
        positive = False
        if x.sum() > 0:
            positive = True
        match positive, positive:
            case True, True:
                y = y * 2
        match positive:
            case True:
                return x * y
            case False:
                return x - y

    for args in ((X, Y), (-X, Y)):
        agree(f, *args)


def test_a_match_that_may_take_no_case_gives_none():
    def f(x):
        match x.argmax():
            case 0:
                return x

    compiled = wf.compile(f, fallback=False)
    assert compiled(X) is None
    y = wf.tensor([3.0, 2.0, 1.0])
    assert compiled(y).tolist() == y.tolist()
    assert compiled.captures == 1


def test_the_source_is_readable():
    text = source(case_of)
    assert "weft__.either(weft__.equals(lambda: -1), weft__.equals(lambda: 7))" in text
    assert "weft__.sequence(weft__.named('a'), weft__.sequence(weft__.named('b')" in text
