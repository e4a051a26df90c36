"""Running a program node by node, each op as eager code would call it: what a program means."""

from __future__ import annotations

from typing import Any

from weft.errors import GuardError, WeftError
from weft.ir import Function, Node
from weft.ops.define import Value, constant, fresh, installed, result
from weft.types import Dim, TensorType

Sizes = dict[str, int]


def evaluate(f: Function, *values: Any) -> tuple[Any, ...]:
    """The results of `f` on tensors and Python numbers."""
    if len(values) != len(f.params):
        raise GuardError(f.name, expected=f"{len(f.params)} arguments", got=str(len(values)))
    sizes: Sizes = {}
    pairs = zip(f.params, values, strict=True)
    env = {p: _argument(f, p, i, v, sizes) for i, (p, v) in enumerate(pairs)}
    for n in f.order:
        if n.op is constant:
            value = _bound(n.attr("value"), sizes)
            env[n] = value if type(value) in (float, int, bool) else fresh(value)
        elif n.op is result:
            env[n] = env[n.inputs[0]][n.attr("position")]
        else:
            env[n] = _call(n, [env[i] for i in n.inputs], sizes)
    return tuple(env[r] for r in f.results)


def _call(n: Node, xs: list[Any], sizes: Sizes) -> Any:
    attrs = {k: _bound(v, sizes) for k, v in n.attrs} if sizes else dict(n.attrs)
    if n.regions:
        attrs["regions"] = n.regions
    try:
        return n.op(*xs, **attrs)  # type: ignore[operator]
    except WeftError as e:
        if n.loc is None or not n.loc.file or str(n.loc) in e.place:
            raise
        at = f"{e.place} at {n.loc}"
        raise type(e)(at, expected=e.expected, got=e.got, hint=e.hint) from None


def _bound(x: Any, sizes: Sizes) -> Any:
    """An attribute with the sizes that arguments turned out to have."""
    if isinstance(x, Dim):
        return x.at(sizes)
    if type(x) is tuple:
        return tuple(_bound(v, sizes) for v in x)
    return TensorType(_bound(x.shape, sizes), x.dtype) if isinstance(x, TensorType) else x


def _argument(f: Function, p: Node, i: int, x: Any, sizes: Sizes) -> Any:
    """The argument for a parameter, checked against its type."""
    place = f"{f.name}, argument {p.name or i}"
    type_: Any = p.type
    if not isinstance(type_, TensorType):
        if type(x) is type_ or (type_ is float and type(x) is int):
            return type_(x)
        raise GuardError(place, expected=f"a Python {type_.__name__}", got=_said(x))
    x = x if isinstance(x, Value) else installed.lift(x)
    shape, wanted = x.type.shape, type_.shape
    if x.type.dtype is not type_.dtype or len(shape) != len(wanted):
        raise GuardError(place, expected=str(type_), got=_said(x))
    for n, w in zip(shape, wanted, strict=True):
        if type(w) is Dim:
            if not w.min <= n <= (n if w.max is None else w.max):
                raise GuardError(place, expected=f"{w} within its bounds", got=_said(x))
            w = sizes.setdefault(w.name, n)
        elif isinstance(w, Dim):
            w = _computed(f, w, sizes)
        if n != w:
            known = ", ".join(f"{k} = {v}" for k, v in sizes.items())
            raise GuardError(place, expected=str(type_), got=_said(x), hint=known)
    return x


def _computed(f: Function, d: Dim, sizes: Sizes) -> int:
    """A size that is computed of others, which earlier arguments have."""
    unknown = [n.name for n in d.named() if n.name not in sizes]
    if unknown:
        raise GuardError(
            f.name,
            expected=f"{', '.join(unknown)} as the size of an argument",
            got=f"only {d}",
        )
    return d.at(sizes)


def _said(x: Any) -> str:
    return str(x.type) if isinstance(x, Value) else f"a Python {type(x).__name__}"
