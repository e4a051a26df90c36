"""Matrix products and convolutions: contractions with names."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from weft.errors import DTypeError, ShapeError
from weft.ops.contraction import Contraction, Window, contracted_type, cotangent_of_a, flipped
from weft.ops.define import Op, Value, register
from weft.ops.makers import composite, later
from weft.ops.movement import reshape
from weft.ops.samples import Sample, array
from weft.types import TensorType
from weft.types.dtype import DTYPES, float32, float64


def _vjp(c: Contraction, g: Value, a: Value, b: Value) -> tuple[Any, ...]:
    """Both cotangents are contractions again; broadcast axes are summed back."""

    def of_a() -> Value:
        spec, first = cotangent_of_a(c, a.type, b.type)
        return later.like(contract(g, b, spec=spec) if first else contract(b, g, spec=spec), a)

    def of_b() -> Value:
        spec, first = cotangent_of_a(flipped(c), b.type, a.type)
        return later.like(contract(g, a, spec=spec) if first else contract(a, g, spec=spec), b)

    return of_a, of_b


def _contract_samples() -> Iterator[Sample]:
    for d in DTYPES:
        if d.kind != "b":
            spec = Contraction(("i", "k"), ("k", "j"), ("i", "j"))
            yield Sample((array((3, 5), d), array((5, 4), d, seed=1)), {"spec": spec})
    x, w = array((2, 3, 8), float32), array((4, 3, 3), float32, seed=1)
    for stride, pad in [(1, 0), (1, 1), (2, 1)]:
        n = (8 + 2 * pad - 3) // stride + 1
        spec = Contraction(
            ("n", "c", Window("p", "t", stride, 1, pad)),
            ("o", "c", "t"),
            ("n", "o", "p"),
            (("p", n),),
        )
        yield Sample((x, w), {"spec": spec})
    bad = Contraction(("i", "k"), ("k", "j"), ("i", "j"))
    yield Sample((array((3, 5), float32), array((4, 4), float32)), {"spec": bad}, ShapeError)
    yield Sample((array((3, 5), float32), array((5, 4), float64)), {"spec": bad}, DTypeError)


def _contract_reference(a: Any, b: Any, *, spec: Contraction) -> Any:
    """Windows spelled out by indexing, then einsum."""
    sizes = dict(spec.sizes)
    for axes, t in ((spec.a, a), (spec.b, b)):
        sizes |= {n: k for n, k in zip(axes, t.shape, strict=True) if isinstance(n, str)}
    names: dict[str, str] = {}
    said = []
    arrays = []
    for axes, t in ((spec.a, a), (spec.b, b)):
        letters = ""
        k = 0
        for axis in axes:
            if isinstance(axis, Window):
                pos, tap = np.ogrid[: sizes[axis.pos], : sizes[axis.tap]]
                at = pos * axis.stride + tap * axis.dilation - axis.pad
                q, r = np.divmod(at, axis.step)
                ok = (r == 0) & (q >= 0) & (q < t.shape[k])
                t = np.take(t, np.where(ok, q, 0), axis=k)
                t = t * ok.reshape((1,) * k + ok.shape + (1,) * (t.ndim - k - 2)).astype(t.dtype)
                these: tuple[str, ...] = (axis.pos, axis.tap)
            else:
                these = (axis,)
            for n in these:
                letters += names.setdefault(n, chr(97 + len(names)))
            k += len(these)
        said.append(letters)
        arrays.append(t)
    return np.einsum(f"{','.join(said)}->{''.join(names[n] for n in spec.out)}", *arrays)


contract = register(
    Op(
        "contract",
        lambda a, b, *, spec: contracted_type(spec, a, b, "contract"),
        contract=lambda a, b, *, spec: spec,
        vjp=lambda g, y, a, b, *, spec: _vjp(spec, g, a, b),
        reference=_contract_reference,
        samples=_contract_samples,
        doc="A sum of products over named axes.",
    )
)


@lru_cache(maxsize=4096)
def _matmul_contraction(a: TensorType, b: TensorType) -> Contraction:
    if not (isinstance(a, TensorType) and isinstance(b, TensorType)) or a.ndim == 0 or b.ndim == 0:
        got = " and ".join(str(t) if isinstance(t, TensorType) else t.__name__ for t in (a, b))
        raise ShapeError(
            "matmul", expected="tensors of at least one axis", got=got, hint="use * for scalars"
        )
    batch = max(a.ndim, b.ndim) - 2
    names = tuple(f"b{i}" for i in range(max(batch, 0)))
    own_a = names[len(names) - (a.ndim - 2) :] if a.ndim > 2 else ()
    own_b = names[len(names) - (b.ndim - 2) :] if b.ndim > 2 else ()
    rows = ("i",) if a.ndim > 1 else ()
    columns = ("j",) if b.ndim > 1 else ()
    left = (*own_a, *rows, "k")
    right = (*own_b, "k", *columns)
    return Contraction(left, right, (*names, *rows, *columns))


def _matmul_type(a: Any, b: Any) -> TensorType:
    c = _matmul_contraction(a, b)
    inner_b = b.shape[-2] if b.ndim > 1 else b.shape[0]
    if a.shape[-1] != inner_b:
        raise ShapeError(
            "matmul", expected="[..., m, k] and [..., k, n]", got=f"{a} and {b}",
            hint=f"the inner sizes are {a.shape[-1]} and {inner_b}",
        )  # fmt: skip
    return contracted_type(c, a, b, "matmul")


def _matmul_samples() -> Iterator[Sample]:
    sizes: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
        ((3, 5), (5, 4)), ((5,), (5, 4)), ((3, 5), (5,)), ((5,), (5,)), ((2, 3, 5), (5, 4)),
        ((0, 5), (5, 4)), ((2, 1, 3, 5), (4, 5, 2)), ((3, 5), (2, 5, 4)), ((3, 0), (0, 4)),
        ((17, 33), (33, 40)),
    ]  # fmt: skip
    for sa, sb in sizes:
        yield Sample((array(sa, float32), array(sb, float32, seed=1)))
    for d in DTYPES:
        if d.kind != "b":
            yield Sample((array((3, 5), d), array((5, 4), d, seed=1)))
    yield Sample((array((5, 3), float32).T, array((4, 5), float32, seed=1).T))
    yield Sample((array((3, 5), float32), array((4, 5), float32)), error=ShapeError)
    yield Sample((array((3, 5), float32), array((5, 4), float64)), error=DTypeError)
    yield Sample((array((), float32), array((5, 4), float32)), error=ShapeError)


matmul = register(
    Op(
        "matmul",
        _matmul_type,
        contract=_matmul_contraction,
        vjp=lambda g, y, a, b: _vjp(_matmul_contraction(a.type, b.type), g, a, b),
        onnx="MatMul",
        reference=np.matmul,
        samples=_matmul_samples,
        doc="The matrix product over the last two axes; leading axes broadcast.",
    )
)


def _conv_labels(spatial: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return tuple(f"p{i}" for i in range(spatial)), tuple(f"t{i}" for i in range(spatial))


def _check_steps(
    place: str, stride: Any, padding: Any, dilation: Any, output_padding: Any = None
) -> None:
    more = stride if output_padding is None else output_padding
    if not len(stride) == len(padding) == len(dilation) == len(more):
        got = f"stride {stride}, padding {padding}, dilation {dilation}"
        raise ShapeError(place, expected="as many strides, paddings and dilations", got=got)
    if min((*stride, *dilation), default=1) < 1 or min((*padding, *more), default=0) < 0:
        got = f"stride {stride}, padding {padding}, dilation {dilation}"
        raise ShapeError(place, expected="steps of 1 or more and paddings of 0 or more", got=got)


def _conv_samples() -> Iterator[Sample]:
    x, w = array((2, 4, 7, 6), float32), array((6, 4, 3, 3), float32, seed=1)
    one = {"stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 1}
    yield Sample((x, w), one)
    yield Sample((x, w), one | {"padding": (1, 2)})
    yield Sample((x, w), one | {"stride": (2, 1), "padding": (1, 1)})
    yield Sample((x, w), one | {"dilation": (2, 2), "padding": (2, 2)})
    yield Sample((x, array((6, 2, 3, 3), float32)), one | {"groups": 2, "padding": (1, 1)})
    yield Sample((x, array((4, 1, 1, 1), float32)), one | {"groups": 4})
    line = {"stride": (1,), "padding": (1,), "dilation": (1,), "groups": 1}
    yield Sample((array((2, 3, 9), float32), array((5, 3, 3), float32)), line)
    yield Sample((x.astype(np.float64), w.astype(np.float64)), one)
    yield Sample((x, array((6, 3, 3, 3), float32)), one, ShapeError)
    yield Sample((x, array((6, 4, 9, 3), float32)), one, ShapeError)
    yield Sample((x, w), one | {"groups": 3}, ShapeError)


@composite("convolution", samples=_conv_samples, onnx="Conv")
def convolution(
    x: Value,
    w: Value,
    *,
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
) -> Value:
    """Cross-correlation of x (N, C, …) with w (O, C / groups, …), zeros beyond the edges.

    Terms are summed over the channels of a group, then over the taps, in row-major order.
    """
    _check_steps("convolution", stride, padding, dilation)
    spatial = len(stride)
    xs, ws = x.type.sizes, w.type.sizes
    if len(xs) != spatial + 2 or len(ws) != spatial + 2:
        raise ShapeError(
            "convolution", expected=f"{spatial + 2} axes in x and w", got=f"{x.type} and {w.type}"
        )
    if groups < 1 or xs[1] != ws[1] * groups or ws[0] % groups:
        raise ShapeError(
            "convolution",
            expected=f"x with {ws[1]} * groups channels, and w with a multiple of groups filters",
            got=f"{x.type} and {w.type} with groups={groups}",
        )
    sizes = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(xs[2:], ws[2:], stride, padding, dilation, strict=True)
    ]
    if min(sizes, default=1) < 1:
        raise ShapeError(
            "convolution",
            expected="a window no larger than the padded input",
            got=f"{x.type} and {w.type}",
            hint=f"padding={padding}, dilation={dilation}",
        )
    pos, taps = _conv_labels(spatial)
    windows = tuple(
        Window(p, t, s, d, q)
        for p, t, s, d, q in zip(pos, taps, stride, dilation, padding, strict=True)
    )
    if groups == 1:
        spec = Contraction(
            ("n", "c", *windows),
            ("o", "c", *taps),
            ("n", "o", *pos),
            tuple(zip(pos, sizes, strict=True)),
        )
        return contract(x, w, spec=spec)  # type: ignore[no-any-return]
    spec = Contraction(
        ("n", "g", "c", *windows),
        ("g", "o", "c", *taps),
        ("n", "g", "o", *pos),
        tuple(zip(pos, sizes, strict=True)),
    )
    split_x = reshape(x, shape=(xs[0], groups, ws[1], *xs[2:]))
    split_w = reshape(w, shape=(groups, ws[0] // groups, *ws[1:]))
    out = contract(split_x, split_w, spec=spec)
    return reshape(out, shape=(xs[0], ws[0], *sizes))  # type: ignore[no-any-return]


def _transposed_samples() -> Iterator[Sample]:
    x, w = array((2, 4, 3, 4), float32), array((4, 3, 3, 3), float32, seed=1)
    one = {
        "stride": (1, 1),
        "padding": (0, 0),
        "output_padding": (0, 0),
        "dilation": (1, 1),
        "groups": 1,
    }
    yield Sample((x, w), one)
    yield Sample((x, w), one | {"stride": (2, 2), "padding": (1, 1), "output_padding": (1, 1)})
    yield Sample((x, w), one | {"dilation": (2, 1)})
    yield Sample((x, array((4, 2, 3, 3), float32)), one | {"groups": 2, "stride": (2, 1)})
    yield Sample((x, array((3, 3, 3, 3), float32)), one, ShapeError)


@composite("convolution_transpose", samples=_transposed_samples, onnx="ConvTranspose")
def convolution_transpose(
    x: Value,
    w: Value,
    *,
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    output_padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
) -> Value:
    """The gradient of `convolution` with respect to its input, as a layer: x (N, C, …), w (C, O
    / groups, …).
    """
    _check_steps("convolution_transpose", stride, padding, dilation, output_padding)
    spatial = len(stride)
    xs, ws = x.type.sizes, w.type.sizes
    if (
        len(xs) != spatial + 2
        or len(ws) != spatial + 2
        or xs[1] != ws[0]
        or groups < 1
        or ws[0] % groups
    ):
        raise ShapeError(
            "convolution_transpose",
            expected=f"x (N, C, …) and w (C, O / groups, …) with {spatial} spatial axes",
            got=f"{x.type} and {w.type} with groups={groups}",
        )
    sizes = [
        (n - 1) * s - 2 * p + d * (k - 1) + e + 1
        for n, k, s, p, d, e in zip(
            xs[2:], ws[2:], stride, padding, dilation, output_padding, strict=True
        )
    ]
    if min(sizes, default=1) < 1:
        raise ShapeError(
            "convolution_transpose",
            expected="a result of at least one element",
            got=str(tuple(sizes)),
        )
    pos, taps = _conv_labels(spatial)
    windows = tuple(
        Window(p, t, 1, -d, -q, s)
        for p, t, s, d, q in zip(pos, taps, stride, dilation, padding, strict=True)
    )
    spec = Contraction(
        ("g", "c", "o", *taps),
        ("n", "g", "c", *windows),
        ("n", "g", "o", *pos),
        tuple(zip(pos, sizes, strict=True)),
    )
    split_x = reshape(x, shape=(xs[0], groups, ws[0] // groups, *xs[2:]))
    split_w = reshape(w, shape=(groups, ws[0] // groups, *ws[1:]))
    out = contract(split_w, split_x, spec=spec)
    return reshape(out, shape=(xs[0], ws[1] * groups, *sizes))  # type: ignore[no-any-return]
