"""A language of ops that mean nothing, and random programs of it: every form that the text has."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Any

import hypothesis.strategies as st
import numpy as np

from weft.buffer.interchange import copy_from_numpy
from weft.ir import Function, Language, Location, Module, Node
from weft.types import DTYPES, Dim, TensorType


@dataclass(frozen=True, eq=False)
class ToyOp:
    name: str


@dataclass(frozen=True)
class Knot:
    """A record that attributes may hold."""

    left: Any
    right: Any = 0
    weight: float = 0.0


def _infer(op: ToyOp, types: tuple, attrs: dict, regions: tuple) -> Any:
    return attrs.get("gives", attrs.get("type"))


NAMES = ("constant", "parameter", "result", "twist", "knot.tie", "fn", "return", "odd name", "_")
OPS = {name: ToyOp(name) for name in NAMES}
PLAIN = ("twist", "knot.tie", "fn", "return", "odd name", "_")
TOY = Language(
    ops=OPS,
    infer=_infer,
    parameter=OPS["parameter"],
    result=OPS["result"],
    constant=OPS["constant"],
    records={"Knot": Knot},
)

WORDS = ["f32", "true", "x", "a.b", "0", "dim", "é", '"', "\ud800"]
NAMED = ["x", "y", "w.0", "0.w", "12", "a b", "é", "~", "x~1", "_"]
DIMS = [Dim("B"), Dim("T", 1, 64), Dim("f32"), Dim("a b", 2), Dim("B.2"), Dim("nan")]
DIMS += [3 * DIMS[0] + DIMS[3] - 1, (DIMS[0] * DIMS[1] + 1) // 2, 7 - DIMS[2], DIMS[0] // DIMS[1]]
texts = st.text(max_size=6) | st.sampled_from(WORDS)
names = st.just("") | st.sampled_from(NAMED) | texts
dims = st.sampled_from(DIMS)
sizes = st.integers(0, 5) | st.integers(0, 2**16) | dims
types = st.builds(TensorType, st.lists(sizes, max_size=3), st.sampled_from(DTYPES))
floats = st.floats() | st.integers(0, 2**64 - 1).map(
    lambda bits: struct.unpack("d", struct.pack("Q", bits))[0]
)
numbers = st.booleans() | st.integers(-(2**70), 2**70) | floats
plain = (
    st.none() | numbers | texts | st.sampled_from(DTYPES) | types | dims
    | st.sampled_from([float, int, bool])
)  # fmt: skip
attributes = st.recursive(
    plain,
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple)
        | st.builds(Knot, inner, inner)
        | st.builds(Knot, inner, weight=st.floats(allow_nan=False))
    ),
    max_leaves=3,
)
lines = st.integers(0, 10**6)
places = st.builds(
    lambda file, line, column, width, name, text: Location(
        file, line, column, column + width if width and column else 0, name, text
    ),
    texts.filter(bool), lines, lines, st.integers(0, 50), names, texts,
)  # fmt: skip
locations = st.none() | places | names.filter(bool).map(lambda n: Location(name=n))


@st.composite
def constants(draw: Any) -> Node:
    if draw(st.booleans()):
        value: Any = draw(numbers)
        type_: Any = type(value)
    else:
        d = draw(st.sampled_from(DTYPES))
        shape = tuple(draw(st.lists(st.integers(0, 4), max_size=3)))
        size = math.prod(shape)
        if d.kind == "b":
            array = np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)), bool)
        else:
            n = size * d.itemsize
            array = np.frombuffer(bytearray(draw(st.binary(min_size=n, max_size=n))), d.np)
        value = copy_from_numpy(array.reshape(shape))
        type_ = TensorType(shape, d)
    return Node(OPS["constant"], (), (("value", value), ("type", type_)), type_, draw(locations))


SELDOM = (0, 0, 0, 1, 2)  # regions of a node


@st.composite
def functions(draw: Any, depth: int = 0) -> Function:
    values: list[Node] = []
    for i in range(draw(st.integers(0, 2))):
        type_ = draw(types | st.sampled_from([float, int, bool]))
        attrs: tuple = (("position", i), ("type", type_))
        if draw(st.integers(0, 5)) == 0:
            attrs = (("position", 7), ("type", type_), ("state", "w"))
        values.append(Node(OPS["parameter"], (), attrs, type_, draw(locations)))
    params = tuple(values)
    for _ in range(draw(st.integers(0, 4))):
        if draw(st.integers(0, 3)) == 0:
            values.append(draw(constants()))
            continue
        inputs = tuple(draw(st.lists(st.sampled_from(values), max_size=3))) if values else ()
        several = draw(st.integers(0, 3)) == 0
        gives = tuple(draw(st.lists(types, min_size=1, max_size=3))) if several else draw(types)
        said = draw(st.dictionaries(texts.filter(lambda k: k != "gives"), attributes, max_size=2))
        regions = tuple(
            draw(functions(depth + 1))
            for _ in range(draw(st.sampled_from(SELDOM)) if depth < 2 else 0)
        )
        loc = draw(locations)
        first = gives[0] if several else gives
        op = OPS[draw(st.sampled_from(PLAIN))]
        node = Node(op, inputs, (*said.items(), ("gives", gives)), first, loc, regions)
        if several:
            for k in draw(st.lists(st.integers(0, len(gives) - 1), min_size=1, max_size=3)):
                picked = (("position", k), ("type", gives[k]))
                values.append(Node(OPS["result"], (node,), picked, gives[k], loc))
        else:
            values.append(node)
    results = tuple(draw(st.lists(st.sampled_from(values), max_size=3))) if values else ()
    return Function(draw(texts | st.just("f")), params, results)


modules = st.lists(functions(), min_size=1, max_size=2, unique_by=lambda f: f.name).map(
    lambda fs: Module(tuple(fs))
)
