"""A program as users hold it: called by position or by name, looked into, run op by op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.autodiff.tape import Leaf
from weft.capture.structure import Form, flatten
from weft.debug.explain import Explanation
from weft.deploy.python.writer import to_python
from weft.errors import DTypeError, GuardError
from weft.ir import Function
from weft.ops.define import Value, installed
from weft.ops.record import replay
from weft.runtime.executable import Executable
from weft.runtime.pending import Pending, start


class Program:
    """A graph with its state, compiled. `wf.trace` and `wf.build` make one."""

    def __init__(
        self,
        name: str,
        executable: Executable,
        names: Sequence[str],
        form: Form,
        leaves: list[Any],
        at: Callable[[list[Any]], Executable] | None = None,
        full: Callable[[list[Any]], list[Any]] = list,
    ) -> None:
        """`at` gives the executable for the sizes of a call, where some are left open; `full` the
        arguments with sizes that the program finds.
        """
        self.name, self.executable, self.names = name, executable, tuple(names)
        self.form, self.leaves, self.at, self.full = form, leaves, at, full
        #: the captured graph; printing it gives its text
        self.graph: Function = executable.captured.function

    def explain(self) -> Explanation:
        """What was captured, fused, saved and placed."""
        return Explanation(self.name, self.executable)

    def to_python(self) -> str:
        """Python source that gives this graph when it is captured again: branches are `if`, loops
        `while` and `for`, and what the program reads of the outside are parameters.

        >>> import weft as wf
        >>> def halved(x):
        ...     while x.sum() > 1:
        ...         x = x / 2
        ...     return x
        >>> print(wf.script(halved)(wf.zeros((3,))).to_python())
        import weft as wf
        <BLANKLINE>
        <BLANKLINE>
        def halved(x: "f32[3]"):
            while wf.sum(x) > 1:
                x = x / 2
            return x
        <BLANKLINE>
        """
        captured = self.executable.captured
        paths = self.form.paths()
        names = [self._said(paths[i]) for i in captured.inputs.arguments]
        owners = [(c, c.owner) for c in captured.inputs.cells]
        names += [
            "grad" if c.is_grad else "weight" if isinstance(x.note, Leaf) else "state"
            for c, x in owners
        ]
        names += ["number"] * len(captured.inputs.numbers)
        names += ["number"] * len(captured.inputs.scalars)
        names += ["key", "counter"] * captured.inputs.random
        written = len(captured.function.results) - len(
            {o.result for o in captured.outputs} - {None}
        )
        doc = f"The last {written} results are new values of weights and other state."
        return to_python(self.graph, names, doc if written else "")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        executable, leaves = self._bound(args, kwargs)
        return executable(leaves)

    def start(self, *args: Any, **kwargs: Any) -> Pending:
        """A call on another thread: `await` it, or ask its `result()`."""
        return start(self, args, kwargs)

    def eager(self, *args: Any, **kwargs: Any) -> Any:
        """Run the graph op by op, with the same bits."""
        executable, leaves = self._bound(args, kwargs)
        return executable(leaves, run=lambda xs: replay(executable.captured.function, tuple(xs)))

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Executable, list[Any]]:
        """What runs a call, and its leaves."""
        leaves = self.full(self._leaves(args, kwargs))
        executable = self.executable if self.at is None else self.at(leaves)
        if not executable.fits(leaves):
            raise GuardError(
                self.name,
                expected="parameters, gradients and other state as when it was captured",
                got="a gradient where there was none, or none where there was one, or another type",
                hint="wf.compile captures again",
            )
        return executable, leaves

    def _leaves(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The leaves of a call, each checked against what the program was made for."""
        given = self._named(args, kwargs)
        leaves, form = flatten(given)
        if form != self.form:
            raise GuardError(
                self.name,
                expected=f"arguments like {', '.join(self.names) or 'none'}",
                got=f"{len(leaves)} values in another structure",
            )
        known = self.form.paths()
        for i, (x, old, path) in enumerate(zip(leaves, self.leaves, known, strict=True)):
            if not isinstance(old, Value):
                if x is not old and (type(x) is not type(old) or x != old):
                    expected = f"{old!r} for {self._said(path)}"
                    raise GuardError(self.name, expected=expected, got=repr(x))
                continue
            if not isinstance(x, Value):
                x = leaves[i] = installed.lift(x)
            if x.type is not old.type and not self._is_open(x, old):
                raise GuardError(
                    self.name,
                    expected=f"{old.type} for {self._said(path)}",
                    got=str(x.type),
                    hint="a traced program has fixed types; wf.compile captures others too",
                )
        if self.at is not None:
            self._check(leaves)
        return leaves

    def _is_open(self, x: Value, old: Value) -> bool:
        """Whether a tensor differs in sizes alone, and some are left open."""
        same = x.type.dtype is old.type.dtype and x.type.ndim == old.type.ndim
        return same and self.at is not None

    def _check(self, leaves: list[Any]) -> None:
        symbols = self.executable.captured.symbols
        failed = None if symbols is None else symbols.failure(leaves)
        if failed is not None:
            got = ", ".join(str(x.type) for x in leaves if isinstance(x, Value))
            raise GuardError(self.name, expected=failed, got=got)

    def _said(self, path: str) -> str:
        for i, name in enumerate(self.names):
            if path.startswith(f"[0][{i}]"):
                return name + path.removeprefix(f"[0][{i}]")
        return path

    def _named(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        if not kwargs:
            return args, {}
        values = list(args)
        left = dict(kwargs)
        for name in self.names[len(args) :]:
            if name in left:
                values.append(left.pop(name))
        if left and self.form.children[1].names != tuple(left):
            raise DTypeError(
                self.name, expected=f"arguments {', '.join(self.names)}", got=", ".join(left)
            )
        return tuple(values), left

    def __repr__(self) -> str:
        params = ", ".join(
            f"{n}: {getattr(x, 'type', repr(x))}"
            for n, x in zip(self.names, self.leaves, strict=False)
        )
        return f"<program {self.name}({params})>"
