"""How far training is: a bar where there is a terminal and `rich` is installed, else a line an
epoch.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Self


class Progress:
    """Shows epochs and steps; with `wanted=False` nothing."""

    def __init__(self, wanted: bool, epochs: int) -> None:
        self.wanted, self.epochs = wanted, epochs
        self.bar = _bar() if wanted and sys.stdout.isatty() else None
        self.task: Any = None

    def __enter__(self) -> Self:
        if self.bar is not None:
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def start(self, epoch: int, steps: int | None) -> None:
        """An epoch begins."""
        if self.bar is not None:
            said = f"epoch {epoch + 1}/{self.epochs}"
            self.task = self.bar.add_task(said, total=steps, numbers="")

    def step(self, position: int, numbers: Mapping[str, float]) -> None:
        """A batch is done."""
        if self.bar is not None:
            self.bar.update(self.task, completed=position, numbers=_said(numbers))

    def epoch(self, epoch: int, numbers: Mapping[str, float]) -> None:
        """An epoch is over."""
        line = f"epoch {epoch:{len(str(self.epochs))}d}/{self.epochs}   {_said(numbers)}"
        if self.bar is not None:
            self.bar.remove_task(self.task)
            self.bar.console.print(line, highlight=False)
        elif self.wanted:
            print(line, flush=True)


def _said(numbers: Mapping[str, float]) -> str:
    return "   ".join(f"{name} {value:.4g}" for name, value in numbers.items())


def _bar() -> Any:
    try:
        from rich import progress
    except ImportError:
        return None
    columns = progress.TextColumn("{task.description}"), progress.BarColumn()
    times = progress.MofNCompleteColumn(), progress.TimeRemainingColumn()
    return progress.Progress(*columns, *times, progress.TextColumn("{task.fields[numbers]}"))
