"""Which planner an op's `extern` names: (layouts, attributes, result type, threads) -> a launch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.buffer import Layout
from weft.buffer.layout import dense_strides
from weft.ops.define import Types
from weft.ops.pooling import max_at
from weft.schedule.at import plan_at
from weft.schedule.concat import plan_concat, plan_stack
from weft.schedule.gather import plan_take, plan_take_along_axis
from weft.schedule.growing import plan_get_rows, plan_put_rows
from weft.schedule.launch import Launch
from weft.schedule.scan import plan_scan
from weft.schedule.scatter import plan_scatter
from weft.schedule.search import plan_count_nonzero, plan_nonzero, plan_searchsorted
from weft.schedule.sort import plan_sort, plan_topk
from weft.schedule.spread import plan_spread
from weft.schedule.window import plan_window_spread
from weft.schedule.window_max import plan_window_max

Layouts = tuple[Layout, ...]
Attrs = dict[str, Any]
Planner = Callable[[Any, Attrs, Types, int], Launch]


def _scatter_on_zeros(xs: Layouts, attrs: Attrs, out: Types, threads: int) -> Launch:
    index, source = xs
    return plan_scatter(attrs["shape"], index, source, attrs["axis"], "add", threads=threads)


def _scatter(op: str) -> Planner:
    def plan(xs: Layouts, attrs: Attrs, out: Types, threads: int) -> Launch:
        base, index, source = xs
        shape: Any = base.type.shape
        return plan_scatter(shape, index, source, attrs["axis"], op, base=base, threads=threads)

    return plan


def _spread(xs: Layouts, attrs: Attrs, out: Types, threads: int) -> Launch:
    shape, axes = attrs["shape"], attrs["axes"]
    dense = dense_strides(shape)
    strides = [0 if a < 0 else dense[a] * attrs["steps"][a] for a in axes]
    offset = sum(a * s for a, s in zip(attrs["starts"], dense, strict=True))
    return plan_spread(xs[0], shape, strides, offset)


def _window_spread(xs: Layouts, attrs: Attrs, out: Types, threads: int) -> Launch:
    return plan_window_spread(xs[0], **attrs)


def _window_max(xs: Layouts, attrs: Attrs, out: Types, threads: int) -> Launch:
    return plan_window_max(xs[0], **attrs) or plan_at(max_at, xs, attrs, out)  # type: ignore[arg-type]


def _scan(op: str) -> Planner:
    def plan(xs: Layouts, attrs: Attrs, out: Types, threads: int) -> Launch:
        several = isinstance(out, tuple)
        dtype = None if several else out.dtype  # type: ignore[union-attr]
        return plan_scan(
            xs[0],
            attrs["axis"],
            op,
            dtype=dtype,
            reverse=attrs.get("reverse", False),
            indices=several,
            threads=threads,
        )

    return plan


def _sort(values: bool) -> Planner:
    def plan(xs: Layouts, attrs: Attrs, out: Types, threads: int) -> Launch:
        return plan_sort(xs[0], descending=attrs["descending"], values=values, indices=not values)

    return plan


EXTERNS: dict[str, Planner] = {
    "window_spread": _window_spread,
    "window_max": _window_max,
    "take": lambda xs, attrs, out, threads: plan_take(xs[0], xs[1], attrs["axis"]),
    "take_along_axis": lambda xs, attrs, out, threads: plan_take_along_axis(
        xs[0], xs[1], attrs["axis"]
    ),
    "scatter_sum": _scatter_on_zeros,
    "scatter_add": _scatter("add"),
    "scatter_assign": _scatter("assign"),
    "stack": lambda xs, attrs, out, threads: plan_stack(xs, attrs["axis"]),
    "concat": lambda xs, attrs, out, threads: plan_concat(xs, attrs["axis"]),
    "put_rows": lambda xs, attrs, out, threads: plan_put_rows(xs),
    "get_rows": lambda xs, attrs, out, threads: plan_get_rows(xs[0], xs[1], attrs["sizes"]),
    "cumulative_sum": _scan("add"),
    "cumulative_prod": _scan("mul"),
    "cumulative_max": _scan("max"),
    "cumulative_min": _scan("min"),
    "sort": _sort(values=True),
    "argsort": _sort(values=False),
    "searchsorted": lambda xs, attrs, out, threads: plan_searchsorted(
        xs[0], xs[1], right=attrs["right"]
    ),
    "nonzero_starts": lambda xs, attrs, out, threads: plan_count_nonzero(xs[0]),
    "nonzero_places": lambda xs, attrs, out, threads: plan_nonzero(xs[0], xs[1], attrs["many"]),
    "spread": _spread,
    "topk": lambda xs, attrs, out, threads: plan_topk(xs[0], attrs["k"], largest=attrs["largest"]),
}
