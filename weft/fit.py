"""A training loop for those who don't want to write one: epochs, validation, metrics, checkpoints.

Nothing here can't be done by hand; `docs/training.md` shows how. A checkpoint holds what decides
about the steps to come (weights, optimizer, schedule, random state, the place in the data), so a
run that goes on from one ends with the bits of a run that was never stopped. Random numbers of
others than Weft (NumPy's in a dataset, say) are not in it.
"""

from __future__ import annotations

import itertools
import math
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from weft.autodiff.mode import no_grad
from weft.compile import compile as compiled
from weft.data.collate import each
from weft.debug.events import EventWriter
from weft.debug.progress import Progress
from weft.deploy.state import load, save
from weft.errors import ArtifactError, DTypeError, ShapeError, StateError
from weft.nn.module import Module
from weft.nn.state import as_tensor
from weft.optim.clipping import clip_grad_norm_
from weft.optim.one_cycle import OneCycleLR
from weft.optim.optimizer import Optimizer
from weft.optim.plateau import ReduceLROnPlateau
from weft.tensor.arguments import flag, integer, number, word
from weft.tensor.random import get_rng_state, set_rng_state
from weft.tensor.tensor import Tensor

Loss = Callable[[Any, Any], Tensor]
Numbers = dict[str, float]
VERSION = 1


def fit(
    model: Module,
    loss: Loss,
    optimizer: Any,
    loader: Iterable[Any],
    *,
    epochs: int,
    validation: Iterable[Any] | None = None,
    metrics: Mapping[str, Loss] | None = None,
    scheduler: Any = None,
    scheduler_step: str | None = None,
    max_norm: float | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = True,
    early_stop: int | None = None,
    tensorboard: str | os.PathLike[str] | None = None,
    callbacks: Sequence[Callable[[Numbers], Any]] = (),
    compile: bool = True,
    progress: bool = True,
) -> list[Numbers]:
    """Train a model, and give the numbers of each epoch.

    Of a batch that is a tuple, the last part is the target and the others are the model's
    arguments; any other batch is both. NumPy's and PyTorch's arrays in it become tensors. `loss`
    and `metrics` are functions of output and target; their means over an epoch's examples are its
    numbers, with `val_` in front for `validation`.

    `scheduler` goes on after every "epoch" or "step", as `scheduler_step` says; where it says
    nothing, OneCycleLR after every step and others after every epoch. Gradients are clipped to
    `max_norm`. With a path as `checkpoint`, one is written after each epoch and upon Ctrl-C, and if
    there is one it is gone on from (unless `resume` is False). Training ends early after
    `early_stop` epochs without a lower loss (that of `validation` if there is one), or when a
    callback, which gets an epoch's numbers, gives True. In the folder `tensorboard` a file of
    events has the loss of every step, the numbers of every epoch and the learning rate.

    >>> import weft as wf
    >>> x = wf.linspace(-1, 1, 40).reshape(-1, 1)
    >>> loader = wf.data.DataLoader(wf.data.TensorDataset(x, 3 * x), batch_size=8, shuffle=True)
    >>> line = wf.nn.Linear(1, 1)
    >>> opt = wf.optim.SGD(line.parameters(), lr=0.3)
    >>> history = wf.fit(line, wf.nn.functional.mse_loss, opt, loader, epochs=20, progress=False)
    >>> history[-1]["loss"] < 1e-3
    True
    """
    place = "fit"
    _check(model, loss, optimizer, loader, metrics or {})
    _check_rest(optimizer, validation, metrics or {}, scheduler, max_norm, callbacks)
    _check_parameters(model, loss, optimizer)
    if integer(epochs, f"{place} epochs") < 0:
        raise ShapeError(place, expected="0 epochs or more", got=str(epochs))
    patience = None if early_stop is None else integer(early_stop, f"{place} early_stop")
    if patience is not None and patience < 1:
        raise ShapeError(place, expected="an early_stop of 1 epoch or more", got=str(patience))
    if scheduler_step is None:
        scheduler_step = "step" if isinstance(scheduler, OneCycleLR) else "epoch"
    word(scheduler_step, f"{place} scheduler_step", ("epoch", "step"))
    if scheduler_step == "step" and isinstance(scheduler, ReduceLROnPlateau):
        expected, got = 'scheduler_step="epoch"', '"step"'
        raise ShapeError(place, expected=f"{expected} with ReduceLROnPlateau", got=got)
    loop = _Loop(model, loss, optimizer, dict(metrics or {}), scheduler, max_norm)
    if flag(compile, f"{place} compile"):
        loop.step, loop.measure = compiled(loop.step), compiled(loop.measure)  # type: ignore[method-assign]
    path = None if checkpoint is None else _path(checkpoint, "checkpoint")
    curves = None if tensorboard is None else _path(tensorboard, "tensorboard")
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)  # better now than after an epoch
    if flag(resume, f"{place} resume") and path is not None and path.exists():
        loop.restore(load(path), path.name)
    was_training = model.training
    with ExitStack() as stack:
        show = stack.enter_context(Progress(flag(progress, f"{place} progress"), epochs))
        if curves is not None:
            loop.events = stack.enter_context(EventWriter(curves))
        stopping = stack.enter_context(_finishing())
        try:
            while loop.epoch < epochs and not loop.finished:
                if not loop.train(loader, scheduler_step == "step", show, stopping):
                    break
                loop.end(validation, scheduler_step == "epoch", patience, callbacks)
                loop.report("epoch", loop.epoch, loop.history[-1])
                show.epoch(loop.epoch, loop.history[-1])
                if path is not None:
                    save(loop.state(), path)
                if stopping():
                    break
            if stopping() and path is not None:
                save(loop.state(), path)
        finally:
            model.train(was_training)
    if stopping():
        raise KeyboardInterrupt(*([f"saved to {path}; call it again to go on"] if path else []))
    return loop.history


def _check(model: Any, loss: Any, optimizer: Any, loader: Any, metrics: Any) -> None:
    kinds: list[tuple[Any, str, bool]] = [
        (model, "a Module as the model", isinstance(model, Module)),
        (loss, "a function of output and target as the loss", callable(loss)),
        (optimizer, "an optimizer", isinstance(optimizer, Optimizer)),
        (loader, "a loader to go through", isinstance(loader, Iterable)),
        (metrics, "metrics as a dict of functions", isinstance(metrics, Mapping)),
    ]
    for given, expected, fits in kinds:
        if not fits:
            raise DTypeError("fit", expected=expected, got=type(given).__name__)


def _check_rest(
    optimizer: Any, validation: Any, metrics: Any, scheduler: Any, max_norm: Any, callbacks: Any
) -> None:
    """What would else be noticed at the end of the first epoch."""
    for given, expected, fits in (
        (validation, "a loader as validation", validation is None or _can(validation, "__iter__")),
        (callbacks, "callbacks as a list of functions", _can(callbacks, "__iter__")),
        (scheduler, "a scheduler", scheduler is None or _can(scheduler, "step", "state_dict")),
    ):
        if not fits:
            raise DTypeError("fit", expected=expected, got=type(given).__name__)
    named = [(f"metric {name!r}", f) for name, f in metrics.items()]
    for what, f in (*named, *(("a callback", f) for f in callbacks)):
        if not callable(f):
            raise DTypeError("fit", expected=f"a function as {what}", got=type(f).__name__)
    if "loss" in metrics:
        raise ShapeError("fit", expected="metrics of other names than the loss", got="'loss'")
    if scheduler is not None and getattr(scheduler, "optimizer", optimizer) is not optimizer:
        raise ShapeError("fit", expected="a scheduler of this optimizer", got="one of another")
    if max_norm is not None:
        number(max_norm, "fit", "max_norm", least=0)


def _can(x: Any, *names: str) -> bool:
    return all(callable(getattr(x, name, None)) for name in names)


def _check_parameters(model: Module, loss: Any, optimizer: Optimizer) -> None:
    """Raise if an optimizer would move nothing that is trained."""
    parts = [model, *([loss] if isinstance(loss, Module) else [])]
    trained = {id(p) for part in parts for p in part.parameters()}
    if not any(id(p) in trained for group in optimizer.param_groups for p in group["params"]):
        hint = "was the model made again, or copied, after the optimizer?"
        expected = "an optimizer of the model's parameters"
        raise ShapeError("fit", expected=expected, got="one of others", hint=hint)


def _path(given: Any, what: str) -> Path:
    if not isinstance(given, str | os.PathLike):
        raise DTypeError("fit", expected=f"a path as {what}", got=type(given).__name__)
    return Path(given)


class _Loop:
    """A run: what is trained, and how far it is."""

    def __init__(
        self,
        model: Module,
        loss: Loss,
        optimizer: Any,
        metrics: dict[str, Loss],
        scheduler: Any,
        max_norm: float | None,
    ) -> None:
        self.model, self.loss, self.optimizer = model, loss, optimizer
        self.metrics, self.scheduler, self.max_norm = metrics, scheduler, max_norm
        self.epoch, self.position = 0, 0  # epochs that are over, and batches of this one
        self.steps = 0  # batches of all epochs
        self.events: EventWriter | None = None
        self.begin = get_rng_state()  # where this epoch's random numbers begin
        self.sums = _Means()
        self.history: list[Numbers] = []
        self.finished = False

    def step(self, batch: Any) -> dict[str, Any]:
        """One batch: forward, backward, update."""
        self.optimizer.zero_grad()
        inputs, target = _parts(batch)
        out = self.model(*inputs)
        value: Any = self.loss(out, target)
        if not isinstance(value, Tensor):
            got = type(value).__name__
            raise DTypeError("fit", expected="a loss that gives a tensor", got=got)
        value.backward()
        if self.max_norm is not None:
            clip_grad_norm_(self.model.parameters(), self.max_norm)
        self.optimizer.step()
        with no_grad():
            return {"loss": value, **{n: m(out, target) for n, m in self.metrics.items()}}

    def measure(self, batch: Any) -> dict[str, Any]:
        """The numbers of one batch, without learning from it."""
        with no_grad():
            inputs, target = _parts(batch)
            out = self.model(*inputs)
            found = {"loss": self.loss(out, target)}
            return {**found, **{n: m(out, target) for n, m in self.metrics.items()}}

    def train(
        self, loader: Any, schedule: bool, show: Progress, stopping: Callable[[], bool]
    ) -> bool:
        """The rest of an epoch; whether it came to its end."""
        self.model.train()
        now = get_rng_state()
        set_rng_state(self.begin)
        batches = iter(loader)
        for _ in itertools.islice(batches, self.position):
            pass  # loaded again, so that random numbers and workers are where they were
        if self.position:
            set_rng_state(now)
        show.start(self.epoch, _length(loader))
        for batch in map(_tensors, batches):
            found = self.step(batch)
            self.sums.add(found, _size(batch))
            self.steps += 1
            self.report("step", self.steps, found)
            if schedule and self.scheduler is not None:
                self.scheduler.step()
            self.position += 1
            show.step(self.position, self.sums.means())
            if stopping():
                return False
        return True

    def end(
        self,
        validation: Any,
        schedule: bool,
        patience: int | None,
        callbacks: Sequence[Callable[[Numbers], Any]],
    ) -> None:
        """What comes after the batches of an epoch."""
        numbers = self.sums.means()
        _expect_some(numbers, "an epoch")
        if validation is not None:
            self.model.eval()
            held = _Means()
            for batch in map(_tensors, validation):
                held.add(self.measure(batch), _size(batch))
            _expect_some(held.totals, "of validation")
            numbers |= {f"val_{k}": v for k, v in held.means().items()}
        self.history.append(numbers)
        watched = "val_loss" if "val_loss" in numbers else "loss"
        if schedule and self.scheduler is not None:
            plateau = isinstance(self.scheduler, ReduceLROnPlateau)
            self.scheduler.step(*([numbers[watched]] if plateau else []))
        if patience is not None:
            # what is no number is no best one either
            course = [n[watched] if n[watched] == n[watched] else math.inf for n in self.history]
            self.finished = len(course) - 1 - course.index(min(course)) >= patience
        self.epoch, self.position, self.sums = self.epoch + 1, 0, _Means()
        self.begin = get_rng_state()
        for callback in callbacks:
            self.finished |= bool(callback({"epoch": self.epoch, **numbers}))

    def report(self, kind: str, step: int, found: Mapping[str, Any]) -> None:
        """Points of the curves that TensorBoard shows."""
        if self.events is not None:
            numbers = {f"{kind}/{name}": float(value) for name, value in found.items()}
            rates = [group["lr"] for group in self.optimizer.param_groups]
            self.events.write({**numbers, f"{kind}/rate": float(rates[0])}, step)
            if kind == "epoch":
                self.events.flush()

    def state(self) -> dict[str, Any]:
        """All that decides about the steps to come."""
        return {
            "fit": VERSION,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": None if self.scheduler is None else self.scheduler.state_dict(),
            "random": list(get_rng_state()),
            "begin": list(self.begin),
            "epoch": self.epoch,
            "position": self.position,
            "steps": self.steps,
            "sums": self.sums.state(),
            "history": self.history,
            "finished": self.finished,
        }

    def restore(self, state: Any, name: str) -> None:
        """Go on from a checkpoint."""
        if not isinstance(state, dict) or state.get("fit") != VERSION:
            hint = "resume=False begins anew and writes over it"
            raise StateError(name, expected="a checkpoint of fit", got="another file", hint=hint)
        bad = [key for key, fits in _HELD.items() if not fits(state.get(key))]
        if bad:
            expected, got = "a whole checkpoint of fit", f"nothing of use as {', '.join(bad)}"
            raise ArtifactError(name, expected=expected, got=got, hint="the file is damaged")
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        if self.scheduler is not None and state["scheduler"] is not None:
            self.scheduler.load_state_dict(state["scheduler"])
        self.begin = tuple(state["begin"])
        self.epoch, self.position, self.steps = state["epoch"], state["position"], state["steps"]
        self.sums = _Means(*state["sums"])
        self.history, self.finished = state["history"], state["finished"]
        set_rng_state(tuple(state["random"]))


def _expect_some(found: Numbers, of: str) -> None:
    if not found:
        hint = "a generator can be gone through only once: give a loader, or a list of batches"
        raise ShapeError("fit", expected=f"at least one batch {of}", got="none", hint=hint)


def _is_count(x: Any) -> bool:
    return type(x) is int and x >= 0


def _is_place(x: Any) -> bool:
    """Whether it is a place of the random generator's."""
    return isinstance(x, list) and len(x) == 2 and all(_is_count(n) and n < 2**64 for n in x)


def _is_numbers(x: Any) -> bool:
    return isinstance(x, dict) and all(type(v) in (int, float) for v in x.values())


#: what a checkpoint holds, and what that has to be
_HELD: dict[str, Callable[[Any], bool]] = {
    "model": lambda x: isinstance(x, dict),
    "optimizer": lambda x: isinstance(x, dict),
    "scheduler": lambda x: x is None or isinstance(x, dict),
    "random": _is_place,
    "begin": _is_place,
    "epoch": _is_count,
    "position": _is_count,
    "steps": _is_count,
    "sums": lambda x: isinstance(x, list) and len(x) == 2 and _is_numbers(x[0]) and _is_count(x[1]),
    "history": lambda x: isinstance(x, list) and all(_is_numbers(n) and "loss" in n for n in x),
    "finished": lambda x: isinstance(x, bool),
}


class _Means:
    """Means over examples of numbers that come by batches."""

    def __init__(self, totals: Numbers | None = None, count: int = 0) -> None:
        self.totals, self.count = dict(totals or {}), count

    def add(self, found: Mapping[str, Any], size: int) -> None:
        for name, value in found.items():
            self.totals[name] = self.totals.get(name, 0.0) + float(value) * size
        self.count += size

    def means(self) -> Numbers:
        return {name: total / self.count for name, total in self.totals.items()}

    def state(self) -> list[Any]:
        return [self.totals, self.count]


def _tensors(batch: Any) -> Any:
    """A batch whose arrays, NumPy's and PyTorch's, are tensors."""

    def own(x: Any) -> Any:
        return x if isinstance(x, Tensor) or not hasattr(x, "__dlpack__") else as_tensor(x)

    return each(own, batch)


def _parts(batch: Any) -> tuple[Sequence[Any], Any]:
    """The model's arguments and the target of a batch."""
    if isinstance(batch, tuple | list) and len(batch) > 1:
        return batch[:-1], batch[-1]
    return [batch], batch


def _size(batch: Any) -> int:
    """How many examples a batch has: the first size of its first tensor."""
    if isinstance(batch, Tensor):
        return batch.shape[0] if batch.ndim else 1
    parts = batch.values() if isinstance(batch, Mapping) else batch
    return next((_size(p) for p in parts), 1) if isinstance(parts, Iterable) else 1


def _length(loader: Any) -> int | None:
    try:
        return len(loader)
    except TypeError:
        return None


@contextmanager
def _finishing() -> Iterator[Callable[[], bool]]:
    """Ctrl-C once is noted, so that a step ends whole; twice it interrupts as ever."""
    noted: list[int] = []
    usual = signal.getsignal(signal.SIGINT)
    ours = usual is signal.default_int_handler
    ours = ours and threading.current_thread() is threading.main_thread()

    def note(number: int, frame: Any) -> None:
        noted.append(number)
        signal.signal(signal.SIGINT, usual)

    if ours:
        signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(noted)
    finally:
        if ours:
            signal.signal(signal.SIGINT, usual)
