"""Calls that run beside the caller: on a thread of their own, one after the other as they were
started, and without the GIL while kernels run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from weft.autodiff.mode import enable_grad, no_grad, recording


class Pending:
    """A call that was started. `await` it in a coroutine, or ask `result()`.

    >>> import weft as wf
    >>> double = wf.compile(lambda x: x * 2)
    >>> call = double.start(wf.ones((2,)))
    >>> call.result()
    tensor([2., 2.])
    """

    __slots__ = ("_future",)

    def __init__(self, future: Future[Any]) -> None:
        self._future = future

    def __await__(self) -> Generator[Any, None, Any]:
        import asyncio  # a tenth of the time `import weft` takes; whoever awaits has it

        return asyncio.wrap_future(self._future).__await__()

    def result(self, timeout: float | None = None) -> Any:
        """What the call gives, or raises; waits for it, at most `timeout` seconds."""
        return self._future.result(timeout)

    def done(self) -> bool:
        """Whether it has ended."""
        return self._future.done()

    def cancel(self) -> bool:
        """Take it back; False if it is under way or has ended."""
        return self._future.cancel()

    def __repr__(self) -> str:
        said = "cancelled" if self._future.cancelled() else "done" if self.done() else "pending"
        return f"<a call, {said}>"


class _Thread:
    """Started with the first call, and again in a forked process."""

    def __init__(self) -> None:
        self.executor: ThreadPoolExecutor | None = None

    def submit(self, f: Callable[[], Any]) -> Future[Any]:
        if self.executor is None:
            self.executor = ThreadPoolExecutor(1, "weft-calls")
        return self.executor.submit(f)

    def forget(self) -> None:
        self.executor = None


_thread = _Thread()
os.register_at_fork(after_in_child=_thread.forget)


def start(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Pending:
    """f(*args, **kwargs), started; gradients are noted if they are here and now."""
    mode = enable_grad if recording.get() else no_grad

    def run() -> Any:
        with mode():
            return f(*args, **kwargs)

    return Pending(_thread.submit(run))
