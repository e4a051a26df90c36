"""Sequences of different lengths for recurrent modules.

A `PackedSequence` is a padded batch and its lengths: modules leave the state of a sequence as it is
beyond its end, so results are those of each sequence alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from weft.data.sequences import pad_sequence as pad_sequence
from weft.errors import DTypeError, ShapeError
from weft.ops.elementwise import less, where
from weft.tensor.arguments import integer, number, value
from weft.tensor.creation import arange, zeros
from weft.tensor.data import tensor
from weft.tensor.manipulation import concat
from weft.tensor.shapes import moveaxis
from weft.tensor.tensor import Tensor
from weft.types.dtype import int64


class PackedSequence(NamedTuple):
    """A padded batch (time, batch, …) and the lengths (batch,).

    >>> import weft as wf
    >>> wf.nn.utils.rnn.PackedSequence(wf.ones((3, 1)), wf.tensor([2])).lengths
    tensor([2])
    """

    data: Tensor
    lengths: Tensor


def valid_mask(lengths: Any, size: int, axes: int) -> Any:
    """(time, batch, 1, …) with `axes` axes: True where a sequence is not over yet.

    >>> import weft as wf
    >>> wf.nn.utils.rnn.valid_mask(wf.tensor([2, 1]), 2, 2).tolist()
    [[True, True], [True, False]]
    """
    shape = lengths.shape
    times = arange(size).reshape(size, *(1,) * len(shape))
    return less(times, lengths).reshape(size, *shape, *(1,) * (axes - 1 - len(shape)))


def pack_padded_sequence(
    input: Any, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """A padded batch with its lengths; they need not be sorted, whatever `enforce_sorted` says.

    >>> import weft as wf
    >>> x = wf.nn.utils.rnn.pack_padded_sequence(wf.ones((3, 2, 4)), [3, 1])
    >>> x.lengths
    tensor([3, 1])
    """
    x = value(input)
    n = lengths if isinstance(lengths, Tensor) else tensor(lengths, dtype=int64)
    if batch_first:
        x = moveaxis(x, 1, 0)
    if x.type.ndim < 2 or n.type.shape != x.type.shape[1:2]:
        raise ShapeError(
            "pack_padded_sequence",
            expected="a batch and one length for each sequence",
            got=f"{x.type} and {n.type}",
        )
    if not isinstance(lengths, Tensor) and not all(1 <= k <= x.type.shape[0] for k in lengths):
        expected = f"lengths from 1 to {x.type.shape[0]}"
        raise ShapeError("pack_padded_sequence", expected=expected, got=str(lengths))
    return PackedSequence(x, n)


def pad_packed_sequence(
    sequence: Any,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The padded batch, `padding_value` where sequences are over, and the lengths.

    It is as long as what was packed, which may be longer than the longest sequence (batches of a
    bucket keep one shape); or `total_length` long.

    >>> import weft as wf
    >>> packed = wf.nn.utils.rnn.pack_sequence([wf.ones(3), wf.ones(1)])
    >>> wf.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
    (tensor([[1., 1., 1.],
            [1., 0., 0.]]), tensor([3, 1]))
    """
    place = "pad_packed_sequence"
    if not isinstance(sequence, PackedSequence):
        got = type(sequence).__name__
        raise DTypeError(place, expected="a PackedSequence", got=got)
    x, lengths = sequence
    fill = number(padding_value, place, "padding_value")
    if total_length is not None:
        x = _reached(x, integer(total_length, f"{place} total_length"))
    out = where(valid_mask(lengths, x.shape[0], x.ndim), x, fill)
    return (moveaxis(out, 0, 1) if batch_first else out), lengths


def _reached(x: Any, length: int) -> Any:
    """A packed batch, made longer."""
    more = length - x.shape[0]
    if more < 0:
        expected = f"a total_length of {x.shape[0]} or more"
        raise ShapeError("pad_packed_sequence", expected=expected, got=str(length))
    return concat([x, zeros((more, *x.shape[1:]), dtype=x.dtype)]) if more else x


def unpad_sequence(padded: Any, lengths: Any, batch_first: bool = False) -> list[Tensor]:
    """The sequences of a padded batch, each with a length of its own.

    >>> import weft as wf
    >>> [s.tolist() for s in wf.nn.utils.rnn.unpad_sequence(wf.ones((2, 3)), [2, 1, 0])]
    [[1.0, 1.0], [1.0], []]
    """
    x: Any = value(padded)
    counts = lengths.tolist() if isinstance(lengths, Tensor) else list(lengths)
    rows = x if batch_first else moveaxis(x, 1, 0)
    if len(counts) != rows.shape[0] or not all(0 <= n <= rows.shape[1] for n in counts):
        expected = f"{rows.shape[0]} lengths of at most {rows.shape[1]}"
        raise ShapeError("unpad_sequence", expected=expected, got=str(counts))
    return [rows[i, :n] for i, n in enumerate(counts)]


def pack_sequence(sequences: Sequence[Any], enforce_sorted: bool = True) -> PackedSequence:
    """Sequences of different lengths as one batch.

    >>> import weft as wf
    >>> wf.nn.utils.rnn.pack_sequence([wf.ones(3), wf.ones(1)]).data.shape
    (3, 2)
    """
    padded = pad_sequence(sequences)
    return PackedSequence(padded, tensor([len(s) for s in sequences], dtype=int64))
