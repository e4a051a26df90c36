"""An engine over stand-in classes and kernels written by hand: the native call without any op."""

import ctypes
import os
import subprocess
import sys
from contextvars import ContextVar
from pathlib import Path

import numpy as np
from spelled import dtype_of

from weft.buffer import Buffer, Layout
from weft.codegen import jit
from weft.runtime.engine import Engine, raise_error
from weft.runtime.plan import make_plan
from weft.schedule.launch import Launch, Phase
from weft.types import TensorType


class Tensor:
    __slots__ = ("data", "leaf", "note")

    def __init__(self, data, note=None, leaf=None):
        self.data, self.note, self.leaf = data, note, leaf


class Note:
    __slots__ = ("call", "output", "parents", "saved", "serial")


recording = ContextVar("recording", default=True)
resolve = []  # what resolve_keep does: the last of these functions
errors = []  # what on_error was called with


def on_error(plan, status, detail, args):
    errors.append((plan, status, detail, args))
    raise_error(plan, status, detail, args)


engine = Engine(
    tensor=Tensor, buffer=Buffer, note=Note, grad_mode=recording,
    resolve_keep=lambda plan: resolve[-1](plan), on_error=on_error,
)  # fmt: skip
launch = engine.launch


def each(operands, body, blocks=""):
    """A kernel that runs `body` for every task %i; its operands are %p0, %p1, …

    `blocks` are further blocks that the body may branch to.
    """
    lines = ["define i64 @kernel(ptr %frame, i64 %lo, i64 %hi, i64 %worker) {", "entry:"]
    for k in range(operands):
        lines += [
            f"%w{k} = getelementptr i64, ptr %frame, i64 {3 + k}",
            f"%p{k} = load ptr, ptr %w{k}",
        ]
    lines += ["br label %head", "head:", "%i = phi i64 [ %lo, %entry ], [ %next, %continue ]"]
    lines += ["%more = icmp slt i64 %i, %hi", "br i1 %more, label %body, label %done", "body:"]
    lines += [body, "br label %continue", "continue:", "%next = add i64 %i, 1", "br label %head"]
    return "\n".join([*lines, "done:", "ret i64 0", blocks, "}", ""])


def binary(op, type_="float"):
    return f"""
      %at0 = getelementptr {type_}, ptr %p0, i64 %i
      %at1 = getelementptr {type_}, ptr %p1, i64 %i
      %at2 = getelementptr {type_}, ptr %p2, i64 %i
      %a = load {type_}, ptr %at0
      %b = load {type_}, ptr %at1
      %c = {op} {type_} %a, %b
      store {type_} %c, ptr %at2"""


KERNELS = {
    "add": each(3, binary("fadd")),
    "divide": each(3, binary("fdiv")),
    "both": each(  # two results: the inputs swapped
        4,
        """
      %at0 = getelementptr float, ptr %p0, i64 %i
      %at1 = getelementptr float, ptr %p1, i64 %i
      %at2 = getelementptr float, ptr %p2, i64 %i
      %at3 = getelementptr float, ptr %p3, i64 %i
      %a = load float, ptr %at0
      %b = load float, ptr %at1
      store float %b, ptr %at2
      store float %a, ptr %at3""",
    ),
    "word": each(2, "%x = load i64, ptr %p0\nstore i64 %x, ptr %p1"),  # a scalar's eight bytes
    "param": each(  # the launch's one param, which lies behind the one output
        1,
        """
      %at = getelementptr i64, ptr %frame, i64 4
      %x = load i64, ptr %at
      %out = getelementptr i64, ptr %p0, i64 %i
      store i64 %x, ptr %out""",
    ),
    "index": each(  # task 40 fails with detail -7
        1,
        "%bad = icmp eq i64 %i, 40\nbr i1 %bad, label %fail, label %fine\nfine:",
        "fail:\nstore i64 -7, ptr %frame\nret i64 1",
    ),
    "who": each(1, "%at = getelementptr i64, ptr %p0, i64 %i\nstore i64 %worker, ptr %at"),
}
# a while of work that nothing can be left out of: about 0.3 ms, or 0.3 s that ask poll
_SPIN = """
  br label %spin
spin:
  %s = phi i64 [ 0, %{before} ], [ %s1, %spin ]
  %s1 = add i64 %s, 1
  call void asm sideeffect "", ""()
  %again = icmp slt i64 %s1, 1000000
  br i1 %again, label %spin, label %spun
spun:"""
KERNELS["spin"] = each(1, _SPIN.format(before="body"))
_OUT = "\n%to = getelementptr i64, ptr %p0, i64 %i\n"
KERNELS["slow_who"] = each(1, _SPIN.format(before="body") + _OUT + "store i64 %worker, ptr %to")
KERNELS["slow_param"] = each(
    1,
    _SPIN.format(before="body")
    + "\n%at = getelementptr i64, ptr %frame, i64 4\n%x = load i64, ptr %at"
    + _OUT
    + "store i64 %x, ptr %to",
)
KERNELS["polling"] = each(
    1,
    """
  %poll_at = getelementptr i64, ptr %frame, i64 1
  %poll = load ptr, ptr %poll_at
  br label %round
round:
  %r = phi i64 [ 0, %body ], [ %r1, %on ]"""
    + _SPIN.format(before="round")
    + """
  %told = call i64 %poll(ptr %frame, i64 %worker)
  %stop = icmp ne i64 %told, 0
  br i1 %stop, label %stopped, label %on
on:
  %r1 = add i64 %r, 1
  %longer = icmp slt i64 %r1, 100000
  br i1 %longer, label %round, label %finished
finished:""",
    "stopped:\nret i64 2",
)
# the launching thread is done as soon as another has begun, for which the result's first word,
# cleared before, turns 1; the other works for a while and never asks poll
KERNELS["clear"] = each(
    1, "%at = getelementptr i32, ptr %p0, i64 %i\nstore volatile i32 0, ptr %at"
)
KERNELS["helped"] = each(
    1,
    """
  %helper = icmp ne i64 %worker, 0
  br i1 %helper, label %begin, label %wait
wait:
  %begun = load volatile i32, ptr %p0
  %none = icmp eq i32 %begun, 0
  br i1 %none, label %wait, label %finished
begin:
  store volatile i32 1, ptr %p0
  br label %round
round:
  %r = phi i64 [ 0, %begin ], [ %r1, %spun ]"""
    + _SPIN.format(before="round")
    + """
  %r1 = add i64 %r, 1
  %longer = icmp slt i64 %r1, 500
  br i1 %longer, label %round, label %finished
finished:""",
)
# scratch[i] = i, then out[i] = scratch[n - 1 - i], n the param: the second must wait for the first
_SCRATCH = "%s_at = getelementptr i64, ptr %frame, i64 2\n%scratch = load ptr, ptr %s_at\n"
KERNELS["fill"] = each(
    1, _SCRATCH + "%at = getelementptr i64, ptr %scratch, i64 %i\nstore i64 %i, ptr %at"
)
KERNELS["turn"] = each(
    1,
    _SCRATCH
    + """
  %n_at = getelementptr i64, ptr %frame, i64 4
  %n = load i64, ptr %n_at
  %last = sub i64 %n, 1
  %k = sub i64 %last, %i
  %from = getelementptr i64, ptr %scratch, i64 %k
  %x = load i64, ptr %from
  %to = getelementptr i64, ptr %p0, i64 %i
  store i64 %x, ptr %to""",
)
# a worker's 64 bytes of scratch hold the task it is at for a while: another's writing there shows
KERNELS["slice"] = each(
    1,
    _SCRATCH
    + """
  %mine = mul i64 %worker, 8
  %at = getelementptr i64, ptr %scratch, i64 %mine
  store volatile i64 %i, ptr %at"""
    + _SPIN.format(before="body").replace("1000000", "20000")
    + "\n%x = load volatile i64, ptr %at"
    + _OUT
    + "store i64 %x, ptr %to",
)

_codes = {}


def function(name):
    if name not in _codes:
        _codes[name] = jit.Code(jit.compile_object(KERNELS[name]))
    return _codes[name].address("kernel")


def layout(shape, dtype="f32"):
    return Layout.dense(TensorType(shape, dtype_of(dtype)))


def plan(*names, outs, kinds=(0, 0), tasks=None, grain=1, differentiable=True, call="op", **more):
    """The plan of the kernels `names`, one phase each, a task per element of the first result."""
    n = outs[0].type.size if tasks is None else tasks
    made = Launch(tuple(outs), tuple(Phase(None, n, grain) for _ in names), **more)
    return make_plan(made, call, [function(name) for name in names], kinds, differentiable)


def tensor(array, note=None):
    array = np.ascontiguousarray(array)
    return Tensor(Buffer(layout(array.shape, array.dtype), array.ctypes.data, array), note)


def numpy(t):
    """A copy of a dense tensor's elements."""
    type_ = t.data.layout.type
    return np.frombuffer(ctypes.string_at(t.data.address, type_.nbytes), type_.dtype.np).reshape(
        type_.shape
    )


def run_script(text, **environment):
    """Run `text` in a new process that can import this."""
    here = Path(__file__).parent
    path = os.pathsep.join([str(here), str(here.parent)])
    environment = {**os.environ, "PYTHONPATH": path, **environment}
    command = [sys.executable, "-c", text]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
