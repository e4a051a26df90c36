"""Index functions: every element of the result from elements of the operands at indices that a rule
computes.

The rule of an op is run once, on symbols, and becomes one scalar expression. Sizes, strides and the
integers among the op's attributes are parameters of the kernel, so that a new shape or a new start
compiles nothing; a rule that looks at an attribute (`if step == 1`) decides for itself what is
worth a kernel of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.buffer import Layout
from weft.ops.rules import Flat
from weft.ops.scalar import Known, Scalar, const, index, load, param, select, text, walk
from weft.schedule.extern import TASK, pieces
from weft.schedule.launch import HEAVY, Launch, Phase
from weft.types import DType, TensorType
from weft.types.dtype import int64
from weft.types.record import dataclass

Operand = Layout | DType  # a bare dtype: a Python scalar, passed in memory of that dtype


@dataclass(frozen=True, eq=False)
class AtSpec:
    """`root` at every index of a dense result of `rank` axes (at least one), over operands of
    `dtypes` and `ranks`.

    Params: `extra` of the rule, rows of a task, tasks of a row, elements of such a piece, rows,
    sizes of the result, then the strides of every operand. Task = row block * tasks of a row +
    piece.
    """

    root: Scalar
    dtypes: tuple[DType, ...]
    ranks: tuple[int, ...]
    rank: int
    extra: int

    def key(self) -> str:
        operands = " ".join(f"{d.short}:{r}" for d, r in zip(self.dtypes, self.ranks, strict=True))
        return f"at {self.rank} {self.extra} {operands}\n{text(self.root)}"

    def __hash__(self) -> int:
        return hash(self.key())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AtSpec) and self.key() == other.key()


class Loader:
    """What a rule sees of an operand: call it with one index per axis for the element there."""

    def __init__(
        self, position: int, shape: tuple[int, ...], sizes: tuple[Scalar, ...], dtype: DType
    ) -> None:
        self.position, self.static, self.shape, self.dtype = position, shape, sizes, dtype

    def __call__(
        self, at: Sequence[Any], where: Scalar | None = None, otherwise: Any = None
    ) -> Scalar:
        """The element at the indices `at`. Where `where` does not hold nothing is read and the
        result is `otherwise`.
        """
        indices = [i if isinstance(i, Scalar) else _lifted(i) for i in at]
        if len(indices) != len(self.static):
            raise TypeError(f"an operand of {len(self.static)} axes read at {len(indices)} indices")
        if where is None:
            return load(self.position, indices, self.dtype)
        there = load(self.position, [*indices, where], self.dtype)
        if isinstance(otherwise, Scalar):
            return select(where, there, otherwise.cast(self.dtype))
        return select(where, there, const(otherwise or 0, self.dtype.compute).cast(self.dtype))


def _lifted(i: int) -> Scalar:
    return param(i.position) if isinstance(i, Known) else const(i, int64)


def plan_at(
    rule: Callable[..., Scalar], ins: Sequence[Operand], attrs: dict[str, Any], out_type: TensorType
) -> Launch:
    """Run `rule(index, *loaders, **attrs)` at every index of the result."""
    out = Layout.dense(out_type)
    if out_type.size == 0:
        return Launch((out,))
    where: Any = tuple(index(a) for a in range(out_type.ndim))
    if isinstance(rule, Flat):  # one long row
        rule, attrs = rule.rule, {k: v for k, v in attrs.items() if k != "shape"}
        out_type, where = TensorType((out_type.size,), out_type.dtype), index(0)
    params: list[int] = []

    def parameter(value: int) -> Known:
        params.append(value)
        return Known.at(value, len(params) - 1)

    known = {k: _knowing(v, parameter) for k, v in attrs.items()}
    loaders, dtypes, strides = [], [], []
    for n, x in enumerate(ins):
        dtypes.append(x.type.dtype if isinstance(x, Layout) else x)
        strides.append(x.strides if isinstance(x, Layout) else ())
        shape: Any = x.type.shape if isinstance(x, Layout) else ()
        loaders.append(
            Loader(n, shape, tuple(param(parameter(k).position) for k in shape), dtypes[-1])
        )
    root = rule(where, *loaders, **known).cast(out_type.dtype)
    sizes: Any = out_type.shape or (1,)
    spec = AtSpec(root, tuple(dtypes), tuple(map(len, strides)), len(sizes), len(params))
    inner = sizes[-1]
    rows, per_row = out_type.size // inner, pieces(inner, TASK)
    piece = pieces(pieces(inner, per_row), 64) * 64 if per_row > 1 else inner
    per_row = pieces(inner, piece)
    reads = sum(n.verb == "load" for n in walk([root]))
    block = max(1, TASK // inner // max(1, reads // 2)) if per_row == 1 else 1
    tasks = pieces(rows, block) * per_row
    numbers = (*params, block, per_row, piece, rows, *sizes, *(s for x in strides for s in x))
    return Launch(
        (out,), (Phase(spec, tasks),), numbers, heavy=out_type.size >= HEAVY and tasks > 1
    )


def _knowing(value: Any, parameter: Callable[[int], Known]) -> Any:
    """The attribute with its ints made parameters."""
    if type(value) is int:
        return parameter(value)
    if isinstance(value, tuple):
        return tuple(_knowing(v, parameter) for v in value)
    return value
