"""weft demo and weft bench: they run, they keep to their folder, and a broken promise is exit 1."""

from __future__ import annotations

import json

import pytest

import weft.bench
from weft.cli import main
from weft.demo import story
from weft.demo.screen import Screen


def test_the_demo_keeps_its_claims_and_its_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--plain", "--short", "--folder", "here"]) == 0
    said = capsys.readouterr().out
    assert "FAILED" not in said and "\x1b" not in said and "\r" not in said
    assert "8 of 8 claims held" in said
    assert str(tmp_path / "here") in said
    assert [p.name for p in tmp_path.iterdir()] == ["here"]
    assert {p.name for p in (tmp_path / "here").iterdir()} <= {"programs.py", "__pycache__"}


def test_a_claim_that_fails_is_exit_code_1(tmp_path, monkeypatch, capsys):
    for name in ("_training", "_control", "_lengths"):
        monkeypatch.setattr(story, name, lambda *_: None)
    monkeypatch.setattr(story, "_equal", lambda a, b: False)
    assert main(["demo", "--plain", "--folder", str(tmp_path)]) == 1
    assert "FAILED: the program goes on" in capsys.readouterr().out


def test_a_terminal_gets_colours_and_a_bar(capsys, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    screen = Screen()
    screen.lively = True
    screen.title("title")
    assert list(screen.progress("abc", 3)) == ["a", "b", "c"]
    screen.claim("right", True)
    said = capsys.readouterr().out
    assert "\x1b[1;36mtitle\x1b[0m" in said and "\r" in said and "3 of 3" in said


def test_bench_compares_without_peers(tmp_path, capsys):
    path = tmp_path / "figures.json"
    assert main(["bench", "--small", "--quick", "--json", str(path)]) == 0
    rows = json.loads(path.read_text(encoding="utf-8"))
    assert len(rows) == 4 and all(r["eager"] > 0 and r["compiled"] > 0 for r in rows)
    assert capsys.readouterr().out.count("\n") == 6


@pytest.mark.parametrize(
    ("given", "handed"),
    [
        ([], ["compiled"]),
        (["W3", "--suite", "compiled"], ["compiled", "W3"]),
        (["W12", "--suite", "control_flow", "--peers", "jax"], ["control_flow", "W12", "jax"]),
        (["--suite", "eager", "small", "network"], ["eager", "--only", "small network"]),
    ],
)
def test_bench_hands_over_to_the_suite(monkeypatch, given, handed):
    asked = []
    monkeypatch.setattr(weft.bench.subprocess, "run", lambda c, **k: asked.append(c) or Done())
    assert main(["bench", *given, "--quick"]) == 3
    assert asked[0][2] == f"benchmarks.{handed[0]}"
    assert [a for a in asked[0][3:] if a not in ("--quick", "--peers")] == handed[1:]
    assert "--quick" in asked[0]


@pytest.mark.parametrize(
    "given",
    [["W3", "--small"], ["--peers", "jax", "--small"], ["--suite", "eager", "--peers", "jax"]],
)
def test_bench_says_what_does_not_go_together(monkeypatch, capsys, given):
    monkeypatch.setattr(weft.bench.subprocess, "run", lambda *a, **k: pytest.fail("started"))
    with pytest.raises(SystemExit, match="2"):
        main(["bench", *given])
    assert "weft bench: error: " in capsys.readouterr().err


def test_a_file_that_can_not_be_written_is_known_before_anything_is_measured(monkeypatch, capsys):
    monkeypatch.setattr(weft.bench.subprocess, "run", lambda *a, **k: pytest.fail("started"))
    assert main(["bench", "--json", "/nowhere/figures.json"]) == 2
    assert capsys.readouterr().err == "weft: /nowhere/figures.json: No such file or directory\n"


class Done:
    returncode = 3
