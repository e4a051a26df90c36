"""What a capture ends with names the user's line, and its traceback is the user's."""

from __future__ import annotations

import re
import traceback
import warnings

import pytest

import weft as wf
from weft.errors import CaptureError, CaptureWarning

X = wf.tensor([1.0, -2.0])
COUNT = [0]


def masked(x):
    y = x * 2
    return y[y > 0]  # here


def places(x):
    return wf.nonzero(x)  # here


def distinct(x):
    return wf.unique_values(x)  # here


def counted(x):  # here
    COUNT[0] += 1
    return x


def as_array(x):
    return x.numpy()  # here


def line_of(f):
    code = f.__code__
    with open(code.co_filename, encoding="utf-8") as file:
        lines = file.read().split("\n")
    first = code.co_firstlineno
    return next(n for n in range(first, first + 5) if lines[n - 1].endswith("# here"))


@pytest.mark.parametrize("f", [masked, places, distinct, as_array], ids=lambda f: f.__name__)
def test_a_warning_names_file_and_line(f):
    with pytest.warns(CaptureWarning, match=rf'at "{re.escape(__file__)}":{line_of(f)}\b'):
        wf.compile(f)(X)
    with pytest.raises(CaptureError, match=rf'at "{re.escape(__file__)}":{line_of(f)}\b'):
        wf.compile(f, fallback=False)(X)


def test_a_place_that_is_said_is_not_said_twice():
    with pytest.raises(CaptureError) as e:
        wf.compile(counted, fallback=False)(X)
    assert str(e.value).count(__file__) == 1


def test_code_without_source_says_what_to_do():
    space = {}
    text = "def plain(x):\n  return x * 2\ndef branch(x):\n  return x if x.sum() > 0 else -x\n"
    exec(text, space)
    for name in ("plain", "branch"):
        with pytest.raises(CaptureError) as e:
            wf.compile(space[name], fallback=False)(X)
        said = f"the source of {name} at <string>:{space[name].__code__.co_firstlineno}"
        assert said in str(e.value) and "frozen" not in str(e.value)
        assert str(e.value).endswith("; put the function into a file, or run it in a notebook")
        assert '"<string>":' in str(e.value)


class Net(wf.nn.Module):
    def __init__(self):
        self.layer = wf.nn.Conv2d(3, 4, 3)

    def forward(self, x):
        return self.layer(x).relu()


def test_a_traceback_is_the_users():
    net = Net()

    @wf.compile
    def step(x):
        return net(x).sum()

    with pytest.raises(wf.errors.ShapeError) as e:
        step(wf.zeros((1, 2, 8, 8)))
    names = [f.name for f in traceback.extract_tb(e.value.__traceback__)]
    assert names == ["test_a_traceback_is_the_users", "step", "forward"]


def test_a_mistake_that_is_not_one_of_wefts_errors_keeps_where_it_was_raised():
    @wf.compile
    def step(x):
        return [x][3]

    with pytest.raises(IndexError) as e:
        step(X)
    frames = traceback.extract_tb(e.value.__traceback__)
    assert [f.name for f in frames[1:]] == ["step", "item"]
    with pytest.raises(TypeError, match=r"step\(\) takes 1 positional argument"):
        step(X, X)


def test_a_schedule_is_stepped_outside():
    opt = wf.optim.SGD([wf.nn.Parameter(wf.ones(1))], lr=1.0)
    plateau = wf.optim.ReduceLROnPlateau(opt)
    schedule = wf.optim.OneCycleLR(opt, max_lr=1.0, total_steps=5, cycle_momentum=False)

    def step(x):
        schedule.step()
        return x

    for f in (step, lambda x: plateau.step(x.sum())):
        with pytest.raises(CaptureError, match=r"LR\w*.step\(\) at .* call it after the compiled"):
            wf.compile(f, fallback=False)(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CaptureWarning)
        assert wf.compile(step)(X) is X and schedule.last_epoch == 1
