"""Lists that shrink, or are read where they grow."""

import weft as wf
from control_programs.case import BOTH, X, Y, case


@case("list.pop in a loop on tensors", (X * X, Y), (X, Y), (X * 9, Y), lengths=True)
def shrinking_list(x, y):
    rest = [x, y, x * y, y * y]
    while x.sum() < 20:
        x = x + rest.pop() + 3
    return x * len(rest)


@case("a stack that grows and shrinks", *BOTH, lengths=True)
def depth_first(x, y):
    left, right = wf.tensor([1, 3, -1, -1, -1]), wf.tensor([2, 4, -1, -1, -1])
    stack, total = [wf.tensor(0)], y
    while stack:
        node = stack.pop()
        total = total * 0.5 + x * node
        if left[node] >= 0:
            stack.append(left[node])
            stack.append(right[node])
    return total


@case("a stack of tuples, of tensors, numbers and flags", *BOTH, lengths=True)
def of_tuples(x, y):
    stack = [(x, 0, True)]
    while stack:
        v, depth, deeper = stack.pop()
        y = y * 0.5 + v * depth
        if deeper and v.sum() < 20:
            stack.append((v + 5, depth + 1, bool(v.sum() < 10)))
            if depth < 3:
                stack.append((v * 2 + 8, depth + 2, True))
    return y


@case("a queue: list.pop(0)", *BOTH, lengths=True)
def breadth_first(x, y):
    queue, seen = [x], []
    while queue:
        v = queue.pop(0)
        seen.append(v)
        if v.sum() < 20:
            queue.append(v * 2 + 3)
            queue.append(v + y + 5)
    return wf.stack(seen), len(seen)


@case("a list that grows and is read in one loop on tensors", *BOTH, lengths=True)
def read_while_growing(x, y):
    out = [x]
    while x.sum() < 50:
        x = x.abs() * 2 + sum(out) + y
        if len(out) > 2:
            x = x + out[-2] * out[len(out) // 2]
        out.append(x)
        for i, v in enumerate(out):
            y = y * 0.5 + v * i
    return x, y, out


@case("elements assigned in a list that grows", *BOTH, lengths=True)
def assigned_elements(x, y):
    out = [x]
    while x.sum() < 50:
        x = x.abs() * 2 + 1
        out.append(x)
        out[-1] = x * y
        out[0] = x + sum([v * 2 for v in out])
    return wf.stack(out)


@case("a stack in a loop, in a branch and in an object", *BOTH, lengths=True)
def inside(x, y):
    class Stack:
        def __init__(self):
            self.items = []

        def push(self, v):
            self.items.append(v)

    total = y
    while total.sum() < 40:
        stack = Stack()
        stack.push(x.abs() + total)
        while stack.items:
            v = stack.items.pop()
            total = total + v
            if v.sum() < 5:
                stack.push(v + 2)
                if y.sum() > 0:
                    stack.push(v + 3)
    return total


@case("a list read where it grows, and its last element by another name", *BOTH, lengths=True)
def read_twice(x, y):
    out = []
    while x.sum() < 50:
        x = x.abs() * 2 + y * x + 3
        out.append(x)
        y = y * 0.5 + x
        for v in out:
            y = y * 0.5 + v * v * 0.01
        y = y + x * x * 0.01
    return x * y, x * x


@case("pairs in a list that is read where it grows", *BOTH, lengths=True)
def read_pairs(x, y):
    seen, h, c = [], x, y
    while h.abs().sum() < 60:
        h, c = h.abs() * 1.5 + c * 0.1 + 1, c * 0.9 + h * h * 0.01
        seen.append((h, c))
        total = h * 0
        for a, b in seen:
            total = total + a * b
        c = c + total * 0.001
    return h * c
