"""`with` and `try`, and what leaves them."""

import weft as wf
from control_programs.case import BOTH, X, Y, case


@case("with", (X, Y), (-X, Y))
def with_(x, y):
    with wf.no_grad():
        if x.sum() > 0:
            w = y * 2
        else:
            w = y - 1
    return x * w


@case("detach and no_grad inside", (X, Y), (-X, Y))
def detached(x, y):
    if x.sum() > 0:
        z = x.detach() * x
    else:
        with wf.no_grad():
            z = y * 2
        z = z * y
    return z


@case("return inside with", *BOTH)
def return_in_with(x, y):
    with wf.no_grad():
        if x.sum() > 0:
            return x * 2
        y = y + 1
    return x * y


@case("break, continue inside with", *BOTH)
def break_in_with(x, y):
    for _ in range(4):
        with wf.enable_grad():
            if x.sum() > 50:
                break
            if y[0] > 1:
                y = y - 1
                continue
            x = x * 1.5 + 1
        y = y * 1.1
    return x + y


@case("try, finally around raise", *BOTH)
def finally_(x, y):
    try:
        print("try")
        if x.sum() > 3:
            raise ValueError("large")
        y = y * x
    finally:
        print("finally", y.detach())
    return y


@case("return inside try", *BOTH)
def return_in_try(x, y):
    try:
        if x.sum() > 50:
            return x
        y = y * x
        if y[1] > 0:
            return x + y
    except ValueError:
        y = y * 0
    else:
        y = y - 1
    finally:
        print("finally", y.detach())
    return y * 2


@case("except", *BOTH)
def handled(x, y):
    try:
        print("try")
        if x.sum() > 50:
            raise ValueError("large", x.sum().item())
        if x.sum() > 0:
            raise KeyError(f"{x[0].item()}")
        assert y.sum() > 0, "a negative sum"
        y = y * x
    except ValueError as e:
        print(e, e.args[1])
        y = y * e.args[1]
    except (KeyError, IndexError) as e:
        print(f"missing {e}")
        return x
    except AssertionError:
        raise RuntimeError("no way out") from None
    else:
        y = y + 1
    finally:
        print("finally")
    return y * 2


@case("try in a loop", *BOTH)
def try_in_loop(x, y):
    n = 0
    while n < 4:
        n += 1
        try:
            if x.max() > 3:
                raise OverflowError
            x = x + y.abs()
        except OverflowError:
            y = y * 0.5
            if n > 2:
                break
            continue
        finally:
            x = x * 1.25
    return x + y


def checked(v):
    print("checking")
    if v.sum() > 0:
        raise ValueError("positive", v.sum().item())
    print("fine")
    return v * 2


@case("raise in a function, handled by a `try` of the caller", *BOTH)
def raised_below(x, y):
    try:
        z = checked(x) + checked(y)
        print("both")
    except (KeyError, ValueError) as e:
        print("got", e)
        z = y * e.args[1]
    else:
        z = z + 1
    finally:
        print("done")
    return z


@case("raise in a function in a loop, handled, raised again", *BOTH)
def raised_in_loops(x, y):
    def limited(v):
        n = 0
        while v.sum() < 100:
            v = v * 1.5 + 1
            n += 1
            if n > 6:
                raise OverflowError("slow", n)
        return v

    def tried(v):
        try:
            return limited(v)
        except OverflowError as e:
            if v[0] > 0:
                raise
            raise KeyError(e.args[1]) from e

    for i in range(3):
        try:
            x = tried(x) * 0.25 - i
        except KeyError as e:
            y = y - e.args[0]
        except OverflowError:
            x = x + 40
            continue
        y = y + 1
    return x, y
