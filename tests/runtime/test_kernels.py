import ast
import ctypes
import gc
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

import weft.codegen.lower
from tests.robustness.lab import resident
from weft.codegen import jit
from weft.errors import WeftError
from weft.ops.scalar import input_
from weft.runtime import kernels
from weft.runtime.cache import DiskCache
from weft.schedule.map import MapSpec
from weft.types.dtype import float32

ROOT = Path(weft.codegen.lower.__file__).parents[2]


@dataclass(frozen=True)
class Returns:
    """A kernel that returns a number."""

    number: int

    def key(self):
        return f"returns {self.number}"


@dataclass(frozen=True)
class Broken:
    def key(self):
        return "broken"


@pytest.fixture(autouse=True)
def families(monkeypatch):
    """The kernels of these tests; `made` counts how often each was lowered."""
    made = []

    def lower(spec):
        made.append(spec)
        body = f"ret i64 {spec.number}" if isinstance(spec, Returns) else "ret i32 nonsense"
        return f"define i64 @kernel(ptr %frame, i64 %lo, i64 %hi, i64 %worker) {{ {body} }}"

    for kind in (Returns, Broken):
        monkeypatch.setitem(weft.codegen.lower.FAMILIES, kind, lower)
    return made


@pytest.fixture
def disk(monkeypatch, tmp_path):
    kernels.fingerprint()  # found already, so that what appears on this disk are kernels
    cache = DiskCache(str(tmp_path / "cache"))
    monkeypatch.setattr(kernels, "disk", lambda: cache)
    return cache


def call(address):
    return ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 4)(address)(0, 0, 0, 0)


@pytest.mark.tiny
def test_lowered_once_then_from_memory_then_from_disk(families, disk):
    assert call(kernels.address(Returns(41))) == 41
    assert call(kernels.address(Returns(41))) == 41
    assert families == [Returns(41)]
    kernels.forget()
    assert call(kernels.address(Returns(41))) == 41
    assert families == [Returns(41)]
    disk.clear()
    kernels.forget()
    assert call(kernels.address(Returns(41))) == 41
    assert families == [Returns(41)] * 2


@pytest.mark.tiny
def test_code_is_freed_with_its_last_holder(disk):
    held = kernels.code(Returns(42))
    assert kernels.code(Returns(42)) is held
    assert Returns(42) in kernels._live
    del held
    assert Returns(42) not in kernels._live


@pytest.mark.tiny
@pytest.mark.parametrize("what", ["fingerprint", "target"])
def test_another_generator_or_machine_finds_nothing(families, disk, monkeypatch, what):
    kernels.code(Returns(43))
    if what == "fingerprint":
        monkeypatch.setattr(kernels, "fingerprint", lambda: "another")
    else:
        monkeypatch.setattr(jit, "host", lambda: jit.SSE2)
    kernels.code(Returns(43))
    assert families == [Returns(43)] * 2


@pytest.mark.tiny
def test_damage_on_disk_is_compiled_away(families, disk):
    kernels.code(Returns(44))
    (entry,) = Path(disk.directory).iterdir()
    data = bytearray(entry.read_bytes())
    data[len(data) // 2] ^= 1
    entry.write_bytes(data)
    assert call(kernels.address(Returns(44))) == 44
    assert families == [Returns(44)] * 2


@pytest.mark.tiny
def test_without_a_disk(families, disk, monkeypatch):
    monkeypatch.setattr(kernels, "disk", lambda: DiskCache("/dev/null/weft"))
    assert call(kernels.address(Returns(45))) == 45


@pytest.mark.tiny
def test_what_llvm_refuses_is_an_error_that_names_the_kernel(disk):
    with pytest.raises(WeftError, match=r"(?s)compiling Broken broken.*LLVM.*report") as e:
        kernels.code(Broken())
    assert e.value.__cause__ is None
    assert disk.size() == 0


@pytest.mark.tiny
def test_a_spec_no_family_knows(disk):
    class Unknown(Returns):
        pass

    with pytest.raises(WeftError, match=r"expected one of MapSpec.*got Unknown"):
        kernels.code(Unknown(1))


@pytest.mark.tiny
def test_threads_that_want_one_kernel_compile_it_once(families, disk, monkeypatch):
    inner = jit.compile_object

    def slow(*args):
        time.sleep(0.05)
        return inner(*args)

    monkeypatch.setattr(jit, "compile_object", slow)
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(kernels.code(Returns(46)))) for _ in range(8)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert families == [Returns(46)] and len(set(map(id, found))) == 1
    assert not kernels._turns


def test_threads_compile_different_kernels_at_once(disk):
    """Right results from 4 threads compiling and dropping 25 kernels each."""
    x = input_(0, float32)
    wrong = []

    def work(first):
        for n in range(first, first + 25):
            y = x
            for k in range(20):
                y = y * x + float(n * 20 + k)
            spec = MapSpec((y,), (float32,), "c", 0)
            a = jit.compile_object(weft.codegen.lower.lower(spec))
            if kernels.code(spec).address("kernel") == 0 or a != jit.compile_object(
                weft.codegen.lower.lower(spec)
            ):
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(100 * i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_dropped_kernel_leaves_at_most_a_kibibyte(disk):
    def use(count, first):
        for n in range(first, first + count):
            assert call(kernels.code(Returns(n)).address("kernel")) == n

    use(300, 10_000)
    growth = []
    for first in (20_000, 30_000, 40_000):
        before = resident()
        use(300, first)
        growth.append((resident() - before) / 300)
    print(f"memory left per kernel compiled and dropped: {[round(g) for g in growth]} bytes")
    assert min(growth) <= 1024


def test_fork_while_others_compile(disk):
    """A child can compile whatever the threads of its parent were doing at the time."""
    stop = threading.Event()

    def work(first):
        n = first
        while not stop.is_set():
            kernels.code(Returns(n))
            n += 1

    threads = [threading.Thread(target=work, args=(10**6 * (i + 1),)) for i in range(2)]
    for t in threads:
        t.start()
    try:
        for n in range(30):
            pid = os.fork()
            if pid == 0:
                status = 1
                try:
                    status = 0 if call(kernels.address(Returns(n + 500))) == n + 500 else 2
                finally:
                    os._exit(status)
            deadline = time.monotonic() + 300
            while True:
                done, status = os.waitpid(pid, os.WNOHANG)
                if done:
                    break
                if time.monotonic() > deadline:
                    os.kill(pid, 9)
                    os.waitpid(pid, 0)
                    pytest.fail(f"child {n} hangs")
                time.sleep(0.002)
            assert status == 0
    finally:
        stop.set()
        for t in threads:
            t.join()


FORBID = """
import ctypes, sys
def forbid():
    if ctypes.CDLL(None).prctl(65, 1, 0, 0, 0):  # PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN
        sys.exit(77)
if sys.argv[1] == "from the start":
    forbid()
import weft as wf
x = wf.tensor([1.0, 2.0])
if sys.argv[1] == "after use":
    x + x
    forbid()
try:
    x * x
except wf.errors.DeviceError as e:
    print(e)
"""


def python(script, *args, cache=None):
    env = {**os.environ, "WEFT_CACHE_DIR": str(cache)} if cache else None
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", script, *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
    )


def test_only_the_families_whose_kernels_are_made_are_loaded(tmp_path):
    script = """
import sys
import weft as wf
wf.ones(3) + 1
print(*(f"weft.codegen.{name}" in sys.modules for name in ("map", "contract", "sort")))
"""
    assert python(script, cache=tmp_path).communicate(timeout=600) == ("True False False\n", "")


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_MDWE")
@pytest.mark.parametrize("when", ["from the start", "after use"])
def test_where_jit_is_forbidden_the_error_says_what_to_do(when):
    child = python(FORBID, when)
    out, err = child.communicate(timeout=600)
    if child.returncode == 77:
        pytest.skip("the system has no PR_SET_MDWE")
    assert (child.returncode, err) == (0, "")
    assert "forbids JIT compilation" in out and "MemoryDenyWriteExecute=no" in out


WORK = """
import weft as wf
x = wf.linspace(-3.0, 3.0, 1000).reshape(10, 100)
y = wf.tanh(x) * x + wf.exp(-x)
print(y.sum().item().hex(), y.max(axis=1).tolist()[:2], (x @ x.T)[3, 4].item().hex())
"""


def test_eight_processes_start_on_one_empty_cache(tmp_path):
    children = [python(WORK, cache=tmp_path / "cache") for _ in range(8)]
    said = {child.communicate(timeout=600) for child in children}
    assert len(said) == 1
    ((out, err),) = said
    assert out and not err


@pytest.mark.parametrize("what", ["damaged", "cut", "given to all", "gone"])
def test_a_spoiled_cache_changes_nothing(tmp_path, what):
    cache = tmp_path / "cache"
    want = python(WORK, cache=cache).communicate(timeout=600)
    entries = sorted(cache.iterdir())
    assert len(entries) > 5 and not want[1]
    for n, entry in enumerate(entries):
        data = bytearray(entry.read_bytes())
        match what:
            case "damaged":
                data[37 * n % len(data)] ^= 1 << n % 8
                entry.write_bytes(data)
            case "cut":
                entry.write_bytes(data[: len(data) // 2])
            case "given to all":
                entry.chmod(0o666)
    if what == "gone":
        for entry in entries:
            entry.unlink()
        cache.rmdir()
        cache.write_text("a file where the directory was")
    assert python(WORK, cache=cache).communicate(timeout=600) == want


def imported(path):
    """Names of the weft modules a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{a.name}" for a in node.names)


@pytest.mark.tiny
def test_fingerprint_follows_what_is_in_the_files(monkeypatch, tmp_path):
    fresh = kernels.fingerprint.__wrapped__
    source = tmp_path / "a.py"
    monkeypatch.setattr(kernels, "disk", lambda: DiskCache(str(tmp_path / "cache")))
    monkeypatch.setattr(kernels, "_source_files", lambda root: iter([str(source)]))
    found = []
    for text in ("one", "two", "two", "one"):
        source.write_text(text)
        found += [fresh(), fresh()]
    one, two = found[0], found[2]
    assert found == [one, one, two, two, two, two, one, one] and one != two


@pytest.mark.tiny
def test_fingerprint_covers_all_that_codegen_imports():
    covered = {Path(p) for p in kernels._source_files(str(ROOT / "weft"))}
    assert len(covered) > 10
    say_nothing_about_code = ("errors.py", "buffer/", "ir/")
    todo, seen = sorted((ROOT / "weft" / "codegen").glob("*.py")), set()
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        for name in imported(path):
            if name.startswith("weft."):
                base = ROOT.joinpath(*name.split("."))
                todo += [p for p in (base.with_suffix(".py"), base / "__init__.py") if p.exists()]
    missing = {p.relative_to(ROOT / "weft").as_posix() for p in seen - covered}
    assert not {m for m in missing if not m.startswith(say_nothing_about_code)}


@dataclass(frozen=True)
class Through:
    """A kernel that returns a number through a long function that all of its kind have."""

    number: int

    def key(self):
        return f"through {self.number}"


def _through(spec):
    lines = "".join(f"  %a{n} = xor i64 %a{n - 1}, {n ^ (n - 1)}\n" for n in range(1, 200))
    return (
        "define internal i64 @long(i64 %a0) noinline nounwind {\n"
        f"{lines}  ret i64 %a199\n}}\n"
        "define i64 @kernel(ptr %frame, i64 %lo, i64 %hi, i64 %worker) {\n"
        f"  %x = call i64 @long(i64 {spec.number ^ 199})\n  ret i64 %x\n}}\n"
    )


def codes(specs):
    with kernels.Ahead() as ahead:
        for spec in specs:
            ahead.begin(spec)
        return [ahead.code(s) for s in specs]


def test_kernels_that_are_begun_are_made_by_other_threads(monkeypatch, disk):
    monkeypatch.setitem(weft.codegen.lower.FAMILIES, Through, _through)
    monkeypatch.setattr(kernels, "_parts", {})
    threads, inner = set(), jit.compile_object
    monkeypatch.setattr(
        jit,
        "compile_object",
        lambda t, *a: threads.add(threading.current_thread().name[:12]) or inner(t, *a),
    )
    held = codes([Through(n) for n in (5, 5, 6, 7)])
    assert [call(c.address("kernel")) for c in held] == [5, 5, 6, 7]
    assert held[0] is held[1] and threads == {"weft-compile"}
    threads.clear()
    assert call(codes([Through(8)])[0].address("kernel")) == 8
    assert threads.isdisjoint({"weft-compile"})  # one alone is not worth a pool of them


def test_a_kernel_that_was_begun_and_failed_says_so_when_it_is_asked_for(monkeypatch, disk):
    monkeypatch.setitem(weft.codegen.lower.FAMILIES, Through, lambda spec: "nonsense")
    with kernels.Ahead() as ahead:
        ahead.begin(Through(9))
        ahead.begin(Through(10))
        with pytest.raises(WeftError, match="compiling Through"):
            ahead.code(Through(10))


def test_what_kernels_have_in_common_is_compiled_once(monkeypatch, disk):
    monkeypatch.setitem(weft.codegen.lower.FAMILIES, Through, _through)
    monkeypatch.setattr(kernels, "_parts", {})
    texts, inner = [], jit.compile_object
    monkeypatch.setattr(jit, "compile_object", lambda t, *a: texts.append(t) or inner(t, *a))
    held = codes([Through(n) for n in range(4)])
    assert [call(c.address("kernel")) for c in held] == [0, 1, 2, 3]
    assert len(texts) == 5  # four kernels, and once what they share
    del held
    gc.collect()
    assert call(kernels.code(Through(2)).address("kernel")) == 2  # whole again from disk
    assert len(texts) == 5


def test_who_needs_parts_that_nobody_has_begun_makes_them(monkeypatch):
    monkeypatch.setattr(kernels, "_parts", {})
    begun, go, by = threading.Event(), threading.Event(), {}

    def compile_object(text):
        by[text] = threading.current_thread().name
        if text == "first":
            begun.set()
            go.wait(20)
        if text == "b":
            go.set()
        return text.encode()

    monkeypatch.setattr(jit, "compile_object", compile_object)
    found = {}
    threads = [
        threading.Thread(
            target=lambda x=x: found.update({x: kernels._compiled(x, "first", "second")}), name=x
        )
        for x in "ab"
    ]
    threads[0].start()
    assert begun.wait(20)
    threads[1].start()
    for t in threads:
        t.join()
    assert found == {x: [x.encode(), b"first", b"second"] for x in "ab"}
    assert by == {"a": "a", "b": "b", "first": "a", "second": "b"}


def test_what_failed_to_compile_is_compiled_anew(monkeypatch, disk):
    monkeypatch.setitem(weft.codegen.lower.FAMILIES, Through, _through)
    monkeypatch.setattr(kernels, "_parts", {})
    inner = jit.compile_object

    def fails(text):
        raise RuntimeError("no luck")

    monkeypatch.setattr(jit, "compile_object", fails)
    with pytest.raises(WeftError, match="no luck"):
        kernels.code(Through(5))
    monkeypatch.setattr(jit, "compile_object", inner)
    assert call(kernels.code(Through(5)).address("kernel")) == 5


def test_no_thread_is_started_for_kernels_on_disk(monkeypatch, disk):
    specs = [Returns(n) for n in (51, 52, 53)]
    held = codes(specs)
    monkeypatch.setattr(kernels, "ThreadPoolExecutor", None)
    assert codes(specs) == held  # in memory
    held.clear()
    gc.collect()
    assert [call(c.address("kernel")) for c in codes(specs)] == [51, 52, 53]
    with pytest.raises(TypeError):
        codes([Returns(54), Returns(55)])
