"""Numbers of a run in the files that TensorBoard shows.

A file is a row of records (length, its checksum, data, its checksum), each of them one `Event` of
TensorBoard's protocol buffers, of which a scalar needs five fields. Writing them needs no package;
`pip install weft[tensorboard]` brings the program that shows them.
"""

from __future__ import annotations

import itertools
import os
import socket
import struct
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self

_serial = itertools.count()


class EventWriter:
    """A file of events in a folder; TensorBoard shows a folder as one run.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, EventWriter(folder) as events:
    ...     events.write({"loss": 0.5, "rate": 0.1}, step=1)
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        Path(folder).mkdir(parents=True, exist_ok=True)
        name = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}"
        self.path = Path(folder) / f"{name}.{os.getpid()}.{next(_serial)}"
        self._file = self.path.open("xb")
        self._file.write(record(event(time.time(), version="brain.Event:2")))
        self._file.flush()

    def write(self, numbers: Mapping[str, float], step: int) -> None:
        """Add a point to the curve of each name."""
        self._file.write(record(event(time.time(), step, numbers)))

    def flush(self) -> None:
        """Let readers see all that was written."""
        self._file.flush()

    def close(self) -> None:
        """End the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def event(
    when: float, step: int = 0, numbers: Mapping[str, float] | None = None, version: str = ""
) -> bytes:
    """An `Event`: when (1), step (2), version of the file (3), summary (5) of values (1), each a
    tag (1) and a float (2).
    """
    out = b"\x09" + struct.pack("<d", when)
    if step:
        out += b"\x10" + _varint(step)
    if version:
        out += b"\x1a" + _sized(version.encode())
    if numbers:
        values = [_value(name, value) for name, value in numbers.items()]
        out += b"\x2a" + _sized(b"".join(b"\x0a" + _sized(v) for v in values))
    return out


def _value(name: str, value: float) -> bytes:
    return b"\x0a" + _sized(name.encode()) + b"\x15" + struct.pack("<f", value)


def _sized(data: bytes) -> bytes:
    return _varint(len(data)) + data


def _varint(n: int) -> bytes:
    """Seven bits a byte, the lowest first; negative numbers as 64 bits."""
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def record(data: bytes) -> bytes:
    """Data with its length and checksums."""
    length = struct.pack("<Q", len(data))
    return length + _checksum(length) + data + _checksum(data)


def _checksum(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def crc32c(data: bytes) -> int:
    """The CRC of Castagnoli's polynomial.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def _entry(n: int) -> int:
    for _ in range(8):
        n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
    return n


_TABLE = [_entry(n) for n in range(256)]
