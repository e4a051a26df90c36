"""Joining the rooms: which class tensors are, what running a call means, where notes are counted.

Nothing native is loaded by importing the package; the first call that needs a kernel starts the
engine.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from weft.autodiff import mode, tape
from weft.buffer import Buffer
from weft.codegen import jit
from weft.ops.define import OPS, installed
from weft.runtime import program
from weft.runtime.eager import EagerMode
from weft.runtime.engine import Engine
from weft.runtime.native_program import everyone
from weft.runtime.plan import Plan
from weft.runtime.pool import default_size
from weft.schedule.launch import Machine
from weft.tensor.tensor import Tensor


@cache
def engine() -> Engine:
    """The process's engine, started now if it was not."""
    made = Engine(
        tensor=Tensor,
        buffer=Buffer,
        note=tape.Note,
        grad_mode=mode.recording,
        resolve_keep=_resolve_keep,
    )
    serial = ctypes.c_int64.from_address(made.code.address("serial"))
    serial.value = tape.next_serial[0]()
    tape.next_serial[0] = made.next_serial
    for _ in range(mode.watch.open):
        made.pause()
    mode.watch.opened, mode.watch.closed = made.pause, made.resume
    installed.launch = made.launch
    program.side_by_side[:] = [made.code.address("side_by_side")]
    program.host_call[:] = [made.code.address("host_call")]
    installed.enter_mode, installed.leave_mode = made.enter_mode, made.leave_mode
    return made


def _first_launch(plan: Plan, *xs: Any) -> Any:
    return engine().launch(plan, *xs)


# The floating-point mode, for numbers that are rounded before there is an engine: a tensor can be
# made without one.

_STANDARD, _CONTROLS = 0x1F80, 0xFFC0
_Environment = ctypes.c_uint32 * 8  # the last word of C's fenv_t is MXCSR


@cache
def _fenv() -> Any:
    return ctypes.CDLL("libm.so.6")


def _enter_mode() -> int:
    found = _Environment()
    _fenv().fegetenv(found)
    host: int = found[7]
    if host & _CONTROLS == _STANDARD:
        return 0
    _leave_mode(_STANDARD)
    return host


def _leave_mode(mode: int) -> None:
    if mode:
        now = _Environment()
        _fenv().fegetenv(now)
        now[7] = mode
        _fenv().fesetenv(now)


def _resolve_keep(plan: Plan) -> None:
    plan.keep = tape.keep_mask(plan.call)


def get_num_threads() -> int:
    """How many threads an op may use.

    >>> import weft as wf
    >>> wf.get_num_threads() >= 1
    True
    """
    return engine().pool.size if engine.cache_info().currsize else default_size()


def set_num_threads(n: int) -> None:
    """Use `n` threads from now on. Results do not depend on it, to the bit.

    >>> import weft as wf
    >>> n = wf.get_num_threads()
    >>> wf.set_num_threads(1)
    >>> wf.set_num_threads(n)
    """
    engine().pool.resize(n)
    for op in list(OPS.values()):
        op.plans.clear()  # work is split anew
    eager.known.clear()
    for native in list(everyone):
        native.forget()


def machine() -> Machine:
    """What plans suit themselves to."""
    return Machine(get_num_threads(), jit.vector_bytes())


eager = EagerMode(machine)
installed.launch, installed.eager = _first_launch, eager
installed.enter_mode, installed.leave_mode = _enter_mode, _leave_mode
