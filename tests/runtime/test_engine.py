import ctypes
import gc
import math
import sys
import threading
from contextvars import copy_context

import engine_lab as lab
import ml_dtypes
import mxcsr
import numpy as np
import pytest
from engine_lab import Note, Tensor, engine, launch, layout, numpy, plan, tensor
from spelled import dtype_of

from tests.robustness.lab import resident
from weft.buffer import Buffer
from weft.codegen import jit
from weft.errors import (
    DeviceError,
    DTypeError,
    IndexRangeError,
    NumericsError,
    WeftError,
)
from weft.runtime import engine as native, kernels
from weft.runtime.engine import (
    Engine,
    _check_interpreter,
    _check_symbols,
    _word,
    slot_offset,
)
from weft.runtime.plan import KEEP_OUTPUT, Status, kind_of, make_plan
from weft.schedule.launch import Launch
from weft.types import DTYPES

F4 = layout((4,))
X = np.arange(4, dtype=np.float32)
Y = np.full(4, 0.5, np.float32)


def noted(array):
    return tensor(array, Note())


@pytest.fixture(autouse=True)
def forget_errors():
    lab.errors.clear()
    lab.resolve[:] = [lambda plan: setattr(plan, "keep", 0)]


def error(*args):
    """What a launch raises, and what on_error was told."""
    with pytest.raises(WeftError) as e:
        launch(*args)
    (told,) = lab.errors
    lab.errors.clear()
    return e.value, told


# results


def test_a_kernel_runs_on_tensors():
    result = launch(plan("add", outs=[F4]), tensor(X), tensor(Y))
    assert type(result) is Tensor and type(result.data) is Buffer
    assert result.data.layout is F4
    assert result.note is None and result.leaf is None
    assert numpy(result).tolist() == (X + Y).tolist()


def test_params_lie_behind_the_operands():
    p = plan("param", outs=[layout((3,), "i64")], kinds=(), params=(1 << 40,))
    assert numpy(launch(p)).tolist() == [1 << 40] * 3


def test_several_results_are_a_tuple():
    a, b = launch(plan("both", outs=[F4, F4]), tensor(X), tensor(Y))
    assert numpy(a).tolist() == Y.tolist() and numpy(b).tolist() == X.tolist()


@pytest.mark.parametrize("offset", [0, 8])
def test_a_view_shares_memory_and_runs_nothing(offset):
    p = plan(outs=[layout((2,))], kinds=(0,), view_offset=offset)
    x = tensor(X)
    once = launch(p, x)
    assert once.data.owner is x.data.owner
    assert once.data.address == x.data.address + offset
    assert numpy(once).tolist() == X[offset // 4 :][:2].tolist()
    made = launch(plan("add", outs=[F4]), x, x)  # and of memory the engine has allocated
    view = launch(p, made)
    assert view.data.owner is made.data.owner
    del made
    gc.collect()
    assert numpy(view).tolist() == (2 * X)[offset // 4 :][:2].tolist()


def test_empty_and_zero_dimensional_results():
    assert numpy(launch(plan("add", outs=[layout((0,))]), tensor(X), tensor(Y))).shape == (0,)
    assert numpy(launch(plan("add", outs=[layout(())]), tensor(X), tensor(Y))) == 0.5


def test_subclasses_are_taken_and_tensors_given():
    class Parameter(Tensor):
        pass

    x = Parameter(tensor(X).data)
    x.name = "weight"
    assert type(launch(plan("add", outs=[F4]), x, x)) is Tensor


# Python numbers


def converted(number, dtype):
    p = plan("word", outs=[layout((1,), "u64")], kinds=(kind_of(dtype_of(dtype)),))
    word = int(numpy(launch(p, number))[0])
    d = dtype_of(dtype).np
    return np.frombuffer(word.to_bytes(8, "little")[: d.itemsize], d)[0]


FLOATS = [
    0.0, -0.0, 1.5, -2.0, -1.0, 1e-45, 5e-8, 2.98e-8, 6e-5, 9.2e-41, 4.6e-41, 65504.0, 65519.99,
    65520.0, 1e39, 3.39e38, 1e-310, 1e300, -1e300, math.inf, -math.inf, math.nan,
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "bf16"])
def test_floats_round_once(dtype):
    generator = np.random.default_rng(0)
    bits = generator.integers(0, 1 << 63, 3000).view(np.float64)
    near = generator.standard_normal(3000) * 10.0 ** generator.integers(-8, 5, 3000)
    half = (1 + (2 * generator.integers(0, 1 << 10, 1000) + 1) / (1 << 11)) * (
        1 + 2.0**-40
    )  # near a tie
    d = dtype_of(dtype).np
    for x in [*FLOATS, *bits.tolist(), *near.tolist(), *half.tolist()]:
        with np.errstate(all="ignore"):
            want = _bfloat(x) if dtype == "bf16" else np.float64(x).astype(d)
        got = converted(x, dtype)
        assert got.tobytes() == np.asarray(want, d).tobytes() or (
            np.isnan(got) and math.isnan(x)
        ), (x, got, want)


def _bfloat(x):
    """The nearest bfloat16, ties to even (ml_dtypes rounds twice, by way of float32)."""
    if math.isfinite(x):
        unit = 2.0 ** (max(math.frexp(x)[1] - 1, -126) - 7)
        x = math.copysign(round(x / unit) * unit, x)  # exact: units are powers of two
    return np.float64(x).astype(np.float32).astype(ml_dtypes.bfloat16)


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.is_int], ids=str)
def test_integers_keep_their_value_or_fail(dtype):
    low, high = int(np.iinfo(dtype.np).min), int(np.iinfo(dtype.np).max)
    for n in (low, high, 0, 1, True, high // 2):
        assert converted(n, dtype) == n
    for n in (low - 1, high + 1, -(1 << 63) - 1, 1 << 64, 1 << 200, -(1 << 200)):
        with pytest.raises(NumericsError, match=f"{dtype.name} holds, got {n}"):
            converted(n, dtype)
    assert {told[1] for told in lab.errors} == {Status.SCALAR}
    with pytest.raises(DTypeError):
        converted(1.0, dtype)


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "bf16"])
def test_integers_as_floats(dtype):
    assert converted(3, dtype) == 3
    assert converted(True, dtype) == 1
    assert converted(np.float64(0.25), dtype) == 0.25
    with pytest.raises(NumericsError):
        converted(1 << 2000, dtype)


def test_truth():
    assert [bool(converted(x, "bool")) for x in (True, False, 2, 0.0, 1 << 300)] == [1, 0, 1, 0, 1]


@pytest.mark.parametrize("number", ["1", None, 1j, [1.0], np.float32(1)])
@pytest.mark.parametrize("dtype", ["f32", "i32", "bool"])
def test_other_objects_are_no_numbers(number, dtype):
    with pytest.raises(DTypeError):
        converted(number, dtype)


# recording


def test_a_note_is_made_when_an_input_has_one():
    x, y = noted(X), tensor(Y)
    p = plan("add", outs=[F4], call="the call")
    p.keep = 0b10
    note = launch(p, x, y).note
    assert type(note) is Note
    assert note.call == "the call"
    assert note.parents == (x.note, None)
    assert note.saved == (None, y.data)
    assert note.output is None
    second = launch(p, y, x).note
    assert second.parents == (None, x.note) and second.saved == (None, x.data)
    assert second.serial == note.serial + 1
    assert engine.next_serial() == note.serial + 2


def test_no_note_without_need():
    assert launch(plan("add", outs=[F4]), tensor(X), tensor(Y)).note is None
    assert launch(plan("add", outs=[F4], differentiable=False), noted(X), tensor(Y)).note is None


def test_views_are_noted_too():
    x = noted(X)
    p = plan(outs=[F4], kinds=(0,), view_offset=0)
    assert launch(p, x).note.parents == (x.note,)


def test_results_and_numbers_are_saved():
    p = plan("add", outs=[F4], kinds=(0, kind_of(dtype_of("f32"))), tasks=1)
    p.keep = KEEP_OUTPUT | 1
    x = noted(X)
    result = launch(p, x, 2.5)
    assert result.note.saved == (x.data, 2.5)
    assert result.note.parents == (x.note, None)
    assert result.note.output is result.data
    several = plan("both", outs=[F4, F4])
    several.keep = KEEP_OUTPUT
    a, b = launch(several, x, x)
    assert a.note.output == (a.data, b.data) and b.note is None


def test_what_to_keep_is_asked_once():
    asked = []

    def resolve(plan):
        asked.append(plan)
        plan.keep = 0b01

    lab.resolve.append(resolve)
    p = plan("add", outs=[F4])
    launch(p, tensor(X), tensor(Y))
    assert not asked
    x = noted(X)
    for _ in range(3):
        assert launch(p, x, x).note.saved == (x.data, None)
    assert asked == [p]

    def fail(plan):
        raise KeyError("no rule")

    lab.resolve.append(fail)
    with pytest.raises(KeyError, match="no rule"):
        launch(plan("add", outs=[F4]), x, x)


def test_recording_can_be_paused_in_one_context():
    x, p = noted(X), plan("add", outs=[F4])

    def is_recorded():
        return launch(p, x, x).note is not None

    def without():
        lab.recording.set(False)
        return is_recorded()

    seen = []
    engine.pause()
    assert is_recorded()  # a block is open, but not here
    assert copy_context().run(without) is False
    thread = threading.Thread(target=lambda: seen.append(is_recorded()))
    copy_context().run(lambda: (lab.recording.set(False), thread.start(), thread.join()))
    assert seen == [True]  # a thread starts in a context of its own
    engine.resume()
    assert copy_context().run(without) is True  # with no block open nobody looks


# errors


def test_a_kernel_error_is_raised_by_on_error():
    p, x = plan("index", outs=[layout((64,))], kinds=(0,)), tensor(X)
    e, told = error(p, x)
    assert isinstance(e, IndexRangeError) and "-7" in str(e)
    assert told == (p, Status.INDEX, -7, (x,))


def test_wrong_arguments():
    p = plan("add", outs=[F4])
    x, y = tensor(X), tensor(Y)
    assert error(p, x)[1][1:3] == (Status.COUNT, 1)
    assert error(p, x, y, y)[1][1:3] == (Status.COUNT, 3)
    assert error(p, x, X)[1][1:3] == (Status.ARGUMENT, 1)
    assert error(p, 1.0, y)[1][1:3] == (Status.ARGUMENT, 0)
    assert error(p, Tensor("a graph node"), y)[1][1:3] == (Status.ARGUMENT, 0)
    assert error(p, x, object.__new__(Tensor))[1][1:3] == (Status.ARGUMENT, 1)
    for args in ((), (None,), (x, y)):
        with pytest.raises(TypeError, match="needs a Plan"):
            launch(*args)


def test_an_on_error_that_returns_is_a_mistake():
    silent = Engine(
        tensor=Tensor, buffer=Buffer, note=Note, grad_mode=lab.recording,
        resolve_keep=print, on_error=lambda *args: None,
    )  # fmt: skip
    with pytest.raises(SystemError, match="instead of raising"):
        silent.launch(plan("add", outs=[F4]))


def test_too_many_operands_for_the_stack():
    with pytest.raises(WeftError):
        make_plan(Launch((F4,), params=(0,) * 20000), "op", [], [], False)
    many = plan("who", outs=[F4], kinds=(0,) * 1000, tasks=0)
    assert launch(many, *[noted(X)] * 1000).note.saved == (None,) * 1000


# references and memory


def test_references_are_exact():
    x, y, bare = noted(X), noted(Y), tensor(X)
    add, view, many = (
        plan("add", outs=[F4]),
        plan(outs=[F4], kinds=(0,), view_offset=0),
        plan("both", outs=[F4, F4]),
    )
    add.keep = KEEP_OUTPUT | 0b01
    many.keep = KEEP_OUTPUT | 0b11
    number = plan("add", outs=[F4], kinds=(0, kind_of(dtype_of("f64"))), tasks=1)
    small = plan("word", outs=[F4], kinds=(kind_of(dtype_of("i8")),))
    bad, half = plan("index", outs=[layout((64,))], kinds=(0,)), 0.375

    def fail(plan):
        raise KeyError

    lab.resolve.append(lambda plan: fail(plan) if plan is unresolved else setattr(plan, "keep", 0))
    unresolved = plan("add", outs=[F4], kinds=(0, 0))
    scratch = plan("add", outs=[F4], scratch=1000, worker_scratch=64)
    heavy = plan("add", outs=[F4], heavy=True)
    calls = [
        (add, bare, bare), (add, x, y), (view, x), (view, bare), (many, x, y), (number, x, half),
        (small, 1000), (bad, x), (add, x), (add, x, None), (unresolved, x, y), (scratch, x, y),
        (heavy, x, y), (None,),
    ]  # fmt: skip

    def run(n):
        for _ in range(n):
            for call in calls:
                try:
                    launch(*call)
                except (WeftError, KeyError, TypeError):
                    lab.errors.clear()

    watched = [F4, Tensor, Buffer, Note, half, type(launch(add, x, y).data.owner)]
    for t in (x, y, bare):
        watched += [t, t.data, t.data.owner, t.data.address]
    watched += [x.note, y.note]
    for p, *_ in calls[:-1]:
        watched += [p, p.layouts, p.address]
    run(3)
    gc.collect()
    before = [sys.getrefcount(o) for o in watched]
    nones, used = sys.getrefcount(None), engine.memory_stats().used
    run(100)
    gc.collect()
    assert [sys.getrefcount(o) for o in watched] == before
    assert abs(sys.getrefcount(None) - nones) < 50  # others use it too
    assert engine.memory_stats().used == used


def test_garbage_collection_in_the_middle_may_do_anything():
    """Making objects may run finalizers; this one rebinds the launch's own input."""
    x, p = noted(X), plan("add", outs=[F4])
    p.keep = KEEP_OUTPUT | 0b11

    class Cycle:
        def __init__(self):
            self.me = self

        def __del__(self):
            x.data, x.note = tensor(X).data, Note()
            launch(p, x, x)

    old = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    try:
        for _ in range(300):
            Cycle()
            result = launch(p, x, x)
            assert numpy(result).tolist() == (2 * X).tolist()
            assert [type(s) for s in result.note.saved] == [Buffer, Buffer]
    finally:
        gc.set_threshold(*old)


def test_memory_stays_flat():
    x, p = noted(X), plan("add", outs=[F4])
    p.keep = KEEP_OUTPUT | 0b11

    def run(n):
        t = x
        for i in range(n):
            t = launch(p, t if i % 50 else x, x)

    run(20_000)
    before = resident()
    run(200_000)
    assert resident() - before < 1 << 20


# the floating-point mode


@pytest.mark.parametrize("mode", mxcsr.MODES.values(), ids=mxcsr.MODES)
@pytest.mark.parametrize("heavy", [False, True])
def test_the_hosts_floating_point_mode_changes_no_bit(mode, heavy):
    n = 4096
    generator = np.random.default_rng(0)
    a = (generator.standard_normal(n) * 1e-38).astype(np.float32)
    b = (generator.standard_normal(n) * 3).astype(np.float32)
    p = plan("divide", outs=[layout((n,))], heavy=heavy, grain=64)
    x, y = tensor(a), tensor(b)
    want = numpy(launch(p, x, y)).tobytes()
    half = converted(0.1, "f16"), converted(1e-41, "bf16"), converted(0.1, "f32")
    engine.pool.resize(3)
    mxcsr.put(mode)
    try:
        got = launch(p, x, y)
        half_then = [converted(0.1, "f16"), converted(1e-41, "bf16"), converted(0.1, "f32")]
        then = mxcsr.get()
    finally:
        mxcsr.put(mxcsr.STANDARD)
    assert then & 0xFFC0 == mode & 0xFFC0  # and the host finds its mode again
    assert numpy(got).tobytes() == want == (a / b).tobytes()
    assert [h.tobytes() for h in half_then] == [h.tobytes() for h in half]


# loading


def test_a_second_engine_is_loaded_from_disk(monkeypatch):
    monkeypatch.setattr(jit, "compile_object", None)
    other = Engine(
        tensor=Tensor, buffer=Buffer, note=Note, grad_mode=lab.recording, resolve_keep=print
    )
    assert (
        numpy(other.launch(plan("add", outs=[F4]), tensor(X), tensor(Y))).tolist()
        == (X + Y).tolist()
    )
    assert kernels.disk().size() > 0


def test_slots_are_found_wherever_they_are():
    class Odd:
        __slots__ = ("__dict__", "__weakref__", "a", "b")

    class Odder(Odd):
        __slots__ = ("c",)

    x = Odder()
    x.a, x.b, x.c = object(), object(), object()
    for name in "abc":
        assert ctypes.c_void_p.from_address(id(x) + slot_offset(Odder, name)).value == id(
            getattr(x, name)
        )


def test_slots_that_are_elsewhere():
    class Elsewhere:
        __slots__ = ("there",)
        here = property(fset=lambda self, x: None)

    with pytest.raises(DeviceError, match="slots that hold pointers"):
        slot_offset(Elsewhere, "here")


def test_a_host_it_cannot_run_on(monkeypatch):
    with pytest.raises(DeviceError, match="none with Py_NoSuchFunction, Py_NoSuchVariable"):
        _check_symbols(
            "declare void @Py_NoSuchFunction(ptr)\n@Py_NoSuchVariable = external global ptr\n"
            "declare void @Py_IncRef(ptr)\ndeclare i64 @llvm.umax.i64(i64, i64)"
        )
    _check_interpreter()
    with monkeypatch.context() as m:
        m.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
        with pytest.raises(DeviceError, match="with the GIL"):
            _check_interpreter()
    with monkeypatch.context() as m:  # a Python whose tuples hold something else first
        m.setattr(native, "_word", lambda x, at: _word(x, at - 8 * isinstance(x, tuple)))
        with pytest.raises(DeviceError, match="laid out as in"):
            _check_interpreter()
