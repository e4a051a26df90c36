"""Which planner an op's `extern` names: (layouts, attributes, result type, threads) -> a launch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.buffer import Layout
from weft.ops.define import Types
from weft.schedule.gather import plan_take, plan_take_along_axis
from weft.schedule.launch import Launch

Layouts = tuple[Layout, ...]
Planner = Callable[[Any, dict[str, Any], Types, int], Launch]


def _take(xs: Layouts, attrs: dict[str, Any], out: Types, threads: int) -> Launch:
    return plan_take(xs[0], xs[1], attrs["axis"])


def _take_along_axis(xs: Layouts, attrs: dict[str, Any], out: Types, threads: int) -> Launch:
    return plan_take_along_axis(xs[0], xs[1], attrs["axis"])


EXTERNS: dict[str, Planner] = {
    "take": _take,
    "take_along_axis": _take_along_axis,
}
