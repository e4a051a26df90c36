"""Samplers: in which order examples come. Random ones draw from Weft's generator
(`wf.manual_seed`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any

import numpy as np

from weft.errors import ShapeError
from weft.tensor.arguments import flag, integer
from weft.tensor.random import permutation, rand, randint


class Sampler:
    """Numbers of examples in some order: a subclass says `__iter__` and `__len__`.

    >>> import weft as wf
    >>> class Backwards(wf.data.Sampler):
    ...     def __iter__(self):
    ...         return iter((2, 1, 0))
    ...
    ...     def __len__(self):
    ...         return 3
    >>> list(Backwards())
    [2, 1, 0]
    """

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} does not define __iter__()")

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} does not define __len__()")


class SequentialSampler(Sampler):
    """From the first to the last.

    >>> import weft as wf
    >>> list(wf.data.SequentialSampler("abc"))
    [0, 1, 2]
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler):
    """In random order, another one each time; with `replacement`, each drawn anew.

    >>> import weft as wf
    >>> sorted(wf.data.RandomSampler("abc"))
    [0, 1, 2]
    """

    def __init__(
        self, data_source: Sized, replacement: bool = False, num_samples: int | None = None
    ) -> None:
        self.data_source = data_source
        self.replacement = flag(replacement, "RandomSampler replacement")
        self.num_samples = None if num_samples is None else _count(num_samples, "RandomSampler")

    def __iter__(self) -> Iterator[int]:
        n, wanted = len(self.data_source), len(self)
        if not n or not wanted:
            return
        if self.replacement:
            yield from randint(0, n, (wanted,)).tolist()
            return
        for begin in range(0, wanted, n):
            yield from permutation(n).tolist()[: wanted - begin]

    def __len__(self) -> int:
        return len(self.data_source) if self.num_samples is None else self.num_samples


class WeightedRandomSampler(Sampler):
    """Each example as often as its weight says.

    >>> import weft as wf
    >>> list(wf.data.WeightedRandomSampler([0.0, 1.0], 3))
    [1, 1, 1]
    """

    def __init__(
        self, weights: Sequence[float], num_samples: int, replacement: bool = True
    ) -> None:
        self.weights = np.asarray(weights, np.float64)
        self.num_samples = _count(num_samples, "WeightedRandomSampler")
        self.replacement = flag(replacement, "WeightedRandomSampler replacement")
        positive = self.weights.ndim == 1 and (self.weights >= 0).all() and self.weights.sum() > 0
        if not positive:
            expected = "weights of 0 or more, not all of them 0"
            raise ShapeError("WeightedRandomSampler", expected=expected, got=str(weights)[:60])
        if not self.replacement and self.num_samples > np.count_nonzero(self.weights):
            expected = f"at most {np.count_nonzero(self.weights)} without replacement"
            got = str(self.num_samples)
            raise ShapeError("WeightedRandomSampler", expected=expected, got=got)

    def __iter__(self) -> Iterator[int]:
        if self.replacement:
            ends = np.cumsum(self.weights)
            draws = rand(self.num_samples, dtype="float64").numpy() * ends[-1]
            last = int(np.flatnonzero(self.weights)[-1])
            yield from np.minimum(np.searchsorted(ends, draws, "right"), last).tolist()
            return
        # the largest of u ** (1 / weight) are a draw without replacement (Efraimidis, Spirakis)
        with np.errstate(divide="ignore"):
            keys = np.log(rand(len(self.weights), dtype="float64").numpy()) / self.weights
        yield from np.argsort(-keys, kind="stable")[: self.num_samples].tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler):
    """Lists of `batch_size` numbers of another sampler; the last may be shorter, or be dropped.

    >>> import weft as wf
    >>> list(wf.data.BatchSampler(range(5), 2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool = False) -> None:
        self.sampler = sampler
        self.batch_size = _count(batch_size, "BatchSampler", 1)
        self.drop_last = flag(drop_last, "BatchSampler drop_last")

    def __iter__(self) -> Iterator[list[int]]:
        batch: list[int] = []
        for i in self.sampler:
            batch.append(i)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        n: int = len(self.sampler)  # type: ignore[arg-type]
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)


def _count(n: Any, place: str, least: int = 0) -> int:
    out = integer(n, place)
    if out < least:
        raise ShapeError(place, expected=f"{least} or more", got=str(out))
    return out
