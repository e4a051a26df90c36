"""Examples put together to a batch: what nests in an example nests in the batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from weft.errors import DTypeError, NumericsError, ShapeError
from weft.tensor.data import asarray
from weft.tensor.manipulation import stack
from weft.tensor.tensor import Tensor


def default_collate(batch: list[Any]) -> Any:
    """Numbers and arrays become a tensor with one more axis; tuples, lists, dicts and dataclasses
    are put together by their parts; strings and bytes stay a list.

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
    if isinstance(first, int | float):
        return _numbers(batch)
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
        return _alike(first, [collate_arrays(list(part)) for part in zip(*batch, strict=True)])
    if _is_record(first):
        names = [f.name for f in fields(first)]
        return type(first)(**{n: collate_arrays([getattr(x, n) for x in batch]) for n in names})
    if hasattr(first, "__array__"):
        return collate_arrays([np.asarray(x) for x in batch])
    raise DTypeError(
        "default_collate",
        expected="numbers, arrays, tensors, strings, in tuples, lists, dicts and dataclasses",
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


def _numbers(batch: list[Any]) -> np.ndarray:
    """Python's numbers: bools, int64, or float32 as everywhere, if one of them is a float."""
    a = np.asarray(batch)
    if a.dtype.kind not in "biuf":
        got = ", ".join(sorted({type(x).__name__ for x in batch}))
        raise DTypeError("default_collate", expected="numbers in every example", got=got)
    if a.dtype.kind != "f":
        return a
    if all(isinstance(x, int) for x in batch):
        expected = "integers of at most 64 bits"
        raise NumericsError("default_collate", expected=expected, got="larger ones")
    return a.astype(np.float32)


def each(f: Callable[[Any], Any], x: Any) -> Any:
    """Nested values with `f` of all that nests nothing in their place."""
    if isinstance(x, Mapping):
        return {k: each(f, v) for k, v in x.items()}
    if isinstance(x, tuple | list):
        return _alike(x, [each(f, v) for v in x])
    if _is_record(x):
        return type(x)(**{part.name: each(f, getattr(x, part.name)) for part in fields(x)})
    return f(x)


def _alike(x: Any, parts: list[Any]) -> Any:
    """Parts in a list or tuple (named or not) of the kind of `x`."""
    if hasattr(x, "_fields"):
        return type(x)(*parts)
    return tuple(parts) if isinstance(x, tuple) else parts


def _is_record(x: Any) -> bool:
    return is_dataclass(x) and not isinstance(x, type)


def as_tensors(batch: Any) -> Any:
    """The arrays of nested values as tensors on the same memory: they are nobody else's."""
    return each(lambda x: asarray(x, copy=False) if isinstance(x, np.ndarray) else x, batch)
