"""Kernel spec -> LLVM text: the one place where every family of kernels is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.codegen import (
    at,
    attention,
    concat,
    contract,
    gather,
    map,
    reduce,
    rows,
    scalars,
    scan,
    scatter,
    search,
    sort,
    spread,
    stack,
    transpose,
    window,
)
from weft.codegen.parts import apart
from weft.errors import WeftError
from weft.schedule.at import AtSpec
from weft.schedule.attention import Attention
from weft.schedule.concat import Concat
from weft.schedule.contract_spec import ContractSpec
from weft.schedule.gather import GatherElements, GatherRows
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
from weft.schedule.transpose import TransposeSpec
from weft.schedule.window import WindowSpread

FAMILIES: dict[type, Callable[[Any], str]] = {
    MapSpec: map.lower,
    TransposeSpec: transpose.lower,
    AtSpec: at.lower,
    Attention: attention.lower,
    RowSpec: rows.lower,
    ReduceSpec: reduce.lower,
    ContractSpec: contract.lower,
    GatherRows: gather.lower,
    GatherElements: gather.lower,
    Scatter: scatter.lower,
    Scan: scan.lower,
    ScalarSpec: scalars.lower,
    Nonzero: search.lower,
    SearchSorted: search.lower,
    Sort: sort.lower,
    TopK: sort.lower,
    Concat: concat.lower,
    Spread: spread.lower,
    Stack: stack.lower,
    WindowSpread: window.lower,
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
