"""The examples train, and compiled they give the bits that they give eagerly: every loss, every
weight.

`tests/test_docs.py` runs them as a reader would.
"""

import importlib.util
import warnings
from pathlib import Path

import pytest

import weft as wf

FOLDER = Path(__file__).parents[2] / "examples"
# short runs: steps, and sizes where the usual ones would take long
RUNS = {
    "cartpole": {"steps": 2, "games": 4, "length": 12},
    "chargpt": {"steps": 3, "batch": 2, "length": 24, "sampled": 8},
    "dates": {"steps": 2},
    "digits": {"steps": 6},
    "images": {"steps": 3},
    "listings": {"steps": 3},
    "oscillator": {"steps": 5},
    "sentiment": {"steps": 4},
    "trees": {"steps": 10},
    "vae": {"steps": 5},
}
# programs of a run, where it takes more than one for a step and one for what is done besides
CAPTURES = {"sentiment": 5, "trees": 6}
BY_HAND = {"train_by_hand"}  # has no modules to compile


def load(name):
    spec = importlib.util.spec_from_file_location(f"example_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_example_is_here():
    assert {p.stem for p in FOLDER.glob("*.py")} == {*RUNS, *BY_HAND}


@pytest.mark.parametrize("name", RUNS)
def test_compiled_equals_eager_bit_for_bit(name, capsys, monkeypatch):
    """A warning that something can't be captured is an error here, as all warnings are; and a step
    that is captured again and again is noticed.
    """
    main, compiled, usual = load(name).main, [], wf.compile
    monkeypatch.setattr(wf, "compile", lambda f: compiled.append(usual(f)) or compiled[-1])
    (losses, model), (compiled_losses, other) = (
        main(compiled=how, **RUNS[name]) for how in (False, True)
    )
    capsys.readouterr()
    assert compiled and max(f.captures for f in compiled) <= CAPTURES.get(name, 2)
    assert len(losses) >= RUNS[name]["steps"]
    assert [float(x).hex() for x in losses] == [float(x).hex() for x in compiled_losses]
    ours, theirs = model.state_dict(), other.state_dict()
    assert [k for k in ours if ours[k].numpy().tobytes() != theirs[k].numpy().tobytes()] == []


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda p: p.stem)
def test_examples_are_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 120


def test_digits_drawn_without_scikit_learn():
    rng = __import__("numpy").random.default_rng(0)
    images, labels = load("digits").drawn(20, rng)
    assert images.shape == (20, 8, 8) and 0 <= images.min() < images.max() <= 16
    assert set(labels) <= set(range(10))


def test_one_program_a_bucket(capsys):
    module = load("sentiment")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module.main(steps=12)
    said = capsys.readouterr().out.split()
    captures, lengths = int(said[-5]), int(said[-2])
    assert captures <= lengths + 1
