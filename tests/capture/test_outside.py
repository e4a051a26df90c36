"""Objects of libraries, arrays, functions and random numbers outside of a compiled function: what
changes is noticed, what can't be watched runs eagerly.
"""

import collections
import functools
import itertools
import os
import random
import types
from array import array

import numpy as np
import pytest

import weft as wf
import weft.nn.functional as F

X = wf.tensor([1.0, 2.0])


def agree(f, change, times=3):
    """A compiled function gives what the function gives, whatever has changed."""
    compiled = wf.compile(f, fallback=False)
    given = []
    for i in range(times):
        assert compiled(X).tolist() == f(X).tolist()
        captures = compiled.captures
        compiled(X)
        assert compiled.captures == captures, "captured again although nothing changed"
        given.append(f(X).tolist())
        change(i)
    assert given[0] != given[-1], "the change changes nothing: a test of nothing"


class Table(dict):
    pass


DICTS = {
    "OrderedDict": lambda: collections.OrderedDict(a=1.0),
    "defaultdict": lambda: collections.defaultdict(float, a=1.0),
    "Counter": lambda: collections.Counter("a"),
    "UserDict": lambda: collections.UserDict(a=1.0),
    "ChainMap": lambda: collections.ChainMap({"a": 1.0}),
    "a dict of another kind": lambda: Table(a=1.0),
}


def looped(c, x):
    for k in c:
        x = x + c[k]
    return x


@pytest.mark.parametrize("make", DICTS.values(), ids=list(DICTS))
@pytest.mark.parametrize(
    "use",
    [
        lambda c, x: x * len(c),
        lambda c, x: x * (2 if "k1" in c else 1),
        lambda c, x: x * c["a"],
        lambda c, x: x * c.get("k0", 1),
        lambda c, x: x * sum([v for _, v in c.items()]),
        looped,
    ],
    ids=["len", "in", "[]", "get", "items", "for"],
)
def test_dicts_of_other_kinds(make, use):
    c = make()

    def change(i):
        c[f"k{i}"] = i + 2.0
        c["a"] += 1

    agree(lambda x: use(c, x), change)


@pytest.mark.parametrize(
    "make",
    [
        lambda: collections.deque([1.0]),
        lambda: collections.UserList([1.0]),
        lambda: array("d", [1.0]),
        lambda: bytearray(b"a"),
    ],
    ids=["deque", "UserList", "array", "bytearray"],
)
def test_lists_of_other_kinds(make):
    for use in (
        lambda c, x: x * len(c),
        lambda c, x: x * c[-1],
        lambda c, x: x * sum([k * 2 for k in c]),
        lambda c, x: x * sum(c),
    ):
        c = make()
        agree(lambda x, c=c, use=use: use(c, x), lambda i, c=c: c.append(i + 3))


def test_a_view_of_a_dict():
    d = {"a": 1.0}
    view = types.MappingProxyType(d)
    agree(lambda x: x * len(view), lambda i: d.update({str(i): 2.0}))


ARRAY_USES = {
    "operand": lambda w, x: x * w,
    "asarray": lambda w, x: x * wf.asarray(w),
    "element": lambda w, x: x * float(w[0]),
    "NumPy's sum": lambda w, x: x * float(w.sum()),
    "NumPy's function": lambda w, x: x * float(np.max(w)),
}


@pytest.mark.parametrize("name", ARRAY_USES)
def test_arrays_that_are_written_to(name):
    use, w = ARRAY_USES[name], np.ones(2, np.float32)
    held, space, pair = [w], types.SimpleNamespace(w=w), (w, 1)

    def change(_):
        w[0] += 3

    agree(lambda x: use(w, x), change)
    agree(lambda x: use(held[0], x), change)
    agree(lambda x: use(space.w, x), change)
    agree(lambda x: use(pair[0], x), change)
    agree(lambda x: sum([use(v, x) for v in held]), change)


@pytest.mark.parametrize(
    ("ask", "change"),
    [
        (lambda p: p.requires_grad, lambda p: p.requires_grad_(not p.requires_grad)),
        (lambda p: getattr(p, "requires_grad", 0), lambda p: p.requires_grad_(not p.requires_grad)),
        (lambda p: p.dtype == wf.float32, lambda p: wf.nn.ParameterList([p]).double()),
    ],
)
def test_what_a_tensor_is_that_is_not_read(ask, change):
    p = wf.nn.Parameter([1.0])
    agree(lambda x: x * 2 if ask(p) else x * 3, lambda _: change(p), times=2)


def test_lists_in_lists_given_to_a_library():
    rows = [[1.0, 2.0], [3.0, 4.0]]
    agree(lambda x: x @ wf.tensor(rows), lambda i: rows[1].__setitem__(0, i + 7.0))
    more = [5.0]
    agree(lambda x: x * float(np.sum([more, more])), lambda i: more.append(i + 1.0))


def test_functions_that_are_given_other_code_or_defaults():
    def scaled(x, k=2.0, *, more=1.0):
        return x * k * more

    def other(x, k=2.0, *, more=1.0):
        return x - k * more

    agree(scaled, lambda i: setattr(scaled, "__defaults__", (i + 5.0,)))
    agree(lambda x: scaled(x), lambda i: scaled.__kwdefaults__.update(more=i + 3.0))
    agree(lambda x: scaled(x), lambda _: setattr(scaled, "__code__", other.__code__))


CHOSEN: dict[str, tuple] = {
    "a function": (F.relu, F.gelu),
    "a class": (int, float),
    "a module": (wf, F),
}
CHOICE = None


@pytest.mark.parametrize("kind", CHOSEN)
def test_a_global_that_names_something_else_of_a_library(kind, monkeypatch):
    use = {
        "a function": lambda x: CHOICE(x - 1.5),
        "a class": lambda x: x * CHOICE(1.5),
        "a module": lambda x: x * hasattr(CHOICE, "tensor"),
    }[kind]
    old, new = CHOSEN[kind]
    monkeypatch.setitem(globals(), "CHOICE", old)
    agree(use, lambda i: monkeypatch.setitem(globals(), "CHOICE", new))


def test_keywords_of_a_partial():
    scaled = functools.partial(lambda x, k: x * k, k=2.0)
    agree(lambda x: scaled(x), lambda i: scaled.keywords.update(k=5.0 + i))
    compiled = wf.compile(
        lambda x: functools.partial(lambda a, b: a + b, b=x * 3)(x), fallback=False
    )
    assert compiled(X).tolist() == compiled(X).tolist() == [4.0, 8.0] and compiled.captures == 1


ITERATORS = {
    "of a list": lambda: iter([1.0, 2.0, 3.0]),
    "a generator": lambda: (float(i) for i in (1, 2, 3)),
    "zip": lambda: (a for (a,) in zip([1.0, 2.0, 3.0])),
    "count": lambda: itertools.count(1.0),
    "map": lambda: map(float, (1, 2, 3)),
}


@pytest.mark.parametrize("name", ITERATORS)
@pytest.mark.parametrize("way", ["closure", "argument", "attribute", "element", "loop"])
def test_iterators_from_outside_move_on_with_every_call(name, way):
    it = ITERATORS[name]()
    space, held = types.SimpleNamespace(it=it), {"it": it}

    def loop(x):
        for v in it:
            x = x * v
            break
        return x

    f, args = {
        "closure": (lambda x: x * next(it), ()),
        "argument": (lambda x, it: x * next(it), (it,)),
        "attribute": (lambda x: x * next(space.it), ()),
        "element": (lambda x: x * next(held["it"]), ()),
        "loop": (loop, ()),
    }[way]
    compiled = wf.compile(f)
    with pytest.warns(wf.errors.CaptureWarning, match="from outside, which each call moves on"):
        given = [compiled(X, *args).tolist() for _ in range(3)]
    assert given == [[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]


def test_iterators_made_inside_are_part_of_the_program():
    def f(x):
        it = iter([2.0, 3.0])
        y = x * next(it)
        for a, b in zip([y, x], it, strict=False):
            y = a + b
        return y, sum(v for v in (x, y))

    compiled = wf.compile(f, fallback=False)
    for x in (X, -X):
        assert [v.tolist() for v in compiled(x)] == [v.tolist() for v in f(x)]
    assert compiled.captures == 1


def test_an_attribute_of_a_class_in_front_of_another():
    base = type("Base", (), {"k": 2.0})
    sub = type("Sub", (base,), {})
    held = sub()
    agree(lambda x: x * held.k, lambda i: setattr(sub, "k", i + 5.0))
    agree(lambda x: x * 2 if hasattr(held, "late") else x, lambda _: setattr(held, "late", 1))


def test_the_environment(monkeypatch):
    def f(x):
        return x * 2 if "WEFT_TEST_OUTSIDE" in os.environ else x

    agree(f, lambda _: monkeypatch.setenv("WEFT_TEST_OUTSIDE", "1"))


@pytest.mark.parametrize(
    "draw",
    [
        lambda x: x * random.random(),
        lambda x: x * random.uniform(0, 1),
        lambda x: x * random.choice(range(10**6)),
        lambda x: x * np.random.rand(),
        lambda x: x * len(os.environ.get("HOME", "")),
    ],
    ids=["random", "uniform", "choice", "NumPy", "environ.get"],
)
def test_what_is_another_one_every_time_is_not_captured(draw):
    with pytest.raises(wf.errors.CaptureError, match="something else every time"):
        wf.compile(draw, fallback=False)(X)


def test_writes_to_containers_of_other_kinds_are_refused():
    log, names = collections.deque(), collections.OrderedDict(a=1, b=2)
    for f in (lambda x: log.append(1), lambda x: names.move_to_end("a"), lambda x: names.pop("a")):
        with pytest.raises(wf.errors.CaptureError, match="can't be changed"):
            wf.compile(f, fallback=False)(X)
    assert not log and list(names) == ["a", "b"]


@pytest.mark.parametrize(
    "write",
    [
        lambda log, kept, x: log.__iadd__([x]),
        lambda log, kept, x: log.__setitem__(0, x),
        lambda log, kept, x: vars(kept).__setitem__("x", x),
        lambda log, kept, x: kept.__setattr__("x", x),
        lambda log, kept, x: object.__setattr__(kept, "x", x),
    ],
)
def test_writes_by_the_names_of_operators_are_refused(write):
    log, kept = [0], types.SimpleNamespace()
    with pytest.raises(wf.errors.CaptureError, match="can't be changed"):
        wf.compile(lambda x: write(log, kept, x * 2), fallback=False)(X)
    assert log == [0] and not vars(kept)


def test_writes_by_the_names_of_operators_to_what_is_made_inside():
    def f(x):
        found = [x, x]
        found.__setitem__(0, x * 2)
        found.__iadd__([x * 3])
        return found

    assert [x.tolist() for x in wf.compile(f, fallback=False)(X)] == [x.tolist() for x in f(X)]


class Named:
    """Equal to others of its name, whatever it holds."""

    def __init__(self, name, scale):
        self.name, self.scale = name, scale

    def __eq__(self, other):
        return self.name == other.name

    def __hash__(self):
        return hash(self.name)


def test_arguments_that_say_they_are_equal():
    compiled = wf.compile(lambda x, k: x * k.scale, fallback=False)
    a, b = Named("a", 2.0), Named("a", 3.0)
    for k in (a, b, a, b):
        assert compiled(X, k).tolist() == (X * k.scale).tolist()
    a.scale = 5.0
    assert compiled(X, a).tolist() == [5.0, 10.0]
    assert compiled.captures == 3


def test_more_than_can_be_watched():
    class Unknown(collections.UserList):
        pass

    many = Unknown(range(30_000))
    with pytest.raises(wf.errors.CaptureError, match="too much to watch"):
        wf.compile(lambda x: x * len(many), fallback=False)(X)
