"""The weft command: programs run, faults are one message and exit code 2."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from weft.cli import main

ROOT = Path(__file__).parents[2]
PROGRAM = """\
fn scaled(%x: f32[B, 3], %w: f32[3, 2], %by: float, %flag: bool, %n: int) -> (f32[B, 2], f32[B]) {
  %y = matmul %x, %w  @ "model.py":3:5 "x @ w"
  %z = multiply %y, %by
  %flat = reshape %z {shape = (B, 2)}
  %s = sum %flat {axes = (1,), keepdims = false}
  return %flat, %s
}

fn other(%h: bf16[2]) -> bf16[2] {
  %two = add %h, %h
  return %two
}
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.wir").write_text(PROGRAM, encoding="utf-8")
    np.save("x.npy", np.arange(12, dtype=np.float32).reshape(4, 3))
    np.save("w.npy", np.ones((3, 2), np.float32))
    return tmp_path


GIVEN = ["-i", "x=x.npy", "-i", "w=w.npy", "-i", "by=0.5", "-i", "flag=true", "-i", "n=3"]


def test_a_program_runs_on_files(here, capsys):
    assert main(["run", "p.wir", *GIVEN, "-o", "y.npy", "-o", "s.npy"]) == 0
    want = np.arange(12, dtype=np.float32).reshape(4, 3) @ np.ones((3, 2), np.float32) * 0.5
    assert np.array_equal(np.load("y.npy"), want)
    assert np.array_equal(np.load("s.npy"), want.sum(1))
    assert capsys.readouterr().out == ""


def test_results_are_printed_if_they_go_nowhere(here, capsys):
    assert main(["run", "p.wir", *GIVEN]) == 0
    assert capsys.readouterr().out.count("tensor(") == 2


def test_another_function_and_bfloat16(here):
    np.save("h.npy", np.array([1, 2], ml_dtypes.bfloat16))
    assert main(["run", "p.wir", "--function", "other", "-i", "h=h.npy", "-o", "o.npy"]) == 0
    assert np.load("o.npy").view(ml_dtypes.bfloat16).tolist() == [2, 4]


def test_show_prints_what_show_prints(here, capsys):
    assert main(["show", "p.wir"]) == 0
    shown = capsys.readouterr().out
    assert '%y = matmul %x, %w : f32[B, 2]  @ "model.py":3:5 "x @ w"' in shown
    (here / "q.wir").write_text(shown, encoding="utf-8")
    assert main(["show", "q.wir"]) == 0
    assert capsys.readouterr().out == shown


def test_show_prints_what_passes_make_of_a_program(here, capsys):
    text = "fn f(%x: f32[4, n]) -> f32[4, n] { %y = softmax %x {axis = 1} return %y }"
    (here / "s.wir").write_text(text, encoding="utf-8")
    assert main(["show", "s.wir", "--optimised"]) == 0
    shown = capsys.readouterr().out
    assert "softmax" not in shown and " = exp " in shown
    (here / "t.wir").write_text(shown, encoding="utf-8")
    assert main(["show", "t.wir"]) == 0
    assert capsys.readouterr().out == shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["show", "none.wir"], "none.wir: No such file"),
        (["show", "x.npy"], "x.npy: expected text in UTF-8"),
        (["show", "bad.wir"], '"bad.wir":2:8: expected the name of an op, got matmull; did you'),
        (["run", "p.wir"], "an argument for x, w, by, flag, n"),
        (["run", "p.wir", "-i", "q=1"], "NAME=FILE with one of x, w, by, flag, n"),
        (["run", "p.wir", *GIVEN[2:], "-i", "x=w.npy"], "f32[B, 3], got f32[3, 2]"),
        (["run", "p.wir", *GIVEN[2:], "-i", "x=p.wir"], "an array in a .npy file"),
        (["run", "p.wir", *GIVEN[2:], "-i", "x=none.npy"], "none.npy: No such file"),
        (
            ["run", "p.wir", *GIVEN[2:], "-i", "x=3"],
            "-i x: expected f32[B, 3], an array in a .npy file, got 3: No such file",
        ),
        (["show", "calls.wir"], "call in fn f: expected a function half in a recursion around it"),
        (["run", "p.wir", *GIVEN[:4], "-i", "by=a", *GIVEN[6:]], "expected a Python float, got a"),
        (["run", "p.wir", *GIVEN, "-i", "n=4"], "-i: expected each argument once"),
        (["run", "p.wir", "-i", "x="], "NAME=FILE with one of x, w, by, flag, n"),
        (["run", "p.wir", *GIVEN, "-o", "a", "-o", "b", "-o", "c"], "at most 2 results, got 3"),
        (["run", "p.wir", "--function", "f"], "one of scaled, other, got f"),
    ],
)
def test_a_fault_is_one_message(here, capsys, arguments, said):
    bad = PROGRAM.replace("matmul", "matmull")
    (here / "bad.wir").write_text(bad, encoding="utf-8")
    call = '%y = call %x {name = "half", gives = (f32[],), site = 0}'
    calls = f"fn f(%x: f32[]) -> f32[] {{ {call} return %y }}"
    (here / "calls.wir").write_text(calls, encoding="utf-8")
    if arguments[1] == "x.npy":
        (here / "x.npy").write_bytes(b"\xff\xfe\x00")
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and said in printed.err and printed.err.startswith("weft: ")
    assert "Traceback" not in printed.err


def test_doctor_finds_nothing(capsys):
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert said.count("\nok ") == 5 and "FAILED" not in said
    assert all(f"\n{word}" in f"\n{said}" for word in ("weft", "python", "cpu", "threads", "cache"))
    assert "GB/s" in said and "GFLOP/s" in said


def test_cache_is_measured_and_cleared(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    (tmp_path / ("a" * 64 + ".k")).write_bytes(bytes(3 << 20))
    (tmp_path / "mine.txt").write_text("stays")
    assert main(["cache"]) == 0 and "3.0 MB of" in capsys.readouterr().out
    assert main(["cache", "clear"]) == 0 and "3.0 MB removed" in capsys.readouterr().out
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]
    monkeypatch.setenv("WEFT_CACHE", "0")
    assert main(["cache"]) == 0 and "no cache" in capsys.readouterr().out


def test_a_cache_that_can_not_be_written_is_said(capsys, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "file"))
    assert main(["cache"]) == 0
    assert "nothing is added to it: Not a directory" in capsys.readouterr().out
    assert main(["doctor"]) == 0
    assert "every process makes its kernels anew: Not a directory" in capsys.readouterr().out
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    monkeypatch.setenv("WEFT_CACHE_DIR", str(open_to_all))
    assert main(["cache"]) == 0
    assert "others own it or may write to it" in capsys.readouterr().out
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "new"))
    assert main(["cache"]) == 0 and capsys.readouterr().out.count("\n") == 1
    assert list((tmp_path / "new").iterdir()) == []


def test_what_can_not_be_removed_is_said(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    (tmp_path / ("a" * 64 + ".k")).write_bytes(bytes(1 << 20))
    monkeypatch.setattr(os, "unlink", lambda *a, **k: (_ for _ in ()).throw(PermissionError()))
    assert main(["cache", "clear"]) == 2
    said = capsys.readouterr()
    assert "0.0 MB removed" in said.out and "1.0 MB can't be removed" in said.err


def test_no_command_is_a_question(capsys):
    assert main([]) == 2
    said = capsys.readouterr()
    assert said.out == "" and "COMMAND" in said.err and "doctor" in said.err


def test_ctrl_c_ends_a_command_without_a_traceback(capsys, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("weft.cli.tell", interrupted)
    assert main(["demo"]) == 130
    assert capsys.readouterr().err == "weft: interrupted\n"


@pytest.mark.parametrize("module", ["weft", "weft.cli"])
def test_as_a_process(here, module):
    done = subprocess.run(
        [sys.executable, "-m", module, "show", "-"], input=PROGRAM, capture_output=True,
        text=True, timeout=600, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0 and done.stdout.startswith("fn scaled("), done.stderr
