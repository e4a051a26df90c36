"""Errors that leave a function for a `try` around the call, where that depends on tensors.

A path that raises ends there; the others go on, and what follows them in the block is computed
whether the path was taken or not, but for what is done besides computing. Behind the block the
program goes on with what there was when the error was raised, and the handler; or with what there
is now.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from weft.capture.join import Slots, assign, blank
from weft.control.region import CHANGING, Region, content_of, refill
from weft.errors import CaptureError
from weft.ops.define import Value, capturing, installed
from weft.ops.elementwise import logical_and, logical_not

Thunk = Callable[[], Any]


class Watch(Region):
    """A piece of what is captured, whose changes are noted and stay."""

    def __init__(self) -> None:
        super().__init__()
        if isinstance(self.parent, Region):
            self.nodes, self.types = self.parent.nodes, self.parent.types
            self.objects = self.parent.objects

    def keep(self, x: Value) -> None:
        self.parent.keep(x)
        self.written.setdefault(id(x), (x, x.data, x.note))

    def write(self, x: Value) -> None:
        self.parent.write(x)
        self.written.setdefault(id(x), (x, x.data, x.note))

    def read_grad(self, leaf: Any) -> Any:
        return self.parent.read_grad(leaf)

    def write_grad(self, leaf: Any) -> None:
        self.parent.write_grad(leaf)
        self.grads.setdefault(leaf, leaf.grad)

    def own_leaf(self, leaf: Any) -> None:
        self.parent.own_leaf(leaf)

    def change(self, x: Any, name: str | None) -> None:
        if isinstance(self.parent, Region):
            self.parent.change(x, name)
        held = x if type(x) in CHANGING else getattr(x, "__dict__", None)
        if isinstance(held, CHANGING):
            self.changed.setdefault(id(held), (held, content_of(held)))


class _Same:
    """A list, dict or set that a variable holds, whatever is in it."""

    def __init__(self, x: Any) -> None:
        self.x = x


class Escape:
    """An error that a block may have ended with: whether it did, what it is made of, and what
    variables and all else (`places`) held then.
    """

    def __init__(self, flag: Any, kinds: list[type], places: list[Any], values: Any) -> None:
        self.flag, self.kinds, self.places, self.values = flag, kinds, places, values

    def state(self) -> list[Any]:
        return [self.flag, self.values]

    def other(self) -> list[Any]:
        """The same of a path on which it did not happen."""
        return [False, blank(self.values)]

    def out_of(self, region: Region, params: Collection[int]) -> Escape:
        """It, without what only a region knows that was run."""
        error, variables, held = self.values
        own = (id(x) in params or _is_of(x, region) for x in self.places)
        kept = [i for i, yes in enumerate(own) if not yes]
        values = [error, variables, [held[i] for i in kept]]
        return Escape(self.flag, self.kinds, [self.places[i] for i in kept], values)

    def error(self) -> BaseException:
        made: list[BaseException] = []
        for kind, (args, inside) in zip(self.kinds, self.values[0], strict=True):
            made.append(kind.__new__(kind, *args))
            made[-1].args = args
            made[-1].__dict__.update(inside)
        if len(made) > 1:
            made[0].__cause__ = made[1]
        return made[0]


def _is_of(x: Any, region: Region) -> bool:
    return x.data in region.nodes if isinstance(x, Value) else id(x) in region.objects


class Raised(BaseException):
    """Ends a path of a program that ends by raising."""

    error: BaseException


class Escaped(BaseException):
    """Ends a path by an error that `block`, begun outside of it, takes."""

    def __init__(self, error: BaseException | None, block: handling) -> None:
        self.error, self.block = error, block

    def finish(self) -> None:
        """Do what is to be done on the way, and note what there is."""
        if self.error is None:  # noted already
            return
        with finished(self.block.depth):
            self.block.escapes(self.error)
        self.error = None


class handling:
    """A block that some errors end, and then its handlers go on. `kinds` gives their classes,
    `get` the variables that it binds, if it can be left by an error on one path.
    """

    stack: ClassVar[list[handling]] = []

    def __init__(self, kinds: Callable[[], tuple[Any, ...]], get: Thunk | None = None) -> None:
        self.kinds, self.get = kinds, get
        self.faults: list[Escape] = []
        self.ended = False  # by errors on every path
        self.outside: Any = capturing.now
        self.watch: Watch | None = None
        self.depth = len(finishing.stack)

    def __enter__(self) -> handling:
        if self.get is not None and capturing.now is not None and not capturing.now.by_hand:
            self.outside = self.watch = Watch()
            capturing.now = self.watch
        handling.stack.append(self)
        return self

    def __exit__(self, _: Any, error: Any, __: Any) -> bool:
        self.ended = isinstance(error, Escaped) and error.block is self
        if self.faults and isinstance(error, Escaped) and not self.ended:
            error.finish()  # where this block has not ended before
            return self._left(True)
        users = isinstance(error, (Exception, Raised)) and not isinstance(error, CaptureError)
        if self.faults and users:
            self.escapes(error.error if isinstance(error, Raised) else error)
            self.ended = True
        return self._left(self.ended)

    def _left(self, fine: bool) -> bool:
        handling.stack.remove(self)
        if self.watch is not None:
            capturing.now = self.watch.parent
        return fine

    def escapes(self, error: BaseException) -> None:
        """An error ends the path that is being run: note what there is."""
        assert self.get is not None
        slots, region = Slots(), capturing.now
        while isinstance(region, Region):
            slots.add(region)
            region = None if region is self.watch else region.parent
        tensors, grads, content = slots.values({})
        places = [*slots.tensors.values(), *slots.leaves, *slots.containers.values()]
        variables = [_Same(x) if type(x) in (list, dict, set) else x for x in self.get()]
        errors = [e for e in (error, error.__cause__) if e is not None]
        inside = [[e.args, dict(e.__dict__)] for e in errors]
        values = [inside, variables, [*tensors, *grads, *content]]
        self.faults.append(Escape(self._flag(), [type(e) for e in errors], places, values))

    def _flag(self) -> Any:
        """Whether it comes to an error now: not if a block inside of this has ended with one."""
        flag: Any = True
        for block in handling.stack[handling.stack.index(self) + 1 :]:
            for fault in block.faults:
                raised = fault.flag
                fine = logical_not(raised if isinstance(raised, Value) else installed.lift(raised))
                flag = fine if flag is True else logical_and(flag, fine)
        return flag

    def restore(self, fault: Escape, put: Callable[..., None], token: Any) -> None:
        """Give everything what it held when an error was raised."""
        assert self.watch is not None
        _, variables, held = fault.values
        put(*[x.x if type(x) is _Same else x for x in variables])
        now = dict(zip(map(id, fault.places), held, strict=True))
        for k, (x, data, note) in self.watch.written.items():
            if x is not token:
                assign(x, now[k] if k in now else installed.tensor(data, note))
        for leaf, grad in self.watch.grads.items():
            assert capturing.now is not None
            capturing.now.write_grad(leaf)
            leaf.grad = now.get(id(leaf), grad)
        for k, (x, content) in self.watch.changed.items():
            if isinstance(capturing.now, Region):
                capturing.now.change(x, None)
            refill(x, now.get(k, content))


class suppressing(handling):
    """`contextlib.suppress`"""

    def __init__(self, *taken: type[BaseException]) -> None:
        super().__init__(lambda: taken)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        super().__exit__(kind, error, trace)
        refusal = isinstance(error, (CaptureError, Raised, Escaped))
        return isinstance(error, self.kinds()) and not refusal


class finishing:
    """A block that something is done after, whatever ends it: paths that raise do it first."""

    stack: ClassVar[list[finishing]] = []

    def __init__(self, last: Callable[[], Any]) -> None:
        self.last = last

    def __enter__(self) -> None:
        finishing.stack.append(self)

    def __exit__(self, *_: object) -> None:
        finishing.stack.remove(self)


@contextmanager
def finished(depth: int = 0) -> Iterator[None]:
    """What a path that raises does on its way out of blocks: variables that this assigns to are
    then what they are on other paths.
    """
    blocks = finishing.stack[depth:][::-1]
    cells = [c for block in blocks for c in getattr(block.last, "__closure__", None) or ()]
    before = [content_of(c) for c in cells]
    try:
        for block in blocks:
            block.last()
        yield
    finally:
        for cell, content in zip(cells, before, strict=True):
            refill(cell, content)


def handler(error: BaseException) -> handling | None:
    """The innermost block whose handlers take an error."""
    for block in reversed(handling.stack):
        if isinstance(error, block.kinds()):
            return block
    return None


def faults() -> list[Escape]:
    """The errors that blocks under way may have ended with."""
    return [f for block in handling.stack for f in block.faults if id(f) not in excluded]


#: faults that did not happen, where the program is
excluded: set[int] = set()


class excluding:
    """A block that is not run if these errors were raised."""

    def __init__(self, pending: list[Escape]) -> None:
        self.ids = {id(f) for f in pending}

    def __enter__(self) -> None:
        excluded.update(self.ids)

    def __exit__(self, *_: object) -> None:
        excluded.difference_update(self.ids)


class Faults:
    """The errors that the paths of a branch end with, or may have ended with."""

    def __init__(self) -> None:
        self.marks = [(block, len(block.faults)) for block in handling.stack]
        self.found: list[list[tuple[handling, Escape]]] = []

    def take(self, region: Region, params: Collection[int] = ()) -> None:
        """Those of a path that was run, on params of its own."""
        own = [(b, f.out_of(region, params)) for b, n in self.marks for f in b.faults[n:]]
        self.drop()
        self.found.append(own)

    def drop(self) -> None:
        """Forget those of a path."""
        for block, n in self.marks:
            del block.faults[n:]

    def sides(self) -> list[list[Any]]:
        """What each path says of them all."""
        return [
            [f.state() if i == j else f.other() for j, own in enumerate(self.found) for _, f in own]
            for i in range(len(self.found))
        ]

    def give(self, joined: list[Any]) -> None:
        """They may have happened, behind the branch."""
        every = [pair for own in self.found for pair in own]
        for (block, f), (flag, values) in zip(every, joined, strict=True):
            block.faults.append(Escape(flag, f.kinds, f.places, values))
