"""Work in the main thread that Ctrl-C does not break off, and that a handler may ask for again."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from weft.codegen import jit
from weft.ops.scalar import input_
from weft.runtime import kernels
from weft.runtime.undisturbed import undisturbed
from weft.schedule.map import MapSpec
from weft.types.dtype import float32


def test_the_work_comes_to_its_end():
    at, go, ended = threading.Event(), threading.Event(), threading.Event()

    def work():
        at.set()
        go.wait()
        ended.set()

    def press():
        at.wait()
        os.kill(os.getpid(), signal.SIGINT)

    try:
        with pytest.raises(KeyboardInterrupt):
            threading.Thread(target=press).start()
            undisturbed(work)
        assert not ended.is_set()
    finally:
        go.set()
    assert ended.wait(600)


def test_results_and_errors_are_those_of_the_work():
    assert undisturbed(lambda: threading.current_thread() is threading.main_thread()) is False
    with pytest.raises(ZeroDivisionError):
        undisturbed(lambda: 1 // 0)
    found = []
    thread = threading.Thread(target=lambda: found.append(undisturbed(threading.get_ident)))
    thread.start()
    thread.join()
    assert found == [thread.ident]  # nobody interrupts it there


def test_a_handler_may_want_the_kernel_that_is_being_made(monkeypatch):
    x = input_(0, float32)
    spec = MapSpec((x * 1.25 + 77.0,), (float32,), "c", 0)
    real, found = jit.compile_object, []

    def compile_object(*args):
        if not found:
            found.append(None)
            os.kill(os.getpid(), signal.SIGALRM)  # the handler's may need a part of this one
        return real(*args)

    def handle(*_):
        found.append(kernels.code(spec))

    monkeypatch.setattr(jit, "compile_object", compile_object)
    monkeypatch.setenv("WEFT_CACHE", "0")
    kernels.disk.cache_clear()
    old = signal.signal(signal.SIGALRM, handle)
    try:
        code = kernels.code(spec)
        while len(found) < 2:
            time.sleep(0.01)
    finally:
        signal.signal(signal.SIGALRM, old)
        kernels.disk.cache_clear()
    assert code.address("kernel") and found[1].address("kernel")
