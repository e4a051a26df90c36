"""Lists and dicts of parameters, which count as those of the module they are set on."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from weft.errors import IndexRangeError
from weft.nn.module import Module
from weft.nn.parameter import Parameter


def _parameter(x: Any) -> Parameter:
    return x if isinstance(x, Parameter) else Parameter(x)


class _Parameters(Module):
    def __len__(self) -> int:
        return len(self._parameters)

    def __repr__(self) -> str:
        name = type(self).__name__
        lines = [f"  ({n}): {p.type}" for n, p in self._parameters.items() if p is not None]
        return "\n".join([f"{name}(", *lines, ")"]) if lines else f"{name}()"


class ParameterList(_Parameters):
    """A list of parameters; tensors that are none are made some.

    >>> import weft as wf
    >>> scales = wf.nn.ParameterList([wf.ones(2), wf.zeros(3)])
    >>> len(scales), list(scales.state_dict()), scales[-1].requires_grad
    (2, ['0', '1'], True)
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        self.extend(values or ())

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._parameters.values()))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return self._parameters[self._place(index)]

    def __setitem__(self, index: Any, value: Any) -> None:
        self.register_parameter(self._place(index), _parameter(value))

    def _place(self, index: Any) -> str:
        i, n = operator.index(index), len(self)
        if not -n <= i < n:
            expected = f"an index in [{-n}, {n})"
            raise IndexRangeError(type(self).__name__, expected=expected, got=str(i))
        return str(i % n)

    def append(self, value: Any) -> Self:
        """Put a parameter at the end."""
        self.register_parameter(str(len(self)), _parameter(value))
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Put parameters at the end."""
        for value in list(values):
            self.append(value)
        return self


class ParameterDict(_Parameters):
    """A dict of parameters; tensors that are none are made some.

    >>> import weft as wf
    >>> scales = wf.nn.ParameterDict({"left": wf.ones(2), "right": wf.zeros(3)})
    >>> sorted(scales), scales["left"].shape
    (['left', 'right'], (2,))
    """

    def __init__(self, parameters: Mapping[str, Any] | None = None) -> None:
        self.update(parameters or {})

    def update(self, parameters: Mapping[str, Any]) -> None:
        """Add parameters, or put others in their place."""
        for name, value in parameters.items():
            self[name] = value

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._parameters))

    def __contains__(self, name: object) -> bool:
        return name in self._parameters

    def __getitem__(self, name: str) -> Any:
        return self._parameters[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self.register_parameter(name, _parameter(value))

    def __delitem__(self, name: str) -> None:
        delattr(self, name)

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._parameters.keys()

    def values(self) -> Iterable[Any]:
        """The parameters."""
        return self._parameters.values()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Names and parameters."""
        return self._parameters.items()
