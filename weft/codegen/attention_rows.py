"""Rows of scores in scratch memory: the mask, the softmax, its gradient."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from weft.codegen.attention_parts import settled
from weft.codegen.contract_index import arg, call, function
from weft.codegen.reduce_monoid import Lanes, Monoid, group_of, read, upto
from weft.codegen.registers import literal, memory
from weft.codegen.text import Text, Value, i64
from weft.codegen.verbs import Leaf, cast, emit
from weft.ops.math import exp
from weft.ops.scalar import input_
from weft.schedule.attention import MOST_GOING_ON, Attention
from weft.schedule.reduce_spec import CHUNK, LANES
from weft.types.dtype import DType, bool_

#: What functions of rows take: the first row and how many, which one it is of the matrix, columns
#: to go over and to read, elements from row to row.
COMMON = {
    "scores": "ptr",
    "rows": "i64",
    "start": "i64",
    "limit": "i64",
    "keys": "i64",
    "pitch": "i64",
}
MASK = {"mask": "ptr", "m_row": "i64", "m_col": "i64", "line": "ptr"}


class Rows:
    """A function that goes over rows."""

    def __init__(self, t: Text, spec: Attention) -> None:
        self.t, self.spec, self.acc = t, spec, spec.dtype.compute
        self.group = group_of(self.acc)
        self.groups = LANES // self.group
        self.width = t.op("and", t.add(arg("limit"), LANES - 1), i64(-LANES))

    def settled(self, x: Value) -> Value:
        """Rounded to the operands' dtype, as the end of an op does."""
        return settled(self.t, self.spec.dtype, x)

    def number(self, value: float, lanes: int) -> Value:
        return literal(value, self.acc, lanes)

    def row(self, name: str, i: Value) -> Value:
        return self.t.at(arg(name, "ptr"), memory(self.acc), self.t.mul(i, arg("pitch")))

    def get(self, row: Value, at: Value) -> Value:
        return read(self.t, self.acc, self.t.at(row, memory(self.acc), at), self.group)

    def put(self, x: Value, row: Value, at: Value) -> None:
        self.t.store(x, self.t.at(row, memory(self.acc), at), self.acc.itemsize)

    @contextmanager
    def vectors(self, low: int | Value, high: Value) -> Iterator[Value]:
        """for r in range(low, high, LANES)"""
        with self.t.loop(low, high, LANES) as r:
            yield r

    def visible(self, i: Value) -> Value:
        """How many keys a row may see, a mask aside."""
        if not self.spec.causal:
            return arg("keys")
        return self.t.min(arg("keys"), self.t.add(self.t.add(arg("start"), i), 1))

    def bring_mask(self, i: Value) -> None:
        """A row of the mask, to where its elements are neighbours."""
        if not self.spec.mask:
            return
        t, of = self.t, memory(mask_dtype(self.spec))
        source = t.at(arg("mask", "ptr"), of, t.mul(t.add(arg("start"), i), arg("m_row")))
        call(t, "void", "line", arg("line", "ptr"), source, arg("m_col"), arg("limit"))

    def mask(self, at: Value) -> Value:
        """A vector of the mask."""
        d = mask_dtype(self.spec)
        return read(self.t, d, self.t.at(arg("line", "ptr"), memory(d), at), self.group)


def mask_dtype(spec: Attention) -> DType:
    return bool_ if spec.mask == "bool" else spec.dtype


def softmax_function(spec: Attention) -> Text:
    """softmax(scores, rows, start, limit, keys, pitch[, mask, m_row, m_col, line]): scores become
    weights, in place. What lies behind a row's last key becomes 0, up to `limit` in whole LANES.
    """
    t = function("softmax", "void", **COMMON, **(MASK if spec.mask else {}))
    k = Rows(t, spec)
    one = memory(k.acc)
    tops, sums = (t.scratch(one, MOST_GOING_ON) for _ in range(2))
    with t.loop(0, arg("rows")) as i:
        t.store(_masked(k, i), t.at(tops, one, i), k.acc.itemsize)
    with t.loop(0, arg("rows")) as i:
        top = t.load(one, t.at(tops, one, i), k.acc.itemsize)
        t.store(_exponentials(k, i, top), t.at(sums, one, i), k.acc.itemsize)
    with t.loop(0, arg("rows")) as i:
        total = t.splat(t.load(one, t.at(sums, one, i), k.acc.itemsize), k.group)
        row = k.row("scores", i)
        with k.vectors(0, k.width) as r:
            for g in range(k.groups):
                at = t.add(r, g * k.group)
                k.put(k.settled(t.op("fdiv", k.get(row, at), total)), row, at)
    t.emit("ret void")
    return t


def _masked(k: Rows, i: Value) -> Value:
    """Mask a row, in place; what is subtracted from it: its largest element."""
    t, spec, group = k.t, k.spec, k.group
    row, visible = k.row("scores", i), k.visible(i)
    nothing = k.number(-math.inf, group)
    k.bring_mask(i)
    lanes = Lanes(t, Monoid(t, "max", k.acc), group)
    lanes.clear(k.groups)
    with k.vectors(0, k.width) as r:
        for g in range(k.groups):
            at = t.add(r, g * group)
            seen = upto(t, t.sub(visible, r), group, g * group)
            x = t.select(seen, k.settled(k.get(row, at)), nothing)
            if spec.mask:
                m = k.mask(at)
                if spec.mask == "bool":
                    x = t.select(m, x, nothing)
                else:
                    x = k.settled(t.op("fadd", x, cast(t, m, spec.dtype, k.acc)))
                    x = t.select(upto(t, t.sub(arg("keys"), r), group, g * group), x, nothing)
            lanes.take(g, x)
            k.put(x, row, at)
    (top,) = lanes.finish(k.groups, i64(0))
    if not spec.mask:
        return top
    low, zero = k.number(-math.inf, 1), k.number(0.0, 1)
    return t.select(t.compare("fcmp ogt", top, low), top, zero)


def _exponentials(k: Rows, i: Value, top: Value) -> Value:
    """exp(x - top) in place of x; what they are divided by: their sum."""
    t, row, spread = k.t, k.row("scores", i), k.t.splat(top, k.group)
    monoid = Monoid(t, "sum", k.acc)
    lanes, total = Lanes(t, monoid, k.group), t.variable(monoid.neutral(1))
    rule = exp(input_(0, k.acc) - input_(1, k.acc))
    with t.loop(0, k.width, CHUNK) as start:
        lanes.clear(k.groups)
        with k.vectors(start, t.min(t.add(start, CHUNK), k.width)) as r:
            for g in range(k.groups):
                at = t.add(r, g * k.group)
                known = {0: k.get(row, at), 1: spread}
                (x,) = emit(t, [rule], k.group, _leaf(known))
                lanes.take(g, x)
                k.put(x, row, at)
        total.set(monoid.join([total.get()], lanes.finish(k.groups, start))[0])
    out = monoid.finish([total.get()])
    if not k.spec.mask:
        return out
    positive = t.compare("fcmp ogt", out, k.number(0.0, 1))
    return t.select(positive, out, k.number(1.0, 1))


def _leaf(known: dict[int, Value]) -> Leaf:
    return lambda n, _: known[n.value]


def slopes_function(spec: Attention) -> Text:
    """slopes(scores, rows, start, limit, keys, pitch, slopes[, mask, …]): cotangents of weights
    become those of scores, in place, where `scores` are the weights: w * (g - sum(g * w)), and 0
    where a key is masked.
    """
    t = function("slopes", "void", **COMMON, slopes="ptr", **(MASK if spec.mask else {}))
    k = Rows(t, spec)
    one, monoid, nothing = memory(k.acc), Monoid(t, "sum", k.acc), k.number(0.0, k.group)
    sums = t.scratch(one, MOST_GOING_ON)
    lanes, total = Lanes(t, monoid, k.group), t.variable(monoid.neutral(1))
    with t.loop(0, arg("rows")) as i:
        weights, grads = k.row("scores", i), k.row("slopes", i)
        total.set(monoid.neutral(1))
        with t.loop(0, k.width, CHUNK) as start:
            lanes.clear(k.groups)
            with k.vectors(start, t.min(t.add(start, CHUNK), k.width)) as r:
                for g in range(k.groups):
                    at = t.add(r, g * k.group)
                    x = t.op("fmul", k.settled(k.get(grads, at)), k.get(weights, at))
                    there = upto(t, t.sub(arg("limit"), r), k.group, g * k.group)
                    lanes.take(g, t.select(there, x, nothing))
            total.set(monoid.join([total.get()], lanes.finish(k.groups, start))[0])
        t.store(monoid.finish([total.get()]), t.at(sums, one, i), k.acc.itemsize)
    with t.loop(0, arg("rows")) as i:
        weights, grads, visible = k.row("scores", i), k.row("slopes", i), k.visible(i)
        mean = t.splat(t.load(one, t.at(sums, one, i), k.acc.itemsize), k.group)
        k.bring_mask(i)
        with k.vectors(0, k.width) as r:
            for g in range(k.groups):
                at = t.add(r, g * k.group)
                x = t.op("fsub", k.settled(k.get(grads, at)), mean)
                x = k.settled(t.op("fmul", k.get(weights, at), x))
                seen = upto(t, t.sub(visible, r), k.group, g * k.group)
                x = t.select(seen, x, nothing)
                k.put(t.select(k.mask(at), x, nothing) if spec.mask else x, grads, at)
    t.emit("ret void")
    return t
