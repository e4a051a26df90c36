"""Work that Ctrl-C does not break off half way.

Python raises KeyboardInterrupt in the main thread, between any two of its instructions. In the
middle of a call of LLVM's that leaves a lock held, or objects that are freed in the wrong order
when garbage is collected: a crash much later. So the main thread lets another do such work and
waits: it can be interrupted at any time, and the work comes to its end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def undisturbed(work: Callable[[], T]) -> T:
    """What `work` gives, or the error it raises.

    >>> undisturbed(lambda: 2 + 3)
    5
    """
    while threading.current_thread() is threading.main_thread():
        done = Future[T]()
        thread = threading.Thread(target=_do, args=(work, done), name="weft-work")
        try:
            thread.start()
        except RuntimeError:  # no more threads: the process is ending, or has too many
            break
        while thread.is_alive():
            thread.join(0.05)  # a signal that comes just before waiting begins wakes nobody
        if done.done():  # else this is a child, forked meanwhile by a signal's handler
            return done.result()
    return work()


def _do(work: Callable[[], T], done: Future[T]) -> None:
    try:
        done.set_result(work())
    except BaseException as e:
        done.set_exception(e)
