"""Makers: what can be derived of an op is derived here, so that most ops are one line."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from weft.errors import DTypeError
from weft.ops.cotangent import Cotangent, Formula
from weft.ops.define import Op, Type, Value, register
from weft.ops.record import infer_body
from weft.ops.samples import pointwise
from weft.ops.scalar import Scalar
from weft.types import DType, TensorType, broadcast_shapes, result_dtype
from weft.types.dtype import bool_, float32, uint8

#: what an elementwise op takes: the kinds of its common dtype, and what other kinds become
DOMAINS: dict[str, tuple[str, DType | None]] = {
    "any": ("fiub", None),
    "number": ("fiu", None),
    "float": ("f", float32),  # integers and bools are taken as float32
    "integer": ("iu", None),
    "bits": ("iub", None),
    "bool": ("b", None),
}


def common_dtype(name: str, types: tuple[Type, ...], domain: str) -> DType:
    """The dtype the operands meet in, or an error that names the op and the dtypes."""
    dtype = result_dtype(*(t.dtype if isinstance(t, TensorType) else t for t in types))
    kinds, otherwise = DOMAINS[domain]
    if dtype.kind in kinds:
        return dtype
    if otherwise is not None:
        return otherwise
    said = {"f": "floating", "i": "signed", "u": "unsigned", "b": "bool"}
    raise DTypeError(
        name,
        expected=f"{' or '.join(said[k] for k in kinds)} operands",
        got=", ".join(t.dtype.name if isinstance(t, TensorType) else t.__name__ for t in types),
        hint="convert with .astype()",
    )


def shapes(types: tuple[Type, ...]) -> list[Any]:
    return [t.shape if isinstance(t, TensorType) else () for t in types]


def elementwise(
    name: str,
    rule: Callable[..., Scalar],
    *formulas: Formula | None,
    domain: str = "number",
    gives: DType | None = None,
    bools: bool = False,
    halves: bool = False,
    onnx: Any = None,
    reference: Callable[..., Any] | None = None,
    spans: tuple[tuple[float, float], ...] = (),
    doc: str = "",
) -> Op:
    """An op that computes each element from the elements beside it.

    `rule` says so in scalar verbs, in the common dtype of the operands (float32 for the half
    types, unless it takes `halves` as they are). Broadcasting, promotion, casting and their
    gradients are derived; `formulas` are the cotangents of the operands in turn, each a function of
    (g, y, *xs). `gives` is the result's dtype where it is not the common one; `bools`: bool
    operands are taken as numbers 0 and 1 and the result is made bool again. `reference` is NumPy's
    function of that name unless said; `spans` are ranges of the operands worth testing.
    """
    if bools:
        domain = "any"

    arity = len(inspect.signature(rule).parameters)

    def infer(*types: Type) -> TensorType:
        if len(types) != arity:
            raise DTypeError(name, expected=f"{arity} operands", got=str(len(types)))
        dtype = common_dtype(name, types, domain)
        return TensorType(broadcast_shapes(*shapes(types), place=name), gives or dtype)

    def scalar(*xs: Scalar) -> Scalar:
        types = tuple(TensorType((), x.dtype) for x in xs)
        common = common_dtype(name, types, domain)
        compute = uint8 if bools and common is bool_ else common if halves else common.compute
        y = rule(*(x.cast(common).cast(compute) for x in xs))
        return y.cast(gives or common)

    cotangents = [
        None if f is None else Cotangent(f"{name}_vjp{i}", f, arity, composite)
        for i, f in enumerate(formulas)
    ]

    def vjp(g: Value, y: Value, *xs: Any) -> tuple[Any, ...]:
        if (
            len(xs) == 1 and cotangents[0] is not None
        ):  # noted because it is wanted: no need to wait
            return (like(cotangents[0].run(g, y, xs[0]), xs[0]),)
        return tuple(
            None
            if f is None or not wants_gradient(x)
            else (lambda f=f, x=x: like(f.run(g, y, *xs), x))
            for f, x in zip(cotangents, xs, strict=True)
        )

    differentiable = any(f is not None for f in formulas)
    return register(
        Op(
            name,
            infer,
            scalar=scalar,
            vjp=vjp if differentiable else None,
            onnx=onnx,
            reference=reference or getattr(np, name, None),
            samples=pointwise(arity, DOMAINS[domain][0], *spans),
            doc=doc,
        )
    )


def wants_gradient(x: Any) -> bool:
    return isinstance(x, Value) and x.type.dtype.is_float


def require_float(place: str, *xs: Value) -> None:
    """Raise unless the operands of a composite are floating."""
    for x in xs:
        if not x.type.dtype.is_float:
            raise DTypeError(
                place,
                expected="floating operands",
                got=x.type.dtype.name,
                hint="convert with .astype()",
            )


class _Later:
    """What gradients of every op need but is itself said in ops: filled in by the files that
    define it.
    """

    like: Callable[[Value, Value], Value]
    sum: Callable[..., Value]
    zeros: Callable[[TensorType], Value]
    body_vjp: Callable[[str, Callable[..., Any]], Callable[..., Any]]
    derived: Callable[[str, Callable[..., Any], int], Op]
    composite: Callable[..., Any]


later = _Later()


def like(g: Value, x: Value) -> Value:
    """A cotangent brought back to its operand's shape and dtype: the transpose of broadcasting
    and casting.
    """
    return g if g.type is x.type else later.like(g, x)


def composite(
    name: str | None = None, *, vjp: Callable[..., Any] | None = None, onnx: Any = None,
    infer: Callable[..., Any] | None = None, reference: Any = None, samples: Any = None,
) -> Callable[[Callable[..., Any]], Op]:  # fmt: skip
    """An op said in other ops, kept as one node. Type, kernel and gradient all derive from the
    body.

    >>> from weft import ops
    >>> @composite("double_it")
    ... def double_it(x):
    ...     "Twice x."
    ...     return x + x
    """

    def wrap(body: Callable[..., Any]) -> Op:
        said = name or body.__name__

        def derived(*args: Any, **attrs: Any) -> Any:
            return later.body_vjp(said, body)(*args, **attrs)

        derived.derived = True  # type: ignore[attr-defined]
        return register(
            Op(said, infer or infer_body(said, body), body=body, vjp=vjp or derived, onnx=onnx,
               reference=reference, samples=samples, doc=body.__doc__ or "")
        )  # fmt: skip

    return wrap


later.composite = composite
