"""The micro-kernel: a tile of the result in registers, one step of the sum at a time.

    for k: for row: for vector: sum[row, vector] = fma(l[row, k], r[k, vector], sum[row, vector])

Both operands are read with run-time strides, so that packed panels and operands in place are one
code. Each lane is one chain of fma, which is why the shape of the tile never shows in the result.

For few rows, where columns of r are dense along the sum, packing would cost more than the products:
another tile transposes what it reads as it goes.
"""

from __future__ import annotations

from weft.codegen import verbs
from weft.codegen.contract_index import arg, both, fits, function, rem
from weft.codegen.contract_pack import Packing
from weft.codegen.text import Text, Value, element_of, i64, lanes_of, vector
from weft.schedule.contract_spec import ContractSpec, Tile, accumulator


def tile_name(rows: int, vectors: int) -> str:
    return f"tile{rows}x{vectors}"


def largest(t: Text, left: Value, sizes: tuple[int, ...]) -> tuple[Value, Value]:
    """The first of `sizes` that is not more than `left`, or the last: its number, and itself."""
    number, size = i64(len(sizes) - 1), i64(sizes[-1])
    for n in reversed(range(len(sizes) - 1)):
        enough = fits(t, i64(sizes[n]), left)
        number, size = t.select(enough, i64(n), number), t.select(enough, i64(sizes[n]), size)
    return number, size


def tile_height(t: Text, left: Value, tile: Tile) -> tuple[Value, Value]:
    """The height of the next tile, its number and itself: see Tile."""
    number, height = largest(t, left, tile.heights)
    tallest, second = tile.heights[:2]
    if tallest < 2 * second:
        two = both(t, t.lt(i64(tallest), left), fits(t, left, 2 * second))
        number, height = t.select(two, i64(1), number), t.select(two, i64(second), height)
    return number, height


def tile_function(spec: ContractSpec, rows: int, vectors: int) -> Text:
    """tile(steps, l, l_row, l_step, r, r_step, first, first_row, c, c_row): what `first` holds plus
    the products, to c. Strides in bytes. Through a table there is l_over behind l_row: the stride
    to the middle row of the tallest tile, whose halves may lie apart. Where r is found packed there
    are `ahead` and `ahead_step` behind r_step: what is brought near meanwhile, a line at each step.
    """
    through = spec.l == "table"  # l_step is a table of offsets
    l = {"l": "ptr noalias", "l_row": "i64"} | ({"l_over": "i64"} if through else {})
    l |= {"l_step": "ptr" if through else "i64"}
    middle = rows // 2 if through and rows == spec.tile.heights[0] else 0
    r = {"r": "ptr noalias", "r_step": "i64"}
    fetches = spec.r == "panels"
    r |= {"ahead": "ptr", "ahead_step": "i64"} if fetches else {}
    ends = {"first": "ptr", "first_row": "i64", "c": "ptr", "c_row": "i64"}
    t = function(tile_name(rows, vectors), "void", steps="i64", **l, **r, **ends)
    acc = accumulator(spec.dtype)
    align, one, many = acc.itemsize, verbs.register(acc), vector(verbs.register(acc), spec.lanes)

    def down(name: str, row: Value | None = None) -> list[Value]:
        """The rows' addresses, in a chain, which takes one register."""
        out = [row or arg(name, "ptr")]
        for i in range(1, rows):
            over = name == "l" and i == middle
            out.append(t.at(out[-1], "i8", arg("l_over" if over else f"{name}_row")))
        return out

    def across(row: Value) -> list[Value]:
        return [t.at(row, "i8", j * spec.tile.vector) if j else row for j in range(vectors)]

    def phi(type_: str, name: str, start: Value) -> Value:
        t.emit(f"%{name} = phi {type_} [ {start.name}, %entry ], [ %{name}.next, %body ]")
        return Value(type_, f"%{name}")

    def offset(entry: Value) -> Value:
        """From the table, now: LLVM would make two loads one that all products wait for."""
        return t.let("i64", f"load volatile i64, {entry}, align 8")

    starts = [t.load(many, p, align) for row in down("first") for p in across(row)]
    l_first = arg("l", "ptr")
    if through:
        l_first = t.at(l_first, one, offset(arg("l_step", "ptr")))
    else:
        back = t.sub(arg("l_step"), t.mul(arg("l_row"), rows - 1))
    t.branch(t.lt(i64(0), arg("steps")), "body", "done")
    t.label("body")
    left = phi("i64", "left", arg("steps"))
    l_at, r_at = phi("ptr", "l_at", l_first), phi("ptr", "r_at", arg("r", "ptr"))
    if through:
        table = phi("ptr", "table", arg("l_step", "ptr"))
    if fetches:
        ahead = phi("ptr", "ahead_at", arg("ahead", "ptr"))
    sums = [phi(many, f"sum{n}", x) for n, x in enumerate(starts)]
    if fetches:
        prefetch(t, ahead, write=False, level=2)
        t.emit(f"%ahead_at.next = getelementptr i8, {ahead}, {arg('ahead_step')}")
    rs = [t.load(many, p, align) for p in across(r_at)]
    walk = down("l", l_at)
    for i, row in enumerate(walk):
        x = t.splat(t.load(one, row, align), spec.lanes)
        for n, y in enumerate(rs, i * vectors):
            t.emit(f"%sum{n}.next = {multiply_add(t, x, y, sums[n])}")
    if through:  # found a step early, so that no product waits for it
        t.emit(f"%table.next = getelementptr i64, {table}, i64 1")
        after = offset(Value("ptr", "%table.next"))
        t.emit(f"%l_at.next = getelementptr {one}, {arg('l', 'ptr')}, {after}")
    else:
        t.emit(f"%l_at.next = getelementptr i8, {walk[-1]}, {back}")
    t.emit(f"%r_at.next = getelementptr i8, {r_at}, {arg('r_step')}")
    t.emit(f"%left.next = sub {left}, 1")
    t.branch(t.compare("icmp ne", Value("i64", "%left.next"), i64(0)), "body", "done")
    t.label("done")
    results = [
        t.let(many, f"phi {many} [ {x.name}, %entry ], [ %sum{n}.next, %body ]")
        for n, x in enumerate(starts)
    ]
    for x, p in zip(results, (p for row in down("c") for p in across(row)), strict=True):
        t.store(x, p, align)
    t.emit("ret void")
    return t


def turning_tile_function(spec: ContractSpec, rows: int) -> Text:
    """tile(steps, l, l_row, l_step, r, lanes, first, first_row, c, c_row): the same for one vector
    of columns, each dense along the sum; `lanes` are their offsets from r, in elements.
    """
    l = {"l": "ptr", "l_row": "i64", "l_step": "i64", "r": "ptr", "lanes": "ptr"}
    ends = {"first": "ptr", "first_row": "i64", "c": "ptr", "c_row": "i64"}
    t = function(tile_name(rows, 1), "void", steps="i64", **l, **ends)
    p = Packing(spec)

    def row(name: str, i: int) -> Value:
        return t.at(arg(name, "ptr"), "i8", t.mul(arg(f"{name}_row"), i))

    sums = [t.variable(t.load(p.many, row("first", i), p.wide)) for i in range(rows)]

    l_at = t.variable(arg("l", "ptr"))
    apart = [t.mul(arg("l_row"), i) for i in range(rows)]

    def step(x: Value) -> None:
        """One product for each row, and on to what is next along it."""
        here = l_at.get()
        for i, total in enumerate(sums):
            y = t.splat(t.load(p.one, t.at(here, "i8", apart[i]) if i else here, p.wide), p.lanes)
            total.set(t.let(p.many, multiply_add(t, y, x, total.get())))
        l_at.set(t.at(here, "i8", arg("l_step")))

    steps, r, lanes = arg("steps"), arg("r", "ptr"), arg("lanes", "ptr")
    whole = t.sub(steps, rem(t, steps, i64(p.inner)))
    with t.loop(0, whole, p.inner) as k:
        for x in p.turned(t, r, k, lanes, p.lanes):
            step(x)
    with t.when(t.lt(whole, steps)):  # the last few: read some again, there are more than enough
        k = t.sub(steps, p.inner)
        for n, x in enumerate(p.turned(t, r, k, lanes, p.lanes)):
            with t.when(fits(t, whole, t.add(k, n))):
                step(x)
    for i, total in enumerate(sums):
        t.store(total.get(), row("c", i), p.wide)
    t.emit("ret void")
    return t


def prefetch(t: Text, here: Value, write: bool, level: int = 3) -> None:
    """Bring a line of memory near: 3 to the nearest cache, 2 to the next."""
    name = "llvm.prefetch.p0"
    t.declares.setdefault(name, f"declare void @{name}(ptr, i32, i32, i32)")
    t.emit(f"call void @{name}({here}, i32 {int(write)}, i32 {level}, i32 1)")


def multiply_add(t: Text, a: Value, b: Value, c: Value) -> str:
    """The instruction a * b + c: fused for floats, wrapping for integers."""
    element, lanes = element_of(a.type), lanes_of(a.type)
    if element not in ("float", "double"):
        return f"add {t.op('mul', a, b)}, {c.name}"
    name = f"llvm.fma.v{lanes}" + {"float": "f32", "double": "f64"}[element]
    t.declares.setdefault(name, f"declare {a.type} @{name}({a.type}, {a.type}, {a.type})")
    return f"call {a.type} @{name}({a}, {b}, {c})"
