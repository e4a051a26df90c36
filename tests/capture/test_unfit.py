"""What two paths leave apart is not tested as if it were known."""

import pytest
from control_lab import outcome
from control_programs import X, Y

import weft as wf
from weft.errors import CaptureError

TESTS = [
    "best is None", "best is not None", "None is not best", "best is y", "not best",
    "isinstance(best, wf.Tensor)", "type(best) is type(None)", "mode == 'fast'", "mode != 'fast'",
    "mode in ('fast', 1)", "{'slow': 0, 'fast': 1}[mode]", "len(mode) == 4", "hash(mode) == 1",
    "f'{mode}' == 'fast'", "str(mode) == 'fast'", "(lambda m: m is None)(best)",
    "chosen([None, wf.tanh][i])", "print([wf.exp, wf.tanh][i])", "isinstance([1, wf.tanh][i], int)",
]  # fmt: skip


@pytest.mark.parametrize("test", TESTS)
def test_a_test_of_it_is_refused(test, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(
        "import weft as wf\ndef chosen(f):\n return f is not None\ndef f(x, y):\n"
        " best, mode, i = None, 'slow', int(x.sum() > 0)\n"
        " if x.sum() > 0:\n  best, mode = x, 'fast'\n"
        f" if {test}:\n  return x * 2\n return y\n"
    )
    space = {}
    exec(compile(path.read_text(), str(path), "exec"), space)
    with pytest.raises(CaptureError, match=r"program\.py"):
        wf.compile(space["f"], fallback=False)(X, Y)


def test_what_was_picked_is_not_returned():
    def f(x):
        return [wf.exp, wf.tanh][int(x.sum() > 0)]

    with pytest.raises(CaptureError, match="picked by a number"):
        wf.compile(f, fallback=False)(X)


class Item:
    def __init__(self, value):
        self.value = value


def test_what_was_picked_is_known_by_asking_it():
    def f(x, y):
        first, second = Item(x), Item(y)
        functions = [wf.tanh, wf.exp]
        i = int(x.sum() > 0)
        item, function = [first, second][i], functions[i]
        item.value = x * 3
        z = function(y) if function is functions[0] else y
        return first.value + second.value * len([[x], [x, y]][i]) - z

    compiled = wf.compile(f, fallback=False)
    for args in ((X, Y), (-X, Y)):
        assert outcome(compiled, *args) == outcome(f, *args)
    assert compiled.captures == 1
