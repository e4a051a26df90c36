"""Saved state: what comes back, what other programs read, files that are damaged, being killed."""

import json
import math
import os
import signal
import struct
import subprocess
import sys
import textwrap
import time

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy
import safetensors.torch
import torch

import weft as wf
from weft.errors import ArtifactError, DTypeError

DTYPES = [
    "float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint64",
    "uint32", "uint16", "uint8", "bool",
]  # fmt: skip


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state.safetensors"


def test_every_dtype_and_shape_comes_back(path):
    state = {}
    for d in DTYPES:
        for shape in ((), (0,), (3,), (2, 0, 3), (4, 5)):
            a = np.arange(math.prod(shape)).reshape(shape) % 2
            state[f"{d} {shape}"] = wf.tensor(a).astype(getattr(wf, d))
    state["strided"] = wf.arange(12).reshape(3, 4).T[::2]
    wf.save(state, path)
    found = wf.load(path)
    assert set(found) == set(state)
    for name, want in state.items():
        assert found[name].dtype is want.dtype and found[name].shape == want.shape
        assert found[name].tolist() == want.tolist()
    assert not list(path.parent.glob(".*"))


def test_nested_values_come_back(path):
    state = {
        "model": {"a.b": wf.ones(2), "a": {"b": wf.zeros(3)}},
        "list": [1, 2.5, "text", None, True, (wf.arange(2), -1)],
        3: {"": wf.tensor(1.0), "weird ☃ \n": float("inf"), "nan": float("nan")},
        "empty": [{}, [], ()],
        "array": np.arange(3),
    }
    wf.save(state, str(path))
    found = wf.load(str(path))
    assert list(found) == list(state) and found["model"]["a.b"].tolist() == [1, 1]
    assert found["model"]["a"]["b"].tolist() == [0, 0, 0]
    assert found["list"][:5] == [1, 2.5, "text", None, True] and type(found["list"][4]) is bool
    assert isinstance(found["list"][5], tuple) and found["list"][5][0].tolist() == [0, 1]
    assert found[3][""].item() == 1.0 and found[3]["weird ☃ \n"] == math.inf
    assert math.isnan(found[3]["nan"]) and found["empty"] == [{}, [], ()]
    assert found["array"].tolist() == [0, 1, 2]
    wf.save(wf.ones(2), path)
    assert wf.load(path).tolist() == [1, 1]


def test_other_programs_read_and_write_the_same_files(path):
    model = wf.nn.Sequential(wf.nn.Linear(3, 2), wf.nn.BatchNorm1d(2)).bfloat16()
    model[1].float()
    wf.save(model.state_dict(), path)
    theirs = safetensors.torch.load_file(path)
    assert theirs["0.weight"].dtype is torch.bfloat16
    other = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    other.load_state_dict(theirs)
    safetensors.torch.save_file(other.state_dict(), path, metadata={"format": "pt"})
    model.load_state_dict(wf.load(path))
    safetensors.numpy.save_file({"x": np.arange(3, dtype=np.int8), "y": np.ones((2, 2))}, path)
    assert wf.load(path)["y"].tolist() == [[1, 1], [1, 1]]
    assert np.dtype(ml_dtypes.bfloat16) == wf.bfloat16.np


def test_what_cannot_be_saved_is_named(path):
    for state, error in [
        ({"a": [object()]}, "save of a.0.*object"),
        ({"model": wf.nn.Linear(1, 1)}, "state_dict"),
        ({(1, 2): 3}, "names or integers"),
    ]:
        with pytest.raises(DTypeError, match=error):
            wf.save(state, path)
    deep = []
    for _ in range(300):
        deep = [deep]
    with pytest.raises(DTypeError, match="200 deep"):
        wf.save(deep, path)
    with pytest.raises(DTypeError, match="a path"):
        wf.save({}, 3)
    with pytest.raises(FileNotFoundError):
        wf.save({}, path / "nowhere" / "x")
    with pytest.raises(FileNotFoundError):
        wf.load(path)
    assert not path.exists()


def written(path):
    wf.save({"a": wf.arange(5), "b": {"c": wf.ones((2, 3)), "d": 1.5}}, path)
    return path.read_bytes()


def test_every_truncation_is_noticed(path):
    whole = written(path)
    for n in range(len(whole)):
        path.write_bytes(whole[:n])
        with pytest.raises(ArtifactError):
            wf.load(path)
    path.write_bytes(whole + b"x")
    with pytest.raises(ArtifactError):
        wf.load(path)


def test_damaged_bytes_give_a_state_or_an_artifact_error(path):
    whole = bytearray(written(path))
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(400):
        bad = bytearray(whole)
        for at in rng.integers(0, len(bad) - 60, rng.integers(1, 4)):
            bad[at] = rng.integers(0, 256)
        path.write_bytes(bad)
        try:
            wf.load(path)
        except ArtifactError:
            refused += 1
    assert refused > 300


def file_of(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


HOSTILE = {
    "empty": b"",
    "header too long": struct.pack("<Q", 2**63) + b"{}",
    "no JSON": file_of(b"{]"),
    "no text": file_of(b"\xff\xfe"),
    "a list": file_of([]),
    "deep": file_of(b"[" * 100_000),
    "twice": file_of(b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":1}', b"x"),
    "unknown dtype": file_of({"a": {"dtype": "C64", "shape": [1], "data_offsets": [0, 1]}}, b"x"),
    "negative": file_of({"a": {"dtype": "U8", "shape": [-1], "data_offsets": [0, -1]}}),
    "huge": file_of({"a": {"dtype": "U8", "shape": [2**61], "data_offsets": [0, 2**61]}}),
    "overflow": file_of({"a": {"dtype": "U8", "shape": [2**33, 2**33], "data_offsets": [0, 0]}}),
    "axes": file_of({"a": {"dtype": "U8", "shape": [1] * 70, "data_offsets": [0, 1]}}, b"x"),
    "wide": file_of({"a": {"dtype": "U8", "shape": [0, 2**61, 9], "data_offsets": [0, 0]}}),
    "wrong size": file_of({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}, b"x" * 4),
    "overlap": file_of(
        {
            "a": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]},
            "b": {"dtype": "U8", "shape": [2], "data_offsets": [1, 3]},
        },
        b"xyz",
    ),
    "gap": file_of({"a": {"dtype": "U8", "shape": [1], "data_offsets": [1, 2]}}, b"xy"),
    "strings": file_of({"a": {"dtype": "U8", "shape": "ab", "data_offsets": [0, 1]}}, b"x"),
    "floats": file_of({"a": {"dtype": "U8", "shape": [1.0], "data_offsets": [0, 1]}}, b"x"),
    "bools": file_of({"a": {"dtype": "BOOL", "shape": [1], "data_offsets": [0, 1]}}, b"\x07"),
    "metadata": file_of({"__metadata__": {"a": 1}}),
    "no state": file_of({"__metadata__": {"weft.state": "{"}}),
    "version": file_of({"__metadata__": {"weft.state": '{"version": 9, "state": null}'}}),
    "no tensor": file_of(
        {"__metadata__": {"weft.state": '{"version": 1, "state": {"tensor": "a"}}'}}
    ),
    "kind": file_of({"__metadata__": {"weft.state": '{"version": 1, "state": {"code": "a"}}'}}),
    "key": file_of(
        {"__metadata__": {"weft.state": '{"version": 1, "state": {"dict": [[null, 1]]}}'}}
    ),
    "pickle": b"\x80\x05\x95\x1a\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix",
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused(name, path):
    path.write_bytes(HOSTILE[name])
    with pytest.raises(ArtifactError, match=path.name):
        wf.load(path)


@pytest.mark.parametrize("zipped", [True, False])
def test_a_pickle_of_pytorchs_is_named_and_not_opened(zipped, path):
    torch.save({"w": torch.ones(2)}, path, _use_new_zipfile_serialization=zipped)
    with pytest.raises(ArtifactError, match=r"pickle.*never opened.*save_file"):
        wf.load(path)


KILLED = textwrap.dedent(
    """
    import sys
    import weft as wf
    n = 0
    while True:
        n += 1
        wf.save({"n": wf.full((300_000,), float(n)), "count": n}, sys.argv[1])
        print(n, flush=True)
    """
)


def test_being_killed_leaves_a_whole_file(tmp_path):
    """At any moment: the last that was reported, or the one after it."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    script, target = tmp_path / "save.py", tmp_path / "state"
    script.write_text(KILLED)
    env = {**os.environ, "PYTHONPATH": root}
    for i in range(4):
        run = subprocess.Popen([sys.executable, script, target], stdout=subprocess.PIPE, env=env)
        said = [run.stdout.readline()]
        time.sleep(0.013 * (i + 1))
        run.send_signal(signal.SIGKILL)
        said += run.communicate()[0].splitlines()
        last = int([s for s in said if s.strip()][-1])
        state = wf.load(target)
        assert state["count"] in (last, last + 1)
        assert (state["n"].numpy() == state["count"]).all()


AT_EVERY_LINE = """
import os, signal, sys
import weft as wf
from weft.deploy import safetensors

path, old, new = sys.argv[1], {"n": wf.full((1000,), 1.0)}, {"n": wf.full((2000,), 2.0)}

def killed_at(line):
    "Save in a process of its own that is killed before it runs its line of that number."
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    seen = 0
    def count(frame, event, _):
        nonlocal seen
        if frame.f_code.co_filename != safetensors.__file__:
            return None
        seen += event == "line"
        if seen == line:
            os.kill(os.getpid(), signal.SIGKILL)
        return count
    sys.settrace(count)
    wf.save(new, path)
    os._exit(0)

line = found = 0
wf.save(old, path)
while True:
    line += 1
    ended = killed_at(line)
    state = wf.load(path)["n"]
    assert state.tolist() in ([1.0] * 1000, [2.0] * 2000), line
    found = max(found, int(state[0].item()))
    if ended == 0:
        break
    assert ended == -signal.SIGKILL, ended
    if found == 1:
        continue
    wf.save(old, path)
    found = 1
print(line, state[0].item())
assert line > 30 and state[0].item() == 2.0
"""


def test_being_killed_at_any_line_leaves_the_old_file_or_the_new(tmp_path):
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    env = {**os.environ, "PYTHONPATH": root}
    command = [sys.executable, "-W", "ignore", "-c", AT_EVERY_LINE, str(tmp_path / "state")]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


def test_a_save_that_fails_leaves_the_old_file(path):
    old = written(path)

    class Full(wf.Tensor):
        def numpy(self):
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        wf.save({"x": Full(wf.ones(3).data)}, path)
    assert path.read_bytes() == old and len(list(path.parent.iterdir())) == 1


def test_permissions_are_those_of_the_old_file(path):
    written(path)
    path.chmod(0o640)
    written(path)
    assert path.stat().st_mode & 0o777 == 0o640
