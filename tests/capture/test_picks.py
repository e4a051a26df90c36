"""Elements picked by numbers of the program."""

import pytest
from control_lab import agree, outcome
from control_programs import X, Y

import weft as wf
from weft.errors import CaptureError, IndexRangeError

ALL = ((X, Y), (-X, Y), (X.abs(), Y), (-X.abs(), Y))


def positive(x):
    return int((x > 0).sum())


def beyond_a_tuple(x, y):
    return (x * 2, y)[positive(x)]


def beyond_the_start(x, y):
    return [x, y][-positive(x)] + [x * 3][positive(x) - 1]


def missing_key(x, y):
    return {0: x, "a": y, 2: y}[positive(x)]


def handled(x, y):
    try:
        return [x, y][positive(x)]
    except IndexError as e:
        print(e)
        return x * y


def of_tensors(x, y):
    return [x, y, x * y][x.argmax()] * [1, 2.5, 3][x.argmax()]


def nested(x, y):
    return [[x, y], [y * 2, x * 2], [x + 1, y + 1], [y]][positive(x)][int(y[0] > 1)]


def of_other_lengths(x, y):
    return [[x], [y, x], [x, y, y], [x - 1]][positive(x)][0]


class Layer:
    def __init__(self, scale):
        self.scale = scale

    def run(self, v):
        return v * self.scale if v.sum() > 0 else v - self.scale


def attributes_and_methods(x, y):
    layer = [Layer(1), Layer(2.5), Layer(3), Layer(-1)][positive(x)]
    return layer.run(x) + layer.scale * y


def written(x, y):
    rows = [x * 1, y * 1, x + y, x - y]
    rows[positive(x)] = x * y
    rows[positive(y) - 2] += 1.5 * x
    return wf.stack(rows)


def counts(x, y):
    found, by_key = [0, 0, 0], {0: 0, 1: 0}
    for v in x:
        found[int(v > 0) + int(v > 2)] += 1
        by_key[int(v > y[0])] += 1
    return found, by_key, x * found[1]


def membership(x, y):
    k = positive(x)
    if k in (1, 3):
        return x
    if k not in {0: "a", 5: "b"}:
        return y
    return x - y


ERRORS = [beyond_a_tuple, beyond_the_start, missing_key]
CASES = [
    of_tensors, nested, of_other_lengths,
    attributes_and_methods, written, counts, membership,
]  # fmt: skip


@pytest.mark.parametrize("f", CASES, ids=lambda f: f.__name__)
def test_the_element_is_the_one_that_python_picks(f):
    for args in ALL:
        agree(f, *args)


@pytest.mark.parametrize("f", [*CASES, *ERRORS], ids=lambda f: f.__name__)
def test_one_program_picks_them_all(f):
    compiled = wf.compile(f, fallback=False)
    for args in ALL:
        assert outcome(compiled, *args) == outcome(f, *args)
    assert compiled.captures == 1


def test_modules_of_a_list():
    layers = wf.nn.ModuleList([wf.nn.Linear(3, 3), wf.nn.ReLU(), wf.nn.Linear(3, 3, bias=False)])

    def f(x):
        return layers[positive(x)](x) + layers[-1](x)

    def slopes(g, x):
        layers.zero_grad()
        g(x).sum().backward()
        return layers[2].weight.grad.tolist()

    compiled = wf.compile(f, fallback=False)
    for x in (X, -X):
        assert compiled(x).tolist() == f(x).tolist()
    assert slopes(compiled, X) == slopes(f, X)
    with pytest.raises(IndexRangeError, match="got 3"):
        compiled(X.abs())


def test_layers_picked_by_the_counter_of_a_known_range_are_no_loop():
    layers = [wf.tanh, wf.sin, wf.cos, wf.exp] * 5

    def f(x):
        for i in range(20):
            x = layers[i](x)
        return x

    assert "while" not in str(wf.compile(f).graph(X))


def test_a_key_that_is_not_there_is_not_added():
    def f(x):
        found = {}
        found[positive(x)] = x
        return found

    with pytest.raises(CaptureError, match="give the dict all its keys before"):
        wf.compile(f, fallback=False)(X)


def test_what_was_picked_is_used_by_calls_and_attributes():
    def f(x):
        layer = [Layer(1), Layer(2), Layer(3)][positive(x)]
        return {layer: x}

    with pytest.raises(CaptureError, match=r"one of several things \(Layer, Layer, Layer\)"):
        wf.compile(f, fallback=False)(X)


class Node:
    def __init__(self, value):
        self.value = value


def attributes_that_may_be_missing(x, y):
    one, other = Node(x), Node(y)
    if x.min() < -1:
        other.more = x * y
    if x.sum() > 0:
        one = other
    found = getattr(one, "more", y * 2)
    if hasattr(one, "more"):
        found = found + 1
    return found, hasattr(one, "value"), int(hasattr(one, "more")), getattr(one, "least", None)


def test_attributes_of_what_differs_between_paths_may_be_missing():
    for x, y in ALL:
        agree(attributes_that_may_be_missing, x, y)


def one_that_a_path_chose(x, y):
    z = x if x.sum() > 0 else y
    return x + 1 if z is y else x


def one_that_a_step_chose(x, y):
    low = high = None
    while x.sum() < 9:
        x = x + 1
        low = x * 2
        if x.max() > 4:
            high = low
    return x + 1 if low is high else x


@pytest.mark.parametrize("f", [one_that_a_path_chose, one_that_a_step_chose])
def test_whether_two_tensors_are_one_that_may_be_is_refused(f):
    with pytest.raises(CaptureError, match="`is` between tensors that may be one"):
        wf.compile(f, fallback=False)(X, Y)
