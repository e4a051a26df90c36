"""Errors that functions raise where tensors say so, and a `try` around their call handles."""

import contextlib

import pytest
from control_lab import agree, outcome
from control_programs import X, Y

import weft as wf
from weft.errors import CaptureError


class E1(ValueError):
    pass


def chk(v):
    if v.sum() > 0:
        raise ValueError("positive", v.sum().item())
    return v * 2


def basic_(x, y):
    try:
        return chk(x)
    except ValueError:
        return y * 1


def as_(x, y):
    try:
        z = chk(x)
    except (KeyError, ValueError) as e:
        print("got", e, e.args[1])
        z = y * e.args[1]
    else:
        z = z + 1
    finally:
        print("fin")
    return z


def chk2(v, y):
    z = chk(v) + y
    w = chk(z)
    return z * w


def deep_(x, y):
    try:
        a = chk2(x, y)
        b = chk(a)
        return a + b
    except ValueError as e:
        return y * e.args[1]


def loop_(x, y):
    n = 0
    for _ in range(4):
        try:
            x = chk(x)
            n += 1
        except ValueError:
            y = y - 1
            x = x - 3
            if n > 1:
                break
            continue
        y = y + x
    return x, y, n


def while_(x, y):
    n = 0
    while n < 5:
        n += 1
        try:
            y = y + chk(x - n)
        except ValueError:
            x = x * 0.5
        x = x + 1
    return x, y


def reraise_(x, y):
    def f(v):
        try:
            return chk(v)
        except ValueError as e:
            if v[0] > 50:
                raise
            raise E1("again") from e

    try:
        return f(x)
    except E1:
        return y * 2
    except ValueError as e:
        print(e)
        return y * 3


def loop_inside_(x, y):
    def f(v):
        for i in range(3):
            v = v + 1
            if v.sum() > 4:
                raise ValueError(i)
        return v

    try:
        return f(x)
    except ValueError as e:
        return y * e.args[0]


def while_inside_(x, y):
    def f(v):
        n = 0
        while v.sum() < 100:
            v = v * 1.5 + 1
            n += 1
            if n > 6:
                raise ValueError("slow", n)
        return v

    try:
        return f(x)
    except ValueError as e:
        return y * e.args[1]


def with_(x, y):
    try:
        with wf.no_grad():
            z = chk(x)
    except ValueError:
        z = y
    return z * x


def expr_(x, y):
    try:
        z = chk(x) + chk(y) * chk(-x)
    except ValueError as e:
        return e.args[1] * y
    return z


def state_(x, y):
    log = []

    def f(v):
        log.append(v)
        if v.sum() > 0:
            raise ValueError
        return v

    try:
        f(x)
    except ValueError:
        y = y * 1
    return log[0] + y


def nested_handlers_(x, y):
    try:
        try:
            return chk(x)
        except KeyError:
            return x
        finally:
            y = y + 1
    except ValueError:
        return y


def handler_raises_(x, y):
    try:
        try:
            z = chk(x)
        except ValueError:
            z = chk(y)
    except ValueError as e:
        return x * e.args[1]
    return z


def index_(x, y):
    try:
        return [x, y][int((x > 0).sum())]
    except IndexError as e:
        print(e)
        return x * y


def bare_(x, y):
    try:
        z = chk(x)
    except BaseException:
        z = y
    return z + 1


def nohandle_(x, y):
    def f(v):
        try:
            return chk(v)
        finally:
            print("cleanup")

    return f(x)


def in_with_raise_(x, y):
    try:
        with wf.no_grad():
            if x.sum() > 0:
                raise ValueError("a")
            z = y * 2
    except ValueError:
        z = x
    return z * y


def print_masked_(x, y):
    def f(v):
        print("in f")
        if v.sum() > 0:
            raise ValueError("pos")
        print("after", v.sum().item())
        return v * 2

    try:
        print("start")
        z = f(x)
        print("middle", z)
        w = f(y)
        print("end")
    except ValueError as e:
        print("caught", e)
        w = x - y
    else:
        print("else")
        w = w + 1
    print("done")
    return w


def loop_masked_(x, y):
    def f(v):
        if v.sum() > 0:
            raise ValueError("pos")
        return v

    try:
        v = f(x)
        while v.sum() > -200:
            v = v * 2
            print("step")
    except ValueError:
        v = y
    return v


def mutate_(x, y):
    log, d = [x], {"n": x}

    def f(v):
        log[0] = log[0] + 1
        if v.sum() > 0:
            raise ValueError("pos")
        d["n"] = v * 3
        return v

    try:
        f(x)
        log[0] = log[0] * 2
        f(y)
        log[0] = log[0] * 5
    except ValueError:
        pass
    return log[0] + d["n"]


def inplace_(x, y):
    z = x * 1

    def f(v):
        nonlocal y
        z[0] = 5.0
        if v.sum() > 0:
            raise ValueError("pos")
        z.assign(z * 3)
        y = y + 1

    try:
        f(x)
        f(-x)
    except ValueError:
        z[1] = 7.0
    return z * y


class Ctx:
    def __enter__(s):
        return 3

    def __exit__(s, *a):
        return False


def cm_(x, y):
    try:
        with Ctx() as k:
            z = chk(x) * k
            if y.sum() > 0:
                raise KeyError("k")
    except (ValueError, KeyError):
        z = y
    return z


def try_in_try_loop_(x, y):
    n = 0
    while n < 4:
        n += 1
        try:
            try:
                y = chk(y) + n
            except KeyError:
                x = x * 2
            x = chk(x - 2)
        except ValueError as e:
            y = y - e.args[1]
            continue
        finally:
            x = x + 0.5
        y = y - 1
    return x, y


def attr_(x, y):
    class S:
        pass

    s = S()
    s.n = 0
    s.v = x

    def f(v):
        s.n += 1
        if v.sum() > 0:
            raise ValueError
        s.v = v * 2

    try:
        f(y)
        f(x)
    except ValueError:
        s.v = s.v + 1
    return s.v * s.n


def method_(x, y):
    class P:
        def parse(s, v):
            if v.max() > 50:
                raise OverflowError("big")
            return s.inner(v)

        def inner(s, v):
            if v.min() < -1:
                raise ValueError("neg")
            return v + 1

    p = P()

    def safe(v):
        try:
            return p.parse(v)
        except OverflowError:
            return v * 0

    try:
        return safe(x) + safe(y)
    except ValueError:
        return x * y


def else_raise_(x, y):
    try:
        try:
            z = chk(-x)
        except ValueError:
            z = x
        else:
            if y.sum() > 0:
                raise KeyError("in else")
            z = z + 1
    except KeyError:
        z = y * 3
    return z


def suppress_exc_(x, y):
    try:
        z = chk(x)
    except Exception as e:
        z = y + len(e.args)
    return z


def py_only_(x, y):
    d = {}
    for k in ("a", "b", "a"):
        try:
            d[k]
        except KeyError:
            d[k] = 1
        else:
            d[k] += 1
    try:
        int("x")
    except ValueError as e:
        print(e)
    return x * d["a"]


CASES = [
    basic_, as_, deep_, loop_, while_, reraise_, loop_inside_, while_inside_, with_, expr_,
    state_, nested_handlers_, handler_raises_, index_, bare_, nohandle_, in_with_raise_,
    print_masked_, loop_masked_, mutate_, inplace_, cm_, try_in_try_loop_, attr_, method_,
    else_raise_, suppress_exc_, py_only_,
]  # fmt: skip
ALL = ((X, Y), (-X, Y), (X, -Y), (X * 100, Y), (-X.abs(), Y))


@pytest.mark.parametrize("f", CASES, ids=lambda f: f.__name__)
def test_handlers_take_what_functions_raise(f):
    compiled = wf.compile(f, fallback=False)
    for args in ALL:
        assert outcome(compiled, *args) == outcome(f, *args)
    assert compiled.captures == 1


@pytest.mark.parametrize("f", [basic_, deep_, loop_, while_inside_, with_, mutate_, inplace_])
def test_gradients_go_the_way_that_was_taken(f):
    for args in ALL:
        agree(f, *args)


def test_random_numbers_go_on_from_where_the_error_was_raised():
    def f(x, y):
        def drawn(v):
            if v.sum() > 0:
                raise ValueError("positive")
            return v + wf.rand((3,))

        try:
            z = drawn(x) + drawn(y)
        except ValueError:
            z = wf.rand((3,))
        return z + wf.rand((3,))

    compiled = wf.compile(f, fallback=False)
    for args in ALL:
        wf.manual_seed(3)
        want = f(*args), wf.rand((2,))
        wf.manual_seed(3)
        got = compiled(*args), wf.rand((2,))
        assert [v.tolist() for v in got] == [v.tolist() for v in want]


def test_what_is_refused_is_not_handled_by_the_function():
    def f(x):
        try:
            return x * float(x.numpy()[0])
        except Exception:
            return x

    with pytest.raises(CaptureError):
        wf.compile(f, fallback=False)(X)


def test_what_a_context_manager_suppresses_is_refused_where_tensors_decide():
    def f(x, y):
        with contextlib.suppress(KeyError):
            y = {}["nothing"]
        with contextlib.suppress(ValueError):
            y = chk(x)
        return y

    with pytest.raises(CaptureError, match="inside a try that handles it"):
        wf.compile(f, fallback=False)(X, Y)
