"""Datasets: examples by number, or one after the other."""

from __future__ import annotations

import operator
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from weft.errors import DTypeError, IndexRangeError, ShapeError
from weft.tensor.data import tensor
from weft.tensor.random import permutation
from weft.tensor.selection import take
from weft.tensor.tensor import Tensor


class Dataset:
    """Examples by number: a subclass says `__getitem__` and `__len__`.

    >>> import weft as wf
    >>> class Squares(wf.data.Dataset):
    ...     def __len__(self):
    ...         return 5
    ...
    ...     def __getitem__(self, i):
    ...         return float(i), float(i * i)
    >>> [y.tolist() for x, y in wf.data.DataLoader(Squares(), batch_size=3)]
    [[0.0, 1.0, 4.0], [9.0, 16.0]]
    """

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not define __getitem__()")

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} does not define __len__()")

    def __add__(self, other: Dataset) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset:
    """Examples one after the other: a subclass says `__iter__`.

    With workers each of them goes through the whole; `get_worker_info()` tells which one it is, to
    take a share.

    >>> import weft as wf
    >>> class Count(wf.data.IterableDataset):
    ...     def __iter__(self):
    ...         return iter(range(4))
    >>> [x.tolist() for x in wf.data.DataLoader(Count(), batch_size=2)]
    [[0, 1], [2, 3]]
    """

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} does not define __iter__()")


class TensorDataset(Dataset):
    """Tensors (or arrays) of equal first size; example i is row i of each.

    A loader takes the rows of a whole batch at once.

    >>> import weft as wf
    >>> data = wf.data.TensorDataset(wf.arange(4), wf.arange(4) * 10)
    >>> data[2]
    (tensor(2), tensor(20))
    """

    def __init__(self, *tensors: Any) -> None:
        self.tensors = tuple(t if isinstance(t, Tensor) else tensor(t) for t in tensors)
        sizes = {t.shape[0] if t.ndim else -1 for t in self.tensors}
        if len(sizes) != 1 or -1 in sizes:
            got = ", ".join(str(t.type) for t in self.tensors) or "no tensors"
            raise ShapeError("TensorDataset", expected="tensors of one first size", got=got)

    def __len__(self) -> int:
        return self.tensors[0].shape[0]

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(t[index] for t in self.tensors)

    def batch(self, indices: Sequence[int]) -> tuple[Any, ...]:
        """The rows of a batch, as tensors: neighbours are a view, others one gather."""
        at = np.asarray(indices, np.int64)
        low = int(at[0]) if at.size else 0
        if at.size and np.array_equal(at, np.arange(low, low + at.size)):
            return tuple(t[low : low + at.size] for t in self.tensors)
        places = tensor(at)
        return tuple(take(t, places, axis=0) for t in self.tensors)


class Subset(Dataset):
    """Some examples of a dataset, by number.

    >>> import weft as wf
    >>> wf.data.Subset(["a", "b", "c"], [2, 0])[0]
    'c'
    """

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, [operator.index(i) for i in indices]

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: Any) -> Any:
        return self.dataset[self.indices[index]]


class ConcatDataset(Dataset):
    """Datasets one behind the other.

    >>> import weft as wf
    >>> wf.data.ConcatDataset([[1, 2], [3]])[2]
    3
    """

    def __init__(self, datasets: Sequence[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise ShapeError("ConcatDataset", expected="at least one dataset", got="none")
        self.ends = list(accumulate(len(d) for d in self.datasets))

    def __len__(self) -> int:
        return self.ends[-1]

    def __getitem__(self, index: Any) -> Any:
        i, n = operator.index(index), len(self)
        if not -n <= i < n:
            raise IndexRangeError("ConcatDataset", expected=f"an index in [{-n}, {n})", got=str(i))
        i %= n
        which = bisect_right(self.ends, i)
        return self.datasets[which][i - (self.ends[which - 1] if which else 0)]


def random_split(dataset: Any, lengths: Sequence[float]) -> list[Subset]:
    """A dataset divided at random, into counts or into parts that add up to 1.

    >>> import weft as wf
    >>> train, test = wf.data.random_split(wf.data.TensorDataset(wf.arange(10)), [0.8, 0.2])
    >>> len(train), len(test)
    (8, 2)
    """
    n = len(dataset)
    if not all(isinstance(k, int | float) and k >= 0 for k in lengths):
        raise DTypeError("random_split", expected="counts or parts", got=str(lengths))
    counts = [int(k) for k in lengths]
    if abs(sum(lengths) - 1.0) < 1e-9 and n != 1:
        counts = [int(k * n) for k in lengths]
        for i in range(n - sum(counts)):
            counts[i % len(counts)] += 1
    if sum(counts) != n:
        raise ShapeError("random_split", expected=f"counts that add up to {n}", got=str(lengths))
    order = permutation(n).tolist() if n else []
    ends = list(accumulate(counts))
    return [Subset(dataset, order[e - k : e]) for e, k in zip(ends, counts, strict=True)]
