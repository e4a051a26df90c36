"""Reading common files: lines of text, tables, NumPy's arrays, the idx files of MNIST."""

from __future__ import annotations

import csv
import gzip
import math
import operator
import os
import struct
import zlib
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
            raw = f.read(end - begin)
        try:
            return raw.decode(self.encoding).rstrip("\r\n")
        except UnicodeDecodeError as e:
            raise _not_text(f"{self.path.name}, line {i % n + 1}", e) from None


def _not_text(place: str, e: UnicodeDecodeError) -> ArtifactError:
    got, hint = f"{e.object[e.start]:#04x} ({e.reason})", "say which encoding= it has"
    return ArtifactError(place, expected=f"text in {e.encoding}", got=got, hint=hint)


def read_csv(
    path: Name, *, header: bool = True, delimiter: str = ",", encoding: str = "utf-8-sig"
) -> dict[str, Any]:
    """The columns of a table by name (by number without a header): int64 or float32 tensors where
    all entries are numbers, lists of strings elsewhere. An empty entry among numbers is NaN.

    >>> import weft as wf, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "table.csv")
    >>> _ = path.write_text("size,kind\\n1.5,cat\\n2,dog\\n")
    >>> wf.data.read_csv(path)
    {'size': tensor([1.5, 2. ]), 'kind': ['cat', 'dog']}
    """
    file = Path(path).name
    try:
        with open(path, newline="", encoding=encoding) as f:
            rows = [row for row in csv.reader(f, delimiter=delimiter) if row]
    except UnicodeDecodeError as e:
        raise _not_text(file, e) from None
    except csv.Error as e:
        raise ArtifactError(file, expected="a table", got=str(e)) from None
    if not rows:
        return {}
    names = rows.pop(0) if header else [str(i) for i in range(len(rows[0]))]
    if len(set(names)) < len(names):
        twice = next(n for n in names if names.count(n) > 1)
        raise ArtifactError(file, expected="columns of different names", got=f"two named {twice!r}")
    for n, row in enumerate(rows):
        if len(row) != len(names):
            place = f"{file}, row {n + 1 + header}"
            raise ArtifactError(place, expected=f"{len(names)} entries", got=str(len(row)))
    return {name: _column([row[i] for row in rows]) for i, name in enumerate(names)}


def _column(entries: list[str]) -> Any:
    if any("_" in e for e in entries):  # 2024_01 is a number to Python, but to nobody else
        return entries
    for kind, dtype in ((int, "int64"), (_float, "float32")):
        try:
            return tensor([kind(e) for e in entries], dtype=dtype)
        except (ValueError, ArithmeticError):
            continue
    return entries


def _float(text: str) -> float:
    return float(text) if text.strip() else math.nan


def read_npy(path: Name) -> Any:
    """The tensor of a file of `np.save`; of one of `np.savez`, a dict of them by name.

    >>> import weft as wf, tempfile, pathlib
    >>> import numpy as np
    >>> path = pathlib.Path(tempfile.mkdtemp(), "array.npy")
    >>> np.save(path, np.arange(3))
    >>> wf.data.read_npy(path)
    tensor([0, 1, 2])
    """
    with open(path, "rb") as file:
        try:
            found = np.load(file, allow_pickle=False)
            if isinstance(found, np.ndarray):
                return _native(found)
            return {key: _native(found[key]) for key in found.files}
        except Exception as e:  # NumPy, zipfile and tokenize raise a dozen kinds
            expected = "arrays of numbers, as np.save and np.savez write them"
            got = str(e) or type(e).__name__
            raise ArtifactError(Path(path).name, expected=expected, got=got) from None


def _native(a: np.ndarray) -> Any:
    return tensor(a.astype(a.dtype.newbyteorder("="), copy=False))


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
        except (OSError, EOFError, zlib.error) as e:
            raise ArtifactError(name, expected="a whole gzip file", got=str(e)) from None
    if len(raw) < 4 or raw[:2] != b"\0\0" or raw[2] not in _IDX or len(raw) < 4 + 4 * raw[3]:
        raise ArtifactError(name, expected="the header of an idx file", got=repr(raw[:8]))
    shape = struct.unpack_from(f">{raw[3]}I", raw, 4)
    dtype, start = np.dtype(_IDX[raw[2]]), 4 + 4 * raw[3]
    size = math.prod(shape) * dtype.itemsize
    if len(raw) - start != size:
        got = f"{len(raw) - start:,}"
        raise ArtifactError(name, expected=f"{size:,} bytes of elements", got=got)
    try:
        return tensor(np.frombuffer(raw, dtype, offset=start).reshape(shape))
    except ValueError as e:  # more axes than an array has, or none of its elements
        raise ArtifactError(name, expected="sizes of an array", got=str(e)) from None
