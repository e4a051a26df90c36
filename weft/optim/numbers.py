"""The numbers of a group as operands of an update, each made once a step and dtype."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from weft.errors import DTypeError, ShapeError
from weft.ops.define import capturing, standard_mode
from weft.optim.optimizer import Group, host
from weft.tensor.arguments import flag
from weft.tensor.tensor import Tensor
from weft.types import DType
from weft.types.size import as_float

#: what updates ask for that is not itself a number of a group
READ: dict[str, Callable[[Group], float]] = {
    "1 - dampening": lambda g: 1.0 - g["dampening"],
    "alpha": lambda g: g["alpha"],
    "1 - alpha": lambda g: 1.0 - g["alpha"],
    "beta1": lambda g: g["betas"][0],
    "1 - beta1": lambda g: 1.0 - g["betas"][0],
    "beta2": lambda g: g["betas"][1],
    "1 - beta2": lambda g: 1.0 - g["betas"][1],
    "1 - lr * weight_decay": lambda g: 1.0 - g["lr"] * g["weight_decay"],
}


class Numbers:
    """Gives the numbers of a group for the parameter at a place in it, in the dtype its update
    computes in.

    `where` says how weight decay enters the update; `kind` is that, or "none" where it is 0, and
    then there is no number for it.
    """

    def __init__(self, group: Group, steps: Tensor, names: tuple[str, ...], where: str) -> None:
        self.group, self.steps = group, steps
        self.kind = "none" if group["weight_decay"] == 0 else where
        self.names = (*names, *_DECAY[self.kind])
        self._all: dict[DType, tuple[Any, ...]] = {}
        self._made: dict[tuple[DType, int], tuple[Any, ...]] = {}
        # parameters of equal counts share; in a program, whose counts are not known, none do
        self._counts = steps.tolist() if capturing.now is None else range(steps.size)

    def __call__(self, n: int, p: Tensor) -> tuple[Any, ...]:
        dtype = p.type.dtype.compute
        key = dtype, self._counts[n]
        made = self._made.get(key)
        if made is None:
            every = self._all.get(dtype)
            if every is None:
                every = self._all[dtype] = self._make(dtype)
            made = self._made[key] = tuple([x[n] if x.type.ndim else x for x in every])
        return made

    def _make(self, dtype: DType) -> tuple[Any, ...]:
        """The numbers of all parameters: 0-d, or one for each where they depend on its steps."""
        return tuple(self.host(name, dtype) for name in self.names)

    def host(self, name: str, dtype: DType) -> Any:
        """A number as it is when the step runs."""
        return host(_Number(self.group, name, READ.get(name)), dtype)

    def gradient(self, p: Tensor) -> Tensor:
        """The gradient to go down along."""
        g = p.grad
        assert g is not None
        return -g if self.group["maximize"] else g


class _Number:
    """A number of a group, read when it is called: an object and no function, since a program calls
    it in every step, and a function made while it is captured would go through its operators.
    """

    def __init__(self, group: Group, name: str, read: Callable[[Group], float] | None) -> None:
        self.group, self.name, self.read = group, name, read

    def __call__(self) -> float:
        if self.read is None:
            return as_float(self.group[self.name])
        with standard_mode():
            return as_float(self.read(self.group))


_DECAY = {"none": (), "gradient": ("weight_decay",), "parameter": ("1 - lr * weight_decay",)}


def check_number(
    place: str, group: Group, name: str, least: float = 0.0, below: float = math.inf
) -> None:
    """Raise unless a number of a group is one, and in its range."""
    _check(place, name, group[name], least, below)


def check_betas(place: str, group: Group) -> None:
    """Raise unless `betas` are two numbers of [0, 1)."""
    betas = group["betas"]
    if not isinstance(betas, tuple | list) or len(betas) != 2:
        raise ShapeError(place, expected="betas: two numbers", got=repr(betas))
    for n, beta in enumerate(betas):
        _check(place, f"beta{n + 1}", beta, 0.0, 1.0)


def _check(place: str, name: str, value: Any, least: float, below: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        hint = "a tensor is read once, when it is made a number: float(...)"
        tensor = isinstance(value, Tensor)
        raise DTypeError(
            place, expected=f"{name}: a Python number", got=type(value).__name__, hint=hint * tensor
        )
    if not least <= value < below and not (value == below == math.inf):
        bounds = f"{least:g} or more" if below == math.inf else f"in [{least:g}, {below:g})"
        raise ShapeError(place, expected=f"{name} {bounds}", got=str(value))


def check_true(place: str, group: Group, *names: str) -> None:
    """Raise unless these are True or False."""
    for name in names:
        flag(group[name], f"{place} {name}")
