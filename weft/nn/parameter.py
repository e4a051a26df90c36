"""Parameters: the tensors of a module that are learnt."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.autodiff.tape import Leaf
from weft.buffer.interchange import copy_from_numpy
from weft.ops.define import Value, capturing
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

    __slots__ = ("_rested",)

    def __init__(self, data: Any, requires_grad: bool = True) -> None:
        super().__init__((data if isinstance(data, Tensor) else tensor(data)).data)
        self._rested: Leaf | None = None
        if flag(requires_grad, "Parameter"):
            self.requires_grad = True

    @property
    def requires_grad(self) -> bool:
        """Whether gradients are noted for this parameter. One that is frozen has no gradient."""
        return self.note is not None

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        # thawed it is what it was, so that programs made for it then are right again
        was: Leaf | None = self.leaf
        Tensor.requires_grad.__set__(self, wanted)  # type: ignore[attr-defined]
        if capturing.now is not None:
            self._rested = None
        elif was is not None and self.leaf is None:
            was.grad, self._rested = None, was
        elif was is None and self.leaf is not None and self._rested is not None:
            self.note = self.leaf = self._rested

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "data" and (isinstance(value, Value) or hasattr(value, "__array__")):
            raise AttributeError(
                "'Parameter' object's data is its memory and can't be set; Weft says p.assign(v)",
                name=name,
                obj=self,
            )
        super().__setattr__(name, value)

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
