"""Whether calls are noted on the tape."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextvars import ContextVar, Token
from typing import Any

from weft.errors import DTypeError

#: True where calls are noted; the native call path reads it only while some block has changed it
recording: ContextVar[bool] = ContextVar("weft_recording", default=True)


class _Watch:
    """Told when blocks open and close, so that the common case costs no look-up. The runtime
    installs its counters.
    """

    def __init__(self) -> None:
        self.open = 0  # blocks open before the runtime was there
        self.opened: Callable[[], object] = self._opened
        self.closed: Callable[[], object] = self._closed

    def _opened(self) -> None:
        self.open += 1

    def _closed(self) -> None:
        self.open -= 1


watch = _Watch()


class _Recording:
    """A block, or a decorated function, with recording switched on or off."""

    wanted: bool

    def __new__(cls, f: Any = None) -> Any:
        return super().__new__(cls) if f is None else cls()(f)  # `@no_grad` as well as `@no_grad()`

    def __init__(self) -> None:
        self._tokens: list[Token[bool]] = []

    def __enter__(self) -> None:
        watch.opened()
        self._tokens.append(recording.set(self.wanted))

    def __exit__(self, *exc: object) -> None:
        recording.reset(self._tokens.pop())
        watch.closed()

    def __call__(self, f: Any) -> Any:
        if not callable(f):
            got = type(f).__name__
            raise DTypeError(type(self).__name__, expected="a function to decorate", got=got)

        if inspect.isgeneratorfunction(f):
            return self._stepping(f)

        @functools.wraps(f)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with type(self)():
                return f(*args, **kwargs)

        return inside

    def _stepping(self, f: Any) -> Any:
        """A generator function whose steps run inside, and what happens between them outside."""

        @functools.wraps(f)
        def inside(*args: Any, **kwargs: Any) -> Any:
            steps = f(*args, **kwargs)
            resume: Callable[..., Any] = steps.send
            given: tuple[Any, ...] = (None,)
            while True:
                try:
                    with type(self)():
                        out = resume(*given)
                except StopIteration as end:
                    return end.value
                try:
                    resume, given = steps.send, ((yield out),)
                except GeneratorExit:
                    with type(self)():
                        steps.close()
                    raise
                except BaseException as e:
                    resume, given = steps.throw, (e,)

        return inside


class no_grad(_Recording):
    """A block, or a decorator, in which nothing is noted for backward.

    >>> import weft as wf
    >>> w = wf.tensor([1.0], requires_grad=True)
    >>> with wf.no_grad():
    ...     print((w * 2).requires_grad)
    False
    """

    wanted = False


class enable_grad(_Recording):
    """The opposite of `no_grad`, inside one.

    >>> import weft as wf
    >>> x = wf.tensor([1.0], requires_grad=True)
    >>> with wf.no_grad(), wf.enable_grad():
    ...     y = x * 2
    >>> y.requires_grad
    True
    """

    wanted = True
