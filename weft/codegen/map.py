"""Map kernels: see `weft.schedule.map` for what they compute and the order of their params.

A row is walked one vector at a time. The last, partial vector goes through stack memory: its
elements are copied there, computed like any other, and copied back, so that nothing outside the
operands is touched and the body is written once.
"""

from __future__ import annotations

from weft.codegen.text import Text, Value, i64, module
from weft.codegen.verbs import emit, memory
from weft.ops.scalar import Scalar
from weft.schedule.map import MapSpec
from weft.types.dtype import DType, bool_

OPERANDS = 3  # frame word of the first operand


def lower(spec: MapSpec) -> str:
    t = Text("i64 @kernel(ptr %frame, i64 %lo, i64 %hi, i64 %worker)")
    frame = Value("ptr", "%frame")
    n_in, n_out, dims = len(spec.dtypes), len(spec.roots), spec.outer + 1
    lanes = 64 // max(d.itemsize for d in (*spec.dtypes, *(r.dtype.compute for r in spec.roots)))
    first = OPERANDS + n_in + n_out
    pointers = [t.pointer(frame, OPERANDS + i) for i in range(n_in + n_out)]
    rows_per_task, per_row, piece, rows = (t.word(frame, first + i) for i in range(4))
    sizes = [t.word(frame, first + 4 + i) for i in range(dims)]
    strides = [
        [t.word(frame, first + 4 + dims + o * dims + i) for i in range(dims)]
        for o in range(n_in + n_out)
    ]
    dtypes = (*spec.dtypes, *(r.dtype for r in spec.roots))
    stage = [t.scratch(memory(d, lanes)) for d in dtypes]
    for room, d in zip(stage, spec.dtypes, strict=False):  # the rest of a vector: see contract_pack
        t.store(Value(memory(d, lanes), "zeroinitializer"), room, 64)
    with t.loop(Value("i64", "%lo"), Value("i64", "%hi")) as task:
        block, part = t.op("udiv", task, per_row), t.op("urem", task, per_row)
        row0 = t.mul(block, rows_per_task)
        begin = t.mul(part, piece)
        end = t.min(t.add(begin, piece), sizes[-1])
        with t.loop(row0, t.min(t.add(row0, rows_per_task), rows)) as row:
            bases = _row_bases(t, row, sizes, strides, pointers, dtypes)
            once = {
                p: t.splat(_load(t, bases[p], spec.dtypes[p], 1), lanes)
                for p, m in enumerate(spec.modes)
                if m == "b"
            }
            with t.loop(begin, end, lanes) as i:
                _vector(
                    t,
                    spec,
                    dtypes,
                    bases,
                    [s[-1] for s in strides],
                    once,
                    stage,
                    i,
                    t.sub(end, i),
                    lanes,
                )
    t.ret()
    return module(*(copy_function(size) for size in sorted({d.itemsize for d in dtypes})), t)


def _row_bases(
    t: Text,
    row: Value,
    sizes: list[Value],
    strides: list[list[Value]],
    pointers: list[Value],
    dtypes: tuple[DType, ...],
) -> list[Value]:
    """Where the row begins in each operand: unravel the row number, add up strides."""
    offsets = [i64(0)] * len(pointers)
    rest = row
    for axis in range(len(sizes) - 2, -1, -1):
        if axis:
            at = t.op("urem", rest, sizes[axis])
            rest = t.op("udiv", rest, sizes[axis])
        else:
            at = rest
        offsets = [t.add(o, t.mul(at, s[axis])) for o, s in zip(offsets, strides, strict=True)]
    return [t.at(p, memory(d), o) for p, d, o in zip(pointers, dtypes, offsets, strict=True)]


def _vector(
    t: Text, spec: MapSpec, dtypes: tuple[DType, ...], bases: list[Value], steps: list[Value],
    once: dict[int, Value], stage: list[Value], i: Value, left: Value, lanes: int,
) -> None:  # fmt: skip
    n_in = len(spec.dtypes)
    partial = t.lt(left, lanes)
    with t.when(partial):
        for p, mode in enumerate(spec.modes):
            if mode in "csr":
                from_ = t.at(bases[p], memory(dtypes[p]), t.mul(i, steps[p]))
                _copy(t, stage[p], from_, steps[p], left, dtypes[p])

    def leaf(n: Scalar, args: list[Value]) -> Value:
        p = n.value
        if p in once:
            return once[p]
        d = dtypes[p]
        if spec.modes[p] == "c":
            here = t.select(partial, stage[p], t.at(bases[p], memory(d), i))
            return _load(t, here, d, lanes)
        if spec.modes[p] == "r":
            return _backwards(t, bases[p], stage[p], partial, d, i, lanes)
        return _gather(t, bases[p], steps[p], stage[p], partial, d, i, lanes)

    for o, value in enumerate(emit(t, spec.roots, lanes, leaf)):
        d = spec.roots[o].dtype
        here = t.select(partial, stage[n_in + o], t.at(bases[n_in + o], memory(d), i))
        stored = t.convert("zext", value, memory(d, lanes)) if d is bool_ else value
        t.store(stored, here, d.itemsize)
    with t.when(partial):
        for o, r in enumerate(spec.roots):
            to = t.at(bases[n_in + o], memory(r.dtype), i)
            _copy(t, to, stage[n_in + o], i64(1), left, r.dtype)


def _copy(t: Text, to: Value, from_: Value, step: Value, count: Value, d: DType) -> None:
    name = copy_name(d.itemsize)
    t.emit(f"call void @{name}({to}, {from_}, {step}, {count})")


def copy_name(size: int) -> str:
    return f"copy{size}"


def copy_function(size: int) -> Text:
    """copy(to, from, step, count): elements of so many bytes, `step` apart, side by side. It is
    cold: no register is to be kept free for it.
    """
    args = "ptr %to, ptr %from, i64 %step, i64 %count"
    t = Text(f"internal void @{copy_name(size)}({args}) cold noinline nounwind")
    m = f"i{8 * size}"
    from_, step = Value("ptr", "%from"), Value("i64", "%step")
    with t.loop(0, Value("i64", "%count")) as j:
        x = t.load(m, t.at(from_, m, t.mul(j, step)), size)
        t.store(x, t.at(Value("ptr", "%to"), m, j), size)
    t.emit("ret void")
    return t


def _gather(
    t: Text, base: Value, step: Value, stage: Value, partial: Value, d: DType, i: Value, lanes: int
) -> Value:
    """One element per lane, `step` apart; from the stage (step 1) where the vector is partial."""
    m = memory(d)
    start = t.select(partial, stage, t.at(base, m, t.mul(i, step)))
    stride = t.select(partial, i64(1), step)
    out = Value(memory(d, lanes), "poison")
    for lane in range(lanes):
        one = t.load(m, t.at(start, m, t.mul(stride, lane)), d.itemsize)
        out = t.let(out.type, f"insertelement {out}, {one}, i64 {lane}")
    return _as_register(t, out, d, lanes)


def _backwards(
    t: Text, base: Value, stage: Value, partial: Value, d: DType, i: Value, lanes: int
) -> Value:
    """A vector that runs down in memory; the stage holds its elements in order."""
    m = memory(d)
    last = t.at(base, m, t.sub(i64(1 - lanes), i))
    found = t.load(memory(d, lanes), t.select(partial, stage, last), d.itemsize)
    order = ", ".join(f"i32 {lane}" for lane in reversed(range(lanes)))
    turned = t.let(
        found.type, f"shufflevector {found}, {found.type} poison, <{lanes} x i32> <{order}>"
    )
    return _as_register(t, t.select(partial, found, turned), d, lanes)


def _load(t: Text, pointer: Value, d: DType, lanes: int) -> Value:
    return _as_register(t, t.load(memory(d, lanes), pointer, d.itemsize), d, lanes)


def _as_register(t: Text, v: Value, d: DType, lanes: int) -> Value:
    if d is not bool_:
        return v
    zero = Value(v.type, "0" if lanes == 1 else "zeroinitializer")
    return t.compare("icmp ne", v, zero)
