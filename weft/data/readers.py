"""Reading common files: lines of text, tables, the idx files that MNIST comes in."""

from __future__ import annotations

import csv
import gzip
import math
import operator
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np

from weft.data.dataset import Dataset
from weft.errors import ArtifactError, IndexRangeError
from weft.tensor.data import tensor

Name = str | os.PathLike[str]


class TextLines(Dataset):
    """The lines of a text file by number, without their ends; the file is not held in memory.

    >>> import weft as wf, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "text")
    >>> _ = path.write_text("one\\ntwo\\n")
    >>> list(wf.data.TextLines(path))
    ['one', 'two']
    """

    def __init__(self, path: Name, encoding: str = "utf-8") -> None:
        self.path, self.encoding = Path(path), encoding
        starts = [0]
        with open(self.path, "rb") as f:
            for line in f:
                starts.append(starts[-1] + len(line))
        self.starts = np.asarray(starts, np.int64)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, index: Any) -> str:
        i, n = operator.index(index), len(self)
        if not -n <= i < n:
            raise IndexRangeError("TextLines", expected=f"a line in [{-n}, {n})", got=str(i))
        begin, end = (int(k) for k in self.starts[i % n : i % n + 2])
        with open(self.path, "rb") as f:  # opened anew: a worker process has a place of its own
            f.seek(begin)
            return f.read(end - begin).decode(self.encoding).rstrip("\r\n")


def read_csv(path: Name, *, header: bool = True, delimiter: str = ",") -> dict[str, Any]:
    """The columns of a table by name (by number without a header): int64 or float32 tensors where
    all entries are numbers, lists of strings elsewhere. An empty entry among numbers is NaN.

    >>> import weft as wf, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "table.csv")
    >>> _ = path.write_text("size,kind\\n1.5,cat\\n2,dog\\n")
    >>> wf.data.read_csv(path)
    {'size': tensor([1.5, 2. ]), 'kind': ['cat', 'dog']}
    """
    with open(path, newline="", encoding="utf-8-sig") as f:
        rows = [row for row in csv.reader(f, delimiter=delimiter) if row]
    if not rows:
        return {}
    names = rows.pop(0) if header else [str(i) for i in range(len(rows[0]))]
    for n, row in enumerate(rows):
        if len(row) != len(names):
            place = f"{Path(path).name}, row {n + 1 + header}"
            raise ArtifactError(place, expected=f"{len(names)} entries", got=str(len(row)))
    return {name: _column([row[i] for row in rows]) for i, name in enumerate(names)}


def _column(entries: list[str]) -> Any:
    for kind, dtype in ((int, "int64"), (_float, "float32")):
        try:
            return tensor([kind(e) for e in entries], dtype=dtype)
        except (ValueError, ArithmeticError):
            continue
    return entries


def _float(text: str) -> float:
    return float(text) if text.strip() else math.nan


#: element types of idx files: NumPy's words, big-endian
_IDX = {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}


def read_idx(path: Name) -> Any:
    """The tensor of an idx file, such as those of MNIST; compressed with gzip or not.

    >>> import weft as wf
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(bytes([0, 0, 8, 1, 0, 0, 0, 2, 5, 7]))
    ...     file.flush()
    ...     wf.data.read_idx(file.name).tolist()
    [5, 7]
    """
    name = Path(path).name
    raw = Path(path).read_bytes()
    if raw[:2] == b"\x1f\x8b":
        try:
            raw = gzip.decompress(raw)
        except (OSError, EOFError) as e:
            raise ArtifactError(name, expected="a whole gzip file", got=str(e)) from None
    if len(raw) < 4 or raw[:2] != b"\0\0" or raw[2] not in _IDX or len(raw) < 4 + 4 * raw[3]:
        raise ArtifactError(name, expected="the header of an idx file", got=repr(raw[:8]))
    shape = struct.unpack_from(f">{raw[3]}I", raw, 4)
    dtype, start = np.dtype(_IDX[raw[2]]), 4 + 4 * raw[3]
    size = math.prod(shape) * dtype.itemsize
    if len(raw) - start != size:
        got = f"{len(raw) - start:,}"
        raise ArtifactError(name, expected=f"{size:,} bytes of elements", got=got)
    return tensor(np.frombuffer(raw, dtype, offset=start).reshape(shape))
