"""Parameters: the tensors of a module that are learnt."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.buffer.interchange import copy_from_numpy
from weft.tensor.arguments import flag
from weft.tensor.data import tensor
from weft.tensor.tensor import Tensor
from weft.types import as_dtype


class Parameter(Tensor):
    """A tensor that a module lists among its parameters when it is set as an attribute.

    It is a cell: an optimizer, or loading a state, gives it another value with `assign` and leaves
    the object itself where it is.

    >>> import weft as wf
    >>> wf.nn.Parameter(wf.zeros(2))
    Parameter([0., 0.])
    """

    __slots__ = ()

    def __init__(self, data: Any, requires_grad: bool = True) -> None:
        super().__init__((data if isinstance(data, Tensor) else tensor(data)).data)
        if flag(requires_grad, "Parameter"):
            self.requires_grad = True

    def __repr__(self) -> str:
        return f"Parameter{repr(self.detach()).removeprefix('tensor')}"

    def __copy__(self) -> Parameter:
        return Parameter(self.detach(), self.requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        out = Parameter(Tensor(copy_from_numpy(self.numpy())), self.requires_grad)
        memo[id(self)] = out
        return out

    def __reduce__(self) -> tuple[Any, ...]:
        a = np.ascontiguousarray(self.numpy())
        return _unpickle, (a.tobytes(), self.shape, self.dtype.name, self.requires_grad)


def _unpickle(raw: bytes, shape: tuple[int, ...], dtype: str, requires_grad: bool) -> Parameter:
    array = np.frombuffer(raw, as_dtype(dtype).np).reshape(shape)
    return Parameter(Tensor(copy_from_numpy(array)), requires_grad)
