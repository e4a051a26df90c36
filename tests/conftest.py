"""What every test runs under: a kernel cache of its own, shared by the session's processes; and
texts to compare with (`--update-golden` writes them). Figures that tests print are shown at the
end.
"""

import atexit
import importlib
import os
import random
import shutil
import signal
import sys
import tempfile

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

if "PYTEST_XDIST_WORKER" not in os.environ:  # a worker is given its controller's
    os.environ["WEFT_CACHE_DIR"] = tempfile.mkdtemp(prefix="weft-test-kernels-")
    atexit.register(shutil.rmtree, os.environ["WEFT_CACHE_DIR"], ignore_errors=True)
os.environ.pop("WEFT_CACHE", None)
# a shell starts what runs in its background deaf to Ctrl-C, and processes pass that on
signal.signal(signal.SIGINT, signal.default_int_handler)


# the same examples in every run, however slow the machine is; `--hypothesis-profile fresh`: others
settings.register_profile(
    "same", derandomize=True, database=None, deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)  # fmt: skip
settings.register_profile("fresh", settings.get_profile("same"), derandomize=False)
settings.load_profile("same")


def pytest_addoption(parser):
    parser.addoption(
        "--update-golden", action="store_true", help="write golden texts instead of comparing"
    )


@pytest.fixture
def golden(request):
    """`golden(path, text)`: the text is what the file says."""

    def check(path, text):
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"{path} is not there yet (run with --update-golden)"
        assert text == path.read_text(encoding="utf-8"), f"{path} (run with --update-golden)"

    return check


@pytest.fixture(autouse=True)
def random_numbers_begin_anew():
    """A test draws the same ones whichever ran before it."""
    random.seed(0)
    np.random.seed(0)
    if "weft" in sys.modules:
        sys.modules["weft"].manual_seed(0)


@pytest.fixture(autouse=True)
def no_graph_is_left_begun():
    """A placeholder that is never built would make nodes of what later tests compute."""
    yield
    define = sys.modules.get("weft.ops.define")
    if define is not None and define.capturing.now is not None:
        define.capturing.now = None
        pytest.fail("a graph was begun and not built")


@pytest.fixture(autouse=True)
def passes_are_verified(request, monkeypatch):
    """Every graph is verified after every pass, except where time is measured."""
    monkeypatch.setenv("WEFT_VERIFY", "0" if request.node.get_closest_marker("alone") else "1")


#: directories of tests whose programs are printed and read again, before and after the passes
READ_AGAIN = {"capture", "compile", "control", "debug", "modes", "optim", "passes"}


@pytest.fixture(autouse=True)
def programs_are_read_again(request, monkeypatch):
    """Of every graph that these tests make: `parse(print(f)) == f`."""
    if request.path.parent.name not in READ_AGAIN:
        return
    # imported here: the cache's place is to be known first
    pipeline = importlib.import_module("weft.compile")
    language = importlib.import_module("weft.ops.language")
    optimise = pipeline.optimise

    def checked(f, *args):
        after = optimise(f, *args)
        for g in (f, after):
            if len(g.order) <= 300:  # reading is slow; the largest are read in tests/ir
                assert language.parse(str(g)).entry == g, str(g)
        return after

    monkeypatch.setattr(pipeline, "optimise", checked)


def pytest_terminal_summary(terminalreporter):
    """What tests that passed have printed: counts, worst errors, times."""
    said = [(r.nodeid, r.capstdout.strip()) for r in terminalreporter.getreports("passed")]
    if any(text for _, text in said):
        terminalreporter.section("figures")
    for name, text in said:
        if text:
            terminalreporter.write_line(f"{name}\n    " + text.replace("\n", "\n    "))
