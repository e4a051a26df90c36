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


USERS = """
from typing import assert_type

import numpy as np

import weft as wf
import weft.nn.functional as F
from weft import nn


class Net(nn.Module):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(4, 8)
        self.out = nn.Linear(8, classes)

    def forward(self, x: wf.Tensor) -> wf.Tensor:
        out: wf.Tensor = self.out(F.relu(self.hidden(x)))
        return out


net = Net(3)
optimizer = wf.optim.AdamW(net.parameters(), lr=1e-3)


@wf.compile
def step(x: wf.Tensor, y: wf.Tensor) -> wf.Tensor:
    loss = F.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    wf.optim.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    return loss


x = wf.tensor(np.ones((16, 4), np.float32))
y = wf.randint(0, 3, (16,))
print(step.explain(x, y), step.captures)
assert_type(step(x, y), wf.Tensor)
assert_type(x, wf.Tensor)
assert_type((x @ x.T + 1.0) / 2, wf.Tensor)
assert_type(-x[0, :2].sum(axis=0), wf.Tensor)
assert_type(wf.exp(x), wf.Tensor)
assert_type(wf.sum(x, axis=1), wf.Tensor)
assert_type(wf.where(x > 0, x, 0.0), wf.Tensor)
assert_type(wf.split(x, 2), tuple[wf.Tensor, ...])
assert_type(wf.topk(x, 2).values, wf.Tensor)
assert_type(F.softmax(x, dim=1), wf.Tensor)
assert_type(x.shape, tuple[int, ...])
assert_type(net.hidden.weight.grad, wf.Tensor | None)
value, slope = wf.value_and_grad(lambda t: (t * t).sum())(x)
program = wf.build([p := wf.placeholder("p", (wf.Dim("n", min=1), 4))], F.softmax(p, dim=-1))
for xb, yb in wf.data.DataLoader(wf.data.TensorDataset(x, y), batch_size=4, shuffle=True):
    program(xb)
history = wf.fit(net, F.cross_entropy, optimizer, [(x, y)], epochs=1)
with wf.no_grad():
    net.hidden.weight.assign(net.hidden.weight * 0.5)
try:
    x @ x
except wf.errors.ShapeError as e:
    print(e.place, e.expected, e.got, e.hint)
"""


def test_a_users_script_passes_a_strict_type_checker(tmp_path):
    """And the checker knows tensors for what they are: `Any` completes nothing in an editor."""
    (tmp_path / "script.py").write_text(USERS, encoding="utf-8")
    options = ["--config-file=", "--strict", "--follow-imports=silent", "--cache-dir=cache"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, "script.py"],
        capture_output=True, text=True, timeout=600, cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
