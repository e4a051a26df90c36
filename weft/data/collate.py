"""Examples put together to a batch: what nests in an example nests in the batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from weft.errors import DTypeError, ShapeError
from weft.tensor.data import asarray
from weft.tensor.manipulation import stack
from weft.tensor.tensor import Tensor


def default_collate(batch: list[Any]) -> Any:
    """Numbers and arrays become a tensor with one more axis; tuples, lists and dicts are put
    together by their parts; strings and bytes stay a list.

    >>> import weft as wf
    >>> wf.data.default_collate([{"x": [1.0, 2.0], "y": 0}, {"x": [3.0, 4.0], "y": 1}])["y"]
    tensor([0, 1])
    """
    return as_tensors(collate_arrays(batch))


def collate_arrays(batch: list[Any]) -> Any:
    """A batch whose leaves are NumPy arrays and tensors: what a worker process sends."""
    if not batch:
        raise ShapeError("default_collate", expected="at least one example", got="none")
    first = batch[0]
    if isinstance(first, Tensor):
        if first.requires_grad:
            return stack(batch)
        _check_shapes([x.shape for x in batch])
        return np.stack([x.numpy() for x in batch])
    if isinstance(first, np.ndarray | np.generic):
        arrays = [np.asarray(x) for x in batch]
        _check_shapes([a.shape for a in arrays])
        return np.stack(arrays)
    if isinstance(first, bool | int):
        return np.asarray(batch)
    if isinstance(first, float):
        return np.asarray(batch, np.float32)
    if isinstance(first, str | bytes) or first is None:
        return batch
    if isinstance(first, Mapping):
        return {k: collate_arrays([x[k] for x in batch]) for k in first}
    if isinstance(first, tuple | list):
        if any(len(x) != len(first) for x in batch):
            got = ", ".join(str(len(x)) for x in batch[:6])
            hint = "pad them in a collate_fn, e.g. with wf.data.pad_sequence"
            expected = "examples with equally many parts"
            raise ShapeError("default_collate", expected=expected, got=got, hint=hint)
        parts = [collate_arrays(list(part)) for part in zip(*batch, strict=True)]
        if hasattr(first, "_fields"):
            return type(first)(*parts)
        return tuple(parts) if isinstance(first, tuple) else parts
    if hasattr(first, "__array__"):
        return collate_arrays([np.asarray(x) for x in batch])
    raise DTypeError(
        "default_collate",
        expected="numbers, arrays, tensors, strings, in tuples, lists and dicts",
        got=type(first).__name__,
        hint="give the loader a collate_fn",
    )


def _check_shapes(shapes: list[tuple[int, ...]]) -> None:
    if any(s != shapes[0] for s in shapes):
        raise ShapeError(
            "default_collate",
            expected="examples of one shape",
            got=", ".join(str(s) for s in shapes[:6]),
            hint="pad them in a collate_fn, e.g. with wf.data.pad_sequence",
        )


def as_tensors(batch: Any) -> Any:
    """The arrays of nested values as tensors on the same memory: they are nobody else's."""
    if isinstance(batch, np.ndarray):
        return asarray(batch, copy=False)
    if isinstance(batch, Mapping):
        return {k: as_tensors(v) for k, v in batch.items()}
    if isinstance(batch, tuple | list):
        parts = [as_tensors(x) for x in batch]
        if hasattr(batch, "_fields"):
            return type(batch)(*parts)
        return tuple(parts) if isinstance(batch, tuple) else parts
    return batch
