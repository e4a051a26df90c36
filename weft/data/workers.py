"""Worker processes: each makes every n-th batch, so that batches come in one order however long
each takes.

A worker that fails sends its error with the traceback; one that dies is noticed, and where it was.
Either ends all workers; who asks for the next batch all the same gets it from new ones. They end
with the loop that wanted them, or with the process.
"""

from __future__ import annotations

import contextlib
import faulthandler
import itertools
import multiprocessing
import os
import pickle
import random
import signal
import sys
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Set
from multiprocessing import connection
from typing import Any, NamedTuple

import numpy as np

from weft.data.transport import memory, receive, send
from weft.errors import WeftError
from weft.tensor.random import manual_seed

#: between the seeds of workers and those of the ones that replace them
ANEW = 1_000_003
#: seconds after which a worker looks whether anybody still wants it
PATIENCE = 2.0
#: what a worker deals with in its own way, from its first moment
SIGNALS = {signal.SIGINT, signal.SIGTERM}


class WorkerInfo(NamedTuple):
    """Which worker a process is."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


class WorkerError(WeftError, RuntimeError):
    """A worker process that is gone, or an error of its, or of a dataset's, that can't be handed
    on.
    """


def stopped(place: str) -> WorkerError:
    """What is said instead of a dataset's StopIteration, which would end the loop over batches."""
    hint = "an iterator that it asks for more is at its end"
    return WorkerError(place, expected="an example", got="StopIteration", hint=hint)


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
    """One process, the line to it, and what Python says where it crashes."""

    number: int
    process: Any
    line: Any
    crash: int | None


def _failure(e: BaseException) -> _Failed:
    text = "".join(traceback.format_exception(e))
    if not isinstance(e, Exception):
        return _Failed(None, text)  # a worker's exit is not that of the process that trains
    try:
        raw = pickle.dumps(e)
        pickle.loads(raw)
    except Exception:
        raw = None
    return _Failed(raw, text)


def _work(
    line: Any, others: list[Any], info: WorkerInfo, make: Callable[[], Callable[[Any], Any]],
    start: Callable[[int], Any] | None, parent: int, crash: int | None,
) -> None:  # fmt: skip
    """The life of a worker."""
    if crash is not None:
        faulthandler.enable(crash)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that trains decides
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
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
            except BaseException as e:
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


@contextlib.contextmanager
def _later(signals: Set[signal.Signals]) -> Iterator[None]:
    """Let these signals wait meanwhile: also in a process that is forked, until it lets them in."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


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
                crash = memory(0) if forks else None
                told = (theirs, ends if forks else [], info, make, start, os.getpid(), crash)
                process = context.Process(target=_work, args=told, daemon=True)
                with warnings.catch_warnings(), _later(SIGNALS):
                    warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads
                    process.start()
                theirs.close()
                self.workers.append(Worker(n, process, mine, crash))
        except BaseException:
            self.stop()
            raise

    def ask(self, worker: Worker, task: Any) -> None:
        """Give a worker something to do; if it is gone, that is said when the answer is due."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            worker.line.send(task)

    def answer(self, worker: Worker) -> Any:
        """What a worker made of its oldest task; an error of its is raised here."""
        try:
            connection.wait([worker.line, worker.process.sentinel])
            if not worker.line.poll():
                raise EOFError
            out = receive(worker.line)
        except (EOFError, ConnectionResetError):
            error, crash = self._gone(worker), _crash(worker)
            raise error from (_Remote(crash) if crash else None)
        if not isinstance(out, _Failed):
            return out
        remote = _Remote(out.text)
        if out.error is not None:
            error = pickle.loads(out.error)
            if isinstance(error, StopIteration):
                error = stopped(f"DataLoader worker {worker.number}")
            error.__cause__ = remote
            raise error
        place, got = f"DataLoader worker {worker.number}", out.text.strip().splitlines()[-1]
        raise WorkerError(place, got=got) from remote

    @staticmethod
    def _gone(worker: Worker) -> WorkerError:
        worker.process.join(10.0)  # its line ends a moment before it does
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
            if w.crash is not None:
                os.close(w.crash)
        self.workers.clear()


def _crash(worker: Worker) -> str:
    """The traceback of a worker that crashed in native code."""
    if worker.crash is None:
        return ""
    return os.pread(worker.crash, 1 << 16, 0).decode(errors="replace")


class InTurn:
    """The answers to tasks, in their order, each worker having up to `ahead` tasks at a time.

    An error takes its task with it. What is asked for after that comes from new workers, unless
    tasks can't be done `again`: those of a stream, which would begin anew.
    """

    def __init__(
        self, start: Callable[[int], Team], tasks: Iterator[Any], ahead: int, seed: int, again: bool
    ) -> None:
        self._start, self._tasks, self._ahead = start, tasks, ahead
        self._seed, self._again = seed, again
        self._team: Team | None = None
        self._crew: list[Worker] = []
        self._turn = 0
        self._asked: deque[tuple[Worker, Any]] = deque()  # whose answers are due, the oldest first
        self._over = False

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self._over:
            raise StopIteration
        try:
            if self._team is None:
                self._begin()
            assert self._team is not None
            while self._asked:
                worker, _ = self._asked.popleft()
                out = self._team.answer(worker)
                if not isinstance(out, Ended):
                    self._more()
                    return out
                self._leave(worker)
        except BaseException:
            self._end(over=not self._again)
            raise
        self._end(over=True)
        raise StopIteration

    def _begin(self) -> None:
        """Workers, and what they have to do first: what others left undone."""
        self._team = self._start(self._seed)
        self._seed += ANEW
        self._crew, self._turn = list(self._team.workers), 0
        self._tasks = itertools.chain([task for _, task in self._asked], self._tasks)
        self._asked.clear()
        for _ in range(self._ahead * len(self._crew)):
            self._more()

    def _more(self) -> None:
        task = next(self._tasks, _NONE) if self._crew else _NONE
        if task is not _NONE:
            worker = self._crew[self._turn % len(self._crew)]
            self._turn += 1
            self._asked.append((worker, task))
            assert self._team is not None
            self._team.ask(worker, task)

    def _leave(self, worker: Worker) -> None:
        """A worker has no more examples."""
        if worker in self._crew:
            place, turn = self._crew.index(worker), self._turn % len(self._crew)
            self._turn = turn - (place < turn)
            self._crew.remove(worker)

    def _end(self, over: bool) -> None:
        self._over = self._over or over
        team, self._team = self._team, None
        if team is not None:
            team.stop()

    def __del__(self) -> None:
        self._end(over=True)


_NONE = object()
