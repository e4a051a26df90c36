"""Loops on single elements are one kernel, with the bits, errors and interrupts of eager code."""

import os
import signal
import threading

import numpy as np
import pytest
from control_lab import bits

import weft as wf
from weft.errors import IndexRangeError


def kernels(f, *args):
    return [k for k in f.explain(*args).kernels if "while" in k]


def check(f, *args, count=1):
    """Eager code and the program agree, which has `count` kernels that are loops."""
    compiled = wf.compile(f, fallback=False)
    with wf.no_grad():
        assert bits(compiled(*args)) == bits(f(*args))
        assert len(kernels(compiled, *args)) == count
    return compiled


def walk(x, limit):
    total = wf.tensor(0.0)
    for i in range(x.shape[0]):
        far = wf.tensor(0.0)
        for j in range(x.shape[1]):
            far = far + x[i, j]
            if far > limit:
                break
        total = total + far
    return total


@pytest.mark.parametrize("limit", [0.0, 3.0, 1e9])
def test_nested_loops_with_a_break_are_one_kernel(limit):
    x = wf.tensor(np.random.default_rng(0).uniform(0, 1, (40, 20)).astype(np.float32))
    check(walk, x, wf.tensor(limit))


@pytest.mark.parametrize("n", [0, 1, 7, 27])
def test_collatz(n):
    def steps(n):
        count = 0
        while n > 1:
            if n % 2 == 0:
                n = n // 2
            else:
                n = 3 * n + 1
            count += 1
        return count, n

    check(steps, wf.tensor(n))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint16", "int64"])
def test_every_width(dtype):
    def series(x):
        total = x * 0
        for n in range(50):
            total = total * 3 + x + n
        return total

    check(series, wf.tensor(3, dtype=getattr(wf, dtype)))


def test_functions_of_math_round_as_ever():
    def orbit(x):
        while x.abs() < 3.0:
            x = (x.exp() - x.sin() * 0.3).tanh() * 2 + x * 1.01 + 0.01
        return x

    for start in (0.1, -0.7, 1.3):
        check(orbit, wf.tensor(start))


def test_conditions_that_are_not_computed_where_the_first_decides():
    def first_above(x, limit):
        i = 0
        while i < x.shape[0] and x[i] <= limit:
            i += 1
        return i

    x = wf.tensor([1.0, 2.0, 5.0, 3.0])
    for limit in (0.0, 1.5, 4.0, 9.0):  # the last goes to the end and reads nothing beyond it
        check(first_above, x, wf.tensor(limit))


def test_elements_counted_from_the_end_and_by_tensors():
    def hops(x, start):
        at = start
        for _ in range(20):
            at = x[at]
        return at

    check(hops, wf.tensor([3, -1, 0, 1]), wf.tensor(0))


def test_an_index_out_of_range_is_an_error_on_its_line():
    def hops(x, start):
        at = start
        for _ in range(20):
            at = x[at]
        return at

    compiled = wf.compile(hops, fallback=False)
    with pytest.raises(IndexRangeError, match=r"got 9.*") as e:
        compiled(wf.tensor([1, 9, 0]), wf.tensor(0))
    assert "test_scalar_loops.py" in str(e.value)
    assert compiled(wf.tensor([1, 2, 0]), wf.tensor(0)).item() == 2  # and it runs again


def test_what_is_more_than_an_element_is_not_taken():
    def norms(x):
        n = 0
        while x.sum() < 100:
            x = x * 2
            n += 1
        return x, n

    check(norms, wf.ones((3,)), count=0)


def test_gradients_go_through_the_same_loops():
    def root(a):
        x = a
        while (x * x - a).abs() > 1e-4:
            x = x - (x * x - a) / (2 * x)
        return x

    def slope(a):
        root(a).backward()
        g, a.grad = a.grad, None
        return g

    a, b = (wf.tensor(7.0, requires_grad=True) for _ in range(2))
    assert bits(wf.compile(slope, fallback=False)(a)) == bits(slope(b))


def test_a_loop_that_does_not_end_can_be_interrupted():
    @wf.compile(fallback=False)
    def forever(x):
        while x > 0:
            x = x + 1 - 1
        return x

    forever(wf.tensor(0.0))
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        forever(wf.tensor(1.0))
    assert forever(wf.tensor(-1.0)).item() == -1.0
