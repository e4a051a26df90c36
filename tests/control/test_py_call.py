"""Eager Python inside compiled programs."""

import numpy as np
import pytest
from control_lab import bits, outcome

import weft as wf
from weft.errors import CaptureError, DTypeError

X = wf.tensor([1.0, -2.0, 3.0])


def median(x, y):
    """What no program can do: its path depends on a list."""
    order = sorted(range(3), key=lambda i: x[i].item())
    return x * x[order[1]] + y, x.sum()


def loss(x, y):
    a, b = wf.py_call(median, x * 2, y, result=(x, wf.tensor(0.0)))
    return (a * a).sum() * b


def slopes(f, *xs):
    given = [wf.tensor(x.numpy(), requires_grad=True) for x in xs]
    y = f(*given)
    y.backward()
    return [y, *(x.grad for x in given)]


def test_gradients_eager_and_compiled_are_those_of_the_function():
    want = slopes(lambda x, y: (lambda a, b: (a * a).sum() * b)(*median(x * 2, y)), X, X + 1)
    assert bits(slopes(loss, X, X + 1)) == bits(want)
    assert bits(slopes(wf.compile(loss, fallback=False), X, X + 1)) == bits(want)
    grads = wf.compile(lambda x, y: wf.vjp(loss, x, y)[1](wf.tensor(1.0)), fallback=False)
    assert bits(grads(X, X + 1)) == bits(want[1:])


def test_in_branches_and_loops():
    def f(x):
        n = 0
        while x.sum() < 30:
            if x[0] > 2:
                x = wf.py_call(lambda v, k: v * v.max() + k, x, n, result=x)
            x = x + 1.5
            n += 1
        return x.sum()

    compiled = wf.compile(f, fallback=False)
    for x in (X, X * 3, X - 2):
        assert bits(slopes(compiled, x)) == bits(slopes(f, x))
    assert compiled.captures == 1


def test_it_runs_in_order_whether_its_result_is_used_or_not():
    seen = []

    @wf.compile(fallback=False)
    def f(x):
        print("before")
        wf.py_call(lambda v: seen.append(v.item()), x.sum())
        wf.py_call(lambda v: print("between", v), x.sum())
        print("after")
        return x

    assert outcome(f, X)[1] == "before\nbetween tensor(2.)\nafter\n"
    f(X * 2)
    assert seen == [2.0, 4.0]


def test_numpy_and_numbers_may_be_given():
    @wf.compile(fallback=False)
    def f(x, scale):
        return wf.py_call(lambda v, s: np.sort(v.numpy()) * np.float32(s), x, scale, result=x)

    assert f(X, 2.0).tolist() == [-4.0, 2.0, 6.0]


def test_errors():
    def f(x):
        return wf.py_call(lambda v: v.astype(wf.float64), x, result=x)

    for g in (f, wf.compile(f, fallback=False)):
        with pytest.raises(DTypeError, match=r"py_call.*f32.*f64"):
            g(X)
    with pytest.raises(DTypeError, match="a function"):
        wf.py_call(3, X)
    with pytest.raises(DTypeError, match="result"):
        wf.py_call(median, X, X, result=3.0)

    @wf.compile(fallback=False)
    def broken(x):
        return wf.py_call(lambda v: {}["no"], x, result=x)

    with pytest.raises(KeyError, match="no"):
        broken(X)


def test_second_derivatives_are_refused():
    f = wf.compile(lambda x: wf.py_call(lambda v: v * v, x, result=x).sum(), fallback=False)
    with pytest.raises(CaptureError, match="first derivatives"):
        wf.grad(lambda x: wf.grad(f)(x).sum())(X)
