"""What two paths leave apart is tested when the program runs, or not at all."""

import pytest
from control_lab import outcome
from control_programs import X, Y

import weft as wf
from weft.errors import CaptureError

TESTS = [
    "best is None", "best is not None", "None is not best", "best is y", "best == None",
    "isinstance(best, wf.Tensor)", "type(best) is type(None)", "mode == 'fast'", "mode != 'fast'",
    "mode in ('fast', 1)", "{'slow': 0, 'fast': 1}[mode]", "len(mode) == 4",
    "mode + '!' == 'fast!'",
    "f'{mode}' == 'fast'", "str(mode) == 'fast'", "(lambda m: m is None)(best)",
    "chosen([None, wf.tanh][i])", "print([wf.exp, wf.tanh][i])", "isinstance([1, wf.tanh][i], int)",
]  # fmt: skip


@pytest.mark.parametrize("test", TESTS)
def test_it_is_asked_what_it_is(test, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(
        "import weft as wf\ndef chosen(f):\n return f is not None\ndef f(x, y):\n"
        " best, mode, i = None, 'slow', int(x.sum() > 0)\n"
        " if x.sum() > 0:\n  best, mode = x, 'fast'\n"
        f" if {test}:\n  return x * 2\n return y\n"
    )
    space = {}
    exec(compile(path.read_text(), str(path), "exec"), space)
    compiled = wf.compile(space["f"], fallback=False)
    for args in ((X, Y), (-X, Y)):
        assert outcome(compiled, *args) == outcome(space["f"], *args)
    assert compiled.captures == 1


@pytest.mark.parametrize("test", ["len({mode}) == 1", "mode in {mode: 1}", "range(9)[mode:] == 1"])
def test_what_python_has_to_know_is_refused(test, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(
        "def f(x, y):\n mode = 2 if y.sum() > 9 else 'slow'\n"
        f" if {test}:\n  return x * 2\n return y\n"
    )
    space = {}
    exec(compile(path.read_text(), str(path), "exec"), space)
    with pytest.raises(CaptureError, match=r"program\.py"):
        wf.compile(space["f"], fallback=False)(X, Y)


def test_what_was_picked_is_returned():
    def f(x):
        kind = "up" if x.sum() > 0 else None
        return [wf.exp, wf.tanh][int(x.sum() > 0)], (kind, x * 2 if kind else None)

    compiled = wf.compile(f, fallback=False)
    for x in (X, -X):
        assert compiled(x)[0] is f(x)[0]
        assert outcome(compiled, x) == outcome(f, x)
    assert compiled.captures == 1


def test_functions_that_hold_what_a_path_has_computed_are_refused():
    def f(x):
        def scaled(k):
            return lambda v: v * k

        g = scaled(x.max()) if x.sum() > 0 else scaled(x.min())
        return g(x)

    with pytest.raises(CaptureError, match="a function made on one path that does"):
        wf.compile(f, fallback=False)(X)


def test_objects_with_tensors_of_the_program_are_not_returned():
    with pytest.raises(CaptureError, match="a Item with a tensor in it"):
        wf.compile(lambda x: Item(x * 2), fallback=False)(X)


def none_plus(x):
    return (x if x.sum() > 0 else None) + x


def less_than_none(x):
    return x > (x if x.sum() > 0 else None)


def attribute_of_none(x):
    best = x if x.sum() > 0 else None
    return best * best.sum()


def call_of_none(x):
    f = wf.sin if x.sum() > 0 else None
    return f(x)


def key_that_is_not_there(x):
    return {"a": x}["a" if x.sum() > 0 else "b"]


def handled(x):
    f = wf.sin if x.sum() > 0 else None
    try:
        return f(x)
    except TypeError as e:
        print(e)
        return x * 2


@pytest.mark.parametrize(
    "f",
    [none_plus, less_than_none, attribute_of_none, call_of_none, key_that_is_not_there, handled],
)
def test_errors_are_those_of_what_it_is(f):
    compiled = wf.compile(f, fallback=False)
    for x in (X, -X):
        assert outcome(compiled, x) == outcome(f, x)
    assert compiled.captures == 1


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


def matched_by_what_it_is(x):
    p = (x[0], "a") if x[0] > 0 else None if x[1] > 0 else x
    match p:
        case None:
            return x
        case (v, "a"):
            return x * v
        case wf.Tensor():
            return x * 9


def named_in_a_condition(x):
    if (m := x[0] if x.sum() > 0 else None) is not None and m < 2:
        return m
    return x.max() if m is None else x.min()


def known_behind_it(x):
    mode = "a" if x[0] > 0 else "b"
    if mode == "a":
        mode = "b" if x[1] > 0 else "a"
        if mode == "a":
            x = x + 1
    if mode == "b":
        x = x - 7
    return x, mode


def added_by_a_key(x):
    found = {}
    for key in ("p" if x.sum() > 0 else "q", "p"):
        if key not in found:
            found[key] = x * len(found)
    return found["p" if x.sum() > 0 else "q"] + found["p"]


@pytest.mark.parametrize(
    "f", [matched_by_what_it_is, named_in_a_condition, known_behind_it, added_by_a_key]
)
def test_paths_know_what_was_tested(f):
    compiled = wf.compile(f, fallback=False)
    for x in (X, -X, -X.abs(), X.abs()):
        assert outcome(compiled, x) == outcome(f, x)
    assert compiled.captures == 1
