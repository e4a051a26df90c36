"""Kernels by spec: in memory, else on disk, else generated now.

A kernel is found again on disk by everything its machine code depends on: the spec's canonical
text, the source of the code generator, LLVM and the CPU. Threads that ask for one kernel at once
compile it once; different kernels compile side by side.
"""

from __future__ import annotations

import itertools
import os
import struct
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from importlib import import_module
from typing import Any
from weakref import WeakValueDictionary

from weft.codegen import jit
from weft.errors import WeftError
from weft.runtime.cache import DiskCache
from weft.runtime.undisturbed import undisturbed
from weft.schedule.launch import KernelSpec

#: what a kernel's text is made by, besides its spec; a test follows codegen's imports to see that
#: nothing is missing
SOURCES = (
    "codegen",
    "schedule",
    "types",
    "ops/scalar.py",
    "ops/rules.py",
    "ops/monoids.py",
    "ops/math",
)

_live: WeakValueDictionary[KernelSpec, jit.Code] = WeakValueDictionary()
_pinned: dict[KernelSpec, jit.Code] = {}
_turns: dict[KernelSpec, Any] = {}  # locks that a signal's handler may take again

#: objects of functions that several kernels have, by their text; so many are kept
_parts: dict[str, Future[bytes]] = {}
PARTS = 512
_open: dict[str, Future[bytes]] = {}  # those that no thread has begun: who takes one out makes it
_helping: list[ThreadPoolExecutor] = []  # threads that may have nothing else to do


def code(spec: KernelSpec) -> jit.Code:
    """The machine code of a kernel. It is freed when the last holder of this object drops it.

    >>> from weft.ops.scalar import input_
    >>> from weft.schedule.map import MapSpec
    >>> from weft.types.dtype import float32
    >>> x = input_(0, float32)
    >>> twice = code(MapSpec((x + x,), (float32,), "c", 0))
    >>> twice.address("kernel") % 16
    0
    """
    found = _live.get(spec)
    if found is None:
        try:
            with _turns.setdefault(spec, threading.RLock()):
                found = _live.get(spec)
                if found is None:
                    found = _live[spec] = load(_name(spec), lambda: _lower(spec))
        finally:
            _turns.pop(spec, None)
    return found


def kept(spec: KernelSpec) -> jit.Code | None:
    """The machine code of a kernel, if it need not be made."""
    found = _live.get(spec)
    if found is None:
        stored = disk().get(_key(_name(spec)))
        if stored is not None:
            found = _live.setdefault(spec, jit.Code(*_taken_apart(stored)))
    return found


def _name(spec: KernelSpec) -> str:
    return f"{type(spec).__name__}\n{spec.key()}"


def _key(name: str) -> str:
    return f"{name}\n{fingerprint()}\n{jit.host().fingerprint}"


def _lower(spec: KernelSpec) -> list[str]:
    """The LLVM modules of a kernel. The families of kernels are loaded with the first that is made:
    a process that finds all of its kernels on disk never needs them.
    """
    texts: list[str] = import_module("weft.codegen.lower").lower_apart(spec)
    return texts


class Ahead:
    """Kernels that are made side by side, by threads of their own, from when it is known that they
    are needed: while a program is still being planned. What is on disk is loaded at once: threads
    would take turns at that, with each other and with the planning.
    """

    def __init__(self) -> None:
        self._made: dict[KernelSpec, Future[jit.Code] | jit.Code | None] = {}
        self._waiting: list[KernelSpec] = []
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> Ahead:
        return self

    def __exit__(self, *problem: object) -> None:
        if self._pool is not None:
            _helping.remove(self._pool)
            self._pool.shutdown(cancel_futures=True)

    def begin(self, spec: KernelSpec) -> None:
        """Make a kernel, unless that was begun before. One alone waits for a second, or until it is
        asked for: it is not worth a thread.
        """
        if spec in self._made:
            return
        found = self._made[spec] = kept(spec)
        if found is None:
            self._waiting.append(spec)
        if self._pool is None and len(self._waiting) > 1:
            self._pool = ThreadPoolExecutor(os.cpu_count() or 1, "weft-compile")
            _helping.append(self._pool)
        while self._pool is not None and self._waiting:
            missing = self._waiting.pop()
            self._made[missing] = self._pool.submit(code, missing)

    def code(self, spec: KernelSpec) -> jit.Code:
        """The machine code of a kernel."""
        made = self._made.get(spec)
        if made is None:
            made = self._made[spec] = code(spec)
        return made.result() if isinstance(made, Future) else made


def address(spec: KernelSpec, function: str = "kernel") -> int:
    """Where a function of a kernel starts. The kernel stays loaded until `forget` or the end of the
    process.
    """
    found = _pinned.get(spec)
    if found is None:
        found = _pinned.setdefault(spec, code(spec))
    return found.address(function)


def forget() -> None:
    """Unload every kernel that `address` gave out. Only for when none of them can still be
    called.
    """
    _pinned.clear()


def load(name: str, texts: Callable[[], list[str]]) -> jit.Code:
    """Machine code kept on disk under `name`, or made now of the LLVM modules that `texts` gives:
    its own, and those it calls, which others may have too.
    """
    key = _key(name)
    stored = disk().get(key)
    if stored is None:
        stored = undisturbed(lambda: _made(name, texts))
        disk().put(key, stored)
    return jit.Code(*_taken_apart(stored))


def _made(name: str, texts: Callable[[], list[str]]) -> bytes:
    try:
        return _joined(_compiled(*texts()))
    except RuntimeError as e:  # what llvmlite raises, with LLVM's words
        if isinstance(e, WeftError):
            raise
        raise WeftError(
            f"compiling {' '.join(name.splitlines()[:2])}",
            expected="LLVM to accept the code generated for it",
            got=str(e).strip(),
            hint="this is a mistake in Weft: please report it with this message",
        ) from None


def _compiled(main: str, *parts: str) -> list[bytes]:
    """The objects of a kernel: its own, and its parts, some of which another thread may be
    compiling or have compiled, or takes over. None is waited for that nobody has begun.
    """
    made, own = {}, []
    for part in parts:
        mine = Future[bytes]()
        made[part] = found = _parts.setdefault(part, mine)
        if found is mine:
            _open[part] = mine
            own.append(part)
    if len(own) > 1:
        for pool in _helping[:1]:
            with suppress(RuntimeError):  # it is just being closed
                pool.submit(_make, reversed(own))
    _make(parts)
    objects = [jit.compile_object(main), *(made[p].result() for p in parts)]
    if len(_parts) > PARTS:
        _parts.clear()
    return objects


def _make(parts: Iterable[str]) -> None:
    """Compile those parts that nobody has begun."""
    problem: BaseException | None = None
    for part in parts:
        mine = _open.pop(part, None)
        if mine is None:
            continue
        try:
            if problem is None:
                mine.set_result(jit.compile_object(part))
        except BaseException as e:
            problem = e
        if problem is not None:  # no other is begun, and none who waits for one waits in vain
            _parts.pop(part, None)
            mine.set_exception(problem)
    if problem is not None:
        raise problem


def _joined(objects: Sequence[bytes]) -> bytes:
    sizes = (len(objects), *map(len, objects))
    return struct.pack(f"<{len(sizes)}q", *sizes) + b"".join(objects)


def _taken_apart(stored: bytes) -> list[bytes]:
    (count,) = struct.unpack_from("<q", stored)
    sizes, at = struct.unpack_from(f"<{count}q", stored, 8), 8 + 8 * count
    ends = itertools.accumulate(sizes, initial=at)
    return [stored[i:j] for i, j in itertools.pairwise(ends)]


@cache
def disk() -> DiskCache:
    """The cache on disk, as the environment says when the first kernel is asked for."""
    return DiskCache()


@cache
def fingerprint() -> str:
    """A digest of the code generator's own source: a changed generator finds no old kernels.

    Reading it all takes milliseconds, so the digest itself is kept on disk, under what the system
    says of each file: any change of a file, or another file in its place, shows in that.
    """
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    paths = list(_source_files(root))
    states = [(s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for s in map(os.stat, paths)]
    key = f"sources {list(zip(paths, states, strict=True))}"
    known = disk().get(key)
    if known is None:
        digest = blake2b(digest_size=16)
        for path in paths:
            with open(path, "rb") as file:
                data = file.read()
            digest.update(f"{os.path.relpath(path, root)} {len(data)}\n".encode() + data)
        known = digest.hexdigest().encode()
        disk().put(key, known)
    return known.decode()


def _source_files(root: str) -> Iterator[str]:
    for source in SOURCES:
        path = os.path.join(root, *source.split("/"))
        if path.endswith(".py"):
            yield path
        for folder, _, names in sorted(os.walk(path)):
            yield from (os.path.join(folder, n) for n in sorted(names) if n.endswith(".py"))


def _forked() -> None:
    """What other threads were at is not going to be finished in a child."""
    _turns.clear()
    _open.clear()
    _helping.clear()
    for part in [p for p, made in _parts.items() if not made.done()]:
        del _parts[part]


os.register_at_fork(after_in_child=_forked)
