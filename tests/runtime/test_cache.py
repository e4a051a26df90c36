import os
import random
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from weft.runtime.cache import DiskCache, default_directory


@pytest.fixture
def cache(tmp_path):
    return DiskCache(str(tmp_path / "cache"))


def files(cache):
    return sorted(Path(cache.directory).iterdir())


@pytest.mark.tiny
def test_gives_back_what_was_put(cache):
    assert cache.get("key") is None
    for data in (b"", b"code", os.urandom(100_000)):
        cache.put("key", data)
        assert cache.get("key") == data
    assert cache.get("kez") is None
    assert DiskCache(cache.directory).get("key") == data


@pytest.mark.tiny
def test_directory_and_entries_are_private_whatever_the_umask(cache):
    before = os.umask(0)
    try:
        cache.put("key", b"code")
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat(cache.directory).st_mode) == 0o700
    (entry,) = files(cache)
    assert stat.S_IMODE(entry.stat().st_mode) == 0o600


@pytest.mark.tiny
def test_directory_comes_from_the_environment(monkeypatch, tmp_path):
    monkeypatch.delenv("WEFT_CACHE", raising=False)
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/xdg")
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    assert default_directory() == str(tmp_path)
    monkeypatch.delenv("WEFT_CACHE_DIR")
    assert default_directory() == "/var/xdg/weft"
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    assert default_directory() == "/home/someone/.cache/weft"
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as for a user without a home
    assert default_directory() is None
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("WEFT_CACHE", "0")
    assert default_directory() is None


@pytest.mark.tiny
def test_without_a_directory_everything_is_a_miss(monkeypatch):
    monkeypatch.setenv("WEFT_CACHE", "0")
    off = DiskCache()
    off.put("key", b"code")
    off.clear()
    assert off.get("key") is None and off.size() == 0


@pytest.mark.tiny
def test_size_and_clear_touch_entries_only(cache):
    for n in range(10):
        cache.put(str(n), bytes(1000))
    mine = Path(cache.directory) / "notes.txt"
    mine.write_text("keep me")
    assert 10_000 < cache.size() < 12_000
    cache.clear()
    assert cache.size() == 0 and files(cache) == [mine]


def damage(data, rng):
    """Flip bits, cut, append or zero."""
    bad = bytearray(data)
    at = rng.randrange(len(bad))
    match rng.choice(["flip", "flip", "cut", "grow", "zero"]):
        case "flip":
            for _ in range(rng.choice([1, 1, 2, 8])):
                bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
        case "cut":
            del bad[at:]
        case "grow":
            bad += rng.randbytes(rng.randrange(1, 100))
        case "zero":
            bad[at : at + 64] = bytes(len(bad[at : at + 64]))
    return bytes(bad)


def test_damaged_entries_are_misses(cache):
    rng = random.Random(0)
    missed = 0
    for n in range(2000):
        data = rng.randbytes(rng.choice([0, 1, 100, 5000]))
        cache.put("key", data)
        (entry,) = files(cache)
        whole = entry.read_bytes()
        bad = damage(whole, rng)
        entry.write_bytes(bad)
        found = cache.get("key")
        assert found == (data if bad == whole else None), n
        missed += found is None
    print(f"2000 damaged entries: {missed} misses, {2000 - missed} left as they were, 0 wrong")


@pytest.mark.tiny
def test_entry_of_another_key_is_a_miss(cache):
    cache.put("a", b"code of a")
    (entry,) = files(cache)
    cache.put("b", b"code of b")
    (other,) = set(files(cache)) - {entry}
    entry.replace(other)
    assert cache.get("b") is None


@pytest.mark.tiny
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_entry_others_may_write_is_not_loaded(cache, mode):
    cache.put("key", b"code")
    (entry,) = files(cache)
    entry.chmod(mode)
    assert cache.get("key") is None
    cache.put("key", b"code")  # and is replaced by one of our own
    assert cache.get("key") == b"code"


@pytest.mark.tiny
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o1777])
def test_directory_others_may_write_is_not_used(cache, mode):
    cache.put("key", b"code")
    os.chmod(cache.directory, mode)
    assert cache.get("key") is None
    cache.put("other", b"code")
    assert len(files(cache)) == 1


@pytest.mark.tiny
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_entry_or_directory_of_another_user_is_not_loaded(cache):
    cache.put("key", b"code")
    (entry,) = files(cache)
    os.chown(entry, 12345, -1)
    assert cache.get("key") is None
    os.chown(entry, os.geteuid(), -1)
    assert cache.get("key") == b"code"
    os.chown(cache.directory, 12345, -1)
    assert cache.get("key") is None


@pytest.mark.tiny
def test_only_regular_files_are_entries(cache, tmp_path):
    cache.put("key", b"code")
    (entry,) = files(cache)
    elsewhere = tmp_path / "elsewhere"
    entry.rename(elsewhere)
    entry.symlink_to(elsewhere)
    assert cache.get("key") is None
    entry.unlink()
    entry.mkdir()
    assert cache.get("key") is None
    cache.put("key", b"code")
    entry.rmdir()
    os.mkfifo(entry, 0o600)
    assert cache.get("key") is None  # and doesn't wait for a writer


@pytest.mark.tiny
def test_places_that_cannot_hold_files(tmp_path):
    (tmp_path / "file").write_text("")
    for place in (
        tmp_path / "file",
        tmp_path / "file" / "below",
        Path("/proc/weft"),
        Path("/dev/null/weft"),
    ):
        cache = DiskCache(str(place))
        cache.put("key", b"code")
        assert cache.get("key") is None and cache.size() == 0
        cache.clear()


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 64 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs", place], capture_output=True
    )
    if made.returncode:
        pytest.skip("cannot mount")
    yield place
    subprocess.run(["umount", place], check=True)


def test_full_disk(small_disk):
    cache = DiskCache(str(small_disk))
    for n in range(100):
        cache.put(str(n), bytes([n]) * 3000)
    kept = sum(cache.get(str(n)) == bytes([n]) * 3000 for n in range(100))
    missing = sum(cache.get(str(n)) is None for n in range(100))
    assert kept + missing == 100 and 0 < kept < 22
    assert not [f for f in files(cache) if f.name.startswith(".")]  # no partial file left


def test_read_only_disk(small_disk):
    cache = DiskCache(str(small_disk))
    cache.put("key", b"code")
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    assert cache.get("key") == b"code"
    cache.put("key", b"new")
    cache.put("other", b"code")
    cache.clear()
    assert cache.get("key") == b"code" and cache.get("other") is None


WRITER = """
import resource, sys
from weft.runtime.cache import DiskCache
cache = DiskCache(sys.argv[1])
"""


def child(script, *args):
    return subprocess.Popen(
        [sys.executable, "-c", WRITER + script, *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_file_size_limit_of_the_process(cache):
    """A write that stops half way, as on a full disk, without needing one."""
    script = """
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
cache.put("big", bytes(5000)); cache.put("small", b"code")
print(cache.get("big"), cache.get("small"))
"""
    out, err = child(script, cache.directory).communicate(timeout=600)
    assert (out, err) == ("None b'code'\n", "")
    assert len(files(cache)) == 1


def test_eight_processes_write_the_same_keys(cache):
    script = """
import hashlib, random
rng = random.Random(int(sys.argv[2]))
def want(n): return hashlib.blake2b(str(n).encode()).digest() * (n + 1)
found = 0
for _ in range(400):
    n = rng.randrange(50)
    data = cache.get(str(n))
    assert data is None or data == want(n)
    found += data is not None
    cache.put(str(n), want(n))
print(found)
"""
    children = [child(script, cache.directory, seed) for seed in range(8)]
    for c in children:
        out, err = c.communicate(timeout=600)
        assert err == "" and int(out) > 200
    assert len(files(cache)) == 50


def test_stays_within_its_limit_and_keeps_what_is_new(tmp_path):
    cache = DiskCache(str(tmp_path / "cache"), limit=1_000_000)
    now = time.time()
    for n in range(1000):
        cache.put(str(n), bytes(10_000))
    assert cache.size() < 2_500_000  # entries go when one put in 32 looks
    for n, f in enumerate(files(cache)):
        os.utime(f, (now - 1000 + n, now - 1000 + n))
    newest = files(cache)[-1]
    cache._trim()
    assert 500_000 < cache.size() <= 1_000_000
    assert newest.exists()
    cache.put("too big", bytes(1_000_001))
    assert cache.get("too big") is None


@pytest.mark.tiny
def test_what_crashed_writers_left_is_removed(cache):
    cache.put("key", b"code")
    fresh, old = (Path(cache.directory) / f".{n}-abc" for n in (1, 2))
    for f in (fresh, old):
        f.write_bytes(b"partial")
    os.utime(old, (time.time() - 7200,) * 2)
    cache._trim()
    assert fresh.exists() and not old.exists() and cache.get("key") == b"code"


@pytest.mark.tiny
def test_an_entry_in_use_stays_young(cache):
    cache.put("key", b"code")
    (entry,) = files(cache)
    os.utime(entry, (0, 0))
    before = time.time()
    cache.get("key")
    assert entry.stat().st_mtime > before - 1
