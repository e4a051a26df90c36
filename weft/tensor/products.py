"""Matrix products and other sums of products over axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.errors import DTypeError
from weft.ops import einsum as ops
from weft.ops.define import installed
from weft.ops.linalg import matmul as contracted
from weft.tensor.arguments import value

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


def matmul(a: Any, b: Any, /) -> Tensor:
    """The matrix product over the last two axes; leading axes broadcast, and a vector is a row or a
    column.

    >>> import weft as wf
    >>> wf.matmul(wf.tensor([[1.0, 2.0], [3.0, 4.0]]), wf.tensor([1.0, 1.0]))
    tensor([3., 7.])
    """
    try:
        plan = contracted.plans[a.data.layout, b.data.layout]
    except (KeyError, AttributeError, ValueError):
        plan = None
    if plan is not None:
        return installed.launch(plan, a, b)
    return contracted(*ops.same_dtype(value(a), value(b)))


def tensordot(a: Any, b: Any, /, *, axes: Any = 2) -> Tensor:
    """The sum of products over pairs of axes: the last `axes` of a with the first of b, or the
    pairs listed.

    >>> import weft as wf
    >>> wf.tensordot(wf.ones((2, 3, 4)), wf.ones((4, 3)), axes=((1, 2), (1, 0)))
    tensor([12., 12.])
    """
    out: Any = ops.tensordot(value(a), value(b), axes)
    return out


def vecdot(a: Any, b: Any, /, *, axis: int = -1) -> Tensor:
    """The sum of products along one axis; other axes broadcast.

    >>> import weft as wf
    >>> wf.vecdot(wf.tensor([[1.0, 2.0], [3.0, 4.0]]), wf.tensor([1.0, 1.0]))
    tensor([3., 7.])
    """
    out: Any = ops.vecdot(value(a), value(b), axis)
    return out


def outer(a: Any, b: Any, /) -> Tensor:
    """Every element of one vector times every element of another.

    >>> import weft as wf
    >>> wf.outer(wf.tensor([1, 2]), wf.tensor([3, 4]))
    tensor([[3, 4],
            [6, 8]])
    """
    out: Any = ops.einsum("i,j->ij", value(a), value(b))
    return out


def einsum(equation: str, /, *operands: Any) -> Tensor:
    """A sum of products over named axes: letters that the result lacks are summed, `...`
    broadcasts.

    >>> import weft as wf
    >>> wf.einsum("ij,j->i", wf.tensor([[1.0, 2.0], [3.0, 4.0]]), wf.tensor([1.0, 1.0]))
    tensor([3., 7.])
    """
    if not isinstance(equation, str):
        raise DTypeError(
            "einsum", expected="an equation first, such as 'ij,jk->ik'", got=type(equation).__name__
        )
    out: Any = ops.einsum(equation, *map(value, operands))
    return out
