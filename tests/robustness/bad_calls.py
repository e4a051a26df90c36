"""The child that makes bad calls: it ends by a signal where they do harm, so it says what it is at.

`python -m tests.robustness.bad_calls COUNT PLACE TARGET...` prints one JSON line for each target.
"""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import signal
import sys
import time
import traceback
from collections import Counter
from typing import Any

import numpy as np

import weft as wf
from tests.robustness.junk import Source, bad_call, said
from tests.robustness.targets import Target, find
from weft.errors import WeftError
from weft.ops.define import capturing

#: bytes of address space: what asks for more must fail at once
MEMORY = 4 << 30
#: seconds of work that a call may take
PATIENCE = 30


class Place:
    """A file that says what is being done, for who finds this process dead."""

    def __init__(self, path: str) -> None:
        self.fd = os.open(path, os.O_WRONLY | os.O_TRUNC)

    def at(self, what: str) -> None:
        raw = what.encode("utf-8", "replace")
        os.ftruncate(self.fd, len(raw))
        os.pwrite(self.fd, raw, 0)


def fine(error: BaseException, here: str) -> bool:
    """Whether a bad call may raise this: an error of Weft's, or Python's own TypeError for a call
    that fits no signature (one given to `py_call`, too), or an operator without a meaning.
    """
    if isinstance(error, WeftError):
        return True
    last = traceback.extract_tb(error.__traceback__)[-1]
    given = last.filename.endswith("py_call.py") and (last.line or "").startswith("out = self.f(")
    return isinstance(error, TypeError) and (last.filename == here or given)


def check(target: Target, count: int, place: Place) -> dict[str, Any]:
    """Make `count` bad calls; between them, see that nothing was left broken."""
    rng = Source(f"{os.environ.get('WEFT_SEED', '0')} {target.name}")
    good = rng.sample(target.good, min(len(target.good), 5))
    outcomes: Counter[str] = Counter()
    failures: list[str] = []
    slowest = 0.0
    for n in range(count):
        args, kwargs = bad_call(rng, *rng.choice(good))
        text = f"{target.name}({said(args, kwargs)})"
        place.at(f"call {n}: {text}")
        signal.setitimer(signal.ITIMER_PROF, PATIENCE)
        began = time.perf_counter()
        try:
            used(target.run(*args, **kwargs))
            outcomes["returned"] += 1
        except Exception as e:
            outcomes[type(e).__name__] += 1
            if not fine(e, target.file):
                frame = traceback.extract_tb(e.__traceback__)[-1]
                where = f"{os.path.relpath(frame.filename)}:{frame.lineno}"
                failures.append(f"{text}\n    {type(e).__name__}: {e} at {where}")
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            abandon()
        slowest = max(slowest, time.perf_counter() - began)
        if n % 20 == 0:
            intact()
    intact()
    return {
        "target": target.name, "calls": count, "outcomes": outcomes, "failures": failures,
        "slowest": slowest,
    }  # fmt: skip


def used(out: Any) -> None:
    """Look at a result as a caller would."""
    for x in out if isinstance(out, tuple) else (out,):
        if isinstance(x, wf.Tensor):
            repr(x)
            if x.nbytes < 1 << 20:
                x.tolist()
                if x.note is not None:
                    wf.sum(x).backward(retain_graph=True)


def abandon() -> None:
    """End a graph that a call has begun by hand: until then nothing is computed."""
    begun: Any = capturing.now
    if begun is not None:
        begun.__exit__()
        begun.restore()


_A = np.arange(6, dtype=np.float32).reshape(2, 3)


def intact() -> None:
    """An op with a gradient, a product and a reduction are right after whatever came before."""
    x = wf.tensor(_A, requires_grad=True)
    y = (x @ x.T * 2.0).sum()
    y.backward()
    assert y.item() == 2 * float((_A @ _A.T).sum())
    assert np.array_equal(x.grad.numpy(), 4 * np.broadcast_to(_A.sum(0), _A.shape))
    assert wf.get_num_threads() > 0


def main() -> None:
    count, place = int(sys.argv[1]), Place(sys.argv[2])
    faulthandler.enable()
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    faulthandler.register(signal.SIGPROF, chain=True)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    np.seterr(all="ignore")
    for name in sys.argv[3:]:
        place.at(f"{name}: looking for good calls")
        print(json.dumps(check(find(name), count, place)), flush=True)


if __name__ == "__main__":
    main()
