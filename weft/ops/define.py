"""The op record, the value every op takes and gives, and the one door all calls go through.

A call means one of two things, decided by its inputs: symbolic (some input is a graph node: the
call becomes a node) or eager (a plan for these layouts is looked up, or made by the `Eager` mode
that the runtime installs, and launched).
"""

from __future__ import annotations

import functools
import inspect
import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from weft.buffer import Buffer
from weft.errors import DTypeError, ShapeError, WeftError
from weft.ir import Node, user_location
from weft.ir.lexer import did_you_mean
from weft.ops import attributes
from weft.ops.operand import check_range, is_live, number_node, strong
from weft.types import TensorType
from weft.types.size import Number, is_symbolic, plain

F = TypeVar("F", bound=Callable[..., Any])
Weak = type  # the class of a Python scalar operand: float, int or bool
Type = TensorType | Weak
Types = TensorType | tuple[TensorType, ...]


class Value:
    """What ops take and give: a buffer or a graph node, and the tape's note on how it came about.

    The user's Tensor is its only subclass; operators and methods are defined there.
    """

    __slots__ = ("data", "leaf", "note")
    data: Any  # a Buffer or a graph Node; on the tape also what stands for elements long gone
    note: Any
    leaf: Any

    def __init__(self, data: Any, note: Any = None, leaf: Any = None) -> None:
        self.data, self.note, self.leaf = data, note, leaf

    @property
    def type(self) -> TensorType:
        data = self.data
        out: TensorType = data.layout.type if isinstance(data, Buffer) else data.type
        return out

    if TYPE_CHECKING:  # installed by the tensor room

        @property
        def shape(self) -> tuple[int, ...]: ...
        @property
        def size(self) -> int: ...
        def numpy(self) -> Any: ...
        def item(self) -> Any: ...
        def tolist(self) -> Any: ...
        def __add__(self, o: Any) -> Value: ...
        def __radd__(self, o: Any) -> Value: ...
        def __sub__(self, o: Any) -> Value: ...
        def __rsub__(self, o: Any) -> Value: ...
        def __mul__(self, o: Any) -> Value: ...
        def __rmul__(self, o: Any) -> Value: ...
        def __truediv__(self, o: Any) -> Value: ...
        def __rtruediv__(self, o: Any) -> Value: ...
        def __pow__(self, o: Any) -> Value: ...
        def __matmul__(self, o: Any) -> Value: ...
        def __neg__(self) -> Value: ...
        def __getitem__(self, i: Any) -> Value: ...
        def __lt__(self, o: Any) -> Value: ...
        def __gt__(self, o: Any) -> Value: ...
        def __le__(self, o: Any) -> Value: ...
        def __ge__(self, o: Any) -> Value: ...


class Call:
    """An op applied to operands of given types: what a plan is made for and what the tape notes.

    `pullback`, which the tape sets on calls that have a plan, is their gradient as launches.
    """

    __slots__ = ("attrs", "op", "out", "pullback", "types")

    def __init__(
        self, op: Op, types: tuple[Type, ...], attrs: dict[str, Any], out: Types | None = None
    ) -> None:
        self.op, self.types, self.attrs, self.out = op, types, attrs, out
        self.pullback: Any = None

    def __repr__(self) -> str:
        said = [t.__name__ if isinstance(t, type) else str(t) for t in self.types]
        said += [f"{k}={v}" for k, v in self.attrs.items() if k != "regions"]
        return f"{self.op.name}({', '.join(said)})"


class Eager(Protocol):
    """How calls on real data run. The runtime installs its own at import."""

    def first(self, op: Op, xs: tuple[Any, ...], attrs: dict[str, Any]) -> Any: ...


class _Installed:
    """What later rooms install: the eager mode (runtime), the Tensor class (tensor), the
    symbolic tape (autodiff).
    """

    eager: Eager
    launch: Callable[..., Any]  # (plan, *operands) -> Tensor, the native call
    enter_mode: Callable[[], int]  # sets the floating-point mode that bits are defined for
    leave_mode: Callable[[int], None]  # sets the one that was found again
    tensor: type[Value] = Value
    lift: Callable[[Any], Value]
    random_state: tuple[Callable[[], Any], Callable[[Any], None]]  # how to read and set it
    note: Callable[[Call, tuple[Any, ...], tuple[Value, ...]], None]
    static: Callable[[Any], Callable[..., Any] | None] | None = None  # of a module: its static form


installed = _Installed()


class Capture(Protocol):
    """A function being run into a graph, in this thread.

    Every call becomes a node of it; of a graph made `by_hand` those on symbols, on tensors that
    require a gradient, and all `inside` modules and optimizers.
    """

    by_hand: bool
    inside: int

    def takes(self, xs: tuple[Any, ...]) -> bool:
        """Whether a call on these operands becomes a node."""

    def read(self, x: Value) -> Node:
        """The node that stands for a tensor from outside: its value when the program is called."""

    def write(self, x: Value) -> None:
        """Told before a tensor is changed in place: given another value."""

    def keep(self, x: Value) -> None:
        """Told to note what a tensor holds, before it is given what it was found to hold."""

    def read_grad(self, leaf: Any) -> Any:
        """The gradient a leaf has when the program is called."""

    def write_grad(self, leaf: Any) -> None:
        """Told before a leaf is given another gradient."""

    def own_leaf(self, leaf: Any) -> None:
        """Told of a leaf whose tensor is part of the graph: its gradient is no one else's."""

    def number(self, read: Callable[[], float]) -> Any:
        """An input for a Python number that is read at every call."""

    def scalar(self, x: Number) -> Node:
        """The input for a number that comes of arguments."""

    def draw(self, count: int) -> tuple[Any, Any]:
        """Key and first counter of so many random numbers."""

    def position(self) -> Any:
        """Where the random generator is."""

    def rewind(self, position: Any) -> None:
        """Draw from there on again."""


class _Capturing(threading.local):
    now: Capture | None = None


capturing = _Capturing()


class _Changes:
    """Moves on whenever a tensor that is there is given another type or another place on the tape:
    what programs that read it have to look at again.
    """

    def __init__(self) -> None:
        self._count = itertools.count(1)
        self.now = 0

    def note(self) -> None:
        self.now = next(self._count)


changes = _Changes()


def host_number(read: Callable[[], float]) -> Any:
    """A number that a program reads anew on every call (a learning rate), to use as an operand.

    Run op by op it is the number; in a captured program an input, so that another value captures
    nothing again.
    """
    return read() if capturing.now is None else capturing.now.number(read)


def data_of(x: Value) -> Any:
    """What a value holds; while a function is captured, always a node."""
    c = capturing.now
    return x.data if c is None or not isinstance(x.data, Buffer) else c.read(x)


class closed:
    """A block in which an op's own rules are run on symbols: no part of what is being captured."""

    def __enter__(self) -> None:
        self.outside, capturing.now = capturing.now, None

    def __exit__(self, *_: object) -> None:
        capturing.now = self.outside


class inside:
    """A block of a module's or an optimizer's own: part of a graph made by hand, whatever it is
    computed from.
    """

    def __enter__(self) -> None:
        if capturing.now is not None:
            capturing.now.inside += 1

    def __exit__(self, *_: object) -> None:
        if capturing.now is not None:
            capturing.now.inside -= 1


def real(x: Value) -> Any:
    """What a value holds where its elements are asked for: a Buffer, if they may be known."""
    c = capturing.now
    return x.data if c is None or c.by_hand else data_of(x)


def fresh(data: Buffer) -> Any:
    """A new tensor of data that nobody else has; while a function is captured, a constant of it."""
    if capturing.now is None or capturing.now.by_hand:
        return installed.tensor(data)
    type_ = data.layout.type
    return installed.tensor(Node(constant, (), (("value", data), ("type", type_)), type_))


class standard_mode:
    """A block in the floating-point mode that bits are defined for, whatever the host has set.

    Kernels see to it themselves; this is for the numbers that Python rounds on the way to them.
    """

    __slots__ = ("host",)

    def __enter__(self) -> None:
        self.host = installed.enter_mode()

    def __exit__(self, *_: object) -> None:
        installed.leave_mode(self.host)


def in_standard_mode(f: F) -> F:
    """A function whose body is such a block."""

    @functools.wraps(f)
    def inner(*args: Any, **kwargs: Any) -> Any:
        with standard_mode():
            return f(*args, **kwargs)

    return inner  # type: ignore[return-value]


@dataclass(frozen=True, eq=False, slots=True)
class Op:
    """Everything the framework knows about an operation.

    `infer` maps operand types and attributes to the result's type. Exactly one of `scalar`, `at`,
    `fold`, `contract`, `extern`, `body` says what the result is; `view`, where given, lets the
    result share its operand's memory instead.
    """

    name: str
    infer: Callable[..., Types]
    scalar: Callable[..., Any] | None = None  # (*Scalars of the operands) -> Scalar
    at: Callable[..., Any] | None = None  # (index, *loaders, **attrs) -> Scalar
    fold: str | None = None  # a monoid of ops/monoids.py
    contract: Callable[..., Any] | None = None  # (*types, **attrs) -> Contraction
    extern: str | None = None  # the name of a hand-written kernel family
    body: Callable[..., Any] | None = None  # (*values, **attrs) -> values, said in other ops
    view: Callable[..., Any] | None = (
        None  # (layout, **attrs) -> (Layout, offset in elements) or None
    )
    vjp: Callable[..., tuple[Any, ...]] | None = (
        None  # (g, y, *xs, **attrs) -> cotangents, thunks or None
    )
    onnx: Any = None
    reference: Callable[..., Any] | None = None  # NumPy arrays -> array; tests only
    samples: Callable[[], Any] | None = None  # inputs worth testing
    doc: str = ""
    dense: bool = False  # operands must be laid out densely (hand-written kernels)
    effect: bool = False  # a call does something: it is not made ahead of time, nor left out
    plans: dict[Any, Any] = field(default_factory=dict, repr=False)

    def __call__(self, *xs: Any, **attrs: Any) -> Any:
        try:
            plan = self.plans[
                (
                    *[x.data.layout if isinstance(x, Value) else x.__class__ for x in xs],
                    *attrs.values(),
                )
            ]
        except (KeyError, AttributeError, TypeError):
            plan = None  # nothing raised behind the door should show this miss as its cause
        return enter(self, xs, attrs) if plan is None else installed.launch(plan, *xs)


#: every op record, by name: what laws, the parser and exporters go over
OPS: dict[str, Op] = {}


_KINDS = ("scalar", "at", "fold", "contract", "extern", "body")


def register(op: Op, *, computes: bool = True) -> Op:
    """Note the record under its name; a name is said once, and what the result is, in one way."""
    kinds = [k for k in _KINDS if getattr(op, k) is not None]
    if computes and type(op) is Op and len(kinds) != 1:
        got = " and ".join(kinds) or "none"
        raise ValueError(f"op {op.name!r}: expected exactly one of {', '.join(_KINDS)}, got {got}")
    if OPS.setdefault(op.name, op) is not op:
        raise ValueError(f"op {op.name!r} is defined twice")
    return op


def enter(op: Op, xs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
    """The door when no plan is known yet: lift the operands, then eager or symbolic as they say."""
    lifted = tuple(
        x
        if isinstance(x, Value) or type(x) in (float, int, bool) or is_symbolic(x)
        else installed.lift(x)
        for x in xs
    )
    if (capturing.now is not None and capturing.now.takes(lifted)) or any(
        isinstance(x.data, Node) if isinstance(x, Value) else is_symbolic(x)
        for x in (*lifted, *attributes.numbers(attrs))
    ):
        return record_call(op, lifted, attrs)
    with standard_mode():
        return installed.eager.first(op, lifted, attrs)


def types_of(xs: tuple[Any, ...]) -> tuple[Type, ...]:
    return tuple(x.type if isinstance(x, Value) else x.__class__ for x in xs)


def inferred(op: Op, types: tuple[Type, ...], attrs: dict[str, Any]) -> Types:
    """The type of a call's result, or an error that names the op: this is where calls are checked.

    A type rule that meets another number of operands or attributes than it has, a Python number
    where it reads a tensor's shape, or axes that are not there, fails as Python fails; here that
    is given a name.
    """
    attributes.check(op.name, attrs)
    try:
        out = op.infer(*types, **attrs)
    except WeftError:
        raise
    except (TypeError, AttributeError, LookupError, ValueError, ArithmeticError) as e:
        raise _misfit(op, types, attrs, e) from e
    if isinstance(out, (TensorType, tuple)):
        return out
    raise _misfit(op, types, attrs, TypeError())


def _misfit(op: Op, types: tuple[Type, ...], attrs: dict[str, Any], e: Exception) -> WeftError:
    kind = DTypeError if isinstance(e, (TypeError, AttributeError)) else ShapeError
    rule = inspect.signature(op.body or op.infer)
    params = [p.replace(annotation=p.empty) for p in rule.parameters.values()]
    known = [p.name for p in params if p.kind is p.KEYWORD_ONLY or p.default is not p.empty]
    other = [k for k in attrs if k not in rule.parameters]
    hint = "; ".join(filter(None, (did_you_mean(k, known) for k in other)))
    shown = rule.replace(parameters=params, return_annotation=rule.empty)
    expected = f"operands and attributes that fit {op.name}{shown}"
    return kind(op.name, expected=expected, got=str(Call(op, types, attrs)), hint=hint)


# symbolic mode

constant = register(
    Op("constant", infer=lambda *, value, type: type, doc="A value known when the graph was made."),
    computes=False,
)
parameter = register(
    Op("parameter", infer=lambda *, position, type: type, doc="An input of a function."),
    computes=False,
)
result = register(
    Op(
        "result",
        infer=lambda *_, position, type: type,
        doc="One of the results of an op that has several.",
    ),
    computes=False,
)


def record_call(op: Op, xs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
    """The call as a node (or, for several results, a node and its picks), noted on the tape
    like any other.
    """
    operand_types = types_of(xs)
    attrs = {k: _fixed(v) for k, v in attrs.items()}
    out = inferred(op, operand_types, attrs)
    check_range(op.name, xs, operand_types)
    capture = capturing.now
    live = capture is not None and any(map(is_live, xs))
    if live and op.name != "full" and inferred(op, strong(operand_types, xs), attrs) != out:
        xs, live = tuple(map(plain, xs)), False  # its weakness matters
    call = Call(op, operand_types, attrs, out)
    types = out if isinstance(out, tuple) else (out,)
    loc = user_location()
    inputs = tuple(
        number_node(op.name, OPS["full"], x, operand_types, capture.scalar)  # type: ignore[union-attr]
        if live and is_live(x)
        else as_node(x)
        for x in xs
    )
    node = Node(op, inputs, tuple(attrs.items()), types[0], loc)
    nodes = [node]
    if isinstance(out, tuple):
        nodes = [
            Node(result, (node,), (("position", i), ("type", t)), t, loc)
            for i, t in enumerate(types)
        ]
    outs = tuple(installed.tensor(n) for n in nodes)
    installed.note(call, xs, outs)
    return outs if isinstance(out, tuple) else outs[0]


def _fixed(x: Any) -> Any:
    """An attribute of a node: sizes may be symbols, numbers that change are made plain."""
    if type(x) is tuple:
        return tuple([_fixed(v) for v in x])
    return x.settled("an attribute of an op") if is_live(x) else x


def as_node(x: Any) -> Node:
    """The node that stands for a value in a graph: a constant where it has data, an input where
    it is a number of the call.
    """
    if is_live(x) and capturing.now is not None:
        return capturing.now.scalar(x)
    if not isinstance(x, Value):
        return Node(constant, (), (("value", x), ("type", x.__class__)), x.__class__)
    data = data_of(x)
    if isinstance(data, Node):
        return data
    return Node(constant, (), (("value", data), ("type", x.type)), x.type)


def placeholder(type_: TensorType, position: int = 0) -> Value:
    """A symbolic value standing for an input."""
    return installed.tensor(Node(parameter, (), (("position", position), ("type", type_)), type_))
