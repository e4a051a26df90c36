"""Loops."""

import weft as wf
from control_programs.case import X, Y, case


@case("while", (X, Y), (X * 100, Y))
def while_(x, y):
    n = 0
    while (x * x).sum() < 1000:
        x = x * 1.5 + y
        n += 1
    return x, n


@case("while, never run", (X, Y), (X, Y * 1e6))
def while_none(x, y):
    while y.sum() > 100:
        y = y * 0.5
    return y * x


@case("while with the start used inside", (X, Y))
def while_power(x, y):
    z = x
    while z.sum() < 50:
        z = z * x * x
    return z


@case("while True with break", (X, Y), (X * 40, Y))
def while_true(x, y):
    while True:
        x = x + y.abs() + 1
        if x.min() > 5:
            break
    return x * y


@case("break, continue", (X, Y), (-X, Y))
def break_continue(x, y):
    z = x
    k = 0
    while k < 9:
        k += 1
        if z.abs().max() > 30:
            break
        if z[1] < -10:
            z = z * 0.5
            continue
        z = z * x + z
        y = y * 1.1
    return z + y


@case("while, else", (X, Y), (X * 0.01, Y))
def while_else(x, y):
    n = 0
    while n < 5:
        n += 1
        x = x * 1.5
        if x.max() > 10:
            break
    else:
        x = x - y
    return x


@case("return in a loop", (X, Y), (X * 0.01, Y))
def return_in_loop(x, y):
    i = 0
    while True:
        x = x * 1.25
        i += 1
        if x.max() > 50:
            return x * y
        if i > 7:
            return x - y


@case("for over range, with break", (X, Y), (X, -Y))
def for_break(x, y):
    for i in range(30):
        x = x + y * i
        if x.sum() > 20:
            break
    else:
        x = x * 0
    return x


@case("for over a range of a tensor", (X, wf.tensor(4)), (X, wf.tensor(0)))
def for_tensor(x, n):
    t = x * 0
    for i in range(n):
        if i == 2:
            continue
        t = t + x * i
    return t


@case("for down a range of tensors", (X, wf.tensor(1)), (X, wf.tensor(9)))
def for_down(x, n):
    t = x * 0
    for i in range(6, n, -2):
        t = t * 0.5 + x * i
    return t


@case("for over tensors", (X, Y))
def for_rows(x, y):
    s = x * 0
    for a in x:
        for b in y:
            if a * b > 1:
                s = s + a * b
                continue
            if a < -1:
                break
            s = s - b
    return s


@case("zip, enumerate, reversed", (X, Y), (-X, Y))
def for_zip(x, y):
    s = x * 0
    for i, (a, b) in enumerate(zip(x, reversed([y, x, y * 2]), strict=True)):
        if a > 0:
            s = s + b * i
        else:
            s = s - a
    return s


@case("nested loops with return", (X, Y), (-X, -Y))
def nested_return(x, y):
    for i in range(5):
        for j in range(3):
            x = x + y + i
            if x[0] > 4:
                return x * j
    return y * 1


@case("flags that loops set", (X, Y))
def flags(x, y):
    done = False
    n = 0
    while not done:
        x = x * 1.5
        n = n + 1
        done = x.max() > 20 or n > 6
    return x
