"""Converted functions are the functions they were made from."""

import ast
import functools
import inspect
import traceback
import types

import pytest

import weft as wf
from weft.capture.source import operators
from weft.capture.source.convert import convert, is_converted, source
from weft.capture.source.find import definition

X = wf.tensor([1.0, 2.0])


def loops(n, *rest, flag=True, **more):
    total, seen = 0, []
    for i in range(n):
        if i == 1:
            continue
        if i == 5:
            break
        seen.append(i)
        total += i
    else:
        total += 100
    while total > 0:
        total -= 7
        if total == 1:
            return "one", seen, rest, flag, more
    return total, seen, rest, flag, more


def early(a):
    if a > 3:
        if a > 5:
            return "big"
        b = 1
    elif a == 2:
        b = 2
    else:
        return "other"
    for i in range(10):
        for j in range(10):
            if i * j == 6:
                return "found", i, j, b
    return b


def handlers(x):
    out = []
    try:
        out.append(1 / x)
        if x > 5:
            raise ValueError("large")
        return out
    except ZeroDivisionError:
        return "zero"
    except ValueError as e:
        out.append(str(e))
    finally:
        out.append("done")
    with wf.no_grad():
        if x > 7:
            return "inside", out
    return out


def matched(x):
    match x:
        case 0 | 1:
            return "small"
        case [a, *b]:
            return a, b
        case {"k": v} if v:
            return v
        case _:
            return None


def generator(n):
    for i in range(n):
        if i % 2:
            yield i
    yield from (i * i for i in range(n) if i > 1)


def swaps(x):
    a, (b, *c) = 1, (2, 3, 4)
    c[0], a = a, c[0]
    d = e = {"k": [1]}
    d["k"] += [2]
    d["n"], x.name = 5, "set"
    x.count += 2
    del d["k"][0], x.gone
    assert e is d, "one dict"
    return a, b, c, d, x.name, x.count, hasattr(x, "gone"), (y := 3) + y


class Thing:
    def __init__(self):
        self.count, self.gone, self.__secret = 1, 2, 7

    def secret(self):
        return self.__secret

    def kind(self):
        return type(self).__name__


class Special(Thing):
    def kind(self):
        return "special " + super().kind()


def twice(f):
    @functools.wraps(f)
    def inside(*args):
        return f(*args), f(*args)

    return inside


@twice
def decorated(x):
    return x + 1 if x > 0 else -x


def makes(x):
    @twice
    def inner(y):
        nonlocal x
        x = x + y
        return [v for v in range(x) if 0 < v <= 3 and v != 2], {k: k for k in "ab"}, {1, x}

    return inner(2), x, sorted([3, 1, x], key=lambda v: -v), functools.partial(pow, 2)(x)


def logic(a, b):
    return a and b, a or b, not a, a if b else 0, 0 < a < 5, a in (1, 2), a is b, f"{a:03d}{b!r}"


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (loops, (0,)), (loops, (3,)), (loops, (9, "r")), (loops, (2,)),
        *[(early, (n,)) for n in range(8)],
        *[(handlers, (n,)) for n in (0, 1, 6, 8)],
        *[(matched, (v,)) for v in (0, [1, 2, 3], {"k": 4}, "x")],
        (lambda n: list(generator(n)), (5,)),
        (lambda: swaps(Thing()), ()), (lambda: (Special().kind(), Thing().secret()), ()),
        (decorated, (2,)), (decorated, (-2,)), (makes, (1,)),
        *[(logic, v) for v in ((0, 1), (3, 0), (1, 2), (9, 9))],
    ],
)  # fmt: skip
def test_converted_code_does_what_python_does(f, args):
    assert operators.call(f, *args) == f(*args)


@pytest.mark.parametrize("f", [loops, early, handlers, swaps, makes])
def test_the_new_function_has_everything_of_the_old(f):
    new = convert(f)
    assert is_converted(new)
    assert not is_converted(f)
    assert (new.__name__, new.__module__, new.__doc__) == (f.__name__, f.__module__, f.__doc__)
    assert inspect.signature(new) == inspect.signature(f)
    assert new.__globals__ is f.__globals__
    assert "weft__." in source(f)


def test_closures_share_their_variables():
    n = 1

    def add():
        nonlocal n
        n += 1
        return n

    assert operators.call(add) == 2
    assert n == 2
    assert add() == 3


def test_errors_are_on_the_users_line():
    def fails(x):
        if x.sum() > 0:
            return x.no_such_thing
        return x

    line = inspect.getsourcelines(fails)[1] + 2
    with pytest.raises(AttributeError) as e:
        operators.call(fails, X)
    own = [f for f in traceback.extract_tb(e.tb) if f.filename == __file__]
    assert own[-1].lineno == line
    assert own[-1].line == "return x.no_such_thing"


def test_names_without_a_value():
    def f(x):
        if x > 0:
            y = 1
        return y

    assert operators.call(f, 1) == 1
    with pytest.raises(NameError, match="'y'"):
        operators.call(f, -1)


def test_nodes_know_their_lines_and_names():
    @wf.compile
    def f(x):
        if x.sum() > 0:
            doubled = x * 2
        else:
            doubled = x
        return doubled + 1

    graph = f.graph(X)
    (branch,) = [n for n in graph.order if n.op.name == "cond"]
    assert branch.loc.text == "x.sum() > 0"
    (inner,) = branch.regions[0].order[-1:]
    assert (inner.op.name, inner.name) == ("multiply", "doubled")


AWKWARD = """
class A:
    def plain(self, x):
        return x

    def text(self, x):
        said = '''
at the left
'''
        return x, said

    def brackets(
        self,
        x,
    ):
# a comment at the left
        return [
x,
        ]

    class B:
        def inner(self, x):
            def within(y): return y
            return within(x)

    if __name__:  # of a constant only one would be compiled
        def other(self, x): return (lambda y: y)(x)
    else:
        def other(self, x): return -x
"""


def test_functions_are_found_by_themselves_as_in_their_files(tmp_path):
    path = tmp_path / "awkward.py"
    path.write_text(AWKWARD)
    whole = compile(AWKWARD, str(path), "exec")
    tree = ast.parse(AWKWARD)
    wanted = {n.lineno: n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
    todo, seen = [whole], []
    while todo:
        code = todo.pop()
        todo += [c for c in code.co_consts if isinstance(c, types.CodeType)]
        if code.co_firstlineno in wanted and code.co_name == wanted[code.co_firstlineno].name:
            node, owner = definition(code)
            same = wanted[code.co_firstlineno]
            assert ast.dump(node, include_attributes=True) == ast.dump(
                same, include_attributes=True
            )
            seen.append((code.co_name, owner))
    assert sorted(seen) == sorted(
        [(n, "A") for n in ("plain", "text", "brackets", "other", "other")]
        + [("inner", "B"), ("within", "B")]
    )
