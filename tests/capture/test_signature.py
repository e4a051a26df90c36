"""Keys of calls, and how two of them differ."""

import math

import numpy as np
import pytest

import weft as wf
from weft.capture.signature import Policy, kind, signature, why
from weft.capture.structure import flatten


def key(*args, of=signature, **kwargs):
    leaves, form = flatten((args, kwargs))
    return of(leaves, form)


F32 = wf.zeros((2, 3))


def test_equal_calls_have_equal_keys():
    assert key(F32, 2, "a", b=[1.0]) == key(wf.ones((2, 3)), 5, "a", b=[math.nan])
    assert hash(key(F32)) == hash(key(wf.ones((2, 3))))


@pytest.mark.parametrize(
    "other",
    [
        lambda: key(wf.zeros((2, 4)), 2),
        lambda: key(wf.zeros((2, 3), dtype=wf.int32), 2),
        lambda: key(wf.zeros((2, 3), requires_grad=True), 2),
        lambda: key(F32, 2.0),
        lambda: key(F32, True),
        lambda: key(F32, "2"),
        lambda: key(F32, None),
        lambda: key(F32, [2]),
        lambda: key(F32, n=2),
        lambda: key(F32),
    ],
)
def test_other_calls_have_others(other):
    assert key(F32, 2) != other()
    assert why(key(F32, 2), other())


def test_the_same_tensor_twice_is_another_call():
    assert key(F32, F32) != key(F32, wf.zeros((2, 3)))
    assert "the same tensor" in why(key(F32, F32), key(F32, wf.zeros((2, 3))))


def test_recording_gradients_is_part_of_it():
    with wf.no_grad():
        closed = key(F32)
    assert closed != key(F32)
    assert why(closed, key(F32)) == "gradients are recorded"


def test_differences_in_words():
    said = why(key(F32, 2, k={"x": "a"}), key(wf.zeros((2, 4)), 2.0, k={"x": "b"}))
    assert said == (
        "argument 0 was f32[2, 3], now it is f32[2, 4]; "
        "argument 1 was a Python int, now it is a Python float; "
        "argument k['x'] was 'a', now it is 'b'"
    )
    assert why(key(F32), key(F32)) == ""
    assert (
        why(key(F32), key(F32, 1)) == "arguments of another structure: 2 values instead of 1 value"
    )


class Unhashable:
    __hash__ = None


def test_unhashable_values_are_told_apart():
    a, b = Unhashable(), Unhashable()
    assert key(a) == key(a)
    assert key(a) != key(b)


def test_arrays_are_told_apart_by_kind_alone():
    assert key(np.zeros(2)) == key(np.ones(3))  # their elements may change in place


def marks(policy, *args):
    leaves, _ = flatten((args, {}))
    return policy.marks(key(*args, of=kind), leaves).sizes


def test_only_sizes_that_change_are_opened():
    policy = Policy(None)
    assert marks(policy, wf.zeros((4, 3)), wf.zeros((4,))) == {}
    assert marks(policy, wf.zeros((5, 3)), wf.zeros((5,))) == {(0, 0): 0, (1, 0): 0}
    assert marks(policy, wf.zeros((5, 7)), wf.zeros((5,))) == {(0, 0): 0, (0, 1): 1, (1, 0): 0}
    assert marks(policy, wf.zeros((5, 7)), wf.zeros((6,))) == {(0, 0): 0, (0, 1): 1, (1, 0): 2}


def test_other_kinds_of_calls_are_counted_apart():
    policy = Policy(None)
    assert marks(policy, wf.zeros((4, 3))) == {}
    assert marks(policy, wf.zeros((5, 3), dtype=wf.int32)) == {}
    assert marks(policy, wf.zeros((5,))) == {}


def test_said_by_the_user():
    assert marks(Policy(True), wf.zeros((4, 4))) == {(0, 0): 0, (0, 1): 1}
    closed = Policy(False)
    assert marks(closed, wf.zeros((4, 4))) == marks(closed, wf.zeros((5, 4))) == {}
