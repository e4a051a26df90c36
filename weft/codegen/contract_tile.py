"""The micro-kernel: a tile of the result in registers, one step of the sum at a time.

    for k: for row: for vector: acc[row, vector] = fma(broadcast l[row, k], r[k, vector], acc[row, vector])

Both operands are read with run-time strides, so that packed panels and operands in place are one code. Each accumulator lane
is one chain of fma, which is why the shape of the tile never shows in the result.
"""

from __future__ import annotations

from weft.codegen import verbs
from weft.codegen.contract_index import arg, function
from weft.codegen.text import Text, Value, vector
from weft.schedule.contract_spec import ContractSpec, accumulator


def tile_name(rows: int, vectors: int) -> str:
    return f"tile{rows}x{vectors}"


def tile_function(spec: ContractSpec, rows: int, vectors: int) -> Text:
    """tile(steps, l, l_row, l_step, r, r_step, first, first_row, c, c_row): what `first` holds plus the products, to c. Strides
    in bytes."""
    t = function(
        tile_name(rows, vectors), "void", steps="i64", l="ptr noalias", l_row="i64", l_step="i64", r="ptr noalias",
        r_step="i64", first="ptr", first_row="i64", c="ptr", c_row="i64",
    )  # fmt: skip
    acc = accumulator(spec.dtype)
    align, v = acc.itemsize, vector(verbs.register(acc), spec.lanes)

    def down(p: Value, by: Value) -> list[Value]:
        """The rows' addresses. In a chain, which takes one register."""
        out = [p]
        for _ in range(rows - 1):
            out.append(t.at(out[-1], "i8", by))
        return out

    def cells(p: Value, by: Value) -> list[Value]:
        return [t.at(row, "i8", j * spec.tile.vector) if j else row for row in down(p, by) for j in range(vectors)]

    def phi(type_: str, name: str, start: Value) -> Value:
        t.emit(f"%{name} = phi {type_} [ {start.name}, %entry ], [ %{name}.next, %body ]")
        return Value(type_, f"%{name}")

    starts = [t.load(v, p, align) for p in cells(arg("first", "ptr"), arg("first_row"))]
    t.branch(t.lt(Value("i64", "0"), arg("steps")), "body", "done")
    t.label("body")
    left = phi("i64", "left", arg("steps"))
    l, r = phi("ptr", "lp", arg("l", "ptr")), phi("ptr", "rp", arg("r", "ptr"))
    sums = [phi(v, f"sum{n}", x) for n, x in enumerate(starts)]
    rs = [t.load(v, t.at(r, "i8", j * spec.tile.vector), align) for j in range(vectors)]
    for i, row in enumerate(down(l, arg("l_row"))):
        one = t.splat(t.load(verbs.register(acc), row, align), spec.lanes)
        for j in range(vectors):
            n = i * vectors + j
            t.emit(f"%sum{n}.next = {multiply_add(t, one, rs[j], sums[n])}")
    t.emit(f"%lp.next = getelementptr i8, {l}, {arg('l_step')}")
    t.emit(f"%rp.next = getelementptr i8, {r}, {arg('r_step')}")
    t.emit(f"%left.next = sub {left}, 1")
    t.branch(t.compare("icmp ne", Value("i64", "%left.next"), Value("i64", "0")), "body", "done")
    t.label("done")
    ends = [t.let(v, f"phi {v} [ {x.name}, %entry ], [ %sum{n}.next, %body ]") for n, x in enumerate(starts)]
    for x, p in zip(ends, cells(arg("c", "ptr"), arg("c_row")), strict=True):
        t.store(x, p, align)
    t.emit("ret void")
    return t


def multiply_add(t: Text, a: Value, b: Value, c: Value) -> str:
    """The instruction a * b + c: fused for floats, wrapping for integers."""
    if a.type.strip("<>").split(" x ")[-1][0] == "i":
        product = t.op("mul", a, b)
        return f"add {product}, {c.name}"
    name = "llvm.fma." + ("" if " x " not in a.type else "v" + a.type[1:].split(" ", 1)[0]) + (
        "f64" if "double" in a.type else "f32"
    )
    t.declares.setdefault(name, f"declare {a.type} @{name}({a.type}, {a.type}, {a.type})")
    return f"call {a.type} @{name}({a}, {b}, {c})"
