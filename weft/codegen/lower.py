"""Kernel spec -> LLVM text: the one place where every family of kernels is named."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from weft.codegen.parts import apart
from weft.errors import WeftError
from weft.schedule.at import AtSpec
from weft.schedule.attention import Attention
from weft.schedule.concat import Concat
from weft.schedule.contract_spec import ContractSpec
from weft.schedule.drain import Drain
from weft.schedule.gather import GatherElements, GatherRows
from weft.schedule.growing import Rows
from weft.schedule.launch import KernelSpec
from weft.schedule.map import MapSpec
from weft.schedule.reduce import ReduceSpec
from weft.schedule.rows import RowSpec
from weft.schedule.scalars_spec import ScalarSpec
from weft.schedule.scan import Scan
from weft.schedule.scatter import Scatter
from weft.schedule.search import Nonzero, SearchSorted
from weft.schedule.sort import Sort, TopK
from weft.schedule.spread import Spread
from weft.schedule.stack import Stack
from weft.schedule.store import Store
from weft.schedule.transpose import TransposeSpec
from weft.schedule.window import WindowSpread
from weft.schedule.window_max import WindowMax


def _family(name: str) -> Callable[[Any], str]:
    """The family in a module of this room, which is loaded when it is first asked."""

    def lower(spec: Any) -> str:
        text: str = import_module(f"weft.codegen.{name}").lower(spec)
        return text

    return lower


FAMILIES: dict[type, Callable[[Any], str]] = {
    MapSpec: _family("map"),
    TransposeSpec: _family("transpose"),
    AtSpec: _family("at"),
    Attention: _family("attention"),
    RowSpec: _family("rows"),
    ReduceSpec: _family("reduce"),
    ContractSpec: _family("contract"),
    GatherRows: _family("gather"),
    GatherElements: _family("gather"),
    Rows: _family("growing"),
    Scatter: _family("scatter"),
    Scan: _family("scan"),
    ScalarSpec: _family("scalars"),
    Nonzero: _family("search"),
    SearchSorted: _family("search"),
    Sort: _family("sort"),
    TopK: _family("sort"),
    Concat: _family("concat"),
    Spread: _family("spread"),
    Stack: _family("stack"),
    Store: _family("store"),
    Drain: _family("drain"),
    WindowMax: _family("window_max"),
    WindowSpread: _family("window"),
}


def lower(spec: KernelSpec) -> str:
    """The LLVM module of a kernel."""
    family = FAMILIES.get(type(spec))
    if family is None:
        raise WeftError(
            "lower",
            expected=f"one of {', '.join(f.__name__ for f in FAMILIES)}",
            got=type(spec).__name__,
        )
    return family(spec)


def lower_apart(spec: KernelSpec) -> list[str]:
    """The same as several modules: what is the kernel's own, and what others have too."""
    return apart(lower(spec))
