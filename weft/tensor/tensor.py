"""The Tensor: one class, holding a buffer or a graph node.

A tensor is a cell. Its value never changes under another tensor: slices and transposes share memory
for speed, but `x[i] = v`, `x += 1` and `x.assign(v)` give the object another value and leave every
other tensor as it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.autodiff.backward import backward, grad_of, set_grad
from weft.autodiff.mode import recording
from weft.autodiff.tape import Leaf, new_leaf
from weft.buffer import Buffer
from weft.buffer.dlpack import to_dlpack
from weft.buffer.interchange import copy_from_numpy, read_number, to_numpy
from weft.errors import CaptureError, DTypeError, GradError, ShapeError, SharingError
from weft.ir import user_location
from weft.ops import elementwise as ew
from weft.ops.define import Value, capturing, changes, data_of, installed, real, standard_mode
from weft.ops.movement import alias
from weft.tensor import display, dtypes, elementwise, indexing, products, shapes, statistics
from weft.tensor.arguments import flag, on_cpu
from weft.tensor.elsewhere import Elsewhere, put_all
from weft.tensor.operators import binary, comparing, dividing
from weft.types import DType, as_dtype

Axes = int | Sequence[int] | None

_pow = binary(ew.pow)


class Tensor(Value):
    """An array of numbers that remembers how it was made, where that is wanted.

    >>> import weft as wf
    >>> x = wf.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([[2., 4.],
            [6., 8.]])
    """

    __slots__ = ("__weakref__",)
    __array_priority__ = 1000

    def __init__(self, data: Any, note: Any = None) -> None:
        if data.__class__ is not Buffer and not hasattr(data, "type"):
            got, hint = type(data).__name__, "make a tensor with wf.tensor(...)"
            raise DTypeError("Tensor", expected="memory or a graph node", got=got, hint=hint)
        self.data, self.note, self.leaf = data, note, None

    # what it is

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return self.type.shape  # type: ignore[return-value]

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self.type.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.type.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.type.size

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return self.type.nbytes

    @property
    def device(self) -> str:
        """Where the elements are."""
        return "cpu"

    @property
    def T(self) -> Tensor:
        """The axes reversed; for matrices, the transpose."""
        return shapes.permute_dims(self, tuple(range(self.ndim))[::-1])

    @property
    def mT(self) -> Tensor:
        """The last two axes swapped."""
        return shapes.matrix_transpose(self)

    # gradients

    @property
    def requires_grad(self) -> bool:
        """Whether gradients are noted for this tensor."""
        return self.note is not None

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        flag(wanted, "requires_grad")
        if not wanted:
            if not self.is_leaf:
                raise GradError(
                    "requires_grad",
                    expected="a tensor that no op made, to stop noting gradients for",
                    got=f"the result of {self.note.call.op.name}",
                    hint="use .detach()",
                )
            self.note = self.leaf = None
            changes.note()
        elif self.note is None:
            if not self.dtype.is_float:
                raise GradError("requires_grad", expected="a floating dtype", got=self.dtype.name)
            self.note = self.leaf = new_leaf(self)
            changes.note()

    def requires_grad_(self, wanted: bool = True) -> Tensor:
        """Set `requires_grad` and give the tensor back."""
        self.requires_grad = wanted
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether no op made this tensor as far as gradients are concerned."""
        return self.note is None or isinstance(self.note, Leaf)

    @property
    def grad(self) -> Tensor | None:
        """The gradient that `backward` has added up here."""
        return None if self.leaf is None else grad_of(self.leaf)  # type: ignore[return-value]

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None and (not isinstance(value, Tensor) or value.shape != self.shape):
            raise ShapeError("grad", expected=f"a tensor of shape {self.shape}", got=repr(value))
        if self.leaf is None:
            if value is None:
                return
            raise GradError(
                "grad", expected="a tensor that requires a gradient", got="one that does not"
            )
        set_grad(self.leaf, value)

    def backward(
        self, grad: Tensor | None = None, *, retain_graph: bool = False, create_graph: bool = False
    ) -> None:
        """Add the gradient of this tensor to the `grad` of every tensor it was computed from."""
        backward(self, grad, retain_graph=retain_graph, create_graph=create_graph)

    def detach(self) -> Tensor:
        """The same value, without its history."""
        return Tensor(data_of(self))

    def clone(self) -> Tensor:
        """The same value in memory of its own; gradients flow through."""
        return ew.copy(self)

    # other forms

    def _buffer(self, place: str) -> Buffer:
        if isinstance(data := real(self), Buffer):
            return data
        raise CaptureError(
            f"{place} at {user_location()}",
            expected="a tensor with data",
            got=f"a symbolic {self.type}",
            hint="values are not known while a function is captured, or between wf.placeholder and "
            "wf.build",
        )

    def numpy(self) -> np.ndarray[Any, Any]:
        """The elements as a read-only NumPy array on the same memory."""
        return to_numpy(self._buffer("numpy()"))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        out = self.numpy()
        if dtype is not None and out.dtype != dtype:
            if copy is False:
                raise SharingError(
                    "__array__", expected=f"dtype {out.dtype} without a copy", got=str(dtype)
                )
            return out.astype(dtype)
        return out.copy() if copy else out

    def item(self) -> float | int | bool:
        """The one element, as a Python number."""
        if self.size != 1:
            raise ShapeError("item()", expected="a tensor of one element", got=str(self.type))
        data = self._buffer("item()")
        with standard_mode():  # or a denormal number may be read as zero
            return read_number(data)

    def tolist(self) -> Any:
        """Nested lists of Python numbers."""
        a = self.numpy()
        return (display.wide(a) if self.dtype.is_float else a).tolist()

    def to(self, target: Any) -> Tensor:
        """On another device ("cpu") or as another dtype."""
        if isinstance(target, str) and target == "cpu":
            return self
        if isinstance(target, str) and target.split(":")[0] in ("cuda", "gpu", "mps", "xpu", "tpu"):
            on_cpu(target, "to()")
        return dtypes.astype(self, target)

    def assign(self, value: Any) -> Tensor:
        """Give this tensor another value of the same shape; others that shared its memory keep
        theirs.
        """
        v = value if isinstance(value, Tensor) else installed.lift(value)
        if v.type.shape != self.type.shape:
            v = shapes.broadcast_to(v, self.shape)
        if v.type.dtype is not self.type.dtype:
            v = dtypes.astype(v, self.dtype)
        self._rebind(v if v.note is None else alias(v))
        return self

    def _rebind(self, new: Value) -> None:
        """Take over a value. Without a history of its own it leaves a leaf what it is."""
        data, c = new.data, capturing.now
        if c is not None and c.takes((new,)):
            data = data_of(new)
            c.write(self)
        noted = new.note if recording.get() else None
        note = noted if noted is not None else self.leaf
        if note is not self.note or new.type is not self.type:
            changes.note()
            self.note = note
        if self.__class__ is Tensor:
            self.data = data
        else:
            Value.data.__set__(self, data)  # type: ignore[misc]  # `p.data = v` is refused

    # Python protocols

    def __rmatmul__(self, other: Any) -> Tensor:
        return products.matmul(other, self)

    def __pow__(self, n: Any) -> Tensor:
        exact = self.dtype.is_float or (self.dtype.is_int and n.__class__ is int)
        if exact and n.__class__ in (int, float) and n == 2:
            return elementwise.square(self)
        return _pow(self, n)

    def __len__(self) -> int:
        if not self.shape:
            raise ShapeError("len()", expected="at least one axis", got=str(self.type))
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        return (self[i] for i in range(len(self)))

    def __setitem__(self, index: Any, value: Any) -> None:
        self._rebind(indexing.set(self, index, value))

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ShapeError(
                "bool()",
                expected="a tensor of one element",
                got=str(self.type),
                hint="use .any() or .all(), or & | ~ between conditions",
            )
        if not isinstance(real(self), Buffer):
            raise CaptureError(
                f"bool() at {user_location()}",
                expected="a value known while capturing",
                got=f"a symbolic {self.type}",
                hint="a branch on a tensor would be frozen; wf.where or wf.cond is part of it",
            )
        return bool(self.numpy().reshape(())[()])

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        if not (self.dtype.is_int and self.size == 1):
            raise DTypeError("index", expected="one integer", got=str(self.type))
        if not isinstance(real(self), Buffer):
            raise CaptureError(
                f"an index, size or key at {user_location()}",
                expected="a number that is known while capturing",
                got="one that depends on tensors",
                hint="index a tensor instead (wf.stack makes one of a list), or use wf.switch",
            )
        return int(self.item())

    def __contains__(self, x: Any) -> bool:
        return bool(statistics.any(elementwise.equal(self, x)))

    def __divmod__(self, other: Any) -> Any:
        whole = Tensor.__floordiv__(self, other)
        return whole if whole is NotImplemented else (whole, self % other)

    def __rdivmod__(self, other: Any) -> Any:
        whole = Tensor.__rfloordiv__(self, other)
        return whole if whole is NotImplemented else (whole, other % self)

    def __round__(self, digits: Any = None) -> Tensor:
        return elementwise.round(self) if digits is None else elementwise.rounded(self, digits)

    __hash__ = object.__hash__

    def __format__(self, spec: str) -> str:
        if spec and self.size == 1:
            return format(self.item(), spec)
        try:
            return format(str(self), spec)
        except ValueError:
            raise ShapeError(
                "format",
                expected=f"one element, to write it as {spec!r}",
                got=str(self.type),
                hint="format the elements of .tolist()",
            ) from None

    def __repr__(self) -> str:
        return display.text(self)

    def _repr_html_(self) -> str:
        return display.html(self)

    def __copy__(self) -> Tensor:
        return _rebuild(data_of(self), self.leaf is not None)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        out = _rebuild(copy_from_numpy(self.numpy()), self.leaf is not None)
        memo[id(self)] = out
        return out

    def __reduce__(self) -> tuple[Any, ...]:
        a = np.ascontiguousarray(self.numpy())
        return _unpickle, (a.tobytes(), self.shape, self.dtype.name, self.leaf is not None)

    def __dlpack__(self, **kwargs: Any) -> Any:
        return to_dlpack(self._buffer("__dlpack__"), **kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    if TYPE_CHECKING:  # what checkers see of the operators, and of METHODS below

        def _with_one(self, other: Any, /) -> Tensor: ...

        __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _with_one
        __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _with_one
        __rpow__ = __matmul__ = __and__ = __rand__ = __or__ = __ror__ = _with_one
        __xor__ = __rxor__ = __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _with_one
        __lt__ = __le__ = __gt__ = __ge__ = matmul = pow = _with_one
        __eq__ = __ne__ = _with_one  # type: ignore[assignment]

        def _alone(self) -> Tensor: ...

        __neg__ = __pos__ = __abs__ = __invert__ = _alone
        abs = acos = acosh = asin = asinh = atan = atanh = ceil = cos = cosh = digamma = _alone
        erf = erfc = erfinv = exp = exp2 = expm1 = floor = isfinite = isinf = isnan = _alone
        lgamma = log = log10 = log1p = log2 = logical_not = reciprocal = relu = round = _alone
        rsqrt = sigmoid = sign = sin = sinh = softplus = sqrt = square = tan = tanh = _alone
        trunc = _alone

        def _folded(self, axis: Axes = None, keepdims: bool = False) -> Tensor: ...

        all = any = max = mean = min = _folded

        def _summed(
            self, axis: Axes = None, keepdims: bool = False, dtype: Any = None
        ) -> Tensor: ...

        prod = sum = _summed

        def _spread(
            self, axis: Axes = None, keepdims: bool = False, *, correction: float = 0.0
        ) -> Tensor: ...

        std = var = _spread

        def _placed(self, axis: int | None = None, keepdims: bool = False) -> Tensor: ...

        argmax = argmin = _placed

        def __getitem__(self, index: Any) -> Tensor: ...
        def astype(self, dtype: Any, *, copy: bool = True) -> Tensor: ...
        def broadcast_to(self, shape: int | Sequence[int]) -> Tensor: ...
        def clip(self, min: Any = None, max: Any = None) -> Tensor: ...
        def expand_dims(self, axis: int | Sequence[int] = 0) -> Tensor: ...
        def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Tensor: ...
        def lerp(self, end: Any, weight: Any, /) -> Tensor: ...
        def moveaxis(
            self, source: int | Sequence[int], destination: int | Sequence[int]
        ) -> Tensor: ...
        def permute_dims(self, *axes: int | Sequence[int]) -> Tensor: ...
        def reshape(self, *shape: int | Sequence[int]) -> Tensor: ...
        def squeeze(self, axis: Axes = None) -> Tensor: ...
        def unstack(self, axis: int = 0) -> tuple[Tensor, ...]: ...

    else:
        __add__, __radd__ = binary(ew.add), binary(ew.add, flip=True)
        __sub__, __rsub__ = binary(ew.subtract), binary(ew.subtract, flip=True)
        __mul__, __rmul__ = binary(ew.multiply), binary(ew.multiply, flip=True)
        __truediv__, __rtruediv__ = binary(ew.divide), binary(ew.divide, flip=True)
        __floordiv__, __rfloordiv__ = dividing(ew.floor_divide), binary(ew.floor_divide, flip=True)
        __mod__, __rmod__ = dividing(ew.remainder), binary(ew.remainder, flip=True)
        __rpow__ = binary(ew.pow, flip=True)
        __matmul__ = products.matmul
        __and__, __rand__ = binary(ew.bitwise_and), binary(ew.bitwise_and, flip=True)
        __or__, __ror__ = binary(ew.bitwise_or), binary(ew.bitwise_or, flip=True)
        __xor__, __rxor__ = binary(ew.bitwise_xor), binary(ew.bitwise_xor, flip=True)
        __lshift__ = binary(ew.bitwise_left_shift)
        __rlshift__ = binary(ew.bitwise_left_shift, flip=True)
        __rshift__ = binary(ew.bitwise_right_shift)
        __rrshift__ = binary(ew.bitwise_right_shift, flip=True)
        __eq__, __ne__ = comparing(ew.equal), comparing(ew.not_equal)
        __lt__, __le__ = comparing(ew.less), comparing(ew.less_equal)
        __gt__, __ge__ = comparing(ew.greater), comparing(ew.greater_equal)
        __neg__, __pos__, __abs__ = elementwise.negative, elementwise.positive, elementwise.abs
        __invert__ = elementwise.bitwise_invert
        __getitem__ = indexing.get
        reshape, permute_dims = shapes.reshape_method, shapes.permute_method

        def __dir__(self) -> list[str]:
            kind = type(self)
            return [n for n in object.__dir__(self) if not isinstance(vars(kind).get(n), Elsewhere)]


def _in_place(name: str) -> None:
    """`x += y` gives x another value; it must keep its shape and dtype."""
    op = getattr(Tensor, f"__{name}__")

    def method(self: Tensor, other: Any) -> Tensor:
        new = op(self, other)
        if new is NotImplemented:
            return new
        if new.type.shape != self.type.shape:
            raise ShapeError(
                f"in-place {name}", expected=f"a result of shape {self.shape}", got=str(new.type)
            )
        if "biuf".index(new.dtype.kind) > "biuf".index(self.dtype.kind) and not (
            new.dtype.is_int and self.dtype.is_int
        ):
            got = f"{new.dtype.name}, which {self.dtype.name} does not hold"
            raise DTypeError(f"in-place {name}", expected="a result of the same kind", got=got)
        return self.assign(new)

    method.__name__ = f"__i{name}__"
    setattr(Tensor, f"__i{name}__", method)


for _name in (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow",
    "and", "or", "xor", "lshift", "rshift",
):  # fmt: skip
    _in_place(_name)


#: functions that are methods too, under the same name
METHODS = {
    elementwise: """abs acos acosh asin asinh atan atanh ceil clip cos cosh digamma erf erfc erfinv
        exp exp2 expm1 floor isfinite isinf isnan lerp lgamma log log10 log1p log2 logical_not pow
        reciprocal relu round rsqrt sigmoid sign sin sinh softplus sqrt square tan tanh trunc""",
    statistics: "all any argmax argmin max mean min prod std sum var",
    shapes: "broadcast_to expand_dims flatten moveaxis squeeze unstack",
    dtypes: "astype",
    products: "matmul",
}

for _module, _names in METHODS.items():
    for _name in _names.split():
        setattr(Tensor, _name, getattr(_module, _name))


put_all(Tensor, Buffer)


def _rebuild(data: Any, requires_grad: bool) -> Tensor:
    out = Tensor(data)
    if requires_grad:
        out.requires_grad = True
    return out


def _unpickle(raw: bytes, shape: tuple[int, ...], dtype: str, requires_grad: bool) -> Tensor:
    a = np.frombuffer(raw, as_dtype(dtype).np).reshape(shape)
    return _rebuild(copy_from_numpy(a), requires_grad)


installed.tensor = Tensor
