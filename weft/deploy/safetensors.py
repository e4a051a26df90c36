"""The safetensors file format: a header in JSON, then the elements. No code is ever read from it.

https://github.com/huggingface/safetensors: 8 bytes that say how long the header is, the header
{name: {"dtype", "shape", "data_offsets"}, "__metadata__": {name: text}}, the elements, dense and
little-endian, without gaps or overlaps.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import struct
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from weft.buffer.interchange import allocate, to_numpy
from weft.errors import ArtifactError, ShapeError
from weft.ops.define import Value, installed
from weft.types import DType, TensorType
from weft.types.dtype import (
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)

NAMES: dict[str, DType] = {
    "F64": float64, "F32": float32, "F16": float16, "BF16": bfloat16, "I64": int64, "I32": int32,
    "I16": int16, "I8": int8, "U64": uint64, "U32": uint32, "U16": uint16, "U8": uint8,
    "BOOL": bool_,
}  # fmt: skip
_SPELLED = {d: name for name, d in NAMES.items()}

#: bytes of a header that is read; the format's own limit
HEADER = 100_000_000
METADATA = "__metadata__"
#: how PyTorch's files begin: a zip archive, and what was written before there were such
_PICKLES = (b"PK\x03\x04", b"\x80\x02")


def write(path: Path, tensors: Mapping[str, Value], metadata: Mapping[str, str]) -> None:
    """Put a file at `path` at once: whoever looks finds the old one whole, or the new one.

    It is written beside its place, brought to the disk, and renamed.
    """
    folder = path.parent
    handle, beside = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=folder)
    try:
        with os.fdopen(handle, "wb") as f:
            _write(f, tensors, metadata)
            f.flush()
            os.fsync(f.fileno())
        os.chmod(beside, _mode(path))
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise
    _sync(folder)


def _mode(path: Path) -> int:
    """The permissions of the file that is replaced, or those of a new one."""
    try:
        return path.stat().st_mode & 0o777
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def _sync(folder: Path) -> None:
    """Bring the renaming to the disk, where the system lets a folder be opened."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _write(f: BinaryIO, tensors: Mapping[str, Value], metadata: Mapping[str, str]) -> None:
    header: dict[str, Any] = {METADATA: dict(metadata)} if metadata else {}
    # wide elements first, so that every tensor is aligned to its own
    order = sorted(tensors, key=lambda n: (-tensors[n].type.dtype.itemsize, n))
    end = 0
    for name in order:
        t = tensors[name].type
        begin, end = end, end + t.nbytes
        header[name] = {
            "dtype": _SPELLED[t.dtype],
            "shape": list(t.sizes),
            "data_offsets": [begin, end],
        }
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    f.write(struct.pack("<Q", len(text)))
    f.write(text)
    for name in order:
        a = np.ascontiguousarray(tensors[name].numpy())
        f.write(a.reshape(-1).view(np.uint8).data)


def read(path: Path) -> tuple[dict[str, Value], dict[str, str]]:
    """The tensors of a file by name, each in memory of its own, and its metadata."""
    with open(path, "rb") as f:
        size = os.fstat(f.fileno()).st_size
        place = f"{path.name}"
        header, start = _header(f, size, place)
        metadata = _metadata(header.pop(METADATA, {}), place)
        entries = [_entry(name, said, place) for name, said in header.items()]
        entries.sort(key=lambda e: e[2])
        _check_offsets(entries, size - start, place)
        out = {}
        for name, type_, begin, _ in entries:
            f.seek(start + begin)
            out[name] = _elements(f, type_, place)
    return {name: out[name] for name in header}, metadata


def _damaged(place: str, expected: str, got: str) -> ArtifactError:
    return ArtifactError(
        place, expected=expected, got=got, hint="the file is damaged, or no safetensors file"
    )


def _header(f: BinaryIO, size: int, place: str) -> tuple[dict[str, Any], int]:
    lead = f.read(8)
    if len(lead) < 8:
        raise _damaged(place, "a header", f"{len(lead)} bytes")
    if lead.startswith(_PICKLES):
        raise ArtifactError(
            place,
            expected="a safetensors file",
            got="a pickle, such as torch.save writes",
            hint="pickles can run code and are never opened; load it where it was written, and "
            "save the state dict with safetensors.torch.save_file",
        )
    (length,) = struct.unpack("<Q", lead)
    if length > min(HEADER, size - 8):
        raise _damaged(place, f"a header of at most {min(HEADER, size - 8):,} bytes", f"{length:,}")
    try:
        header = json.loads(f.read(length).decode(), object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as e:
        raise _damaged(place, "a header in JSON", str(e)) from None
    if not isinstance(header, dict):
        raise _damaged(place, "a header of named tensors", type(header).__name__)
    return header, 8 + length


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError("a name that is there twice")
    return out


def _metadata(said: Any, place: str) -> dict[str, str]:
    if not isinstance(said, dict) or not all(isinstance(v, str) for v in said.values()):
        raise _damaged(place, "metadata of names and texts", repr(said)[:60])
    return said


Entry = tuple[str, TensorType, int, int]


def _entry(name: str, said: Any, place: str) -> Entry:
    try:
        dtype, shape = NAMES[said["dtype"]], said["shape"]
        begin, end = said["data_offsets"]
        counts = [*shape, begin, end]
    except (KeyError, TypeError, ValueError):
        expected = f"dtype, shape and data_offsets of {name!r}"
        raise _damaged(place, expected, repr(said)[:80]) from None
    if not all(type(n) is int and 0 <= n < 2**62 for n in counts):
        raise _damaged(place, f"sizes of {name!r} that are counts", repr(said)[:80])
    size = math.prod(shape) * dtype.itemsize
    if end - begin != size:
        raise _damaged(place, f"{size:,} bytes for {name!r}", f"{end - begin:,}")
    try:
        return name, TensorType(tuple(shape), dtype), begin, end
    except ShapeError as e:  # more axes, or larger ones, than a tensor has
        raise _damaged(place, f"a shape of {name!r} that tensors have", str(e)) from None


def _check_offsets(entries: list[Entry], size: int, place: str) -> None:
    """Tensors lie one behind the other and fill the file: nothing is hidden, shared or missing."""
    at = 0
    for name, _, begin, end in entries:
        if begin != at:
            raise _damaged(place, f"{name!r} at byte {at:,} of the elements", f"{begin:,}")
        at = end
    if at != size:
        raise _damaged(place, f"{at:,} bytes of elements", f"{size:,}")


def _elements(f: BinaryIO, type_: TensorType, place: str) -> Value:
    buffer = allocate(type_)
    if type_.nbytes:
        room = to_numpy(buffer, writable=True).reshape(-1).view(np.uint8)
        if f.readinto(room.data) != type_.nbytes:  # type: ignore[attr-defined]
            raise _damaged(place, f"{type_.nbytes:,} more bytes", "the end of the file")
        if type_.dtype is bool_ and room.max(initial=0) > 1:
            raise _damaged(place, "bools of 0 and 1", "other bytes")
    return installed.tensor(buffer)
