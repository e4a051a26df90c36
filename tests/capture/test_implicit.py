"""What loops, operators, len() and `in` read of objects without a call is noticed when it changes:
a compiled function never gives the result of a model that is no more.
"""

from dataclasses import dataclass

import numpy as np
import pytest

import weft as wf
from weft import nn

X = wf.tensor(np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3))


def linear():
    return nn.Linear(3, 3)


class Listed(nn.Module):
    def __init__(self):
        self.layers = nn.ModuleList([linear(), linear()])


class Loop(Listed):
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class Enumerated(Listed):
    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = layer(x) * (i + 1)
        return x


class Zipped(Listed):
    def forward(self, x):
        for layer, k in zip(self.layers, (1.0, 2.0), strict=False):
            x = layer(x) * k
        return x


class Comprehension(Listed):
    def forward(self, x):
        return sum([layer(x) for layer in self.layers])


class Backwards(Listed):
    def forward(self, x):
        for layer in reversed(self.layers):
            x = layer(x)
        return x


class Slice(Listed):
    def forward(self, x):
        for layer in self.layers[-1:]:
            x = layer(x)
        return x


class Count(Listed):
    def forward(self, x):
        return self.layers[-1](x) * len(self.layers)


class Unpacked(Listed):
    def forward(self, x):
        first, *rest = self.layers
        return first(x) * len(rest)


class Starred(Listed):
    def forward(self, x):
        return [*self.layers][-1](x)


class Weights(Listed):
    def forward(self, x):
        return x * sum(p.sum() for p in self.parameters())


class Named(nn.Module):
    def __init__(self):
        self.layers = nn.ModuleDict({"0": linear(), "1": linear()})


class Names(Named):
    def forward(self, x):
        for name in self.layers:
            x = self.layers[name](x)
        return x


class Member(Named):
    def forward(self, x):
        return x * 2 if "2" in self.layers else self.layers["0"](x)


class Items(Named):
    def forward(self, x):
        for _, layer in self.layers.items():
            x = layer(x)
        return x


def added(model):
    layers = model.layers
    layers.append(linear()) if isinstance(layers, nn.ModuleList) else layers.update({"2": linear()})


def replaced(model):
    layers = model.layers
    for key in range(2) if isinstance(layers, nn.ModuleList) else ("0", "1"):
        layers[key] = linear()


def other_weight(model):
    for layer in model.layers if isinstance(model.layers, nn.ModuleList) else model.layers.values():
        layer.weight = nn.Parameter(wf.ones((3, 3)))


def checked(call, change):
    compiled = wf.compile(call, fallback=False)
    compiled(X)
    assert compiled(X).tolist() == call(X).tolist() and compiled.captures == 1
    before = call(X).tolist()
    change()
    assert compiled(X).tolist() == call(X).tolist()
    return before != call(X).tolist()


@pytest.mark.parametrize("change", [added, replaced, other_weight], ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    "kind",
    [Loop, Enumerated, Zipped, Comprehension, Backwards, Slice, Count, Unpacked, Starred, Weights,
     Names, Member, Items],
)  # fmt: skip
def test_modules_in_lists_and_dicts(kind, change):
    model = kind()
    differs = checked(model, lambda: change(model))
    assert differs or (change is added and kind is Zipped)


def two_layers():
    return nn.Sequential(linear(), nn.Tanh())


def double(module, args, out):
    return out * 2


@pytest.mark.parametrize("there", [0, 1, 2])
def test_hooks_that_come_and_go(there):
    model = two_layers()
    for _ in range(there):
        last = model[0].register_forward_hook(double)
    assert checked(model, lambda: model[0].register_forward_hook(double))
    if there:
        assert checked(model, last.remove)
    for hook in (lambda m, args: args[0] + 1, lambda m, args: (args[0] - 1,)):
        assert checked(model, lambda hook=hook: model[0].register_forward_pre_hook(hook))


class Vector:
    def __init__(self, *values):
        self.values = list(values)

    def __mul__(self, x):
        return x * self.values[0]

    def __neg__(self):
        return Vector(*(-v for v in self.values))

    def __getitem__(self, i):
        return self.values[i]

    def __len__(self):
        return len(self.values)

    def __contains__(self, x):
        return x in self.values

    def __eq__(self, other):
        return self.values == other

    def __hash__(self):
        return 1


class Slotted:
    __slots__ = ("scale",)

    def __init__(self):
        self.scale = 2.0

    def __rmul__(self, x):
        return x * self.scale


USES = {
    "product": lambda v, x: v * x,
    "minus": lambda v, x: (-v) * x,
    "element": lambda v, x: x * v[0],
    "length": lambda v, x: x * len(v),
    "truth": lambda v, x: x * 2 if v else x,
    "member": lambda v, x: x * 2 if 3.0 in v else x,
    "equal": lambda v, x: x * 2 if v == [3.0] else x,
    "loop": lambda v, x: sum(x * k for k in v) + x,
    "list": lambda v, x: x * list(v)[-1] if len(v) else x,
}


@pytest.mark.parametrize("name", USES)
def test_objects_with_operators(name):
    """From outside by a variable, in a list, and as an argument."""
    use, first = USES[name], [] if name in ("length", "truth") else [2.0]
    v, w, u = Vector(*first), Vector(*first), Vector(*first)
    assert checked(lambda x: use(v, x), lambda: v.values.__setitem__(slice(None), [3.0]))
    held = [w]
    assert checked(lambda x: use(held[0], x), lambda: setattr(w, "values", [3.0]))
    compiled = wf.compile(use, fallback=False)
    compiled(u, X)
    u.values = [3.0]
    assert compiled(u, X).tolist() == use(u, X).tolist()


def test_slots():
    s = Slotted()
    assert checked(lambda x: x * s.scale, lambda: setattr(s, "scale", 3.0))
    assert checked(lambda x: 2.0 * s * x, lambda: setattr(s, "scale", 5.0))


@dataclass
class Setting:
    scale: float
    step: int = 0


def test_what_is_not_read_by_operators_may_change():
    """A dataclass compares its fields, but nobody compares it: a counter is no guard."""
    setting = Setting(2.0)
    compiled = wf.compile(lambda x: x * setting.scale, fallback=False)
    for setting.step in range(5):
        compiled(X)
    assert compiled.captures == 1


def test_tuples_are_not_watched():
    """They never change; and watching each one that code makes costs every call."""
    model = two_layers()
    opt = wf.optim.AdamW(model.parameters())

    def step(x):
        opt.zero_grad()
        model(x).sum().backward()
        opt.step()

    run = wf.compile(step, fallback=False)
    run(X)
    guards = run.latest[1].captured.guards
    assert not [r.said for r in guards.reads.values() if type(r.owner) is tuple]
