"""What `pip install` brings: a pure wheel, small and typed, that runs by itself."""

import importlib.util
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def pip(*arguments):
    command = [sys.executable, "-m", "pip", *arguments, "--quiet", "--disable-pip-version-check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=ROOT)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    here = importlib.util.find_spec("hatchling") is not None  # else pip fetches it
    pip("wheel", ".", "--no-deps", "-w", str(folder), *["--no-build-isolation"] * here)
    (found,) = folder.glob("*.whl")
    return found


def test_the_wheel_is_pure_and_small(wheel):
    assert wheel.name.endswith("-py3-none-any.whl")
    assert wheel.stat().st_size < 2_000_000


def test_the_wheel_has_all_that_runs_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    packed = {n for n in names if ".dist-info/" not in n}
    here = {
        p.relative_to(ROOT).as_posix()
        for p in (ROOT / "weft").rglob("*")
        if p.is_file() and "__pycache__" not in p.parts
    }
    assert packed == here
    assert "weft/py.typed" in packed and any(n.endswith(".ll") for n in packed)
    assert any(n.endswith("LICENSE") for n in names)


def test_an_installed_wheel_runs(wheel, tmp_path):
    pip("install", "--no-deps", "--target", str(tmp_path / "lib"), str(wheel))
    code = "import weft as wf; print(wf.__file__, (wf.ones(3) @ wf.ones(3)).item())"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "lib")}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, timeout=600, env=environment, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(tmp_path / "lib")) and done.stdout.endswith(" 3.0\n")


def test_the_examples_pass_a_type_checker():
    options = ["--config-file=", "--check-untyped-defs", "--ignore-missing-imports"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, "examples"],
        capture_output=True, text=True, timeout=600, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
