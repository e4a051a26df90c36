"""Functions that call themselves as often as tensors say."""

import os
import signal
import sys
import threading
import time

import numpy as np
import pytest
from control_lab import agree, bits, compiled
from control_programs import CASES, X, Y
from control_programs.recursion import DEEPER, encoded, scaled

import weft as wf
from weft import nn, optim
from weft.errors import CaptureError, CaptureWarning, DepthError, ProgramError, ShapeError
from weft.ops.language import parse, verify

RECURSIVE = [c for c in CASES if c.function.__module__.endswith("recursion")]


def whole(f):
    return wf.compile(f, fallback=False)


def ops(f):
    """The ops of a graph, those of its regions included."""
    found = [n.op.name for n in f.order]
    return found + [name for n in f.order for r in n.regions for name in ops(r)]


@pytest.mark.parametrize("case", RECURSIVE, ids=lambda c: c.name)
def test_the_text_is_the_program(case):
    f = compiled(case.function, *case.arguments[-1]).captured.function
    assert "recursion" in ops(f)
    verify(f)
    assert parse(str(f)).entry == f


def test_a_function_is_captured_once_and_planned_once():
    f = whole(scaled)
    graph = f.graph(wf.tensor(3), X)
    assert ops(graph).count("recursion") == ops(graph).count("call") == 1
    assert ops(graph).count("tanh") == 1
    said = str(f.explain(wf.tensor(3), X))
    assert "function scaled: " in said and "call      scaled" in said
    x = wf.tensor(X, requires_grad=True)
    assert "scaled keeps 192 bytes of every call" in str(f.explain(wf.tensor(3), x))


def test_thousands_of_calls_inside_each_other():
    f = whole(scaled)
    n = 20_000
    want = X.numpy()
    factors = [want]
    for _ in range(n):
        factors.append(factors[-1] * np.float32(0.9))
    assert f(wf.tensor(n), X * 1e-3).tolist() == [0.0, 0.0, 0.0]
    assert f(wf.tensor(5), X).tolist() == scaled(wf.tensor(5), X).tolist()


def deep_sum(n, x):
    return x if n == 0 else deep_sum(n - 1, x) + x * n


def test_a_gradient_through_thousands_of_calls():
    f = whole(deep_sum)
    x = wf.tensor([0.5, 2.0], requires_grad=True)
    n = 3_000
    f(wf.tensor(n), x).sum().backward()
    total = np.float32(0)
    for k in range(n, 0, -1):
        total = total + np.float32(k)
    assert x.grad.tolist() == [total + 1] * 2


def endless(x):
    return x if x.sum() > 1e9 else endless(x * 1.0) + 1


def test_a_recursion_without_end_is_an_error_and_the_next_call_is_right():
    f = whole(endless)
    with pytest.raises(RecursionError) as e:
        f(X)
    assert type(e.value) is DepthError and "recursion.py" in str(e.value)
    assert f(wf.tensor([1e10])).tolist() == [1e10]


def test_an_interrupt_ends_a_recursion():
    def rounds(x, k):
        if k == 0:
            return x
        return rounds(rounds(x * 1.0, k - 1) + 1, k - 1)

    f = whole(rounds)
    f(X, wf.tensor(3))
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        f(X, wf.tensor(60))  # 2**60 calls
        time.sleep(5)
    assert time.perf_counter() - start < 5
    assert f(X, wf.tensor(3)).tolist() == rounds(X, wf.tensor(3)).tolist()


def test_memory_of_calls_is_given_back():
    f = whole(scaled)
    f(wf.tensor(10), X)
    before = wf.tensor(0)  # what is in use now
    for _ in range(50):
        f(wf.tensor(2_000), X)
    assert before.item() == 0


# types


def test_a_depth_that_python_knows_is_unrolled():
    def f(x, n):
        if n == 0:
            return x
        return f(x * 2, n - 1) if x.sum() > 0 else f(x - 1, n - 1)

    for sign in (1, -1):
        agree(lambda x: f(x, 3), X * sign)
    assert "recursion" not in ops(whole(lambda x: f(x, 3)).graph(X))


def test_a_depth_that_python_knows_is_followed_where_it_picks_a_layer():
    layers = [X, Y, X * Y, Y * Y, X + Y, Y - X, X * 2, Y * 3]

    def f(x, n):
        if n == len(layers):
            return x
        return f(x * layers[n], n + 1) if x.sum() > 0 else f(x + layers[n], n + 1)

    agree(lambda x: f(x, 0), X)


def test_variables_of_python_that_unrolled_calls_assign():
    def f(x):
        count = 0

        def go(k):
            nonlocal count, last
            count += 1
            last = x * k
            return 0 if k == 0 else go(k - 1)

        last = x
        go(3)
        return last + x * count

    agree(f, X)


def test_many_calls_that_python_counts_become_a_function():
    def f(x, n):
        if n == 0:
            return x
        if x.sum() > 100:
            return x * n
        return f(x + 1, n - 1)

    graph = whole(lambda x: f(x, 40)).graph(X)
    assert "recursion" in ops(graph) and ops(graph).count("cond") < 40
    for x in (X, X * 50):
        agree(lambda x: f(x, 40), x)


def growing(x):
    return x if x.sum() > 50 else growing(wf.concat([x, x * x]))


def test_arguments_of_another_shape_at_each_depth_are_refused():
    with pytest.raises(CaptureError, match=r"calls itself.*then f32"):
        whole(growing)(X)
    with pytest.warns(CaptureWarning):
        assert bits(wf.compile(growing)(X)) == bits(growing(X))


def widening(x):
    return x if x.sum() > 50 else widening(x * x + 1).sum(axis=0, keepdims=True)


def test_results_of_another_shape_at_each_depth_are_refused():
    with pytest.raises(CaptureError, match="one type"):
        whole(widening)(X)


def never(x):
    if x.sum() > 0:
        return never(x - 1)
    return never(x + 1)


def test_a_function_that_always_calls_itself_is_refused():
    with pytest.raises(CaptureError, match="a path that ends"):
        whole(never)(X)


def changing(n, x):
    x += 1
    return x if n == 0 else changing(n - 1, x)


def test_arguments_that_are_changed_in_place_are_refused():
    with pytest.raises(CaptureError, match="changed in place"):
        whole(lambda n, x: changing(n, x * 1))(wf.tensor(3), X)


def passed_on(n, x):
    return x if n == 0 else passed_on(n - 1, x)


def test_a_result_that_may_be_an_argument_is_not_changed_in_place():
    def f(n, x):
        z = x * 1
        y = passed_on(n, z)
        y += 1
        return z * y

    with pytest.raises(CaptureError, match="one name"):
        whole(f)(wf.tensor(2), X)
    agree(lambda n, x: passed_on(n, x * 1) + x, wf.tensor(2), X)


def test_an_argument_that_is_changed_under_another_name_is_refused():
    def f(n, x):
        z = x * 1

        def go(k, v):
            z[0] += 1.0
            return v if k == 0 else go(k - 1, v) + v

        return go(n, z)

    with pytest.raises(CaptureError, match="two names"):
        whole(f)(wf.tensor(2), X)


def test_a_variable_of_python_that_calls_assign_is_refused():
    def f(n, x):
        count = 0

        def go(k, z):
            nonlocal count
            count += 1
            return z if k == 0 else go(k - 1, z * 2)

        return go(n, x) * count

    with pytest.raises(CaptureError):
        whole(f)(wf.tensor(3), X)


def test_a_list_that_grows_with_the_depth_is_refused():
    def f(n, x):
        seen = []

        def go(k, z):
            seen.append(z)
            return z if k == 0 else go(k - 1, z * 2)

        go(n, x)
        return wf.stack(seen)

    with pytest.raises(CaptureError):
        whole(f)(wf.tensor(3), X)


def test_an_error_that_a_caller_handles_is_refused():
    def f(n, x):
        def go(k, z):
            if k == 3:
                raise ValueError("three")
            try:
                return z if k == 0 else go(k - 1, z * 2)
            except ValueError:
                return z * 100

        return go(n, x)

    with pytest.raises(CaptureError):
        whole(f)(wf.tensor(5), X)


# forms


def inner(k, x, w):
    if k <= 0:
        return x
    return (inner(k - 1, x * w, w) + x).sin()


def outer(n, x, w):
    if n <= 0:
        return inner(n + 2, x, w)
    return inner(n, outer(n - 1, x * 0.5, w), w) * w


def test_a_recursion_inside_a_recursion():
    for n in (0, 1, 3):
        agree(outer, wf.tensor(n), X, Y)


def down(n, x, w):
    if n <= 0:
        return x
    return across(n, x * w, w) + down(n - 1, x, w)


def across(n, x, w):
    if n <= 0:
        return x * 2
    return across(n - 2, x.sin(), w) * w + down(n - 1, x, w)


def test_functions_that_call_each_other_and_themselves():
    for n in (0, 1, 2, 5):
        agree(down, wf.tensor(n), X, Y)


def test_tensors_from_outside_stay_where_they_are():
    def f(n, x, w):
        bias = w * 2

        def go(k, z):
            def again(v):
                return go(k - 1, v) + bias

            return z * w if k == 0 else again(z + bias)

        return go(n, x) * bias

    for n in (0, 1, 4):
        agree(f, wf.tensor(n), X, Y)


def test_one_tensor_as_two_arguments():
    def both(n, a, b):
        return a * b if n == 0 else both(n - 1, a + 1, b * 2) + a

    def f(n, x):
        return both(n, x, x)

    for n in (0, 2):
        agree(f, wf.tensor(n), X)


def test_tensors_swap_places():
    def swap(n, a, b):
        return a.sin() if n == 0 else swap(n - 1, b, a) * b

    for n in (0, 1, 2, 5):
        agree(swap, wf.tensor(n), X, Y)


def test_a_branch_that_is_detached():
    def f(n, x):
        return x * 2 if n == 0 else f(n - 1, x.detach() * x) + x

    for n in (0, 1, 3):
        agree(f, wf.tensor(n), X)


def test_a_path_that_needs_what_a_loop_found():
    def f(n, x):
        if n <= 0:
            return x
        total = 0.0
        while n > 0:
            n = n - 1
            total = total + f(n, x * 0.5).sum().item()
        return x * total

    for n in (0, 1, 3):
        agree(f, wf.tensor(n), X)


def test_one_recursion_that_is_refused_leaves_others():
    def f(n, x):
        found = []

        def listed(k):
            found.append(k)
            return x if k == 3 else listed(k + 1)

        listed(0)
        return scaled(n, x) if x.sum() > 0 else x

    agree(f, wf.tensor(4), X)


def test_random_numbers_are_those_of_eager_code():
    def f(n, x):
        return x if n == 0 else f(n - 1, x * wf.rand(3)) + wf.randn(3)

    g = whole(f)
    for n in (0, 3, 1):
        wf.manual_seed(7)
        want = bits((f(wf.tensor(n), X), wf.rand(2)))
        wf.manual_seed(7)
        assert bits((g(wf.tensor(n), X), wf.rand(2))) == want


def test_sizes_that_are_left_open():
    f = whole(lambda n, x: scaled(n, x).sum())
    for size in (2, 3, 4, 5):
        x = wf.arange(size, dtype=wf.float32)
        assert bits(f(wf.tensor(3), x)) == bits(scaled(wf.tensor(3), x).sum())
    assert f.captures == 2


def test_a_function_without_tensors_to_give():
    def f(n, x):
        return None if n == 0 else f(n - 1, x * 2)

    assert whole(lambda n, x: (f(n, x), x + 1)[1])(wf.tensor(4), X).tolist() == (X + 1).tolist()


# training


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Parameter(wf.arange(14, dtype=wf.float32).reshape(7, 2) * 0.1)
        self.join = nn.Linear(4, 2)

    def forward(self, node, left, right):
        if left[node] < 0:
            return self.embedding[node]
        pair = [self(left[node], left, right), self(right[node], left, right)]
        return self.join(wf.concat(pair)).tanh()


def test_a_tree_is_trained_with_the_bits_of_eager_code():
    def run(compile_):
        wf.manual_seed(0)
        model = Encoder()
        opt = optim.SGD(model.parameters(), lr=0.1)

        def step(node, left, right):
            loss = (model(node, left, right) ** 2).sum()
            opt.zero_grad()
            loss.backward()
            opt.step()
            return loss

        step = whole(step) if compile_ else step
        losses = [step(*DEEPER) for _ in range(3)]
        return bits((losses, list(model.parameters())))

    assert run(True) == run(False)


@pytest.mark.alone
def test_a_gradient_takes_as_long_as_calls_are_many():
    """What calls gave is kept: nothing is computed once for every call around it."""
    f = whole(lambda n, x: wf.grad(lambda z: deep_sum(n, z).sum())(x))
    steps = []
    for n in (2_000, 20_000):
        n = wf.tensor(n)
        f(n, X)
        start = time.perf_counter()
        f(n, X)
        steps.append(time.perf_counter() - start)
    assert steps[1] < 40 * steps[0] + 0.05  # 100 times if it were


def test_calls_in_loops_and_in_others_of_the_function_are_computed_again():
    def f(n, x):
        if n <= 0:
            return x.sin()
        a = f(n - 1, x * 0.5)
        k, total = 0, a
        while k < n:
            k = k + 1
            total = total * f(n - 2, x + a) + x
        return total.tanh() * f(n - 3, a)

    for n in (0, 1, 3):
        agree(f, wf.tensor(n), X)


def test_records_of_a_step_are_forgotten_before_the_next():
    def f(n, x):
        for _ in range(n):
            x = x - wf.grad(lambda z: deep_sum(n, z).sin().sum())(x.detach()) * 0.01
        return x

    agree(f, wf.tensor(20), X, gradient=False)


def test_backward_outside_of_the_program():
    def run(f):
        wf.manual_seed(0)
        model = Encoder()
        out = f(model)(*DEEPER)
        (out * out).sum().backward()
        return bits((out.detach(), [p.grad for p in model.parameters()]))

    assert run(whole) == run(lambda m: m)


def test_random_trees():
    rng = np.random.default_rng(1)
    f = whole(encoded)
    for leaves in (1, 2, 5, 9, 14):
        left, right, tops = [-1] * leaves, [-1] * leaves, list(range(leaves))
        while len(tops) > 1:
            i, j = (tops.pop(rng.integers(len(tops))) for _ in range(2))
            tops.append(len(left))
            left.append(i)
            right.append(j)
        e = rng.standard_normal((len(left), 4)).astype(np.float32)
        w = rng.standard_normal((8, 4)).astype(np.float32)
        found = []
        for run in (f, encoded):
            args = [wf.tensor(a, requires_grad=True) for a in (e, w)]
            y = run(wf.tensor(tops[0]), wf.tensor(left), wf.tensor(right), *args)
            (y * y).sum().backward()
            grads = [wf.zeros_like(a) if a.grad is None else a.grad for a in args]
            found.append(bits([y.detach(), *grads], signed_zeros=False))
        assert found[0] == found[1]


# text


def test_text_that_calls_what_is_not_there_or_takes_something_else():
    text = """fn f(%x: f32[2]) -> f32[2] {{
  %y = recursion %x {{captured = 0}} : (f32[2])
    fn g(%x: f32[2]) -> f32[2] {{
      %y = call %x {{name = "{}", gives = ({},), site = 0}} : ({})
      %z = add %x, %y
      return %z
    }}
  return %y
}}
"""
    parse(text.format("g", "f32[2]", "f32[2]"))
    with pytest.raises((ProgramError, ShapeError), match="call of g"):
        parse(text.format("g", "f32[]", "f32[]"))
    from weft.capture.evaluate import evaluate

    lost = parse(text.format("h", "f32[2]", "f32[2]")).entry
    with pytest.raises(ProgramError, match="function h"):
        evaluate(lost, wf.ones((2,)))


def test_eager_code_has_pythons_limit():
    with pytest.raises(RecursionError):
        scaled(wf.tensor(sys.getrecursionlimit()), X)
