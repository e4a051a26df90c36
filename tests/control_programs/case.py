"""What a program of the table is, and the tensors most of them are given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import weft as wf


@dataclass(frozen=True)
class Case:
    name: str
    function: Callable[..., Any]
    arguments: tuple[tuple[Any, ...], ...]
    gradient: bool = True
    lengths: bool = False  # whether lists have lengths that depend on values


CASES: list[Case] = []
X, Y = wf.tensor([1.0, -2.0, 3.0]), wf.tensor([0.5, 2.0, -1.0])
BOTH = ((X, Y), (-X, Y), (X, -Y), (X * 100, Y))


def case(
    name: str, *arguments: tuple[Any, ...], gradient: bool = True, lengths: bool = False
) -> Callable[..., Any]:
    def add(f: Callable[..., Any]) -> Callable[..., Any]:
        CASES.append(Case(name, f, arguments, gradient, lengths))
        return f

    return add
