"""How a batch gets from a worker process to the one that trains: what is large lies in memory that
both have mapped, so nothing is copied on arrival.
"""

from __future__ import annotations

import errno
import io
import mmap
import os
import pickle
import socket
import tempfile
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from weft.tensor.data import asarray
from weft.tensor.tensor import Tensor
from weft.types import as_dtype

#: bytes from which memory is shared instead of sent
LARGE = 1 << 16
ALIGNMENT = 64


class _Pickler(pickle.Pickler):
    """Tensors travel as arrays, whose elements stay out of the message."""

    def reducer_override(self, obj: Any) -> Any:
        if not isinstance(obj, Tensor):
            return NotImplemented
        a = np.asarray(obj.numpy(), order="C")  # ascontiguousarray would add an axis to a number
        name = obj.dtype.name
        return _tensor, (a.view(np.uint16) if name == "bfloat16" else a, name)


def _tensor(a: Any, dtype: str) -> Any:
    return asarray(a.view(as_dtype(dtype).np), copy=False)


def _pack(batch: Any, buffers: list[pickle.PickleBuffer]) -> bytes:
    out = io.BytesIO()
    _Pickler(out, protocol=5, buffer_callback=buffers.append).dump(batch)
    return out.getvalue()


def send(connection: Connection, batch: Any) -> None:
    """Send nested values: a message, and behind it memory for their elements if they are many."""
    buffers: list[pickle.PickleBuffer] = []
    message = _pack(batch, buffers)
    views = [b.raw() for b in buffers]
    places, end = [], 0
    for v in views:
        places.append((end, end + v.nbytes))
        end += v.nbytes + -v.nbytes % ALIGNMENT
    if end < LARGE:
        connection.send((message, [bytes(v) for v in views], None))
        return
    handle = memory(end)
    try:
        with mmap.mmap(handle, end) as shared:
            for (a, b), v in zip(places, views, strict=True):
                shared[a:b] = v
        connection.send((message, places, end))
        _send_handle(connection, handle)
    finally:
        os.close(handle)


# Not those of `multiprocessing.reduction`: from Python 3.15 on they wait for an answer, which may
# come behind the tasks that are on their way already.


def _send_handle(connection: Connection, handle: int) -> None:
    with socket.fromfd(connection.fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as line:
        socket.send_fds(line, [b"h"], [handle])


def _receive_handle(connection: Connection) -> int:
    with socket.fromfd(connection.fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as line:
        message, handles, _, _ = socket.recv_fds(line, 1, 1)
    if not message:
        raise EOFError
    if not handles:
        raise OSError(errno.EMFILE, "no file descriptor left for the memory of a batch")
    return handles[0]


def memory(size: int) -> int:
    """A file without a name: it is gone when nobody has it mapped."""
    if hasattr(os, "memfd_create"):
        handle = os.memfd_create("weft-batch")
    else:
        with tempfile.TemporaryFile() as f:
            handle = os.dup(f.fileno())
    os.ftruncate(handle, size)
    return handle


def receive(connection: Connection) -> Any:
    """What was sent; its arrays are on the memory that was shared."""
    message, places, size = connection.recv()
    if size is None:
        return pickle.loads(message, buffers=[bytearray(b) for b in places])
    handle = _receive_handle(connection)
    try:
        shared = memoryview(mmap.mmap(handle, size))
    finally:
        os.close(handle)
    return pickle.loads(message, buffers=[shared[a:b] for a, b in places])
