"""The control-flow workloads in Weft: modes "eager" and "compile", and of the trees "recursion".
All control flow is Python's. In "recursion" a tree is arrays, padded as in JAX, and the whole step
one program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import weft as wf
import weft.nn.functional as F
from benchmarks.worker import THREADS, Case
from benchmarks.workloads import control_numbers as numbers
from weft import Tensor, optim

Params = dict[str, Tensor]


def tensors(arrays: dict[str, np.ndarray], trained: bool = True) -> Params:
    return {k: wf.tensor(v, requires_grad=trained) for k, v in arrays.items()}


def cell(h: Tensor, c: Tensor, x: Tensor, p: Params) -> tuple[Tensor, Tensor]:
    gates = x @ p["wx"] + h @ p["wh"] + p["b"]
    i, f, g, o = wf.split(gates, numbers.LSTM_WIDTH, axis=1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def leaf(p: Params, word: Tensor) -> tuple[Tensor, Tensor]:
    gates = p["words"][word].reshape(-1, numbers.TREE_WIDTH) @ p["leaf"] + p["leaf_b"]
    i, o, u = wf.split(gates, numbers.TREE_WIDTH, axis=1)
    c = i.sigmoid() * u.tanh()
    return o.sigmoid() * c.tanh(), c


def inner(p: Params, hl: Tensor, cl: Tensor, hr: Tensor, cr: Tensor) -> tuple[Tensor, Tensor]:
    gates = wf.concat([hl, hr], axis=1) @ p["inner"] + p["inner_b"]
    i, fl, fr, o, u = wf.split(gates, numbers.TREE_WIDTH, axis=1)
    c = i.sigmoid() * u.tanh() + fl.sigmoid() * cl + fr.sigmoid() * cr
    return o.sigmoid() * c.tanh(), c


def as_arrays(tree: Any) -> Params:
    """A tree as arrays with room for the largest; a leaf has no left child, and which word it is at
    the right.
    """
    words, pairs = numbers.flat(tree)
    left = [-1] * len(words) + [a for a, _ in pairs]
    right = [*range(len(words)), *(b for _, b in pairs)]
    most = numbers.TREE_LEAVES
    rooms = {"words": (words, most), "left": (left, 2 * most - 1), "right": (right, 2 * most - 1)}
    arrays = {k: wf.tensor(x + [0] * (room - len(x))) for k, (x, room) in rooms.items()}
    return arrays | {"root": wf.tensor(len(left) - 1)}


def converge(x: Tensor) -> Tensor:
    change = wf.tensor(1.0)
    n = 0
    while change >= numbers.TOLERANCE and n < numbers.MOST:
        d = 0.1 * (x @ x @ x - x)
        x = x - d
        change = d.abs().mean()
        n += 1
    return x


def decode(h: Tensor, p: Params) -> Tensor:
    out = wf.zeros((numbers.DECODER_LIMIT,), dtype=wf.int64)
    word = wf.tensor(1)
    n = 0
    while word != numbers.DECODER_END and n < numbers.DECODER_LIMIT:
        h = (p["words"][word].reshape(1, -1) @ p["wx"] + h @ p["wh"]).tanh()
        word = (h @ p["out"]).reshape(-1).argmax()
        out[n] = word
        n += 1
    return out


def cube_root(a: Tensor) -> Tensor:
    x = a
    n = 0
    while (x * x * x - a).abs().max() > 1e-3 and n < numbers.NEWTON_MOST:
        x = x - (x * x * x - a) / (3 * x * x)
        n += 1
    return x


def walk(x: Tensor, limit: Tensor) -> Tensor:
    total = wf.tensor(0.0)
    for i in range(x.shape[0]):
        far = wf.tensor(0.0)
        for j in range(x.shape[1]):
            far = far + x[i, j]
            if far > limit:
                break
        total = total + far
    return total


class Cases:
    """Sets the workloads up in one mode."""

    def __init__(self, mode: str) -> None:
        self.mode, self.compiled = mode, mode != "eager"

    def ready(self, f: Callable[..., Any]) -> Callable[..., Any]:
        return wf.compile(f, fallback=False) if self.compiled else f

    def lstm(self) -> Case:
        batches, arrays = numbers.lstm()
        p = tensors(arrays)
        opt = optim.SGD(list(p.values()), 0.1)

        def step(x: Tensor, labels: Tensor) -> Tensor:
            opt.zero_grad()
            h = c = wf.zeros((numbers.LSTM_BATCH, numbers.LSTM_WIDTH))
            for t in range(x.shape[0]):
                h, c = cell(h, c, x[t], p)
            loss = F.cross_entropy(h @ p["head"], labels)
            loss.backward()
            opt.step()
            return loss

        call: Any = self.ready(step)
        data = [(wf.tensor(x), wf.tensor(y)) for x, y in batches]

        def run() -> Tensor:
            loss: Tensor = [call(*d) for d in data][-1]
            assert not self.compiled or call.captures <= 2  # of 60 lengths
            return loss

        return Case(run, lambda loss: loss.detach().numpy())

    def trees(self) -> Case:
        data, arrays = numbers.trees()
        p = tensors(arrays)
        opt = optim.SGD(list(p.values()), 0.05)
        at_leaf, at_node = self.ready(lambda w: leaf(p, w)), self.ready(lambda *x: inner(p, *x))
        words = [wf.tensor(i) for i in range(numbers.TREE_WORDS)]
        head = self.ready(lambda h, y: F.cross_entropy(h @ p["head"], y))
        update = self.ready(opt.step)

        def run(tree: Any) -> tuple[Tensor, Tensor]:
            if isinstance(tree, int):
                return at_leaf(words[tree])  # type: ignore[no-any-return]
            left, right = tree
            return at_node(*run(left), *run(right))  # type: ignore[no-any-return]

        def step(tree: Any, label: Tensor) -> Tensor:
            opt.zero_grad()
            loss: Tensor = head(run(tree)[0], label)
            loss.backward()
            update()
            return loss

        ready = [(tree, wf.tensor([label])) for tree, label in data]
        return Case(lambda: [step(*d) for d in ready][-1], lambda loss: loss.detach().numpy())

    def recursion(self) -> Case:
        data, arrays = numbers.trees()
        p = tensors(arrays)
        opt = optim.SGD(list(p.values()), 0.05)

        def encode(node: Tensor, tree: Params, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
            left, right = tree["left"][node], tree["right"][node]
            if left < 0:  # a leaf: which one is at the right
                return h[right].reshape(1, -1), c[right].reshape(1, -1)
            return inner(p, *encode(left, tree, h, c), *encode(right, tree, h, c))

        @self.ready
        def step(tree: Params, label: Tensor) -> Tensor:
            opt.zero_grad()
            h, c = leaf(p, tree["words"])
            root = encode(tree["root"], tree, h, c)
            loss: Tensor = F.cross_entropy(root[0] @ p["head"], label)
            loss.backward()
            opt.step()
            return loss

        ready = [(as_arrays(tree), wf.tensor([label])) for tree, label in data]
        return Case(lambda: [step(*d) for d in ready][-1], lambda loss: loss.detach().numpy())

    def newton(self) -> Case:
        a = wf.tensor(numbers.roots(), requires_grad=True)

        def step(a: Tensor) -> Tensor:
            a.grad = None
            cube_root(a).sum().backward()
            return a.grad

        call = self.ready(step)
        return Case(lambda: call(a), lambda y: y.numpy())

    def inference(self, f: Callable[..., Tensor], *xs: Any) -> Case:
        call = self.ready(f)

        def run() -> Tensor:
            with wf.no_grad():
                return call(*xs)

        return Case(run, lambda y: y.numpy())

    def decoder(self) -> Case:
        h, arrays = numbers.decoder()
        p = tensors(arrays, trained=False)
        return self.inference(lambda h: decode(h, p), wf.tensor(h))

    def table(self) -> dict[str, Callable[[], Case]]:
        if self.mode == "recursion":
            return {"W11": self.recursion}
        return {
            "W10": self.lstm,
            "W11": self.trees,
            "W12": lambda: self.inference(converge, wf.tensor(numbers.symmetric())),
            "decoder": self.decoder,
            "newton": self.newton,
            "nested": lambda: self.inference(walk, *map(wf.tensor, numbers.walks())),
        }


def cases(mode: str) -> dict[str, Callable[[], Case]]:
    wf.set_num_threads(THREADS)
    return Cases(mode).table()
