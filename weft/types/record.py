"""Frozen dataclasses that are quick to make.

The standard decorator compiles six methods for each class, half a millisecond: with the dozens of
records that Weft has, a fifth of its import. `dataclass(frozen=True)` of this module compiles the
constructor alone; the other methods are shared by all records. To readers and type checkers it is
the standard one, and whatever else is asked for (`slots`, not frozen) is done by that.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(*args, frozen=False, eq=True, **options):
        """The standard `dataclass`; a frozen one is made in a fifth of its time."""
        if args or options or not frozen:
            return dataclasses.dataclass(*args, frozen=frozen, eq=eq, **options)
        return lambda cls: _frozen(cls, eq)


def _frozen(cls: type, eq: bool) -> type:
    own_hash = cls.__dict__.get("__hash__")
    cls = dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
    fields = dataclasses.fields(cls)
    methods: dict[str, Any] = {
        "__init__": _constructor(cls, fields),
        "__repr__": _repr,
        "__setattr__": _set,
        "__delattr__": _delete,
    }
    cls.__shown__ = tuple(f.name for f in fields if f.repr)  # type: ignore[attr-defined]
    if eq:
        methods["__eq__"], methods["__hash__"] = _equality([f.name for f in fields if f.compare])
    for name, method in methods.items():
        if name not in cls.__dict__ or (name == "__hash__" and own_hash is None):
            setattr(cls, name, method)
    return cls


def _constructor(cls: type, fields: tuple[dataclasses.Field[Any], ...]) -> Callable[..., None]:
    """`__init__(self, a, b=default, …)`, which sets every field and calls `__post_init__`."""
    names: dict[str, Any] = {"set_": object.__setattr__, "MISSING": dataclasses.MISSING}
    parameters, lines = ["self"], []
    for f in fields:
        value = f.name
        if f.default_factory is not dataclasses.MISSING:
            names[f"make_{f.name}"] = f.default_factory
            value = f"make_{f.name}() if {f.name} is MISSING else {f.name}"
        if not f.init:
            continue
        default = "" if f.default is f.default_factory else "=MISSING"
        if f.default is not dataclasses.MISSING:
            names[f"default_{f.name}"], default = f.default, f"=default_{f.name}"
        parameters.append(f.name + default)
        lines.append(f" set_(self, {f.name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append(" self.__post_init__()")
    exec(f"def __init__({', '.join(parameters)}):\n" + "\n".join(lines or [" pass"]), names)
    made: Callable[..., None] = names["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__annotations__ = {f.name: f.type for f in fields if f.init} | {"return": None}
    return made


def _equality(names: list[str]) -> tuple[Any, Any]:
    """`__eq__` and `__hash__` over these fields."""
    values: Callable[[Any], Any]
    if len(names) > 1:
        values = attrgetter(*names)  # a tuple of them
    else:
        values = lambda record: tuple(getattr(record, name) for name in names)

    def equal(self: Any, other: Any) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return values(self) == values(other)

    return equal, lambda self: hash(values(self))


@recursive_repr()
def _repr(self: Any) -> str:
    said = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__shown__)
    return f"{self.__class__.__qualname__}({said})"


def _set(self: Any, name: str, value: Any) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _delete(self: Any, name: str) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
