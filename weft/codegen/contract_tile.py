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
    """tile(steps, l, l_row, l_step, r, r_step, c, c_row, resume): strides in bytes; `resume` continues from what c holds."""
    t = function(
        tile_name(rows, vectors), "void", steps="i64", l="ptr noalias", l_row="i64", l_step="i64", r="ptr noalias",
        r_step="i64", c="ptr noalias", c_row="i64", resume="i64",
    )  # fmt: skip
    acc = accumulator(spec.dtype)
    align, v = acc.itemsize, vector(verbs.register(acc), spec.lanes)
    cells = [(i, j) for i in range(rows) for j in range(vectors)]

    def steps_of(p: Value, by: Value) -> list[Value]:
        out = [p]
        for _ in range(rows - 1):
            out.append(t.at(out[-1], "i8", by))
        return out

    def cell(row: Value, j: int) -> Value:
        return t.at(row, "i8", j * spec.tile.vector) if j else row

    def phi(type_: str, first: Value, name: str) -> Value:
        t.emit(f"%{name} = phi {type_} [ {first.name}, %start ], [ %{name}.next, %body ]")
        return Value(type_, f"%{name}")

    zero = Value(v, "zeroinitializer")
    t.branch(t.compare("icmp ne", arg("resume"), Value("i64", "0")), "resumed", "start")
    t.label("resumed")
    into = steps_of(arg("c", "ptr"), arg("c_row"))
    held = [t.load(v, cell(into[i], j), align) for i, j in cells]
    t.emit("br label %start")
    t.label("start")
    first = [
        t.let(v, f"phi {v} [ {zero.name}, %entry ], [ {held[n].name}, %resumed ]")
        for n in range(len(cells))
    ]
    t.branch(t.lt(Value("i64", "0"), arg("steps")), "body", "done")
    t.label("body")
    left = phi("i64", arg("steps"), "left")
    l, r = phi("ptr", arg("l", "ptr"), "lp"), phi("ptr", arg("r", "ptr"), "rp")
    sums = [phi(v, first[n], f"sum{n}") for n in range(len(cells))]
    rs = [t.load(v, cell(r, j), align) for j in range(vectors)]
    at = steps_of(l, arg("l_row"))
    for i in range(rows):
        one = t.splat(t.load(verbs.register(acc), at[i], align), spec.lanes)
        for j in range(vectors):
            n = i * vectors + j
            t.emit(f"%sum{n}.next = {multiply_add(t, one, rs[j], sums[n])}")
    t.emit(f"%lp.next = getelementptr i8, {l}, {arg('l_step')}")
    t.emit(f"%rp.next = getelementptr i8, {r}, {arg('r_step')}")
    t.emit(f"%left.next = sub {left}, 1")
    t.branch(t.compare("icmp ne", Value("i64", "%left.next"), Value("i64", "0")), "body", "done")
    t.label("done")
    results = [
        t.let(v, f"phi {v} [ {first[n].name}, %start ], [ %sum{n}.next, %body ]")
        for n in range(len(cells))
    ]
    into = steps_of(arg("c", "ptr"), arg("c_row"))
    for (i, j), x in zip(cells, results, strict=True):
        t.store(x, cell(into[i], j), align)
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
