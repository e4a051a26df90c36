"""Worker processes: each makes every n-th batch, so that batches come in one order however long
each takes.

A worker that fails sends its error with the traceback; one that dies is noticed; all end with the
loop that wanted them, or with the process.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import random
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from multiprocessing import connection
from typing import Any, NamedTuple

import numpy as np

from weft.data.transport import receive, send
from weft.errors import WeftError
from weft.tensor.random import manual_seed

#: seconds after which a worker looks whether anybody still wants it
PATIENCE = 2.0


class WorkerInfo(NamedTuple):
    """Which worker a process is."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


class WorkerError(WeftError, RuntimeError):
    """A worker process that is gone, or an error of its that could not be sent."""


_info: list[WorkerInfo] = []


def get_worker_info() -> WorkerInfo | None:
    """In a worker process of a loader, which one it is; elsewhere None.

    >>> import weft as wf
    >>> wf.data.get_worker_info() is None
    True
    """
    return _info[-1] if _info else None


class _Remote(Exception):
    """Shows the traceback of a worker above the error it caused here."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


class Ended(NamedTuple):
    """Sent by a worker that has no more examples."""


class _Failed(NamedTuple):
    error: bytes | None
    text: str


class Worker(NamedTuple):
    """One process and the line to it."""

    number: int
    process: Any
    line: Any


def _failure(e: BaseException) -> _Failed:
    text = "".join(traceback.format_exception(e))
    try:
        raw = pickle.dumps(e)
        pickle.loads(raw)
    except Exception:
        raw = None
    return _Failed(raw, text)


def _work(
    line: Any, others: list[Any], info: WorkerInfo, make: Callable[[], Callable[[Any], Any]],
    start: Callable[[int], Any] | None, parent: int,
) -> None:  # fmt: skip
    """The life of a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that trains decides
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for other in others:  # ends that the fork brought along: a line is over when its owner is gone
        other.close()
    _info.append(info)
    manual_seed(info.seed)
    random.seed(info.seed)
    np.random.seed(info.seed % 2**32)
    fetch = None
    try:
        while True:
            while not line.poll(PATIENCE):
                if os.getppid() != parent:
                    return
            task = line.recv()
            try:
                if fetch is None:
                    if start is not None:
                        start(info.id)
                    fetch = make()
                answer = fetch(task)
            except Exception as e:
                answer = _failure(e)
            try:
                send(line, answer)
            except (pickle.PicklingError, TypeError, AttributeError) as e:
                send(line, _failure(e))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)  # nothing that the parent registered is this process's to run


class Team:
    """Workers that answer tasks in turn."""

    def __init__(
        self, count: int, dataset: Any, make: Callable[[], Callable[[Any], Any]],
        start: Callable[[int], Any] | None, seed: int,
    ) -> None:  # fmt: skip
        forks = "fork" in multiprocessing.get_all_start_methods()
        context: Any = multiprocessing.get_context("fork" if forks else "spawn")
        self.workers: list[Worker] = []
        ends: list[Any] = []
        try:
            for n in range(count):
                mine, theirs = context.Pipe()
                ends.append(mine)
                info = WorkerInfo(n, count, seed + n, dataset)
                told = (theirs, ends if forks else [], info, make, start, os.getpid())
                process = context.Process(target=_work, args=told, daemon=True)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads
                    process.start()
                theirs.close()
                self.workers.append(Worker(n, process, mine))
        except BaseException:
            self.stop()
            raise

    def ask(self, worker: Worker, task: Any) -> None:
        """Give a worker something to do."""
        try:
            worker.line.send(task)
        except (BrokenPipeError, ConnectionResetError):
            raise self._gone(worker) from None

    def answer(self, worker: Worker) -> Any:
        """What a worker made of its oldest task; an error of its is raised here."""
        try:
            connection.wait([worker.line, worker.process.sentinel])
            if not worker.line.poll():
                raise EOFError
            out = receive(worker.line)
        except (EOFError, ConnectionResetError):
            raise self._gone(worker) from None
        if not isinstance(out, _Failed):
            return out
        remote = _Remote(out.text)
        if out.error is not None:
            error = pickle.loads(out.error)
            error.__cause__ = remote
            raise error
        place, got = f"DataLoader worker {worker.number}", out.text.strip().splitlines()[-1]
        raise WorkerError(place, got=got) from remote

    @staticmethod
    def _gone(worker: Worker) -> WorkerError:
        worker.process.join(1.0)
        code = worker.process.exitcode
        how = f"exit code {code}"
        if code is not None and code < 0:
            with contextlib.suppress(ValueError):
                how = signal.Signals(-code).name
        hint = "the system may have been short of memory: use fewer workers or smaller batches"
        return WorkerError(
            f"DataLoader worker {worker.number}",
            expected="a batch",
            got=f"the end of the process ({how})",
            hint=hint * (code == -signal.SIGKILL),
        )

    def stop(self) -> None:
        """End all workers, whatever they are doing."""
        for w in self.workers:
            w.line.close()
            w.process.terminate()
        for w in self.workers:
            w.process.join(2.0)
            if w.process.is_alive():
                w.process.kill()
                w.process.join()
            w.process.close()
        self.workers.clear()


def in_turn(team: Team, tasks: Iterator[Any], ahead: int) -> Iterator[Any]:
    """The answers to tasks, in their order, each worker having up to `ahead` tasks at a time."""
    crew = list(team.workers)
    asked: list[Worker] = []  # whose answers are due, the oldest first
    turn = 0

    def more() -> bool:
        nonlocal turn
        if not crew:
            return False
        task = next(tasks, _NONE)
        if task is _NONE:
            return False
        worker = crew[turn % len(crew)]
        turn += 1
        team.ask(worker, task)
        asked.append(worker)
        return True

    for _ in range(ahead * len(crew)):
        if not more():
            break
    while asked:
        worker = asked.pop(0)
        out = team.answer(worker)
        if isinstance(out, Ended):
            if worker in crew:
                place = crew.index(worker)
                turn = turn % len(crew) - (place < turn % len(crew))
                crew.remove(worker)
            continue
        more()
        yield out


_NONE = object()
