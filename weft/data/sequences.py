"""Sequences of different lengths: padded to batches, and sorted into buckets of like lengths.

A program that is captured for a size serves all batches of a bucket, if they are padded to the
bucket's length: `pad_sequence(batch, to=boundaries)`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from weft.buffer.buffer import Buffer
from weft.data.sampler import Sampler
from weft.errors import DTypeError, ShapeError
from weft.ops.define import real
from weft.tensor.arguments import flag, integer, sizes
from weft.tensor.creation import full
from weft.tensor.data import asarray, tensor
from weft.tensor.manipulation import concat, stack
from weft.tensor.random import permutation
from weft.tensor.tensor import Tensor


def pad_sequence(
    sequences: Sequence[Any],
    batch_first: bool = False,
    padding_value: float = 0.0,
    *,
    to: int | Sequence[int] | None = None,
    return_mask: bool = False,
) -> Any:
    """Sequences (length, …) as one batch, with `padding_value` behind those that are shorter.

    The batch is as long as its longest sequence; with `to`, that long, or as long as the first of
    several lengths that is enough. With `return_mask` there is also a bool tensor, True where an
    element is a sequence's own.

    >>> import weft as wf
    >>> wf.data.pad_sequence([wf.tensor([1, 2, 3]), wf.tensor([4])], batch_first=True)
    tensor([[1, 2, 3],
            [4, 0, 0]])
    >>> wf.data.pad_sequence([[1, 2, 3], [4]], batch_first=True, to=(2, 4, 8)).shape
    (2, 4)
    """
    flag(batch_first, "pad_sequence batch_first")
    given = list(sequences) if isinstance(sequences, Sequence | Tensor) else []
    arrays = [a if isinstance(a, Tensor) else np.asarray(a) for a in given]
    if not arrays or any(a.ndim < 1 or a.shape[1:] != arrays[0].shape[1:] for a in arrays):
        got = ", ".join(str(a.shape) for a in arrays[:6]) or "none"
        expected = "sequences that differ in their first size only"
        raise ShapeError("pad_sequence", expected=expected, got=got)
    lengths = [a.shape[0] for a in arrays]
    size = _length(max(lengths), to)
    if any(isinstance(a, Tensor) and _is_traced(a) for a in arrays):
        out = _stacked(arrays, size, padding_value, batch_first)
    else:
        out = _filled(arrays, given, size, padding_value, batch_first)
    if not flag(return_mask, "pad_sequence return_mask"):
        return out
    mask = np.arange(size) < np.asarray(lengths)[:, None]
    return out, tensor(mask if batch_first else mask.T)


def _is_traced(x: Tensor) -> bool:
    """Whether what is done with a tensor is recorded: for a gradient, or in a program."""
    return x.requires_grad or not isinstance(real(x), Buffer)


def _length(longest: int, to: Any) -> int:
    if to is None:
        return longest
    for size in sorted(sizes(to, "pad_sequence to")):
        if size >= longest:
            return size
    raise ShapeError("pad_sequence", expected=f"a length of {longest} or more", got=f"to={to}")


def _filled(arrays: list[Any], given: list[Any], size: int, fill: float, first: bool) -> Any:
    values = [np.asarray(a) for a in arrays]
    dtype = np.result_type(*values)
    if dtype == np.float64 and not any(hasattr(x, "dtype") for x in given):
        dtype = np.dtype(np.float32)  # Python's floats, as everywhere
    lead = (len(values), size) if first else (size, len(values))
    out = np.full((*lead, *values[0].shape[1:]), fill, dtype)
    for i, a in enumerate(values):
        out[(i, slice(len(a))) if first else (slice(len(a)), i)] = a
    return asarray(out, copy=False)


def _stacked(arrays: list[Any], size: int, fill: float, first: bool) -> Any:
    rows = []
    for a in arrays:
        x = a if isinstance(a, Tensor) else tensor(a)
        rest = full((size - x.shape[0], *x.shape[1:]), fill, dtype=x.dtype)
        rows.append(concat([x, rest]))
    return stack(rows, axis=0 if first else 1)


def bucket_by_length(
    sequences: Sequence[Any], boundaries: Sequence[int], key: Callable[[Any], int] = len
) -> list[list[int]]:
    """The numbers of the sequences by length: bucket i has those of at most `boundaries[i]`, a last
    one those that are longer than all.

    `key` says the length of a sequence; lengths themselves may be given, as integers.

    >>> import weft as wf
    >>> wf.data.bucket_by_length(["a", "abc", "ab", "abcdefgh"], boundaries=[2, 4])
    [[0, 2], [1], [3]]
    """
    ends = _ends(boundaries, "bucket_by_length")
    buckets: list[list[int]] = [[] for _ in range(len(ends) + 1)]
    for i, n in enumerate(_lengths(sequences, key, "bucket_by_length")):
        buckets[bisect_left(ends, n)].append(i)
    return buckets


def _ends(boundaries: Any, place: str) -> list[int]:
    ends = list(sizes(boundaries, place))
    if not ends or any(a >= b for a, b in pairwise(ends)):
        raise ShapeError(place, expected="boundaries that rise", got=str(boundaries))
    return ends


def _lengths(sequences: Any, key: Callable[[Any], int], place: str) -> list[int]:
    out = []
    for s in sequences:
        try:
            out.append(integer(s, place) if isinstance(s, int | np.integer) else key(s))
        except TypeError:
            expected = "sequences, or their lengths"
            raise DTypeError(place, expected=expected, got=type(s).__name__) from None
    return out


class BucketSampler(Sampler):
    """Batches of sequences of like lengths: give it to a loader as `batch_sampler`.

    `lengths` are those of the examples (or the sequences themselves). Without `boundaries`, there
    are `buckets` of about equally many examples each. Batches come in random order, and so do the
    examples of a bucket, unless `shuffle` is False.

    >>> import weft as wf
    >>> sampler = wf.data.BucketSampler([5, 1, 6, 2], batch_size=2, boundaries=[3], shuffle=False)
    >>> list(sampler)
    [[1, 3], [0, 2]]
    """

    def __init__(
        self,
        lengths: Sequence[Any],
        batch_size: int,
        boundaries: Sequence[int] | None = None,
        *,
        buckets: int = 8,
        shuffle: bool = True,
        drop_last: bool = False,
    ) -> None:
        place = "BucketSampler"
        self.batch_size = integer(batch_size, f"{place} batch_size")
        if self.batch_size < 1:
            raise ShapeError(place, expected="a batch_size of 1 or more", got=str(batch_size))
        counted = _lengths(lengths, len, place)
        if boundaries is None:
            parts = np.linspace(0, 1, max(integer(buckets, place), 1) + 1)[1:]
            found = np.quantile(counted, parts, method="higher") if counted else [1]
            boundaries = sorted({int(n) for n in found})
        self.boundaries = _ends(boundaries, f"{place} boundaries")
        self.buckets = bucket_by_length(counted, self.boundaries)
        self.shuffle, self.drop_last = flag(shuffle, place), flag(drop_last, place)

    def __iter__(self) -> Iterator[list[int]]:
        batches = []
        for bucket in self.buckets:
            order = _shuffled(bucket) if self.shuffle else bucket
            for begin in range(0, len(order), self.batch_size):
                batch = order[begin : begin + self.batch_size]
                if len(batch) == self.batch_size or not self.drop_last:
                    batches.append(batch)
        return iter(_shuffled(batches) if self.shuffle else batches)

    def __len__(self) -> int:
        whole = self.batch_size
        return sum(len(b) // whole if self.drop_last else -(-len(b) // whole) for b in self.buckets)


def _shuffled(items: list[Any]) -> list[Any]:
    return [items[i] for i in permutation(len(items)).tolist()] if items else items
