"""Kernels of growing stacks: see `weft.schedule.stack`."""

from __future__ import annotations

from collections.abc import Callable

from weft.schedule.stack import Field, Stack

_FIRST = 1 << 16  # bytes that a stack begins with

_HEAD = """
declare ptr @realloc(ptr, i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define i64 @kernel(ptr %frame, i64 %lo, i64 %hi, i64 %worker) {
entry:"""


class _Code:
    """The lines of a kernel."""

    def __init__(self, spec: Stack, handles: int, others: int) -> None:
        self.lines: list[str] = [_HEAD]
        self.n = 0
        self.values = spec.count
        self.first_value = handles
        self.params = 3 + handles + spec.count + others  # word of the frame
        self.handles = [self.operand(i) for i in range(handles)]

    def add(self, line: str) -> None:
        self.lines.append(line)

    def name(self, value: str) -> str:
        self.n += 1
        self.add(f"  %x{self.n} = {value}")
        return f"%x{self.n}"

    def word(self, base: str, at: int | str, kind: str = "i64") -> str:
        return self.name(f"load {kind}, ptr {self.place(base, at)}")

    def place(self, base: str, at: int | str) -> str:
        return self.name(f"getelementptr i64, ptr {base}, i64 {at}")

    def operand(self, i: int) -> str:
        return self.word("%frame", 3 + i, "ptr")

    def param(self, i: int) -> str:
        return self.word("%frame", self.params + i)

    def get(self, handle: str, field: Field) -> str:
        return self.word(handle, int(field), "ptr" if field is Field.MEMORY else "i64")

    def put(self, handle: str, field: Field, value: str) -> None:
        kind = "ptr" if field is Field.MEMORY else "i64"
        self.add(f"  store {kind} {value}, ptr {self.place(handle, int(field))}")

    def stride(self, handle: str) -> str:
        return self.name(f"call i64 @llvm.smax.i64(i64 {self.get(handle, Field.STRIDE)}, i64 1)")

    def block(self, label: str) -> None:
        self.add(f"{label}:")

    def split(self, condition: str, yes: str, no: str) -> None:
        self.add(f"  br i1 {condition}, label %{yes}, label %{no}")

    def copies(self, entry: str, places: int, out: bool) -> None:
        """Values to an entry, or from it. `places`: the param of the first's place."""
        for i in range(self.values):
            value = self.operand(self.first_value + i)
            at, size = self.param(places + 2 * i), self.param(places + 2 * i + 1)
            part = self.name(f"getelementptr i8, ptr {entry}, i64 {at}")
            target, source = (value, part) if out else (part, value)
            self.copy(target, source, size)

    def copy(self, target: str, source: str, size: str) -> None:
        self.add(
            f"  call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 false)"
        )

    def entry(self, handle: str, at: str, size: str) -> str:
        start = self.name(f"mul i64 {at}, {size}")
        return self.name(f"getelementptr i8, ptr {self.get(handle, Field.MEMORY)}, i64 {start}")

    def flag(self, condition: str) -> None:
        byte = self.name(f"zext i1 {condition} to i8")
        self.add(f"  store i8 {byte}, ptr {self.operand(len(self.handles))}")

    def text(self) -> str:
        return "\n".join([*self.lines, "  ret i64 0", "}", "declare i64 @llvm.smax.i64(i64, i64)"])


def lower(spec: Stack) -> str:
    write, handles, others = _KINDS[spec.what]
    code = _Code(spec, handles, others)
    write(code)
    return code.text()


def _clear(c: _Code) -> None:
    for field, value in ((Field.COUNT, "0"), (Field.STRIDE, "1"), (Field.STEPS, "0")):
        c.put(c.handles[0], field, value)


def _keep(c: _Code) -> None:
    (handle,) = c.handles
    most, size = c.param(0), c.param(1)
    step, stride, count = c.get(handle, Field.STEPS), c.stride(handle), c.get(handle, Field.COUNT)
    c.put(handle, Field.STEPS, c.name(f"add i64 {step}, 1"))
    turn = c.name(f"icmp eq i64 {c.name(f'srem i64 {step}, {stride}')}, 0")
    c.split(turn, "look", "done")
    c.block("look")
    limited = c.name(f"icmp sgt i64 {most}, 0")
    full = c.name(f"and i1 {limited}, {c.name(f'icmp sge i64 {count}, {most}')}")
    half = c.name(f"lshr i64 {count}, 1")
    c.split(full, "thin", "push")
    # entry 2i goes to i; the step at hand is an even number of strides from the start
    c.block("thin")
    c.put(handle, Field.STRIDE, c.name(f"shl i64 {stride}, 1"))
    c.add("  br label %head")
    c.block("head")
    c.add("  %i = phi i64 [ 0, %thin ], [ %next, %move ]")
    c.split(c.name(f"icmp slt i64 %i, {half}"), "move", "push")
    c.block("move")
    source = c.entry(handle, c.name("shl i64 %i, 1"), size)
    target = c.entry(handle, "%i", size)
    c.add(f"  call void @llvm.memmove.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 false)")
    c.add("  %next = add i64 %i, 1")
    c.add("  br label %head")
    c.block("push")
    c.add(f"  %now = phi i64 [ {count}, %look ], [ {half}, %head ]")
    c.add("  %after = add i64 %now, 1")
    need = c.name(f"mul i64 %after, {size}")
    fits = c.name(f"icmp sle i64 {need}, {c.get(handle, Field.ROOM)}")
    c.split(fits, "ready", "grow")
    c.block("grow")
    bytes_ = c.name(f"call i64 @llvm.smax.i64(i64 {c.name(f'shl i64 {need}, 1')}, i64 {_FIRST})")
    old = c.get(handle, Field.MEMORY)
    new = c.name(f"call ptr @realloc(ptr {old}, i64 {bytes_})")
    c.split(c.name(f"icmp eq ptr {new}, null"), "lost", "grown")
    c.block("lost")
    c.add(f"  store i64 {bytes_}, ptr %frame")
    c.add("  ret i64 3")
    c.block("grown")
    c.put(handle, Field.MEMORY, new)
    c.put(handle, Field.ROOM, bytes_)
    c.add("  br label %ready")
    c.block("ready")
    c.put(handle, Field.COUNT, "%after")
    c.copies(c.entry(handle, "%now", size), 2, out=False)
    c.add("  br label %done")
    c.block("done")
    c.lines.insert(0, "declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)")


def _more(c: _Code) -> None:
    value = c.word(c.handles[0], c.param(1))
    c.flag(c.name(f"icmp sgt i64 {value}, {c.param(0)}"))


def _back(c: _Code) -> None:
    (handle,) = c.handles
    count = c.name(f"sub i64 {c.get(handle, Field.COUNT)}, 1")
    c.put(handle, Field.COUNT, count)
    first = c.name(f"mul i64 {count}, {c.stride(handle)}")
    last = c.name(f"sub i64 {c.get(handle, Field.STEPS)}, 1")
    c.put(handle, Field.MISSING, c.name(f"sub i64 {last}, {first}"))
    c.copies(c.entry(handle, count, c.param(0)), 1, out=True)


def _last(c: _Code) -> None:
    (handle,) = c.handles
    count = c.name(f"sub i64 {c.get(handle, Field.COUNT)}, 1")
    c.put(handle, Field.COUNT, count)
    c.put(handle, Field.STEPS, count)
    c.copies(c.entry(handle, count, c.param(0)), 1, out=True)


def _short(c: _Code) -> None:
    handle, other = c.handles
    count, missing = c.get(other, Field.COUNT), c.get(handle, Field.MISSING)
    c.flag(c.name(f"icmp sle i64 {count}, {missing}"))


def _pop(c: _Code) -> None:
    handle, other = c.handles
    c.put(handle, Field.STEPS, c.name(f"sub i64 {c.get(handle, Field.STEPS)}, 1"))
    count = c.name(f"sub i64 {c.get(other, Field.COUNT)}, 1")
    c.put(other, Field.COUNT, count)
    c.copies(c.entry(other, count, c.param(0)), 1, out=True)


#: how each is written, its handles, its operands that are neither handles nor values of an entry
_KINDS: dict[str, tuple[Callable[[_Code], None], int, int]] = {
    "clear": (_clear, 1, 0),
    "keep": (_keep, 1, 0),
    "more": (_more, 1, 1),
    "back": (_back, 1, 0),
    "last": (_last, 1, 0),
    "short": (_short, 2, 1),
    "pop": (_pop, 2, 0),
}
