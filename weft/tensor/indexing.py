"""x[...] and x[...] = v, as NumPy has them.

Integers, slices, `...` and new axes are one view; integer and boolean tensors (arrays, lists) are a
gather. Both are found again by the tensor's layout and the index as it was written. Assignment
writes the same places and gives the whole new value.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.buffer import Buffer
from weft.errors import DTypeError, IndexRangeError, ShapeError
from weft.ops.basic_index import basic_assign, basic_index
from weft.ops.define import Value, installed
from weft.ops.indexing import take
from weft.tensor.gather import Gather, fitted, out_of_range_of
from weft.tensor.index_parse import PLACE, parse

#: indices remembered
PLANS = 4096

_gets: dict[Any, Any] = {}
_sets: dict[Any, Any] = {}


def get(x: Value, index: Any) -> Value:
    """x[index]."""
    if isinstance(index, Value):
        return _rows(x, index)
    key = index if index.__class__ is int else _spelling(index)
    try:
        plan = _gets[x.data.layout, key]
    except (KeyError, AttributeError):
        return _get(x, index, key)
    if plan.__class__ is Gather:
        return plan.read(x, [e for e in index if isinstance(e, Value)])
    return installed.launch(plan, x)


def set(x: Value, index: Any, value: Any) -> Value:
    """The value that x has after x[index] = value."""
    key = index if index.__class__ is int else _spelling(index)
    try:
        as_given = value.data.layout if isinstance(value, Value) else value.__class__
        plan = _sets[x.data.layout, key, as_given]
    except (KeyError, AttributeError):
        return _set(x, index, key, value)
    return installed.launch(plan, x, value)


def _rows(x: Value, index: Value) -> Value:
    """x[index] for one tensor: if it is of integers and was seen before, straight to its plan."""
    try:
        plan = take.plans[x.data.layout, index.data.layout, 0]
    except (KeyError, AttributeError):
        return get(x, (index,))
    try:
        return installed.launch(plan, x, index)
    except IndexRangeError:
        raise out_of_range_of(parse(index, x.type.shape).groups, x) from None  # type: ignore[arg-type]


def _spelling(index: Any) -> tuple[Any, ...] | None:
    """An index as something that can be looked up, tensors standing for their layouts; None where
    that is not known. 1, True and 1.0 must not be taken for each other, so only plain ints and
    slices of them have one.
    """
    out: list[Any] = []
    for e in index if index.__class__ is tuple else (index,):
        if e.__class__ is int or e is None or e is Ellipsis:
            out.append(e)
        elif e.__class__ is slice:
            a, b, s = e.start, e.stop, e.step
            if (
                (a is None or a.__class__ is int)
                and (b is None or b.__class__ is int)
                and (s is None or s.__class__ is int)
            ):
                out.append((a, b, s))
            else:
                return None
        elif isinstance(e, Value) and isinstance(e.data, Buffer):
            out.append(e.data.layout)
        else:
            return None
    return tuple(out)


def _remember(where_: dict[Any, Any], key: Any, what: Any) -> None:
    if what is not None:
        if len(where_) >= PLANS:
            where_.clear()
        where_[key] = what


def _get(x: Value, index: Any, key: Any) -> Value:
    p = parse(index, x.type.shape)  # type: ignore[arg-type]
    known = key is not None and isinstance(x.data, Buffer)
    if p.groups:
        gather = Gather(p, x.type.shape)
        if known:
            _remember(_gets, (x.data.layout, key), gather)
        return gather.read(x, [g.picks for g in p.groups])
    out: Value = basic_index(x, **p.basic)
    if known:
        layout = x.data.layout
        _remember(_gets, (layout, key), basic_index.plans.get((layout, *p.basic.values())))
    return out


def _set(x: Value, index: Any, key: Any, value: Any) -> Value:
    v = value if value.__class__ in (float, int, bool) else as_value(value)
    layout = x.data.layout if isinstance(x.data, Buffer) else None
    gather = _gets.get((layout, key)) if key is not None else None
    if gather.__class__ is Gather:
        tensors = index if index.__class__ is tuple else (index,)
        return gather.write(x, [e for e in tensors if isinstance(e, Value)], v)
    p = parse(index, x.type.shape)  # type: ignore[arg-type]
    if p.groups:
        gather = Gather(p, x.type.shape)
        if key is not None and layout is not None:
            _remember(_gets, (layout, key), gather)
        return gather.write(x, [g.picks for g in p.groups], v)
    if isinstance(v, Value):
        v = fitted(v, len(p.basic["axes"]))
    out: Value = basic_assign(x, v, **p.basic)
    if key is not None and v is value and isinstance(x.data, Buffer):
        given = v.data.layout if isinstance(v, Value) else v.__class__
        plan = basic_assign.plans.get((x.data.layout, given, *p.basic.values()))
        _remember(_sets, (x.data.layout, key, given), plan)
    return out


def as_value(x: Any) -> Value:
    """A tensor of anything that assignment takes: numbers, arrays, nested lists."""
    if isinstance(x, Value):
        return x
    try:
        a = np.asarray(x)
    except (ValueError, TypeError):
        raise ShapeError(
            PLACE, expected="a value whose lists have equal lengths", got=type(x).__name__
        ) from None
    if a.dtype.kind not in "biuf" and a.dtype.name != "bfloat16":
        raise DTypeError(
            PLACE, expected="a tensor, numbers, or nested lists of them", got=type(x).__name__
        )
    return installed.lift(a)
