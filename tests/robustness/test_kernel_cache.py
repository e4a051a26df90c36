"""The kernel cache as a program meets it: whatever is on the disk, results are right, and what
cannot be trusted is not loaded.
"""

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.robustness.lab import run

pytestmark = pytest.mark.xdist_group("kernel cache")
DAMAGE = int(os.environ.get("WEFT_CACHE_DAMAGE", "2000"))

WORK = """
import sys
import numpy as np
import weft as wf
from weft.codegen import jit

compiled, make = [], jit.compile_object
def counted(*args):
    compiled.append(args)
    return make(*args)
jit.compile_object = counted

X = np.linspace(-3, 3, 1000, dtype=np.float32).reshape(10, 100)

def work():
    x = wf.tensor(X, requires_grad=True)
    y = wf.tanh(x) * x + wf.exp(-x)
    (y @ x.T).max(axis=1).sum().backward()
    return [y.numpy().tobytes(), x.grad.numpy().tobytes(), wf.sort(x[:, ::-1]).numpy().tobytes()]
"""

ONCE = (
    WORK
    + "\nfrom hashlib import blake2b\nprint(blake2b(b''.join(work())).hexdigest(), len(compiled))"
)


def answer(cache: Path, **environment: str) -> tuple[str, int]:
    """A digest of the results, and how many kernels had to be compiled for them."""
    digest, compiled = run(ONCE, WEFT_CACHE_DIR=str(cache), **environment).split()
    return digest, int(compiled)


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A cache with every kernel of the work in it, and what the work gives."""
    cache = tmp_path_factory.mktemp("filled") / "cache"
    want, compiled = answer(cache)
    kept = len(list(cache.iterdir()))
    assert compiled >= kept > 8  # what kernels have in common is compiled by itself
    assert answer(cache) == (want, 0)
    return cache, want, compiled


@pytest.fixture
def filled(first, tmp_path):
    """Such a cache to spoil."""
    cache, want, compiled = first
    return Path(shutil.copytree(cache, tmp_path / "cache")), want, compiled


DAMAGED = (
    WORK
    + """
import os, random
from tests.robustness.lab import forget

want, rng = work(), random.Random(0)
place = os.environ["WEFT_CACHE_DIR"]
entries = sorted(os.path.join(place, n) for n in os.listdir(place) if n.endswith(".k"))
whole = {p: open(p, "rb").read() for p in entries}
flips = cuts = again = 0
for n in range(int(sys.argv[1])):
    path = rng.choice(entries)
    data = bytearray(whole[path])
    if n % 2:
        for _ in range(rng.choice([1, 1, 1, 8])):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        flips += 1
    else:
        data = data[: rng.randrange(len(data))] + rng.randbytes(rng.choice([0, 0, 5]))
        cuts += 1
    with open(path, "wb") as file:
        file.write(data)
    forget()
    compiled.clear()
    assert work() == want, (n, path)
    again += len(compiled)
    for p in entries:
        if open(p, "rb").read() != whole[p]:  # an entry that this work has no use for
            with open(p, "wb") as file:
                file.write(whole[p])
print(f"{flips:,} entries with flipped bits and {cuts:,} cut ones: right every time, "
      f"{again:,} kernels compiled again")
assert again > int(sys.argv[1]) // 3
"""
)


def test_damaged_entries_are_compiled_again(filled):
    cache, _, _ = filled
    print("\n" + run(DAMAGED, str(DAMAGE), timeout=900, WEFT_CACHE_DIR=str(cache)))


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_entries_that_others_may_write_are_not_loaded(filled, mode):
    cache, want, compiled = filled
    for entry in cache.iterdir():
        entry.chmod(mode)
    assert answer(cache) == (want, compiled)


@pytest.mark.parametrize("mode", [0o770, 0o777, 0o1777])
def test_a_directory_that_others_may_write_is_not_used(filled, mode):
    cache, want, compiled = filled
    before = {p: p.read_bytes() for p in cache.iterdir()}
    cache.chmod(mode)
    assert answer(cache) == (want, compiled)
    assert {p: p.read_bytes() for p in cache.iterdir()} == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("what", ["entries", "directory"])
def test_what_another_user_owns_is_not_loaded(filled, what):
    cache, want, compiled = filled
    for path in cache.iterdir() if what == "entries" else [cache]:
        os.chown(path, 12345, 12345)
    assert answer(cache) == (want, compiled)


def test_links_are_not_followed(filled, tmp_path):
    cache, want, compiled = filled
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for entry in list(cache.iterdir()):
        entry.rename(elsewhere / entry.name)
        entry.symlink_to(elsewhere / entry.name)
    assert answer(cache) == (want, compiled)


def test_a_place_that_is_no_directory(filled, tmp_path):
    _, want, compiled = filled
    (tmp_path / "file").write_text("not a directory")
    for place in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/nowhere")):
        assert answer(place) == (want, compiled)


def test_without_a_cache(filled):
    cache, want, compiled = filled
    assert answer(cache, WEFT_CACHE="0") == (want, compiled)


@pytest.fixture
def disk(tmp_path):
    """A disk of 64 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("cannot mount")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk(disk, filled):
    _, want, compiled = filled
    assert answer(disk) == (want, compiled)
    kept = len(list(disk.iterdir()))
    found, again = answer(disk)
    assert found == want and 0 < again < compiled
    print(f"\na full disk: {kept} of {compiled} kernels kept, the others compiled each time")


def test_a_read_only_disk(disk, filled):
    _, want, compiled = filled
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    assert answer(disk) == (want, compiled)
    assert not list(disk.iterdir())


def test_eight_processes_on_one_cold_cache(tmp_path):
    """Together they may compile a kernel more than once, and each is right."""
    cache = tmp_path / "cache"
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: answer(cache), range(8)))
    assert len({digest for digest, _ in found}) == 1
    assert answer(cache) == (found[0][0], 0)
    assert not [p for p in cache.iterdir() if p.name.startswith(".")]
    print(f"\n8 processes at once compiled {sum(n for _, n in found)} kernels; a ninth none")
