"""One program, both graphs, as a switch: in static mode modules and marked functions are compiled.

>>> import weft as wf
>>> @wf.function
... def double(x):
...     return x * 2
>>> with wf.mode("static"):
...     double(wf.tensor([1.0]))
tensor([2.])
>>> double.compiled.captures
1
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import ContextVar, Token
from typing import Any, Generic, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from weft.capture.source.convert import source
from weft.compile import compile, traced
from weft.deploy.compiled import Compiled
from weft.deploy.program import Program
from weft.errors import ShapeError
from weft.ops.define import capturing, installed

P = ParamSpec("P")
R = TypeVar("R")

MODES = ("dynamic", "static")
_mode: ContextVar[str] = ContextVar("weft_mode", default="dynamic")
_modules: WeakKeyDictionary[Any, Compiled[..., Any]] = WeakKeyDictionary()


def set_mode(name: str) -> None:
    """Run modules and functions marked with `wf.function` op by op ("dynamic") or compiled
    ("static") from now on.

    >>> import weft as wf
    >>> wf.set_mode("dynamic")
    """
    _mode.set(_known(name))
    installed.static = _static_call


class mode:
    """A block in the mode of that name.

    >>> import weft as wf
    >>> with wf.mode("static"):
    ...     y = wf.nn.Linear(2, 1)(wf.zeros((3, 2)))
    >>> y.shape
    (3, 1)
    """

    def __init__(self, name: str) -> None:
        self.name = _known(name)
        self._tokens: list[Token[str]] = []

    def __enter__(self) -> None:
        installed.static = _static_call
        self._tokens.append(_mode.set(self.name))

    def __exit__(self, *_: object) -> None:
        _mode.reset(self._tokens.pop())


def _known(name: Any) -> str:
    if not isinstance(name, str) or name not in MODES:
        raise ShapeError("mode", expected='"dynamic" or "static"', got=repr(name))
    return str(name)


def _static_call(module: Any) -> Callable[..., Any] | None:
    """What a call of a module means now: its compiled form, or None for its own code."""
    if _mode.get() != "static" or capturing.now is not None:
        return None
    found = _modules.get(module)
    if found is None:
        found = _modules[module] = compile(module.forward)
    return found


class function(Generic[P, R]):
    """A function that static mode compiles. `compiled` is the compiled form.

    >>> import weft as wf
    >>> @wf.function
    ... def f(x):
    ...     return x + 1
    >>> f(wf.tensor([1.0]))
    tensor([2.])
    """

    def __init__(self, f: Callable[P, R]) -> None:
        self.function = f
        self.compiled = compile(f)
        functools.update_wrapper(self, f)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        run = self.compiled if _mode.get() == "static" else self.function
        return run(*args, **kwargs)

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return self if owner is None else functools.partial(self, owner)


class script:
    """A function whose control flow is part of its programs: called with examples it gives the
    program for arguments like them; `code` is what its source was made into.

    >>> import weft as wf
    >>> def flip(x):
    ...     return x if x.sum() > 0 else -x
    >>> program = wf.script(flip)(wf.zeros((2,)))
    >>> program(wf.tensor([-1.0, -2.0]))
    tensor([1., 2.])
    """

    def __init__(self, f: Callable[..., Any]) -> None:
        self.function = f
        functools.update_wrapper(self, f)

    @property
    def code(self) -> str:
        """The function with its control flow as calls that run eagerly or become graph nodes."""
        return source(self.function)

    def __call__(self, *examples: Any, **named: Any) -> Program:
        return traced(self.function, examples, named, converted=True)
