import os
import signal
import threading
import time
import warnings

import engine_lab as lab
import numpy as np
import pytest
from awake import Awake
from engine_lab import Tensor, engine, launch, layout, numpy, plan, run_script, tensor

from weft.errors import DeviceError, IndexRangeError, ShapeError
from weft.runtime.plan import make_plan
from weft.runtime.pool import MAX_THREADS, default_size
from weft.schedule.launch import Launch, Phase

N = 1 << 16
A = np.random.default_rng(0).standard_normal(N).astype(np.float32)
B = np.random.default_rng(1).standard_normal(N).astype(np.float32)


@pytest.fixture(autouse=True)
def restore_size():
    size = engine.pool.size
    yield
    engine.pool.resize(size)


def heavy_add(grain=1024):
    return plan("add", outs=[layout((N,))], heavy=True, grain=grain)


def right(result):
    return numpy(result).tobytes() == (A + B).tobytes()


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize("grain", [1, 1000, N - 1, N, 10 * N])
def test_results_do_not_depend_on_threads_or_grain(threads, grain):
    engine.pool.resize(threads)
    x, y, p = tensor(A), tensor(B), heavy_add(grain)
    for _ in range(3):
        assert right(launch(p, x, y))
    assert engine.pool.size == threads
    assert engine.pool.workers == threads - 1


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_phases_wait_for_each_other(threads):
    engine.pool.resize(threads)
    p = plan(
        "fill",
        "turn",
        outs=[layout((N,), "i64")],
        kinds=(),
        heavy=True,
        grain=100,
        params=(N,),
        scratch=8 * N,
    )
    for _ in range(50):
        assert (numpy(launch(p)) == np.arange(N)[::-1]).all()


def test_workers_have_scratch_of_their_own():
    engine.pool.resize(2)
    p = plan("slice", outs=[layout((2000,), "i64")], kinds=(), heavy=True, worker_scratch=64)
    who = plan("who", outs=[layout((200000,), "i64")], kinds=(), heavy=True)
    seen = set()
    for threads in (2, 7, 3, 1, 5):
        engine.pool.resize(threads)  # the plan stays; its scratch grows
        for _ in range(5):
            assert (numpy(launch(p)) == np.arange(2000)).all()
            now = set(numpy(launch(who)).tolist())
            assert now <= set(range(threads))
            seen |= now
    assert len(seen) > 1


@pytest.mark.parametrize("threads", [2, 3])
def test_a_launch_ends_when_its_last_task_does(threads):
    engine.pool.resize(threads)
    for n in range(60):
        p = plan("slow_param", outs=[layout((3,), "i64")], kinds=(), heavy=True, params=(n,))
        assert numpy(launch(p)).tolist() == [n] * 3


def test_workers_started_meanwhile_stay_out_of_the_job():
    """Its scratch was measured before."""
    engine.pool.resize(2)
    p = plan("slow_who", outs=[layout((200,), "i64")], kinds=(), heavy=True)
    seen, before = [], engine.memory_stats().used
    thread = threading.Thread(target=lambda: seen.extend(numpy(launch(p)).tolist()))
    thread.start()
    while engine.memory_stats().used <= before and not seen:  # until the job is under way
        time.sleep(0.0001)
    engine.pool.resize(7)
    launch(heavy_add(), tensor(A), tensor(B))
    assert engine.pool.workers == 6
    thread.join()
    assert len(seen) == 200 and set(seen) <= {0, 1}


def test_an_error_in_one_task_ends_the_launch():
    p = plan("index", outs=[layout((100_000,))], kinds=(), heavy=True)
    for threads in (1, 2, 7):
        engine.pool.resize(threads)
        for _ in range(20):
            with pytest.raises(IndexRangeError, match="-7"):
                launch(p)
        assert right(launch(heavy_add(), tensor(A), tensor(B)))
    lab.errors.clear()


def test_many_threads_launch_at_once():
    engine.pool.resize(3)
    x, y, p = tensor(A), tensor(B), heavy_add(512)
    small = plan("add", outs=[layout((64,))])
    wrong, stop = [], threading.Event()

    def work():
        n = 0
        while not stop.is_set():
            t = launch(p, x, y)
            if not right(t) or numpy(launch(small, t, y)).tobytes() != (A + B + B)[:64].tobytes():
                wrong.append(n)
            n += 1

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for n in range(100):
        engine.pool.resize(1 + n % 7)
        time.sleep(0.001)
    stop.set()
    for t in threads:
        t.join()
    assert not wrong


@pytest.mark.parametrize("repeat", range(3))
def test_an_input_rebound_during_the_launch_stays_alive(repeat):
    """Another thread may drop a tensor's buffer meanwhile; its memory is then used anew."""
    engine.pool.resize(2)
    copy, zeros = plan("add", outs=[layout((N,))]), tensor(np.zeros(N, np.float32))
    phases = Launch((layout((N,)),), (Phase(None, 100), Phase(None, N, 1024)), heavy=True)
    slow = make_plan(phases, "op", [lab.function("spin"), lab.function("add")], (0, 0), True)
    x = Tensor(launch(copy, tensor(A), zeros).data)
    others = []
    before = engine.memory_stats().used

    def rebind():
        while engine.memory_stats().used <= before:  # until the launch has its result's memory
            time.sleep(0.001)
        x.data = zeros.data
        others.extend(launch(copy, tensor(B), zeros) for _ in range(10))

    thread = threading.Thread(target=rebind)
    thread.start()
    result = launch(slow, x, zeros)
    thread.join()
    assert x.data is zeros.data
    assert numpy(result).tobytes() == A.tobytes()


def test_sizes():
    assert default_size() == int(os.environ.get("WEFT_NUM_THREADS") or len(os.sched_getaffinity(0)))
    for bad in (0, -1, MAX_THREADS + 1, 1.5, "2", None, True):
        with pytest.raises(ShapeError, match="set_num_threads"):
            engine.pool.resize(bad)
    engine.pool.resize(np.int64(2))
    assert engine.pool.size == 2


def test_the_size_comes_from_the_environment(monkeypatch):
    monkeypatch.setenv("WEFT_NUM_THREADS", " 5 ")
    assert default_size() == 5
    for bad in ("0", "-2", "two", "1.5", "99999999"):
        monkeypatch.setenv("WEFT_NUM_THREADS", bad)
        with pytest.raises(DeviceError, match="WEFT_NUM_THREADS"):
            default_size()


def test_nothing_starts_before_it_is_needed():
    done = run_script(
        "import os; from engine_lab import *; before = set(os.listdir('/proc/self/task'))\n"
        "started = lambda: len(set(os.listdir('/proc/self/task')) - before)\n"
        "p = plan('add', outs=[layout((64,))], heavy=True); x = tensor(np.ones(64, 'f'))\n"
        "assert engine.pool.size == 4 and engine.pool.workers == 0\n"
        "launch(plan('add', outs=[layout((64,))]), x, x)\n"
        "assert started() == 0\n"
        "launch(p, x, x)\n"
        "assert started() == 3",
        WEFT_NUM_THREADS="4",
    )
    assert done.returncode == 0, done.stderr


# signals


def interrupted(p, delay=0.1):
    """Seconds from SIGINT to KeyboardInterrupt."""
    sent = []

    def send():
        time.sleep(delay)
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=send)
    with pytest.raises(KeyboardInterrupt):
        thread.start()
        launch(p)
    took = time.perf_counter() - sent[0]
    thread.join()
    return took


@pytest.mark.alone
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize(
    ("kernel", "tasks"), [("spin", 1_000_000), ("polling", 1), ("polling", 2), ("polling", 50)]
)
def test_an_interrupt_ends_a_long_launch(threads, kernel, tasks):
    engine.pool.resize(threads)
    p = plan(kernel, outs=[layout((4,))], kinds=(), tasks=tasks, heavy=True)
    used = engine.memory_stats().used
    assert min(interrupted(p) for _ in range(3)) < 1.0  # machines are shared
    assert engine.memory_stats().used == used
    assert right(launch(heavy_add(), tensor(A), tensor(B)))


def test_an_interrupt_comes_through_while_others_hold_the_gil():
    engine.pool.resize(2)
    stop = threading.Event()

    def busy():
        while not stop.is_set():
            sum(range(1000))

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        p = plan("spin", outs=[layout((4,))], kinds=(), tasks=1_000_000, heavy=True)
        assert min(interrupted(p) for _ in range(3)) < 1.0  # machines are shared
    finally:
        stop.set()
        thread.join()


@pytest.fixture
def alarm_interrupts():
    """SIGALRM acts as Ctrl-C does."""
    old = signal.signal(signal.SIGALRM, signal.default_int_handler)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, old)


def test_an_interrupt_while_another_thread_ends_the_launch(alarm_interrupts):
    """What was raised is not lost when the last chunk, on another thread, comes out well."""
    engine.pool.resize(2)
    p = plan("clear", "helped", outs=[layout((2,))], kinds=(), heavy=True)
    helped = 0
    for _ in range(200):
        launched = over = False
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            launched = True
            launch(p)
            over = True  # before the signal came
            time.sleep(60)
            pytest.fail("the interrupt was lost")
        except KeyboardInterrupt:
            helped += launched and not over
        if helped == 3:
            break
    assert helped == 3
    assert right(launch(heavy_add(), tensor(A), tensor(B)))


def test_a_handler_that_returns_lets_the_launch_finish():
    """Handlers run in the middle of a launch, and may launch themselves."""
    engine.pool.resize(2)
    seen = []
    p = plan("spin", outs=[layout((4,))], kinds=(), tasks=600, heavy=True)
    old = signal.signal(
        signal.SIGALRM, lambda *_: seen.append(right(launch(heavy_add(), tensor(A), tensor(B))))
    )
    try:
        for _ in range(5):  # signals that come while this thread waits for a core are one
            seen.clear()
            signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
            launch(p)
            signal.setitimer(signal.ITIMER_REAL, 0)
            if len(seen) > 1:
                break
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert len(seen) > 1 and all(seen)


# fork


def fork(child):
    """Whether `child()` is true in a forked process, within five minutes."""
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # of forking with threads: what is tested
        pid = os.fork()
    if pid == 0:
        code = 1
        try:
            signal.alarm(300)
            code = 0 if child() else 2
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def works_in_parallel():
    p = plan("slow_who", outs=[layout((50,), "i64")], kinds=(), heavy=True)
    return any(len(set(numpy(launch(p)).tolist())) > 1 for _ in range(200))


def test_a_forked_child_starts_threads_of_its_own():
    engine.pool.resize(3)
    x, y, p = tensor(A), tensor(B), heavy_add()
    launch(p, x, y)

    def child():
        fine = right(launch(p, x, y)) and works_in_parallel()
        return fine and fork(lambda: right(launch(p, x, y)) and works_in_parallel())

    for _ in range(10):
        assert fork(child)
    assert right(launch(p, x, y))


def test_a_fork_during_a_job_of_another_thread():
    engine.pool.resize(3)
    x, y, p = tensor(A), tensor(B), heavy_add()
    stop = threading.Event()
    busy = plan("spin", outs=[layout((4,))], kinds=(), tasks=100, heavy=True)

    def work():
        while not stop.is_set():
            launch(busy)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for n in range(30):
            assert fork(lambda: right(launch(p, x, y)) and works_in_parallel())
            engine.pool.resize(2 + n % 3)
    finally:
        stop.set()
        thread.join()


def test_a_child_handles_its_own_signals():
    engine.pool.resize(2)
    p = plan("spin", outs=[layout((4,))], kinds=(), tasks=1_000_000, heavy=True)
    launch(heavy_add(), tensor(A), tensor(B))
    results = []

    def child():
        return min(interrupted(p) for _ in range(3)) < 1

    thread = threading.Thread(target=lambda: results.append(fork(child)))
    thread.start()
    thread.join()
    assert results == [True]


def test_a_fork_in_a_signal_handler_ends_the_childs_launch():
    done = run_script(
        """
from engine_lab import *
import os, signal, time
from weft.errors import WeftError
engine.pool.resize(2)
pids = []
signal.signal(signal.SIGALRM, lambda *_: pids.append(os.fork()))
spin = plan("spin", outs=[layout((4,))], kinds=(), tasks=600, heavy=True)
try:
    for _ in range(5):
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        launch(spin)
        while not pids:
            time.sleep(0.01)
        if pids[-1] == 0:
            os._exit(5)  # the signal came before the launch or after it
        code = os.waitstatus_to_exitcode(os.waitpid(pids.pop(), 0)[1])
        if code == 7:
            break
        assert code == 5
    assert code == 7
except WeftError as e:
    x = tensor(np.ones(4096, "f"))
    p = plan("add", outs=[layout((4096,))], heavy=True)
    assert pids == [0] and (numpy(launch(p, x, x)) == 2).all()
    os._exit(7)
""",
    )
    assert done.returncode == 0, done.stderr


# the end of the process

ENDS = {
    "idle workers": "launch(p, x, x)",
    "a daemon thread in a launch": """
threading.Thread(target=lambda: [launch(q) for _ in iter(int, 1)], daemon=True).start()
time.sleep(0.02)
launch(p, x, x)""",
    "an exception": "launch(p, x, x); end(); raise SystemExit(0)",
    "tensors alive": "sys.keep = [launch(p, x, x) for _ in range(100)]",
    "a finalizer that launches": """
class Last:
    def __init__(self): self.launch, self.p, self.x = launch, p, x
    def __del__(self): self.launch(self.p, self.x, self.x)
sys.last = Last(); launch(p, x, x)""",
}


@pytest.mark.parametrize("end", list(ENDS))
def test_the_process_ends_at_once(end):
    start = """
from engine_lab import *
import threading, time
def end(): print(time.monotonic(), flush=True)
engine.pool.resize(3)
x = tensor(np.ones(4096, "f"))
p = plan("add", outs=[layout((4096,))], heavy=True)
q = plan("spin", outs=[layout((4,))], kinds=(), tasks=100, heavy=True)
"""
    with Awake() as awake:
        for _ in range(4):
            done = run_script(start + ENDS[end] + "\nend()")
            took = awake.between(float(done.stdout.split()[0]), time.monotonic())
            assert done.returncode == 0, (done.returncode, done.stderr)
            assert took < 2
            assert not done.stderr
