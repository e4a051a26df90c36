"""The control-flow workloads in PyTorch: modes "eager", "fused" (its LSTM of C++), "compile"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.worker import THREADS, Case
from benchmarks.workloads import control_numbers as numbers

Params = dict[str, Tensor]


def tensors(arrays: dict[str, np.ndarray], trained: bool = True) -> Params:
    return {k: torch.tensor(v, requires_grad=trained) for k, v in arrays.items()}


def cell(h: Tensor, c: Tensor, x: Tensor, p: Params) -> tuple[Tensor, Tensor]:
    i, f, g, o = (x @ p["wx"] + h @ p["wh"] + p["b"]).chunk(4, 1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def leaf(p: Params, word: Tensor) -> tuple[Tensor, Tensor]:
    i, o, u = (p["words"][word].reshape(1, -1) @ p["leaf"] + p["leaf_b"]).chunk(3, 1)
    c = i.sigmoid() * u.tanh()
    return o.sigmoid() * c.tanh(), c


def inner(p: Params, hl: Tensor, cl: Tensor, hr: Tensor, cr: Tensor) -> tuple[Tensor, Tensor]:
    gates = torch.cat([hl, hr], 1) @ p["inner"] + p["inner_b"]
    i, fl, fr, o, u = gates.chunk(5, 1)
    c = i.sigmoid() * u.tanh() + fl.sigmoid() * cl + fr.sigmoid() * cr
    return o.sigmoid() * c.tanh(), c


def converge(x: Tensor) -> Tensor:
    change, n = torch.tensor(1.0), 0
    while change >= numbers.TOLERANCE and n < numbers.MOST:
        d = 0.1 * (x @ x @ x - x)
        x = x - d
        change = d.abs().mean()
        n += 1
    return x


def decode(h: Tensor, p: Params) -> Tensor:
    out = torch.zeros(numbers.DECODER_LIMIT, dtype=torch.int64)
    word, n = torch.tensor(1), 0
    while word != numbers.DECODER_END and n < numbers.DECODER_LIMIT:
        h = (p["words"][word].reshape(1, -1) @ p["wx"] + h @ p["wh"]).tanh()
        word = (h @ p["out"]).reshape(-1).argmax()
        out[n] = word
        n += 1
    return out


def cube_root(a: Tensor) -> Tensor:
    x, n = a, 0
    while (x * x * x - a).abs().max() > 1e-3 and n < numbers.NEWTON_MOST:
        x = x - (x * x * x - a) / (3 * x * x)
        n += 1
    return x


def walk(x: Tensor, limit: Tensor) -> Tensor:
    total = torch.tensor(0.0)
    for i in range(x.shape[0]):
        far = torch.tensor(0.0)
        for j in range(x.shape[1]):
            far = far + x[i, j]
            if far > limit:
                break
        total = total + far
    return total


class Cases:
    """Sets the workloads up in one mode."""

    def __init__(self, mode: str) -> None:
        self.mode = mode

    def ready(self, f: Callable[..., Any]) -> Callable[..., Any]:
        return torch.compile(f) if self.mode == "compile" else f

    def lstm(self) -> Case:
        batches, arrays = numbers.lstm()
        p = tensors(arrays)
        last = self.fused(p) if self.mode == "fused" else self.ready(lambda x: loop(x, p))
        opt = torch.optim.SGD(list(p.values()), 0.1)

        def step(x: Tensor, labels: Tensor) -> Tensor:
            opt.zero_grad()
            loss = F.cross_entropy(last(x) @ p["head"], labels)
            loss.backward()
            opt.step()
            return loss

        data = [(torch.tensor(x), torch.tensor(y)) for x, y in batches]
        return Case(lambda: [step(*d) for d in data][-1], lambda loss: loss.detach().numpy())

    def fused(self, p: Params) -> Callable[[Tensor], Tensor]:
        lstm = torch.nn.LSTM(numbers.LSTM_INPUT, numbers.LSTM_WIDTH)
        with torch.no_grad():
            lstm.weight_ih_l0.copy_(p.pop("wx").T)
            lstm.weight_hh_l0.copy_(p.pop("wh").T)
            lstm.bias_ih_l0.copy_(p.pop("b"))
            lstm.bias_hh_l0.zero_()
        for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0"):  # one bias is trained
            p[name] = getattr(lstm, name)
        return lambda x: lstm(x)[1][0][0]

    def trees(self) -> Case:
        data, arrays = numbers.trees()
        p = tensors(arrays)
        opt = torch.optim.SGD(list(p.values()), 0.05)
        at_leaf, at_node = self.ready(lambda w: leaf(p, w)), self.ready(lambda *x: inner(p, *x))
        words = [torch.tensor(i) for i in range(numbers.TREE_WORDS)]

        def run(tree: Any) -> tuple[Tensor, Tensor]:
            if isinstance(tree, int):
                return at_leaf(words[tree])  # type: ignore[no-any-return]
            left, right = tree
            return at_node(*run(left), *run(right))  # type: ignore[no-any-return]

        def step(tree: Any, label: Tensor) -> Tensor:
            opt.zero_grad()
            loss = F.cross_entropy(run(tree)[0] @ p["head"], label)
            loss.backward()
            opt.step()
            return loss

        ready = [(tree, torch.tensor([label])) for tree, label in data]
        return Case(lambda: [step(*d) for d in ready][-1], lambda loss: loss.detach().numpy())

    def newton(self) -> Case:
        a = torch.tensor(numbers.roots(), requires_grad=True)
        solve = self.ready(cube_root)

        def run() -> Tensor:
            a.grad = None
            solve(a).sum().backward()
            return a.grad  # type: ignore[return-value]

        return Case(run, lambda y: y.numpy())

    def inference(self, f: Callable[..., Tensor], *xs: Any) -> Case:
        call = self.ready(f)

        def run() -> Tensor:
            with torch.no_grad():
                return call(*xs)  # type: ignore[no-any-return]

        return Case(run, lambda y: y.numpy())

    def decoder(self) -> Case:
        h, arrays = numbers.decoder()
        p = tensors(arrays, trained=False)
        return self.inference(lambda h: decode(h, p), torch.tensor(h))

    def table(self) -> dict[str, Callable[[], Case]]:
        if self.mode == "fused":
            return {"W10": self.lstm}
        return {
            "W10": self.lstm,
            "W11": self.trees,
            "W12": lambda: self.inference(converge, torch.tensor(numbers.symmetric())),
            "decoder": self.decoder,
            "newton": self.newton,
            "nested": lambda: self.inference(walk, *map(torch.tensor, numbers.walks())),
        }


def loop(x: Tensor, p: Params) -> Tensor:
    h = c = torch.zeros(numbers.LSTM_BATCH, numbers.LSTM_WIDTH)
    for t in range(x.shape[0]):
        h, c = cell(h, c, x[t], p)
    return h


def cases(mode: str) -> dict[str, Callable[[], Case]]:
    torch.set_num_threads(THREADS)
    return Cases(mode).table()
