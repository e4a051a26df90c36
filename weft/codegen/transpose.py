"""Transposing copies: see `weft.schedule.transpose`."""

from __future__ import annotations

from weft.codegen.contract_pack import turn
from weft.codegen.text import Text, Value, module, vector
from weft.schedule.transpose import BLOCK, TransposeSpec

OPERANDS = 3


def lower(spec: TransposeSpec) -> str:
    t = Text("i64 @kernel(ptr %frame, i64 %lo, i64 %hi, i64 %worker)")
    frame = Value("ptr", "%frame")
    x, y = t.pointer(frame, OPERANDS), t.pointer(frame, OPERANDS + 1)
    first, n = OPERANDS + 2, spec.outer
    rows, columns, down, across, x_step, y_step = (t.word(frame, first + i) for i in range(6))
    sizes, x_outer, y_outer = (
        [t.word(frame, first + 6 + k * n + i) for i in range(n)] for k in range(3)
    )
    element = f"i{8 * spec.itemsize}"
    with t.loop(Value("i64", "%lo"), Value("i64", "%hi")) as task:
        column0 = t.mul(t.op("urem", task, across), BLOCK)
        rest = t.op("udiv", task, across)
        row0 = t.mul(t.op("urem", rest, down), BLOCK)
        rest = t.op("udiv", rest, down)
        source = t.at(x, element, t.add(row0, t.mul(column0, x_step)))
        target = t.at(y, element, t.add(t.mul(row0, y_step), column0))
        for axis in reversed(range(n)):
            i = t.op("urem", rest, sizes[axis])
            rest = t.op("udiv", rest, sizes[axis])
            source = t.at(source, element, t.mul(i, x_outer[axis]))
            target = t.at(target, element, t.mul(i, y_outer[axis]))
        _block(t, spec, source, target, t.sub(rows, row0), t.sub(columns, column0), x_step, y_step)
    t.ret()
    return module(t)


def _block(
    t: Text,
    spec: TransposeSpec,
    source: Value,
    target: Value,
    rows: Value,
    columns: Value,
    x_step: Value,
    y_step: Value,
) -> None:
    """At most BLOCK x BLOCK elements: whole tiles, then what is left one by one."""
    element, side = f"i{8 * spec.itemsize}", min(16, 64 // spec.itemsize)
    rows, columns = t.min(rows, BLOCK), t.min(columns, BLOCK)
    whole_rows, whole_columns = (t.op("and", n, Value("i64", str(-side))) for n in (rows, columns))
    tile = vector(element, side)
    with t.loop(0, whole_rows, side) as r:
        with t.loop(0, whole_columns, side) as c:
            corner = t.at(source, element, t.add(r, t.mul(c, x_step)))
            lines = [
                t.load(tile, t.at(corner, element, t.mul(x_step, k)), spec.itemsize)
                for k in range(side)
            ]
            out = t.at(target, element, t.add(t.mul(r, y_step), c))
            for k, line in enumerate(turn(t, lines)):
                t.store(line, t.at(out, element, t.mul(y_step, k)), spec.itemsize)
    _one_by_one(
        t,
        element,
        spec.itemsize,
        source,
        target,
        (whole_rows, rows),
        (Value("i64", "0"), columns),
        x_step,
        y_step,
    )
    _one_by_one(
        t,
        element,
        spec.itemsize,
        source,
        target,
        (Value("i64", "0"), whole_rows),
        (whole_columns, columns),
        x_step,
        y_step,
    )


def _one_by_one(
    t: Text, element: str, align: int, source: Value, target: Value,
    rows: tuple[Value, Value], columns: tuple[Value, Value], x_step: Value, y_step: Value,
) -> None:  # fmt: skip
    with t.loop(*rows) as r:
        with t.loop(*columns) as c:
            one = t.load(element, t.at(source, element, t.add(r, t.mul(c, x_step))), align)
            t.store(one, t.at(target, element, t.add(t.mul(r, y_step), c)), align)
