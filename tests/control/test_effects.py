"""What compiled functions do besides computing: in order, once, and stopped by errors."""

import io
import logging
import sys
import traceback

import pytest
from control_lab import bits, outcome

import weft as wf
from weft.errors import CaptureError
from weft.ir import to_text
from weft.ops.language import parse, verify

X = wf.tensor([1.0, -2.0, 3.0])


def both(f, *args):
    """The compiled function, checked against eager code; one capture is enough."""
    compiled = wf.compile(f, fallback=False)
    for given in args:
        assert outcome(compiled, *given) == outcome(f, *given)
    assert compiled.captures == 1
    return compiled


def test_text_goes_to_the_stream_of_the_moment(monkeypatch):
    @wf.compile(fallback=False)
    def f(x):
        print(x)
        print("bad", file=sys.stderr)
        return x

    for _ in range(2):
        out, err = io.StringIO(), io.StringIO()
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", err)
        f(X)
        assert (out.getvalue(), err.getvalue()) == ("tensor([ 1., -2.,  3.])\n", "bad\n")


def test_print_to_a_file_of_ones_own():
    out = io.StringIO()

    @wf.compile(fallback=False)
    def f(x):
        print(x.sum(), file=out, flush=True)
        return x

    f(X)
    f(-X)
    assert out.getvalue() == "tensor(2.)\ntensor(-2.)\n"


def test_numbers_that_change_are_printed_without_a_capture():
    def f(x, step):
        print(f"step {step}: {x.sum().item():.2f} of {len(x)}")
        return x * step

    compiled = wf.compile(f, fallback=False)
    for step in range(5):
        assert outcome(compiled, X, step) == outcome(f, X, step)
    assert compiled.captures <= 2


def test_parameters_are_printed_as_they_are_now():
    w = wf.tensor([1.0, 2.0], requires_grad=True)
    opt = wf.optim.SGD([w], lr=0.5)

    @wf.compile(fallback=False)
    def f(x):
        loss = (w * x).sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(w)
        return loss

    assert outcome(f, wf.ones(2))[1] == "tensor([0.5, 1.5], requires_grad=True)\n"
    assert outcome(f, wf.ones(2))[1] == "tensor([0., 1.], requires_grad=True)\n"


def test_objects_print_themselves():
    class Point:
        def __init__(self, at):
            self.at = at

        def __repr__(self):
            return f"Point({self.at.sum().item():.1f})"

    def f(x):
        print(Point(x), f"{Point(x)!r:>14}", str(Point(x * 2)))
        return x

    both(f, (X,), (-X,))


def test_gradients_do_not_print_again():
    @wf.compile(fallback=False)
    def f(x):
        while x.sum() < 20:
            print("step")
            x = x * x + 1
        return x.sum()

    x = wf.tensor([1.0, 2.0], requires_grad=True)

    def run():
        f(x).backward()
        return x.grad

    assert outcome(run)[1] == "step\n" * 2


def test_an_error_stops_the_program_and_changes_nothing():
    total = wf.zeros(3)

    @wf.compile(fallback=False)
    def f(x):
        total.assign(total + x)
        assert x.sum() > 0, "no"
        return total * 2

    f(X)
    with pytest.raises(AssertionError, match="no") as e:
        f(-X)
    assert bits(total) == bits(X)
    line = traceback.extract_tb(e.value.__traceback__)[-1]
    assert line.filename == __file__
    assert line.line == 'assert x.sum() > 0, "no"'
    f(X)
    assert bits(total) == bits(X + X)


def test_what_always_raises():
    def f(x):
        print("before")
        if x.sum() > 0:
            raise ValueError("positive")
        raise KeyError(f"{x.sum().item()}")

    both(f, (X,), (-X,))


def test_handlers_of_errors_that_do_not_depend_on_tensors():
    def f(x, table):
        if x.sum() > 0:
            try:
                y = table["z"]
            except KeyError as e:
                print("missing", e)
                y = x * 2
        else:
            y = x
        return y

    compiled = wf.compile(f, fallback=False)
    for x in (X, -X):
        assert outcome(compiled, x, {"a": 1}) == outcome(f, x, {"a": 1})


def test_an_error_in_the_stream_ends_the_program():
    class Broken(io.StringIO):
        def write(self, text):
            raise OSError("disk full")

    out = Broken()

    @wf.compile(fallback=False)
    def f(x):
        print(x, file=out)
        return x

    with pytest.raises(OSError, match="disk full"):
        f(X)


def test_a_callback_may_call_compiled_functions():
    inner = wf.compile(lambda x: x.sum() * 2, fallback=False)

    class Loud(io.StringIO):
        def write(self, text):
            if text:
                said.append((text, inner(X).item()))

    said, out = [], Loud()

    @wf.compile(fallback=False)
    def f(x):
        print(x.sum(), file=out, end="")
        return x

    f(X)
    assert said == [("tensor(2.)", 4.0)]


def test_the_debugger_stops_at_the_line_with_the_variables(monkeypatch):
    seen = []

    def stop():
        frame = sys._getframe(1)
        seen.append((frame.f_code.co_filename, frame.f_lineno, frame.f_globals["y"].tolist()))

    monkeypatch.setattr(sys, "breakpointhook", stop)

    def f(x):
        y = x * 2
        if y.sum() > 0:
            breakpoint()  # noqa: T100
        return y

    line = f.__code__.co_firstlineno + 3
    compiled = wf.compile(f, fallback=False)
    compiled(X)
    compiled(-X)
    compiled(X * 2)
    assert seen == [(__file__, line, (X * 2).tolist()), (__file__, line, (X * 4).tolist())]


def test_text_can_not_be_tested():
    @wf.compile(fallback=False)
    def f(x):
        return x if f"{x.sum().item()}" == "2.0" else x * 2

    with pytest.raises(CaptureError, match=r"test_effects\.py.*text of tensors"):
        f(X)


def test_effects_are_read_again():
    def f(x):
        if x.sum() > 0:
            print("positive", x, sep=": ")
        assert x[0] > 0, f"{x[0].item():.1f}"
        return x

    graph = wf.compile(f, fallback=False).graph(X)
    verify(graph)
    assert parse(to_text(graph)).entry == graph


def test_prints_by_other_means():
    log = logging.getLogger("weft.tests.effects")
    seen = []

    class Keep(logging.Handler):
        def emit(self, record):
            seen.append((record.levelname, record.getMessage()))

    log.addHandler(Keep())

    @wf.compile(fallback=False)
    def f(x):
        if x.sum() > 0:
            log.warning("sum %s", x.sum().item())
        sys.stdout.write(f"{x.sum().item()}\n")
        return x

    assert [outcome(f, x)[1] for x in (X, -X)] == ["2.0\n", "-2.0\n"]
    assert seen == [("WARNING", "sum 2.0")]


def test_a_compiled_function_inside_another_is_converted_with_it():
    @wf.compile
    def inner(x):
        print("inside", x)
        if x.sum() > 0:
            return x * 2
        return x - 1

    both(lambda x: inner(x) + inner(x - 1), (X,), (-X,))
    both(lambda x: wf.value_and_grad(lambda a: (inner(a) * a).sum())(x), (X,), (-X,))
    both(lambda x: wf.cond(x[0] > 0, inner, lambda a: a, x), (X,), (-X,))
    both(lambda x: [*map(inner, [x, -x])], (X,), (-X,))
