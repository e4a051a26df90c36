"""Variables that have no value on some path: reading one there is Python's error."""

import weft as wf
from control_programs.case import BOTH, case


@case("a name that one path defines, used", *BOTH)
def maybe_defined(x, y):
    if y.sum() > 0:
        z = x * y
    return z + 1


@case("names that a loop defines, used in the next step and behind it", *BOTH)
def in_a_loop(x, y):
    for i in range(20):
        if i > 0:
            x = x * 0.5 + previous * y  # noqa: F821
        previous = x * i
    while x.sum() < 50:
        if x.sum() > 20:
            found = x * y
        x = x.abs() * 2 + 3
    found += previous
    return found * i


@case("a name that only some paths define, in closures, comprehensions and try", *BOTH)
def in_other_functions(x, y):
    def doubled():
        return z * 2

    if x.sum() > 0:
        n, z = 3, x
    elif y.sum() > 1:
        n, z = 4, y
    try:
        total = doubled() + n
    except UnboundLocalError:
        total = y
    except NameError as e:
        print(e)
        total = x - y
    return total, [v * total for v in (x, y)]


@case("del on one path", *BOTH)
def deleted(x, y):
    z = x * 2
    if x.sum() > 0:
        del z
    if y.sum() > 0:
        z = wf.sin(y)
    return z * x
