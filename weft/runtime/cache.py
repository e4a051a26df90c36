"""Bytes on disk under a content key: machine code that one process made and the next only loads.

An entry is one file, written whole under another name and renamed, so readers see all of it or
nothing; a checksum catches what the disk or a crash did to it afterwards. Loading an entry means
running it, so one that another user owns or could have written is never loaded. Whatever goes wrong
— no home directory, read-only, full — the answer is "not here": a cache may be slow, never wrong
and never loud.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b

MAGIC = b"weft\x01\r\n\x00"  # the version is in it; the line end shows a file mangled as text
LIMIT = 512 << 20
_SUFFIX = ".k"
_HEADER = len(MAGIC) + 32 + 8 + 32  # magic, digest of the key, length and digest of the payload
_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_DAY, _HOUR = 86400.0, 3600.0


def default_directory() -> str | None:
    """WEFT_CACHE_DIR, else weft in XDG_CACHE_HOME, else ~/.cache/weft.

    None where there is no home, or with WEFT_CACHE=0.
    """
    if os.environ.get("WEFT_CACHE") == "0":
        return None
    if chosen := os.environ.get("WEFT_CACHE_DIR"):
        return os.path.abspath(chosen)
    xdg = os.environ.get("XDG_CACHE_HOME", "")
    base = xdg if os.path.isabs(xdg) else os.path.expanduser("~/.cache")
    return os.path.join(base, "weft") if os.path.isabs(base) else None


class DiskCache:
    """A bounded directory of entries, safe to share between threads and processes.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as d:
    ...     cache = DiskCache(d)
    ...     cache.put("key", b"code")
    ...     cache.get("key"), cache.get("other")
    (b'code', None)
    """

    def __init__(self, directory: str | None = None, limit: int = LIMIT) -> None:
        self.directory = directory or default_directory()
        self.limit = limit

    def get(self, key: str) -> bytes | None:
        """The bytes last put under `key`, or None."""
        digest = _digest(key.encode())
        if self.directory is None:
            return None
        try:
            if not _is_ours(os.stat(self.directory)):
                return None
            # a FIFO in the place of an entry must not make us wait for its writer
            fd = os.open(self._path(digest), os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _FLAGS)
            with open(fd, "rb", buffering=0) as file:
                found = os.fstat(fd)
                if not (
                    stat.S_ISREG(found.st_mode) and _is_ours(found) and found.st_size <= self.limit
                ):
                    return None
                data = file.read()
                if time.time() - found.st_mtime > _DAY:  # what is used stays when old entries go
                    with suppress(OSError):
                        os.utime(fd)
        except OSError:
            return None
        payload = data[_HEADER:]
        return payload if data[:_HEADER] == _header(digest, payload) else None

    def put(self, key: str, data: bytes) -> None:
        """Keep `data` under `key` if that can be done."""
        digest = _digest(key.encode())
        if self.directory is None or _HEADER + len(data) > self.limit:
            return
        partial = os.path.join(self.directory, f".{os.getpid()}-{os.urandom(8).hex()}")
        try:
            if not _is_ours(self._made()):
                return
            fd = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, 0o600)
            try:
                with open(fd, "wb") as file:
                    file.write(_header(digest, data) + data)
                os.replace(partial, self._path(digest))
            except BaseException:  # an interrupt, too, must not leave a partial file behind
                with suppress(OSError):
                    os.unlink(partial)
                raise
        except OSError:
            return
        if digest[0] % 32 == 0:  # one put in 32, whichever process makes it: no count to keep
            self._trim()

    def trouble(self) -> str:
        """Why nothing can be kept here, found by trying; "" if it can."""
        if self.directory is None:
            return "turned off, or without a home"
        partial = os.path.join(self.directory, f".{os.getpid()}-{os.urandom(8).hex()}")
        try:
            if not _is_ours(self._made()):
                return "others own it or may write to it"
            fd = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, 0o600)
            try:
                with open(fd, "wb") as file:
                    file.write(MAGIC)
            finally:
                os.unlink(partial)
        except OSError as e:
            return e.strerror or str(e)
        return ""

    def size(self) -> int:
        """Bytes in use."""
        return sum(size for _, size, _ in self._files())

    def clear(self) -> None:
        """Remove every entry, and nothing else that may be in the directory."""
        for _, _, path in self._files():
            with suppress(OSError):
                os.unlink(path)

    def _path(self, digest: bytes) -> str:
        assert self.directory is not None
        return os.path.join(self.directory, digest.hex() + _SUFFIX)

    def _made(self) -> os.stat_result:
        assert self.directory is not None
        try:
            return os.stat(self.directory)
        except FileNotFoundError:
            os.makedirs(self.directory, 0o700, exist_ok=True)
            return os.stat(self.directory)

    def _files(self) -> Iterator[tuple[float, int, str]]:
        """(age in seconds, bytes, path) of every entry and every partial file."""
        now = time.time()
        with suppress(OSError):
            with os.scandir(self.directory or "") as found:
                for entry in found:
                    with suppress(OSError):  # another process may have removed it since
                        if _is_entry(entry.name):
                            s = entry.stat(follow_symlinks=False)
                            yield now - s.st_mtime, s.st_size, entry.path

    def _trim(self) -> None:
        """Remove the oldest entries until a quarter of the limit is free, and what crashed writers
        left.
        """
        files = sorted(self._files(), reverse=True)
        used = sum(size for _, size, _ in files)
        keep = self.limit if used <= self.limit else self.limit * 3 // 4
        for age, size, path in files:
            orphan = age > _HOUR and not path.endswith(_SUFFIX)
            if used > keep or orphan:
                used -= size
                with suppress(OSError):
                    os.unlink(path)


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=32).digest()


def _header(digest: bytes, payload: bytes) -> bytes:
    return MAGIC + digest + len(payload).to_bytes(8, "little") + _digest(payload)


def _is_entry(name: str) -> bool:
    stem, _, _ = name.removeprefix(".").partition("-" if name[0] == "." else _SUFFIX)
    return stem.isdigit() if name[0] == "." else len(stem) == 64 and name.endswith(_SUFFIX)


def _is_ours(s: os.stat_result) -> bool:
    """Owned by us, and nobody else may write to it."""
    return not hasattr(os, "geteuid") or (s.st_uid == os.geteuid() and not s.st_mode & 0o022)
