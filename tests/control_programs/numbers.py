"""Python numbers that depend on tensors."""

import math

import weft as wf
from control_programs.case import BOTH, X, Y, case


@case("numbers that branches choose", (X, Y), (-X, Y))
def numbers(x, y):
    k = 1
    if x.sum() > 0:
        k = 3
    return x * k + y


@case("floats that branches choose", (X, Y), (-X, Y))
def floats(x, y):
    rate = 0.1
    if x.sum() > 0:
        rate = 0.3 / 7
    rate = rate * 2 + 0.01
    return x * rate, y.astype(wf.float16) * rate, x.astype(wf.float64) / rate


@case("counters beside narrow integers", (X, Y))
def narrow(x, y):
    n = 0
    while x.sum() < 20:
        x = x + 1
        n += 1
    return wf.tensor([1, 2], dtype=wf.int8) * n, n // 2 + n % 3, x / (n + 1)


@case("item(), int(), float(), bool()", (X, Y), (-X, Y))
def items(x, y):
    scale = x.abs().sum().item()
    if float(y.max()) > 1.5:
        scale = scale * 2
    k = int((x > 0).sum())
    return x / scale if bool(x[0] > 0) else x * k


@case("len, shape", (X, Y), (-X, Y))
def lengths(x, y):
    s = x * 0
    for i in range(len(x)):
        if x[i] > 0:
            s = s + y[x.shape[0] - 1 - i]
    return s


@case("index by a counter", (X, Y), (-X, Y))
def by_counter(x, y):
    i = 0
    while i < 3 and x[i] < 2.5:
        y = y + x[i]
        i = i + 1
    return y


@case("max, min, any, all", (X, Y), (-X, Y))
def builtins_(x, y):
    z = max(x.sum(), y.sum()) * x
    if any(x > 2.5) and not all(v > 0 for v in y):
        z = z + min(x[0], y[0])
    return z


@case("division, power, round and math of numbers", (X, Y), (-X, Y), (X * 0, Y), (X * 7.3, Y))
def arithmetic(x, y):
    a, n = x.sum().item(), int(y.max().item() * 3)
    b = (a // 0.7, a % 0.7, a**2, abs(a) ** 0.5, round(a, 1), round(a), int(a), divmod(n, 4))
    c = math.exp(a / 10) + math.floor(a) + math.atan2(a, 2.0)
    if math.isfinite(c) and n > 0:
        c = c / a + 7 // n
    return x * c, b


@case("numbers that depend on tensors as keys", (X, Y), (-X, Y), (X.abs(), Y))
def tensor_keys(x, y):
    table = {0: x * 2, 1: y, 2: x - y, 3: y * y}
    k = int((x > 0).sum())
    if k in table:
        table[k] = table[k] * 1.5
    return table.get(k, y) + table[k]


@case("numbers that depend on tensors as indices of lists", *BOTH, (X.abs(), Y))
def list_index(x, y):
    rows = [x * 2, y * 1, x - y, x * 0.5]
    i = int((x > 0).sum())
    rows[i - 1] += y
    return rows[i] + rows[-i] * (1, 2.5, 3, -1)[i]


@case("functions and objects picked from a list", (X, Y), (-X, Y))
def picked(x, y):
    def scaled(v):
        return v * 2 if v.sum() > 0 else v

    layers = [wf.tanh, scaled, lambda v: v - y]
    i = 0
    while x.sum() < 10:
        x = layers[i % 3](x) + 1.5
        i += 1
    return x
