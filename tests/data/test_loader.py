"""Loading data: order, batches, worker processes that fail, die or are no longer wanted."""

import multiprocessing.util
import os
import signal
import subprocess
import sys
import textwrap
import time
import traceback
from collections import namedtuple
from dataclasses import dataclass

import numpy as np
import pytest

import weft as wf
from weft.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
    get_worker_info,
    random_split,
)
from weft.errors import DTypeError, ShapeError, WeftError

Pair = namedtuple("Pair", "x y")


class Rows(Dataset):
    def __init__(self, n=20, size=3):
        self.n, self.size = n, size

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if i >= self.n:
            raise IndexError(i)
        return np.full(self.size, i, np.float32), i


class Stream(IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        return iter(range(first, self.n, step))


def flat(batches):
    return sorted(x for batch in batches for x in batch)


def numbers(loader):
    return [y.tolist() for _, y in loader]


# batches


def test_batches_are_tensors_in_order():
    loader = DataLoader(Rows(7), batch_size=3)
    batches = list(loader)
    assert numbers(loader) == [[0, 1, 2], [3, 4, 5], [6]] and len(loader) == 3
    x, y = batches[1]
    assert isinstance(x, wf.Tensor) and x.dtype is wf.float32 and y.dtype is wf.int64
    assert x.shape == (3, 3) and x[:, 0].tolist() == [3, 4, 5]
    assert numbers(DataLoader(Rows(7), batch_size=3, drop_last=True)) == [[0, 1, 2], [3, 4, 5]]


def test_shuffling_follows_the_seed():
    loader = DataLoader(Rows(), batch_size=4, shuffle=True)
    wf.manual_seed(5)
    first, second = numbers(loader), numbers(loader)
    assert first != second
    assert flat(first) == flat(second) == list(range(20))
    wf.manual_seed(5)
    assert numbers(loader) == first
    wf.manual_seed(5)
    assert numbers(DataLoader(Rows(), batch_size=4, shuffle=True, workers=2)) == first


def test_nested_examples_nest_in_the_batch():
    examples = [
        {"pair": Pair(np.float32(i), [i, str(i)]), "flag": i % 2 == 0, "none": None}
        for i in range(3)
    ]
    (batch,) = DataLoader(examples, batch_size=3)
    assert isinstance(batch["pair"], Pair) and batch["pair"].x.tolist() == [0, 1, 2]
    assert batch["pair"].y[0].tolist() == [0, 1, 2] and batch["pair"].y[1] == ["0", "1", "2"]
    assert batch["flag"].dtype is wf.bool and batch["none"] == [None] * 3


@pytest.mark.parametrize(
    ("numbers", "dtype"),
    [([1.5, 2.5], wf.float32), ([1, 2.5], wf.float32), ([1, True], wf.int64), ([True], wf.bool)],
)
def test_numbers_of_pythons(numbers, dtype):
    (batch,) = DataLoader(numbers, batch_size=2)
    assert batch.dtype is dtype and batch.tolist() == numbers


def test_numbers_that_fit_no_tensor():
    with pytest.raises(wf.errors.NumericsError, match="64 bits"):
        next(iter(DataLoader([2**63, 2], batch_size=2)))
    with pytest.raises(wf.errors.DTypeError, match="numbers in every example, got NoneType, int"):
        next(iter(DataLoader([1, None], batch_size=2)))


@dataclass
class Record:
    x: np.ndarray
    label: int
    name: str


@pytest.mark.parametrize("workers", [0, 1])
def test_records(workers):
    examples = [Record(np.full(3, i, np.float32), i, f"n{i}") for i in range(2)]
    (batch,) = DataLoader(examples, batch_size=2, workers=workers)
    assert type(batch) is Record and batch.x.shape == (2, 3)
    assert batch.label.tolist() == [0, 1] and batch.name == ["n0", "n1"]
    one = next(iter(DataLoader(examples, batch_size=None, workers=workers)))
    assert type(one) is Record and isinstance(one.x, wf.Tensor) and one.label == 0


@pytest.mark.parametrize("workers", [0, 1])
def test_numbers_of_examples_stay_without_axes(workers):
    data = TensorDataset(wf.arange(2), wf.ones((2, 3)))
    for i, (x, row) in enumerate(DataLoader(data, batch_size=None, workers=workers)):
        assert x.shape == () and x.item() == i and row.shape == (3,)


def test_rows_of_tensors_are_taken_at_once():
    x, y = wf.arange(10), wf.rand(10, 2)
    data = TensorDataset(x, y)
    first, second = DataLoader(data, batch_size=6)
    assert first[0].numpy().ctypes.data == x.numpy().ctypes.data  # neighbours: no copy
    assert second[0].tolist() == [6, 7, 8, 9]
    wf.manual_seed(0)
    for a, b in DataLoader(data, batch_size=4, shuffle=True):
        assert (b.numpy() == y.numpy()[a.numpy()]).all()


def test_without_batches_and_with_a_collate_fn():
    assert [y for _, y in DataLoader(Rows(3), batch_size=None)] == [0, 1, 2]
    joined = DataLoader(Rows(4), batch_size=2, collate_fn=lambda b: [y for _, y in b])
    assert list(joined) == [[0, 1], [2, 3]]


def test_samplers():
    assert numbers(DataLoader(Rows(), batch_size=2, sampler=[3, 1, 4])) == [[3, 1], [4]]
    batches = BatchSampler(range(5), 2)
    assert numbers(DataLoader(Rows(), batch_sampler=batches)) == [[0, 1], [2, 3], [4]]
    wf.manual_seed(1)
    drawn = list(RandomSampler(range(10), replacement=True, num_samples=50))
    assert len(drawn) == 50 and len(set(drawn)) < 11
    assert sorted(RandomSampler(range(4), num_samples=8)) == [0, 0, 1, 1, 2, 2, 3, 3]
    weighted = list(WeightedRandomSampler([0.0, 3.0, 1.0], 4000))
    assert 0 not in weighted and 0.70 < weighted.count(1) / 4000 < 0.80
    assert sorted(WeightedRandomSampler([1.0, 0.0, 2.0], 2, replacement=False)) == [0, 2]


def test_datasets_made_of_datasets():
    both = Rows(3) + Rows(2)
    assert isinstance(both, ConcatDataset) and [y for _, y in both] == [0, 1, 2, 0, 1]
    assert both[-1][1] == 1 and Subset(both, [4, 0])[0][1] == 1
    with pytest.raises(IndexError):
        both[5]
    wf.manual_seed(0)
    parts = random_split(Rows(10), [0.5, 0.3, 0.2])
    assert [len(p) for p in parts] == [5, 3, 2]
    assert sorted(y for p in parts for _, y in p) == list(range(10))


# workers


@pytest.mark.parametrize("size", [3, 50_000], ids=["sent", "shared"])
def test_workers_give_the_same_batches(size):
    alone = list(DataLoader(Rows(9, size), batch_size=2))
    team = list(DataLoader(Rows(9, size), batch_size=2, workers=3))
    assert len(alone) == len(team)
    for (a, i), (b, j) in zip(alone, team, strict=True):
        assert (a.numpy() == b.numpy()).all() and (i.numpy() == j.numpy()).all()
        assert b.dtype is wf.float32 and (b + 1).shape == b.shape


class Halves(Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, i):
        return wf.full((20_000,), float(i), dtype=wf.bfloat16)


def test_tensors_of_any_dtype_travel():
    (batch,) = DataLoader(Halves(), batch_size=2, workers=1)
    assert batch.dtype is wf.bfloat16 and batch[:, -1].tolist() == [0.0, 1.0]


@pytest.mark.parametrize("workers", [0, 1, 2, 3])
def test_streams_are_shared_out(workers):
    loader = DataLoader(Stream(11), batch_size=2, workers=workers)
    batches = [b.tolist() for b in loader]
    assert flat(batches) == list(range(11))
    assert batches == [b.tolist() for b in loader]
    assert all(len(b) == 2 for b in DataLoader(Stream(11), 2, workers=workers, drop_last=True))


class Faulty(Rows):
    def __getitem__(self, i):
        if i == 5:
            raise KeyError("no row five")
        return super().__getitem__(i)


def test_an_error_in_a_worker_is_raised_with_its_traceback():
    loader = iter(DataLoader(Faulty(), batch_size=2, workers=2))
    next(loader)
    next(loader)
    with pytest.raises(KeyError, match="no row five") as caught:
        next(loader)
    text = "".join(traceback.format_exception(caught.value))
    assert 'raise KeyError("no row five")' in text


class Unpicklable(Exception):
    def __init__(self, a, b):
        super().__init__(f"{a} {b}")


class Odd(Rows):
    def __getitem__(self, i):
        raise Unpicklable(i, "odd")


def test_an_error_that_cannot_be_sent_is_still_reported():
    with pytest.raises(WeftError, match=r"worker 0.*Unpicklable: 0 odd"):
        list(DataLoader(Odd(), workers=1))
    with pytest.raises(Exception, match="pickle"):
        list(DataLoader(Rows(), workers=1, collate_fn=lambda b: lambda: 1))


class Deadly(Rows):
    def __getitem__(self, i):
        if i == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__getitem__(i)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_dataset_cannot_end_the_loop_by_accident(workers):
    """A StopIteration of its own, passed on, would look like the end of the data."""

    class Rows(wf.data.Dataset):
        def __init__(self):
            self.more = iter(range(5))

        def __len__(self):
            return 40

        def __getitem__(self, i):
            return next(self.more)

    with pytest.raises(RuntimeError, match="expected an example, got StopIteration") as e:
        list(wf.data.DataLoader(Rows(), 4, workers=workers))
    assert "next(self.more)" in str(e.value.__cause__) or not workers


def test_a_worker_that_dies_is_noticed():
    with pytest.raises(WeftError, match=r"SIGKILL.*memory"):
        list(DataLoader(Deadly(), workers=2))


def going_on(loader):
    """The batches of a loader, and the errors in the place of others."""
    found, batches = [], iter(loader)
    while True:
        try:
            found.append(next(batches)[1].tolist())
        except StopIteration:
            return found
        except (KeyError, WeftError) as e:
            found.append(type(e))
            assert not children()


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_batches_after_an_error_can_still_be_asked_for(workers):
    """Here row five alone is lost, and no process is left while the error is looked at."""
    found = going_on(DataLoader(Faulty(9), batch_size=2, workers=workers))
    assert found == [[0, 1], [2, 3], KeyError, [6, 7], [8]]


@pytest.mark.parametrize("workers", [1, 3])
def test_a_loader_survives_workers_that_die(workers):
    found = going_on(DataLoader(Deadly(8), batch_size=2, workers=workers))
    assert found[0] == [0, 1] and len(found) == 4 and found[2:] == [[4, 5], [6, 7]]
    assert issubclass(found[1], WeftError)
    assert going_on(DataLoader(Deadly(3), workers=workers)) == [[0], [1], [2]]


class Crashing(Rows):
    def __getitem__(self, i):
        if i == 1:
            import ctypes

            ctypes.string_at(0)
        return super().__getitem__(i)


class Leaving(Rows):
    def __getitem__(self, i):
        sys.exit(3)


def test_a_crash_in_native_code_shows_where_it_was():
    with pytest.raises(WeftError, match="SIGSEGV") as caught:
        list(DataLoader(Crashing(), workers=2))
    text = "".join(traceback.format_exception(caught.value))
    assert "Segmentation fault" in text and "test_loader.py" in text and "__getitem__" in text
    with pytest.raises(WeftError, match="SystemExit: 3"):
        list(DataLoader(Leaving(), workers=1))


class BrokenStream(Stream):
    def __iter__(self):
        yield 1
        raise KeyError("the stream is broken")


@pytest.mark.parametrize("workers", [0, 1])
def test_a_stream_is_over_after_an_error(workers):
    batches = iter(DataLoader(BrokenStream(3), batch_size=1, workers=workers))
    assert next(batches).tolist() == [1]
    with pytest.raises(KeyError, match="broken"):
        next(batches)
    assert list(batches) == [] and not children()


def children():
    return {p.pid for p in multiprocessing.active_children()}


class Slow(Rows):
    def __getitem__(self, i):
        if i > 2:
            time.sleep(300)
        return super().__getitem__(i)


def test_no_process_is_left_behind():
    before = children()
    start = time.monotonic()
    for x, _ in DataLoader(Slow(), workers=2):
        assert x.shape == (1, 3)
        break
    loader = iter(DataLoader(Slow(), workers=2))
    next(loader)
    assert len(children() - before) == 2
    del loader
    assert children() <= before
    assert time.monotonic() - start < 150


def test_an_interrupted_program_ends_at_once(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        textwrap.dedent(
            """
            import signal, time
            signal.signal(signal.SIGINT, signal.default_int_handler)  # as in a terminal
            from weft.data import DataLoader
            class Slow:
                def __len__(self):
                    return 9
                def __getitem__(self, i):
                    time.sleep(300 if i > 1 else 0)
                    return i
            for batch in DataLoader(Slow(), workers=2):
                print(batch.tolist(), flush=True)
            """
        )
    )
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    env = {**os.environ, "PYTHONPATH": root}
    run = subprocess.Popen(
        [sys.executable, script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
        start_new_session=True,
    )
    assert run.stdout.readline() == "[0]\n"
    start = time.monotonic()
    os.killpg(run.pid, signal.SIGINT)
    _, err = run.communicate(timeout=600)
    assert time.monotonic() - start < 150
    assert run.returncode != 0 and err.count("KeyboardInterrupt") == 1


class Pressed:
    """While there is one, a forked process gets Ctrl-C in its first moments."""

    def __init__(self):
        multiprocessing.util.register_after_fork(
            self, lambda _: os.kill(os.getpid(), signal.SIGINT)
        )


def test_ctrl_c_does_not_end_a_worker_that_has_just_begun(capfd):
    pressed = Pressed()
    found = [i.tolist() for _, i in DataLoader(Rows(4), batch_size=2, workers=2)]
    del pressed
    assert found == [[0, 1], [2, 3]] and not capfd.readouterr().err


class Draws(Rows):
    def __getitem__(self, i):
        return float(wf.rand(1).item()), np.random.rand()


def test_workers_draw_numbers_of_their_own():
    def drawn():
        wf.manual_seed(3)
        return [float(a) for a, _ in DataLoader(Draws(6), workers=2)]

    first = drawn()
    assert len(set(first)) == 6 and first == drawn()


def _shout(worker):
    raise ValueError(f"worker {worker} does not want to")


def test_worker_init_fn_runs_in_the_worker():
    with pytest.raises(ValueError, match="worker 0"):
        list(DataLoader(Rows(), workers=1, worker_init_fn=_shout))
    assert get_worker_info() is None


# mistakes


@pytest.mark.parametrize(
    ("kwargs", "error"),
    [
        ({"batch_size": 0}, ShapeError),
        ({"batch_size": 2.5}, ShapeError),
        ({"workers": -1}, ShapeError),
        ({"shuffle": 1}, DTypeError),
        ({"shuffle": True, "sampler": [1]}, ShapeError),
        ({"batch_sampler": [[1]], "batch_size": 3}, ShapeError),
        ({"batch_size": None, "drop_last": True}, ShapeError),
        ({"collate_fn": 3}, DTypeError),
    ],
)
def test_wrong_arguments(kwargs, error):
    with pytest.raises(error):
        DataLoader(Rows(), **kwargs)


def test_other_mistakes():
    with pytest.raises(DTypeError, match="__getitem__"):
        DataLoader(3)
    with pytest.raises(ShapeError, match="order they come"):
        DataLoader(Stream(3), shuffle=True)
    with pytest.raises(ShapeError, match="pad_sequence"):
        list(DataLoader([np.zeros(2), np.zeros(3)], batch_size=2))
    with pytest.raises(ShapeError):
        list(DataLoader([(1, 2), (1,)], batch_size=2))
    with pytest.raises(DTypeError, match="collate_fn"):
        list(DataLoader([object()]))
    with pytest.raises(ShapeError):
        TensorDataset(wf.zeros(2), wf.zeros(3))
    with pytest.raises(ShapeError):
        random_split(Rows(3), [1, 1])
    with pytest.raises(ShapeError):
        WeightedRandomSampler([-1.0], 3)
    with pytest.raises(NotImplementedError, match="Dataset does not define"):
        Dataset()[0]
