"""How a state fits what it is loaded into: which entries are there, missing, unknown, misshapen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from weft.errors import DTypeError, StateError, WeftError
from weft.tensor.data import asarray, from_dlpack, tensor
from weft.tensor.tensor import Tensor

#: names shown of each kind of misfit
SHOWN = 8


class Loaded(NamedTuple):
    """What was not loaded: names without an entry, and entries without a name."""

    missing_keys: list[str]
    unexpected_keys: list[str]


def as_tensor(value: Any) -> Tensor:
    """A tensor of what a checkpoint may hold: Weft's, NumPy's and PyTorch's arrays, numbers."""
    if isinstance(value, Tensor):
        return value.detach()
    if hasattr(value, "__dlpack__") and not hasattr(value, "__array_interface__"):
        owned = value.detach() if hasattr(value, "detach") else value
        return asarray(from_dlpack(owned), copy=True)  # others write to what they own
    return tensor(value)


def fitting(
    place: str, cells: Mapping[str, Tensor], state: Mapping[str, Any], strict: bool
) -> tuple[dict[str, Tensor], Loaded]:
    """The values of a state by name, once all of them fit their cells; else an error that lists
    every one that does not.
    """
    if not isinstance(state, Mapping):
        raise DTypeError(place, expected="a dict of tensors by name", got=type(state).__name__)
    loaded = Loaded([n for n in cells if n not in state], [n for n in state if n not in cells])
    values, misshapen = {}, []
    for name, cell in cells.items():
        if name not in state:
            continue
        try:
            value = as_tensor(state[name])
        except (WeftError, TypeError, ValueError) as e:
            misshapen.append(f"{name} ({type(state[name]).__name__}: {e})")
            continue
        if value.shape != cell.shape:
            misshapen.append(f"{name} is {value.shape}, expected {cell.shape}")
        values[name] = value
    kinds = [("of other shapes", misshapen)]
    if strict:
        kinds = [
            ("missing", loaded.missing_keys),
            ("unexpected", [str(k) for k in loaded.unexpected_keys]),
            *kinds,
        ]
    found = [f"{kind}: {_listed(names)}" for kind, names in kinds if names]
    if found:
        loose = strict and not misshapen
        raise StateError(
            place,
            expected="entries that fit the module by name and shape",
            got="; ".join(found),
            hint="strict=False loads those that are on both sides" * loose,
        )
    return values, loaded


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
