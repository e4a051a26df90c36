"""Numbers that change from call to call: one program, the bits of eager code."""

import math

import numpy as np
import pytest
from dynamic_lab import X, agree, bits, guards, tensor

import weft as wf
import weft.nn.functional as F

FLOATS = (0.1, -0.0, 0.0, math.nan, math.inf, 1e-310, 1e300, 1 / 3)
INTS = (1, 2, -5, 0, 127, 128, 2**31, 16777217, 2**53 + 1, 2**62 + 1, 2**63, 2**70, -(10**400))


@pytest.mark.parametrize("dtype", [wf.float32, wf.float16, wf.bfloat16, wf.float64])
def test_a_float_is_an_input(dtype):
    x = X.astype(dtype)
    calls = [(x, lr) for lr in FLOATS]
    agree(lambda x, lr: (x - lr * x).astype(wf.float32), *calls, captures=1)
    agree(lambda x, lr: (x / (1 + lr * 0.5)).astype(wf.float32), *calls, captures=1)


@pytest.mark.parametrize("dtype", [wf.int8, wf.uint8, wf.int32, wf.int64, wf.uint64, wf.float32])
@pytest.mark.parametrize("sign", ["+", "*", "/", "//", "%", "r-"])
def test_an_int_is_an_input_where_the_dtype_holds_it(dtype, sign):
    x = wf.tensor([1, 2, 3], dtype=dtype)
    f = {
        "+": lambda x, n: x + n,
        "*": lambda x, n: x * n,
        "/": lambda x, n: x / n,
        "//": lambda x, n: x // n,
        "%": lambda x, n: x % n,
        "r-": lambda x, n: n - x,
    }[sign]
    agree(f, *[(x, n) for n in INTS])
    agree(f, *[(x, n) for n in (1, 2, 3, 100, 7)], captures=1)


def test_a_schedule_captures_once():
    def f(x, step):
        rate = 0.1 * 0.95**step * min(1.0, (step + 1) / 10)
        return x - rate * x

    agree(f, *[(X, n) for n in range(40)], captures=2)  # before and after the warm-up


def test_bias_correction_captures_once():
    def f(x, step):
        return x * (1 - 0.9**step) / (1 - 0.999**step)

    agree(f, *[(X, n) for n in range(1, 60)], captures=1)


def test_functions_of_numbers_are_computed_at_every_call():
    def f(x, step):
        rate = 0.5 * (1 + math.cos(math.pi * min(step, 50) / 50)) * math.sqrt(float(step))
        assert type(step) is int
        return x * rate + int(rate * 10)

    agree(f, *[(X, n) for n in range(40)], captures=1)


def test_exponents():
    agree(lambda x, n: x**n, *[(X, n) for n in range(-3, 9)])
    agree(lambda x, n: x**n, *[(X, n / 3) for n in range(-3, 9)])


def test_numbers_come_back():
    agree(lambda x, n: (x * n, n + 1, {"half": n / 2}, -n), *[(X, n) for n in range(9)], captures=1)


def test_a_question_is_a_guard():
    def f(x, step):
        return x * 2 if step % 10 == 0 else x + step

    compiled = agree(f, *[(X, n) for n in range(40)], captures=2)
    assert any("% 10) == 0" in g for g in guards(compiled))
    assert "no longer (argument 1 % 10) == 0" in str(compiled.explain(X, 1))


def test_bools_shape_the_program():
    agree(lambda x, flag: x if flag else -x, (X, True), (X, False), (X, True), captures=2)


@pytest.mark.parametrize(
    "f",
    [
        lambda x, n: x.sum(axis=n),
        lambda x, n: x[n],
        lambda x, n: x.reshape(n + 1, -1) if n < 1 else x,
        lambda x, n: wf.zeros((n, 3)) + x[:1],
        lambda x, n: x * len(range(n)),
        lambda x, n: x * {0: 1.0, 1: 2.0}[n],
        lambda x, n: x * np.float32(n),
        lambda x, n: x * int(f"{n}"),
        lambda x, n: sum([x] * (n + 1)),
    ],
)
def test_where_python_needs_the_value_it_is_a_guard(f):
    compiled = agree(f, *[(X, n) for n in (0, 1, 0, 1)], captures=2)
    assert any("==" in g or "<" in g for g in guards(compiled))


def test_numbers_as_operands_of_other_functions():
    for f in (
        lambda x, n: wf.where(x > n, n, x),
        lambda x, n: wf.clip(x, -n, n),
        lambda x, n: wf.maximum(x, n) * wf.tensor(n),
        lambda x, n: wf.full((2, 3), n) + x[:2],
        lambda x, n: F.leaky_relu(x, n),
        lambda x, n: (x @ (x.T * n)).sum(),
        lambda x, n: F.softmax(x * n, dim=-1),
    ):
        agree(f, *[(X, n) for n in (0.5, 0.25, 1.0, 3.5)], captures=1)


def test_long_chains_of_numbers():
    def f(x, lr):
        for _ in range(300):
            lr = lr * 0.99 + lr * 0.001
        return x * lr

    agree(f, *[(X, n) for n in (1.0, 3.0, 5.0)], captures=1)


def test_what_python_raises_is_raised():
    agree(lambda x, n: x * (1 / n), *[(X, n) for n in (1, 3, 0, 5)], captures=1)
    agree(lambda x, n: x * n**0.5, *[(X, n) for n in (1.0, 2.0, 4.0)], captures=1)


def test_gradients_through_a_number():
    f = wf.compile(lambda x, lr: wf.exp(x * lr).sum())
    for lr in (0.1, 0.2, 0.3):
        got = []
        for g in (f, f.function):
            x = wf.tensor([1.0, 2.0, 3.0], requires_grad=True)
            g(x, lr).backward()
            got.append(x.grad.numpy().tobytes())
        assert got[0] == got[1]
    assert f.captures == 1


def test_code_that_takes_no_symbols_is_captured_with_values():
    agree(lambda x, n: x * float.fromhex(float.hex(n)), *[(X, n) for n in (0.5, 0.25)], captures=2)


class Decayed:
    def __init__(self):
        self.rate, self.config = 0.5, {"bias": 1.0, "n": 2}

    def step(self, x):
        return x * self.rate + self.config["bias"] * self.config["n"]


def test_numbers_of_objects_are_inputs_once_they_change():
    owner = Decayed()
    compiled = wf.compile(owner.step, fallback=False)

    def agrees(captures):
        assert bits(compiled(X)) == bits(owner.step(X))
        assert compiled.captures == captures

    agrees(1)
    for n in range(4):
        owner.rate = 0.1 * n
        agrees(2)
    for n in range(4):
        owner.rate, owner.config["bias"] = 0.3 * n, -1.0 * n
        agrees(3)
    owner.rate = 3  # another type
    agrees(4)
    text = str(compiled.explain(X))
    assert "rate, read at every call" in text
    assert "was 0.5, now it is 0.0" in text


def test_sizes_and_numbers_together():
    calls = [(tensor(n, 3), n / 7) for n in (4, 5, 6, 7, 8)]
    agree(lambda x, lr: x * lr / x.shape[0] + (lr * x.shape[0]), *calls, captures=2)


def test_control_flow_on_open_sizes_and_numbers():
    def f(x, c):
        y = wf.cond(x.sum() > c, lambda x: x * c, lambda x: x - c, x)
        loop = wf.while_loop(
            lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * c + x.shape[0]), (wf.tensor(0), y)
        )
        return y, loop[1]

    calls = [(tensor(n, seed=n), c) for n in (3, 4, 5) for c in (0.5, -100.0, 0.25)]
    agree(f, *calls, captures=2)


# ints that shapes are made of

SHAPING = {
    "shape": (lambda x, n: x.reshape(n, -1).sum(axis=0), (2, 3, 4, 5, 6, 10, 2), 2),
    "slice": (lambda x, n: (x[:n] * n, n * 2, n / 2, n), (2, 3, 4, 5, 6, 10, 2), 2),
    "made": (lambda x, n: wf.zeros((n, 2)) + x[0] / n, (2, 3, 4, 5, 6, 10, 2), 2),
    "last": (lambda x, n: x[-n:].sum(), (2, 3, 4, 5, 6, 10, 2), 2),
    "zero and one": (lambda x, n: x[n:] * 2, (2, 3, 0, 1, 5, 4, 0), 3),
    "element": (lambda x, n: x[n], (2, 3, 4, -1, 5, -3, 6), 4),
    "below zero": (lambda x, n: x[n:], (-2, -3, -4, -2), 3),
    "table": (lambda x, n: x * {2: 1.0, 3: 2.0}[n], (2, 3, 2, 3), 2),
    "divisor": (lambda x, n: x.reshape(n, 60 // n).sum(axis=1) % n, (2, 3, 4, 5, 6, 10), 2),
    "branch": (lambda x, n: x.reshape(n, -1) if n > 3 else x * n, (2, 3, 4, 5, 6, 3, 2), 3),
}


@pytest.mark.parametrize("name", SHAPING)
def test_an_int_that_shapes_are_made_of(name):
    f, ints, captures = SHAPING[name]
    agree(f, *[(tensor(60), n) for n in ints], captures=captures)


def test_two_ints_and_a_size():
    agree(
        lambda x, n, m: (x[n:m] * n + m).reshape(-1, 1),
        *[(tensor(k), n, m) for k in (20, 30, 40) for n, m in ((2, 5), (3, 6), (4, 19), (2, 5))],
        captures=4,
    )


def test_an_int_counts_the_steps_of_a_loop():
    def f(x, n):
        for i in range(n):
            x = x * 1.5 + i
        return x

    agree(f, *[(tensor(4), n) for n in (2, 3, 4, 20, 7)], captures=2)


def test_an_int_that_does_not_fit_raises_what_eager_raises():
    f = wf.compile(lambda x, n: x.reshape(n, -1), fallback=False)
    for n in (2, 3, 7, 4, -2):
        try:
            want = tensor(12).reshape(n, -1).shape
        except wf.errors.ShapeError as e:
            with pytest.raises(type(e)):
                f(tensor(12), n)
        else:
            assert f(tensor(12), n).shape == want
