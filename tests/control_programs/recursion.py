"""Functions that call themselves as often as tensors say."""

import weft as wf
from control_programs.case import X, Y, case
from weft import nn

N = [wf.tensor(n) for n in (0, 1, 2, 7)]
NODES = [wf.tensor(i) for i in (0, 4, 6)]
LEFT = wf.tensor([-1, -1, -1, -1, 0, 4, 2])
RIGHT = wf.tensor([-1, -1, -1, -1, 1, 3, 5])
EMBEDDED = wf.tensor([[0.5, -1.0], [2.0, 0.25], [-0.5, 1.5], [1.0, 1.0], *[[0.0, 0.0]] * 3])
DEEPER = wf.tensor(6), LEFT, RIGHT
WEIGHTS = wf.tensor([[0.5, -0.25], [1.0, 0.5], [-0.75, 0.25], [0.125, 1.0]])


def scaled(n, x):
    if n <= 0:
        return x
    return x.tanh() * scaled(n - 1, x * 0.9)


@case("recursion", *((n, X) for n in N))
def recursion(n, x):
    return scaled(n, x)


@case("recursion until tensors say so", (X, Y), (X * 100, Y))
def until(x, y):
    return x + y if x.abs().sum() < 1 else until(x * 0.5, y * y) * y


def encoded(node, left, right, embedded, w):
    if left[node] < 0:
        return embedded[node]
    a = encoded(left[node], left, right, embedded, w)
    b = encoded(right[node], left, right, embedded, w)
    return (wf.concat([a, b]) @ w).tanh()


@case("recursion over a tree", *((i, LEFT, RIGHT, EMBEDDED, WEIGHTS) for i in NODES))
def over_a_tree(node, left, right, embedded, w):
    return encoded(node, left, right, embedded, w)


def even(n, x):
    return x * 2 if n == 0 else odd(n - 1, x.sin())


def odd(n, x):
    return x + 1 if n == 0 else even(n - 1, x * x)


@case("functions that call each other", *((n, X) for n in N))
def mutual(n, x):
    return even(n, x) + odd(n, x)


@case("recursion of a closure", *((n, X, Y) for n in N))
def closure(n, x, y):
    w = (x * y).exp()

    def power(k, z):
        if k == 0:
            return z
        return power(k - 1, z * w) + w

    return power(n, x - y) * w


class Chain:
    def __init__(self, factor):
        self.factor = factor

    def sum(self, n, x):
        if n > 0:
            return x * self.factor + self.sum(n - 1, x * 0.5)
        return x


@case("recursion of a method", *((n, X, Y) for n in N))
def method(n, x, y):
    return Chain(y).sum(n, x)


class Deep(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.w = w

    def forward(self, n, x):
        if n > 0:
            return self(n - 1, (x * self.w).tanh()) * 0.5 + x
        return x


@case("recursion of a module", *((n, X, Y) for n in N))
def module(n, x, y):
    return Deep(y)(n, x)


@case("recursion in a loop", *((n, X, Y) for n in N))
def in_loop(n, x, y):
    total = y
    while n >= 0:
        total = total + scaled(n, x) * y
        n = n - 1
    return total


def looped(n, x):
    total = x
    while n > 0:
        n = n - 1
        total = total * 0.5 + looped(n, x)
    return total


@case("a loop in recursion", (wf.tensor(0), X), (wf.tensor(3), X))
def loop_inside(n, x):
    return looped(n, x)


def split(n, x, y):
    if n == 0:
        return x, {"y": y}
    a, found = split(n - 1, y, x * 0.5)
    return a * x, {"y": found["y"] + a}


@case("recursion that gives a structure", *((n, X, Y) for n in N))
def structure(n, x, y):
    a, found = split(n, x, y)
    return a - found["y"]


def halvings(x, depth=0):
    if x.abs().max() < 1:
        return depth, x
    return halvings(x * 0.5, depth + 1)


@case("numbers that recursion counts", (X, Y), (X * 100, Y), (X * 0.1, Y))
def counted(x, y):
    depth, z = halvings(x)
    return z * depth + y, depth


def ackermann(m, n):
    if m == 0:
        return n + 1
    if n == 0:
        return ackermann(m - 1, 1)
    return ackermann(m - 1, ackermann(m, n - 1))


@case("recursion in its own arguments", (wf.tensor(2), wf.tensor(3)))
def nested(m, n):
    return ackermann(m, n), ackermann(n - 1, int(m))


@case("recursion that prints, asserts and assigns", *((n, X) for n in N))
def effects(n, x):
    seen = x * 0

    def noisy(k, z):
        print(f"at {k.item()}: {z.sum().item():.2f}")
        assert k < 5, f"too deep: {k}"
        seen[1:] += z[:2]
        if k == 0:
            return z
        return noisy(k - 1, z * 0.5) + z * k

    return noisy(n, x), seen
