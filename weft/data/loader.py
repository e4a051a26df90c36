"""The loader: goes over a dataset in batches, in order or shuffled, here or in worker processes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from weft.data.collate import default_collate, each
from weft.data.dataset import IterableDataset, TensorDataset
from weft.data.sampler import BatchSampler, RandomSampler, SequentialSampler
from weft.data.workers import Ended, InTurn, Team, stopped
from weft.errors import DTypeError, ShapeError
from weft.tensor.arguments import flag, integer
from weft.tensor.data import tensor
from weft.tensor.elsewhere import says_keywords
from weft.tensor.random import randint

Fetch = Callable[[Any], Any]


class DataLoader:
    """Batches of a dataset, anew each time it is gone through.

    With `shuffle` the order is drawn from Weft's generator: after `wf.manual_seed(n)` it is the
    same again. With `workers` that many processes get the examples; batches come in the same order.
    An error, or the end of a worker, is raised where its batch was due; asked on, batches go on.
    `batch_size=None` gives the examples one by one. Python floats become float32.

    >>> import weft as wf
    >>> data = wf.data.TensorDataset(wf.arange(5), wf.arange(5) ** 2)
    >>> for x, y in wf.data.DataLoader(data, batch_size=2):
    ...     print(x, y)
    tensor([0, 1]) tensor([0, 1])
    tensor([2, 3]) tensor([4, 9])
    tensor([4]) tensor([16])
    """

    @says_keywords
    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool = False,
        sampler: Iterable[int] | None = None,
        batch_sampler: Iterable[list[int]] | None = None,
        workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        drop_last: bool = False,
        worker_init_fn: Callable[[int], Any] | None = None,
        prefetch_factor: int = 2,
    ) -> None:
        place = "DataLoader"
        self.dataset = dataset
        self.iterable = not hasattr(dataset, "__getitem__") or isinstance(dataset, IterableDataset)
        self.shuffle, self.drop_last = flag(shuffle, place), flag(drop_last, place)
        self.workers = _least(workers, f"{place} workers", 0)
        self.prefetch_factor = _least(prefetch_factor, f"{place} prefetch_factor", 1)
        self.batch_size = None if batch_size is None else _least(batch_size, f"{place} batch_size")
        self.collate_fn, self.worker_init_fn = collate_fn, worker_init_fn
        self._check(sampler, batch_sampler)
        if self.iterable:
            self.sampler: Any = None
            self.batch_sampler: Any = None
            return
        if sampler is None:
            sampler = RandomSampler(dataset) if shuffle else SequentialSampler(dataset)
        self.sampler, self.batch_sampler = sampler, batch_sampler
        if batch_sampler is None and self.batch_size is not None:
            self.batch_sampler = BatchSampler(sampler, self.batch_size, drop_last)

    def _check(self, sampler: Any, batch_sampler: Any) -> None:
        place = "DataLoader"
        if not hasattr(self.dataset, "__getitem__") and not hasattr(self.dataset, "__iter__"):
            got = type(self.dataset).__name__
            raise DTypeError(place, expected="a dataset with __getitem__ or __iter__", got=got)
        for name, f in (("collate_fn", self.collate_fn), ("worker_init_fn", self.worker_init_fn)):
            if f is not None and not callable(f):
                raise DTypeError(place, expected=f"{name}: a function", got=type(f).__name__)
        given = {"shuffle": self.shuffle, "sampler": sampler, "batch_sampler": batch_sampler}
        said = [name for name, v in given.items() if v is not None and v is not False]
        if self.iterable and said:
            got = f"{' and '.join(said)} with {type(self.dataset).__name__}"
            raise ShapeError(place, expected="examples in the order they come", got=got)
        if len(said) > 1:
            raise ShapeError(place, expected=f"one of {', '.join(given)}", got=" and ".join(said))
        if batch_sampler is not None and (self.batch_size != 1 or self.drop_last):
            got = "batch_size or drop_last beside it"
            raise ShapeError(place, expected="batches as batch_sampler says", got=got)
        if self.batch_size is None and self.drop_last:
            raise ShapeError(place, expected="a batch_size with drop_last", got="None")

    def __len__(self) -> int:
        if not self.iterable:
            return len(self.sampler if self.batch_sampler is None else self.batch_sampler)
        n = len(self.dataset)
        if self.batch_size is None:
            return n
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        # drawn in any case, so that the order does not depend on the number of workers
        seed = int(randint(0, 2**62, (1,)).item())
        tasks = itertools.repeat(None) if self.iterable else self._tasks()
        if self.workers:
            return self._parallel(tasks, seed)
        return _Alone(tasks, self._fetcher())

    def _tasks(self) -> Iterator[Any]:
        return iter(self.sampler if self.batch_sampler is None else self.batch_sampler)

    def _parallel(self, tasks: Iterator[Any], seed: int) -> Iterator[Any]:
        def start(seed: int) -> Team:
            return Team(self.workers, self.dataset, self._fetcher, self.worker_init_fn, seed)

        return InTurn(start, tasks, self.prefetch_factor, seed, again=not self.iterable)

    def _fetcher(self) -> Fetch:
        """What makes a batch of a task."""
        dataset, collate = self.dataset, self.collate_fn
        if self.iterable:
            return self._stream(iter(dataset))
        if self.batch_sampler is None:
            convert = default_convert if collate is None else collate
            return lambda i: convert(dataset[i])
        if collate is None and type(dataset) is TensorDataset:
            return dataset.batch
        put_together = default_collate if collate is None else collate
        return lambda indices: put_together([dataset[i] for i in indices])

    def _stream(self, examples: Iterator[Any]) -> Fetch:
        n, collate = self.batch_size, self.collate_fn

        def fetch(_: Any) -> Any:
            batch = list(itertools.islice(examples, 1 if n is None else n))
            if not batch or (n is not None and len(batch) < n and self.drop_last):
                return Ended()
            if n is None:
                return (default_convert if collate is None else collate)(batch[0])
            return (default_collate if collate is None else collate)(batch)

        return fetch


class _Alone:
    """Batches made here. After an error, the next is that of the next task."""

    def __init__(self, tasks: Iterator[Any], fetch: Fetch) -> None:
        self._tasks, self._fetch = tasks, fetch

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        task = next(self._tasks)
        try:
            batch = self._fetch(task)
        except StopIteration as e:
            raise stopped("DataLoader") from e
        if isinstance(batch, Ended):
            self._tasks = iter(())
            raise StopIteration
        return batch


def default_convert(x: Any) -> Any:
    """The arrays of one example as tensors."""
    return each(lambda v: tensor(v) if isinstance(v, np.ndarray | np.generic) else v, x)


def _least(n: Any, place: str, least: int = 1) -> int:
    out = integer(n, place)
    if out < least:
        raise ShapeError(place, expected=f"{least} or more", got=str(out))
    return out
