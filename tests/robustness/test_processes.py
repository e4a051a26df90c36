"""Processes: forks of one that computes, and ends of one that has computed."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.robustness.lab import run

FORKS = int(os.environ.get("WEFT_FORKS", "100"))
EXITS = int(os.environ.get("WEFT_EXITS", "200"))

FORKING = """
import os, signal, sys, threading, time, warnings
import numpy as np
import weft as wf

warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads: what is tested
rng = np.random.default_rng(0)
A = rng.standard_normal((300, 300)).astype(np.float32)

def work(n=0):
    x = wf.tensor(A, requires_grad=True)
    y = (x @ x.T).relu() + float(n % 3)       # shared among threads
    wf.sort(y, axis=0)[:, 0].sum().backward()
    return [(y - float(n % 3)).numpy().tobytes(), x.grad.numpy().tobytes()]

want = work()
new = [wf.int8, wf.int16, wf.uint8, wf.uint16, wf.uint32]   # kernels that nobody has made yet
stop = False

def busy():
    n = 0
    while not stop:
        work(n)
        n += 1

others = [threading.Thread(target=busy) for _ in range(int(sys.argv[2]))]
for t in others:
    t.start()
slowest = 0.0
for n in range(int(sys.argv[1])):
    began = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            signal.alarm(300)
            code = 2 if work() != want else 0
            d = new[n % len(new)]
            if (wf.arange(n + 5, dtype=d) ^ wf.ones(n + 5, dtype=d)).sum().item() < 0:
                code = 3
            if n % 4 == 0:
                wf.set_num_threads(1 + n % 3)
                code = code or (4 if work() != want else 0)
        finally:
            sys.stdout.flush()
            if n % 2:
                os._exit(code)
            others = []
            sys.exit(code)  # with everything that runs at an exit
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert status == 0, f"fork {n} ended with {status}"
    slowest = max(slowest, time.perf_counter() - began)
    if n % 10 == 0:
        assert work() == want
stop = True
for t in others:
    t.join()
assert work() == want
print(f"{sys.argv[1]} forks after use, {sys.argv[2]} other threads computing: none hung, all "
      f"right; slowest {slowest:.2f} s")
"""


@pytest.mark.parametrize("others", [0, 1])
def test_forks_after_use(others):
    count = FORKS if not others else max(FORKS // 4, 10)
    print("\n" + run(FORKING, str(count), str(others), WEFT_NUM_THREADS="3"))


BEGIN = """
import atexit, os, signal, sys, threading, time
import weft as wf
wf.set_num_threads(3)
x = wf.ones((200, 200), requires_grad=True)
y = (x @ x).sum()
say = lambda: print(time.monotonic(), flush=True)
"""

ENDINGS = {
    "nothing left to do": "y.backward(); say()",
    "tensors and a tape alive": "sys.kept = [x @ x for _ in range(50)]; sys.tape = y; say()",
    "a cycle with tensors in it": "a = [x @ x]; a.append(a); say()",
    "an op at exit": "atexit.register(lambda: (x @ x).sum().item()); say()",
    "an op in a finalizer": """
class Last:
    def __init__(self): self.x = x
    def __del__(self): (self.x * 2.0).sum()
sys.last = Last(); say()""",
    "an exception": "sys.excepthook = lambda *_: None; say(); raise ValueError",
    "another thread computing": """
def busy():
    while True: x @ x
threading.Thread(target=busy, daemon=True).start(); time.sleep(0.02); say()""",
    "a long op interrupted": """
try:
    threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    wf.broadcast_to(wf.ones(1), (1 << 36,)).sum()
except KeyboardInterrupt:
    say()""",
    "os._exit": "say(); os._exit(0)",
    "sys.exit in a thread": """
t = threading.Thread(target=lambda: (x @ x, sys.exit(3))); t.start(); t.join(); say()""",
    "killed while it computes": """
threading.Timer(0.05, lambda: (say(), os.kill(os.getpid(), signal.SIGTERM))).start()
while True: x @ x""",
    "a forked child": """
import warnings
warnings.simplefilter("ignore")
if os.fork(): os.wait()
else: (x @ x).sum()
say()""",
}
CODES = {"an exception": 1, "killed while it computes": -15}

WATCH = """
import subprocess, sys, time
from awake import Awake
command = [sys.executable, "-c", sys.argv[1]]
with Awake() as awake:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    now = time.monotonic()
assert done.returncode == int(sys.argv[2]), (done.returncode, done.stderr)
assert not done.stderr, done.stderr
print(awake.between(float(done.stdout.split()[-1]), now))
"""


def test_processes_end_at_once():
    names = [list(ENDINGS)[n % len(ENDINGS)] for n in range(EXITS)]

    def one(name):
        return float(run(WATCH, BEGIN + ENDINGS[name], str(CODES.get(name, 0))))

    with ThreadPoolExecutor(2) as pool:
        took = list(pool.map(one, names))
    slow = max(zip(took, names, strict=True))
    print(
        f"\n{EXITS} processes ended in {len(ENDINGS)} ways: at most {slow[0]:.2f} s ({slow[1]}), "
        f"{sorted(took)[len(took) // 2] * 1e3:.0f} ms in the middle"
    )
    assert slow[0] < 2, slow
