"""What two paths of a program leave behind, as one.

A path leaves values in variables, in tensors that were given another value, in gradients and in
containers. Where both leave the same it is known; where they leave tensors of one type, a branch
chooses; anything else is an error that shows both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.capture.guards import same
from weft.capture.structure import Form, flatten
from weft.control.region import Region, refill
from weft.errors import CaptureError
from weft.ir import user_location
from weft.ops.define import Value, capturing, data_of, installed
from weft.tensor.tensor import Tensor


class Undefined:
    """What a variable without a value has."""

    def __repr__(self) -> str:
        return "undefined"


UNDEFINED = Undefined()


def refused(what: str, expected: str, got: str, hint: str = "") -> CaptureError:
    """An error at the user's line."""
    loc = user_location()
    place = f'{what} at "{loc.file}":{loc.line}' if loc is not None else what
    return CaptureError(place, expected=expected, got=got, hint=hint)


class Slots:
    """Places beside variables that some path gave another value: tensors, gradients, containers."""

    def __init__(self) -> None:
        self.tensors: dict[int, Value] = {}
        self.leaves: dict[Any, None] = {}
        self.containers: dict[int, Any] = {}

    def add(self, region: Region) -> bool:
        """Note what a region changed; whether any of it is new."""
        before = len(self)
        for key, (x, _, _) in region.written.items():
            self.tensors[key] = x
        self.leaves.update(dict.fromkeys(region.grads))
        for key, (x, _) in region.changed.items():
            self.containers[key] = x
        return len(self) > before

    def __len__(self) -> int:
        return len(self.tensors) + len(self.leaves) + len(self.containers)

    def values(self) -> list[Any]:
        """What they hold now."""
        held = [installed.tensor(data_of(x), x.note) for x in self.tensors.values()]
        grads = [_grad(leaf) for leaf in self.leaves]
        content = [_content(x) for x in self.containers.values()]
        return [held, grads, content]

    def put(self, values: Sequence[Any]) -> None:
        """Give them what `values` gave, or what it was joined to."""
        held, grads, content = values
        now = capturing.now
        for x, new in zip(self.tensors.values(), held, strict=True):
            data = data_of(new)
            if x.data is not data:
                if now is not None:
                    now.write(x)
                x.data, x.note = data, new.note if new.note is not None else x.leaf
        for leaf, grad in zip(self.leaves, grads, strict=True):
            if now is not None:
                now.write_grad(leaf)
            leaf.grad = grad
        for x, new in zip(self.containers.values(), content, strict=True):
            if isinstance(now, Region):
                now.change(x, None)
            refill(x, new)


def _grad(leaf: Any) -> Any:
    return leaf.grad if capturing.now is None else capturing.now.read_grad(leaf)


def _content(x: Any) -> Any:
    """What a container consists of, as a structure."""
    return sorted(x, key=repr) if isinstance(x, set) else type(x)(x)


Choose = Callable[[list[Value], list[Value]], Sequence[Value]]


def join(
    what: str, a: Any, b: Any, names: Sequence[str], choose: Choose, number: Any = None
) -> Any:
    """One structure out of two: `choose` makes values out of pairs of one type that differ."""
    left, form = flatten(a)
    right, other = flatten(b)
    if form != other:
        raise refused(
            what,
            f"the same structure on both paths: {_outline(a, form, names)}",
            _outline(b, other, names),
            "give every path the same variables, lists of one length, results of one form",
        )
    out: list[Any] = list(left)
    pairs: list[tuple[int, Value, Value]] = []
    for i, (x, y) in enumerate(zip(left, right, strict=True)):
        if x is y or same(x, y):
            continue
        if isinstance(x, Value) and isinstance(y, Value) and data_of(x) is data_of(y):
            if x.note is not y.note:
                pairs.append((i, x, y))
            continue
        if x is UNDEFINED or y is UNDEFINED:
            out[i] = UNDEFINED
            continue
        pairs.append((i, *_alike(what, _path(i, form, names), x, y)))
    if pairs:
        made = choose([x for _, x, _ in pairs], [y for _, _, y in pairs])
        for (i, _, _), value in zip(pairs, made, strict=True):
            out[i] = value
    return form.build(out)


def _alike(what: str, name: str, x: Any, y: Any) -> tuple[Value, Value]:
    """Two values as tensors of one type."""
    if type(x) is bool and type(y) is bool:
        return installed.lift(x), installed.lift(y)
    if isinstance(x, Value) and type(y) in (bool, int, float):
        y = as_value(y, x)
    elif isinstance(y, Value) and type(x) in (bool, int, float):
        x = as_value(x, y)
    if isinstance(x, Value) and isinstance(y, Value) and x.type is y.type:
        return x, y
    raise refused(
        what,
        f"{name} to be the same, or tensors of one type, on both paths",
        f"{_said(x)} and {_said(y)}",
        "convert one with .astype() or .reshape(), or write the number as a tensor",
    )


def as_value(number: Any, like: Value) -> Any:
    """A number as a 0-d tensor like another, where that holds it; else the number."""
    type_ = like.type
    if type_.shape != ():
        return number
    dtype = type_.dtype
    fits = dtype.is_float if type(number) is not bool else dtype.kind == "b"
    if type(number) is int and dtype.is_int:
        fits = dtype.itemsize == 8
    if not fits:
        return number
    return Tensor(data_of(installed.lift(dtype.np.type(number))))


def _said(x: Any) -> str:
    if isinstance(x, Value):
        return str(x.type)
    return repr(x) if type(x) in (int, float, bool, str) else f"a {type(x).__name__}"


def _path(i: int, form: Form, names: Sequence[str]) -> str:
    """The variable that a leaf belongs to."""
    at = 0
    for child, name in zip(form.children[1].children, names, strict=False):
        start = form.children[0].count + at
        if start <= i < start + child.count:
            return name
        at += child.count
    if i < form.children[0].count:
        return "the result"
    return "a value assigned in place"


def _outline(x: Any, form: Form, names: Sequence[str]) -> str:
    if not isinstance(x, tuple) or len(x) != 3:
        return str(form.paths())
    result, variables, _ = x
    said = [f"result {type(result).__name__}"]
    said += [f"{n}: {_said(v)}" for n, v in zip(names, variables, strict=False)]
    return ", ".join(said)
