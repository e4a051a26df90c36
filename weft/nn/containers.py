"""Modules made of modules."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from weft.errors import DTypeError, IndexRangeError
from weft.nn.module import Module


def _position(place: str, index: Any, size: int) -> int:
    i = operator.index(index)
    if not -size <= i < size:
        raise IndexRangeError(place, expected=f"an index in [{-size}, {size})", got=str(i))
    return i % size


class _Numbered(Module):
    """Modules under the names "0", "1", …"""

    def _place(self, index: Any) -> int:
        return _position(type(self).__name__, index, len(self))

    def _reset(self, modules: Iterable[Module]) -> None:
        made = list(modules)
        for name in list(self._modules):
            delattr(self, name)
        for i, module in enumerate(made):
            self.register_module(str(i), module)

    def _list(self) -> list[Module]:
        return [m for m in self._modules.values() if m is not None]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._list())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)._made(self._list()[index])
        return self._list()[self._place(index)]

    def __setitem__(self, index: Any, module: Module) -> None:
        name = list(self._modules)[self._place(index)]
        self.register_module(name, module)

    def __delitem__(self, index: Any) -> None:
        kept = self._list()
        del kept[index if isinstance(index, slice) else self._place(index)]
        self._reset(kept)

    @classmethod
    def _made(cls, modules: list[Module]) -> Self:
        raise NotImplementedError

    def append(self, module: Module) -> Self:
        """Put a module at the end."""
        names = map(str, itertools.count(len(self)))  # a slice has names of its own
        self.register_module(next(n for n in names if n not in self._modules), module)
        return self

    def insert(self, index: int, module: Module) -> Self:
        """Put a module before another one."""
        modules = self._list()
        modules.insert(index, module)
        self._reset(modules)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Put modules at the end."""
        for module in modules:
            self.append(module)
        return self

    def pop(self, index: int = -1) -> Any:
        """Take a module out."""
        module = self[index]
        del self[index]
        return module

    def __add__(self, others: Iterable[Module]) -> Self:
        return type(self)._made([*self, *others])

    def __iadd__(self, others: Iterable[Module]) -> Self:
        return self.extend(others)


class Sequential(_Numbered):
    """Modules called one after the other, each on what the one before gave.

    >>> import weft as wf
    >>> net = wf.nn.Sequential(wf.nn.Linear(3, 4), wf.nn.ReLU(), wf.nn.Linear(4, 2))
    >>> net(wf.ones((5, 3))).shape
    (5, 2)
    """

    def __init__(self, *modules: Module | Mapping[str, Module]) -> None:
        named: Mapping[str, Any] = {str(i): m for i, m in enumerate(modules)}
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            named = modules[0]
        for name, module in named.items():
            if not isinstance(module, Module):
                got, hint = type(module).__name__, "wrap a function in a module of its own"
                raise DTypeError("Sequential", expected="modules", got=got, hint=hint)
            self.register_module(name, module)

    @classmethod
    def _made(cls, modules: list[Module]) -> Self:
        return cls(*modules)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):  # names stay, as in PyTorch, and with them those of a state
            kept: dict[str, Any] = dict(list(self._modules.items())[index])
            return type(self)(kept)
        return super().__getitem__(index)

    def forward(self, x: Any) -> Any:
        for module in self._modules.values():
            x = module(x)  # type: ignore[misc]
        return x


class ModuleList(_Numbered):
    """A list of modules, whose parameters count as those of what it is set on.

    >>> import weft as wf
    >>> layers = wf.nn.ModuleList(wf.nn.Linear(2, 2) for _ in range(3))
    >>> len(layers), len(list(layers.parameters()))
    (3, 6)
    """

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        self.extend(modules)

    @classmethod
    def _made(cls, modules: list[Module]) -> Self:
        return cls(modules)

    def __repr__(self) -> str:
        """Neighbours that say the same are said once."""
        lines, n = [], 0
        for said, alike in itertools.groupby(map(repr, self)):
            count = len(list(alike))
            place, times = (f"{n}-{n + count - 1}", f"{count} x ") if count > 1 else (f"{n}", "")
            lines.append(f"  ({place}): {times}{said}".replace("\n", "\n  "))
            n += count
        return "\n".join([f"{type(self).__name__}(", *lines, ")"]) if lines else super().__repr__()


class ModuleDict(Module):
    """A dict of modules, whose parameters count as those of what it is set on.

    >>> import weft as wf
    >>> heads = wf.nn.ModuleDict({"a": wf.nn.Linear(2, 1), "b": wf.nn.Linear(2, 3)})
    >>> heads["b"](wf.ones(2)).shape
    (3,)
    """

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        self.update(modules or {})

    def update(self, modules: Mapping[str, Module]) -> None:
        """Add modules, or put others in their place."""
        for name, module in modules.items():
            self[name] = module

    def __getitem__(self, name: str) -> Any:
        return self._modules[name]

    def __setitem__(self, name: str, module: Module) -> None:
        self.register_module(name, module)

    def __delitem__(self, name: str) -> None:
        delattr(self, name)

    def pop(self, name: str) -> Any:
        """Take a module out."""
        module = self[name]
        del self[name]
        return module

    def clear(self) -> None:
        """Take all modules out."""
        for name in tuple(self._modules):
            del self[name]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, name: object) -> bool:
        return name in self._modules

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._modules.keys()

    def values(self) -> Iterable[Any]:
        """The modules."""
        return self._modules.values()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Names and modules."""
        return self._modules.items()


class Identity(Module):
    """What is given, unchanged; arguments of any kind are taken.

    >>> import weft as wf
    >>> wf.nn.Identity()(wf.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def forward(self, x: Any) -> Any:
        return x


class Flatten(Module):
    """Axes `start_dim` to `end_dim` as one.

    >>> import weft as wf
    >>> wf.nn.Flatten()(wf.ones((5, 3, 2))).shape
    (5, 6)
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, x: Any) -> Any:
        return x.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """One axis as several.

    >>> import weft as wf
    >>> wf.nn.Unflatten(1, (2, 3))(wf.ones((4, 6))).shape
    (4, 2, 3)
    """

    def __init__(self, dim: int, unflattened_size: Iterable[int]) -> None:
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def forward(self, x: Any) -> Any:
        axis = self.dim % x.ndim
        return x.reshape(*x.shape[:axis], *self.unflattened_size, *x.shape[axis + 1 :])

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
