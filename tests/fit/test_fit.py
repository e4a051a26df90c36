"""`wf.fit`: the loop that a user would write, checkpoints that lead to the same bits, Ctrl-C."""

import math
import os
import signal
import struct
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import torch

import weft as wf
import weft.nn.functional as F
from weft import nn
from weft.debug.progress import Progress

ROOT = Path(__file__).parents[2]


def make(n=40, batch_size=8):
    """A model with dropout and batch norm, its optimizer and schedule, and shuffled data."""
    wf.manual_seed(0)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 4)).astype(np.float32)
    y = (x.sum(axis=1) > 0).astype(np.int64)
    loader = wf.data.DataLoader(wf.data.TensorDataset(x, y), batch_size, shuffle=True)
    model = nn.Sequential(
        nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 2)
    )
    opt = wf.optim.AdamW(model.parameters(), lr=0.02)
    return model, opt, wf.optim.StepLR(opt, 2, 0.5), loader


def accuracy(out, target):
    return (out.argmax(axis=1) == target).astype(wf.float32).mean()


def bits(model):
    return {k: v.numpy().tobytes() for k, v in model.state_dict().items()}


def run(epochs=4, make=make, **options):
    model, opt, schedule, loader = make()
    history = wf.fit(
        model, F.cross_entropy, opt, loader, epochs=epochs, scheduler=schedule,
        **{"progress": False, **options},
    )  # fmt: skip
    return model, history


def test_is_the_loop_one_would_write():
    model, history = run()
    other, opt, schedule, loader = make()
    for _ in range(4):
        total = 0.0
        for x, y in loader:
            opt.zero_grad()
            loss = F.cross_entropy(other(x), y)
            loss.backward()
            opt.step()
            total += loss.item() * len(x)
        schedule.step()
    assert bits(model) == bits(other)
    assert history[-1]["loss"] == total / 40 and len(history) == 4


def test_compiled_and_eager_give_the_same_bits():
    (a, ha), (b, hb) = (run(compile=how, metrics={"right": accuracy}) for how in (True, False))
    assert bits(a) == bits(b) and ha == hb


def test_learns_and_measures():
    _, history = run(epochs=15, metrics={"right": accuracy}, validation=make()[3])
    assert set(history[0]) == {"loss", "right", "val_loss", "val_right"}
    assert history[-1]["val_right"] > 0.9


def test_validation_learns_nothing():
    def still():
        model, opt, schedule, loader = make()
        model[3].p = 0.0
        return model, opt, schedule, list(loader)

    model, _ = run(2, still)
    other, history = run(2, still, validation=list(make(60)[3]))
    assert bits(model) == bits(other) and len(history[0]) == 2


def test_leaves_the_mode_as_it_was():
    model, opt, _, loader = make()
    model.eval()
    wf.fit(model, F.cross_entropy, opt, loader, epochs=1, validation=loader, progress=False)
    assert not model.training


def test_control_flow_of_a_model_is_compiled():
    """That it is not, would be a warning."""

    class Halving(nn.Module):
        def __init__(self):
            self.line = nn.Linear(4, 2)

        def forward(self, x):
            h = self.line(x)
            while h.abs().max() > 0.5:
                h = h / 2
            return h

    def start():
        _, _, _, loader = make()
        model = Halving()
        opt = wf.optim.SGD(model.parameters(), lr=0.1)
        return model, opt, wf.optim.StepLR(opt, 2, 0.5), loader

    (model, history), (other, eager) = run(3, start), run(3, start, compile=False)
    assert bits(model) == bits(other) and history == eager


@pytest.mark.parametrize("stop", [1, 3])
def test_goes_on_from_a_checkpoint_with_the_same_bits(tmp_path, stop):
    whole, history = run(scheduler_step="step")
    path = tmp_path / "run.wf"
    run(epochs=stop, checkpoint=path, scheduler_step="step")
    wf.manual_seed(99)  # what is drawn in between does not matter
    model, again = run(checkpoint=path, scheduler_step="step")
    assert bits(model) == bits(whole) and again == history


def interrupting(at):
    """The usual setting, with a loss that has Ctrl-C pressed in batch `at`."""
    calls = []

    def loss(out, target):
        calls.append(1)
        if len(calls) == at:
            os.kill(os.getpid(), signal.SIGINT)
        return F.cross_entropy(out, target)

    return loss


@pytest.fixture
def ctrl_c():
    """What Ctrl-C does in a terminal; for programs in the background it does nothing."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("at", [1, 5, 7, 12])
def test_ctrl_c_leaves_a_checkpoint_to_go_on_from(tmp_path, at):
    whole, history = run(compile=False)
    path = tmp_path / "run.wf"
    model, opt, schedule, loader = make()
    with pytest.raises(KeyboardInterrupt, match=r"^saved to .*run.wf; call it again to go on$"):
        wf.fit(
            model, interrupting(at), opt, loader, epochs=4, scheduler=schedule, checkpoint=path,
            compile=False, progress=False,
        )  # fmt: skip
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    state = wf.load(path)
    assert state["epoch"] * 5 + state["position"] == at
    model, again = run(checkpoint=path, compile=False)
    assert bits(model) == bits(whole) and again == history


def test_a_killed_run_goes_on(tmp_path):
    """Another process, killed without notice in its third epoch."""
    path = tmp_path / "run.wf"
    script = f"""
        import os, sys
        sys.path[:0] = {[str(ROOT), str(Path(__file__).parent)]!r}
        from test_fit import run
        run(checkpoint={str(path)!r}, callbacks=[lambda n: n["epoch"] == 3 and os._exit(9)])
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], timeout=600)
    assert done.returncode == 9 and wf.load(path)["epoch"] == 2
    (model, again), (whole, history) = run(checkpoint=path), run()
    assert bits(model) == bits(whole) and again == history


def test_a_checkpoint_may_be_in_a_folder_that_is_not_there_yet(tmp_path):
    run(epochs=1, checkpoint=tmp_path / "runs" / "first" / "run.wf")
    assert wf.load(tmp_path / "runs" / "first" / "run.wf")["epoch"] == 1


def test_resume_false_begins_anew(tmp_path):
    path = tmp_path / "run.wf"
    run(epochs=2, checkpoint=path)
    assert len(run(epochs=1, checkpoint=path, resume=False)[1]) == 1
    assert wf.load(path)["epoch"] == 1


def test_a_file_that_is_no_checkpoint(tmp_path):
    path = tmp_path / "weights.safetensors"
    wf.save(make()[0].state_dict(), path)
    with pytest.raises(wf.errors.StateError, match="a checkpoint of fit"):
        run(checkpoint=path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("model", None), ("optimizer", []), ("scheduler", 3), ("random", [1]), ("begin", [1, -2]),
        ("epoch", "x"), ("position", -1), ("steps", True), ("sums", [{}]),
        ("sums", [{"a": "b"}, 1]), ("history", [{"val_loss": 1.0}]), ("history", 5),
        ("finished", 0),
    ],
)  # fmt: skip
def test_a_checkpoint_that_is_damaged(key, value, tmp_path):
    path = tmp_path / "run"
    run(epochs=1, checkpoint=path)
    state = wf.load(path)
    wf.save({**state, key: value}, path)
    model, opt, schedule, loader = make()
    before = bits(model)
    with pytest.raises(wf.errors.ArtifactError, match=f"nothing of use as {key}; the file"):
        wf.fit(model, F.cross_entropy, opt, loader, epochs=2, scheduler=schedule, checkpoint=path)
    assert bits(model) == before
    wf.save({"fit": 1}, path)
    with pytest.raises(wf.errors.ArtifactError, match="whole checkpoint"):
        run(checkpoint=path)


def test_stops_early():
    model, opt, _, loader = make()
    opt.param_groups[0]["lr"] = 0.0
    model.eval()
    frozen = nn.Linear(4, 2)
    still = wf.optim.SGD(frozen.parameters(), lr=0.0)
    history = wf.fit(
        frozen, F.cross_entropy, still, loader, epochs=50, validation=loader, early_stop=3,
        progress=False,
    )  # fmt: skip
    assert 4 <= len(history) < 50
    seen = []
    _, history = run(epochs=9, callbacks=[seen.append, lambda n: n["epoch"] == 2])
    assert len(history) == 2 and [n["epoch"] for n in seen] == [1, 2]


def test_plateau_schedule_gets_the_loss():
    model, opt, _, loader = make()
    schedule = wf.optim.ReduceLROnPlateau(opt, patience=0, threshold=0.9)
    wf.fit(
        model, F.cross_entropy, opt, loader, epochs=3, scheduler=schedule, max_norm=1.0,
        progress=False,
    )  # fmt: skip
    assert opt.param_groups[0]["lr"] < 0.02


def test_batches_that_are_no_pairs():
    wf.manual_seed(0)
    rows = [{"x": np.float32(i), "y": np.float32(2 * i)} for i in range(6)]
    loader = wf.data.DataLoader(rows, batch_size=4)

    class Line(nn.Module):
        def __init__(self):
            super().__init__()
            self.slope = nn.Parameter([0.0])

        def forward(self, batch):
            return batch["x"] * self.slope

    line = Line()
    opt = wf.optim.SGD(line.parameters(), lr=0.05)
    loss = lambda out, batch: F.mse_loss(out, batch["y"])
    wf.fit(line, loss, opt, loader, epochs=20, progress=False)
    assert abs(line.slope.item() - 2) < 0.01


@pytest.mark.parametrize("of", [lambda x: x, torch.tensor], ids=["numpy", "torch"])
def test_batches_of_arrays(of):
    """They are made tensors, so that the step is compiled: that it is not, would be a warning."""
    model, opt, _, loader = make()
    batches = [tuple(of(part.numpy().copy()) for part in batch) for batch in loader]
    history = wf.fit(
        model, F.cross_entropy, opt, batches, epochs=2, validation=batches, progress=False
    )
    assert history[1]["loss"] < history[0]["loss"] and history[1]["val_loss"] > 0


def test_a_loss_that_is_no_number_is_not_the_best():

    class Epochs:
        numbers = iter([math.nan, 3.0, 2.0, 1.0, 1.0, 1.0])

        def __iter__(self):  # one batch an epoch
            yield wf.full((1,), next(self.numbers))

    class Nothing(nn.Module):
        def __init__(self):
            self.p = nn.Parameter([0.0])

        def forward(self, batch):
            return self.p

    model = Nothing()
    history = wf.fit(
        model, lambda out, batch: (out + batch).sum(), wf.optim.SGD(model.parameters(), lr=0.0),
        Epochs(), epochs=9, early_stop=2, progress=False,
    )  # fmt: skip
    assert [h["loss"] for h in history][1:] == [3.0, 2.0, 1.0, 1.0, 1.0]


def test_says_a_line_an_epoch(capsys):
    run(epochs=2, progress=True)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 and lines[1].startswith("epoch 2/2   loss 0.")


def test_bar_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    with Progress(True, 1) as show:
        assert show.bar is not None
        show.start(0, 3)
        show.step(1, {"loss": 0.5})
        show.epoch(1, {"loss": 0.25})
    assert "loss 0.25" in capsys.readouterr().out


def test_wrong_arguments():
    model, opt, _, loader = make()
    with pytest.raises(wf.errors.DTypeError, match="a Module"):
        wf.fit(lambda x: x, F.cross_entropy, opt, loader, epochs=1)
    for wrong, match in [
        ((model, "mse", opt, loader), "a function of output and target"),
        ((model, F.cross_entropy, None, loader), "an optimizer, got NoneType"),
        ((model, F.cross_entropy, opt, 3), "a loader"),
    ]:
        with pytest.raises(wf.errors.DTypeError, match=match):
            wf.fit(*wrong, epochs=1)
    for options in ({"checkpoint": 3}, {"tensorboard": 3}, {"metrics": [accuracy]}):
        with pytest.raises(wf.errors.DTypeError, match=next(iter(options))):
            wf.fit(model, F.cross_entropy, opt, loader, epochs=1, **options)
    with pytest.raises(wf.errors.ShapeError, match="1 epoch or more"):
        wf.fit(model, F.cross_entropy, opt, loader, epochs=1, early_stop=0)
    with pytest.raises(wf.errors.ShapeError, match="0 epochs or more"):
        wf.fit(model, F.cross_entropy, opt, loader, epochs=-1)
    for options in ({}, {"validation": []}):
        with pytest.raises(wf.errors.ShapeError, match="at least one batch"):
            data = loader if options else []
            wf.fit(model, F.cross_entropy, opt, data, epochs=1, progress=False, **options)


def test_what_would_fail_after_an_epoch_fails_before_it():
    model, opt, _, loader = make()
    other = make()[1]
    before = bits(model)
    plateau = wf.optim.ReduceLROnPlateau(opt)
    for options, match in (
        ({"callbacks": print}, "callbacks as a list of functions, got builtin"),
        ({"callbacks": [3]}, "a function as a callback, got int"),
        ({"metrics": {"right": 3}}, "a function as metric 'right', got int"),
        ({"metrics": {"loss": accuracy}}, "other names than the loss"),
        ({"validation": 3}, "a loader as validation, got int"),
        ({"scheduler": "cosine"}, "a scheduler, got str"),
        ({"scheduler": wf.optim.StepLR(other, 1)}, "a scheduler of this optimizer"),
        ({"scheduler": plateau, "scheduler_step": "step"}, "with ReduceLROnPlateau"),
        ({"max_norm": "1"}, "max_norm: one number"),
        ({"max_norm": -1.0}, "max_norm 0 or more"),
        ({"resume": "yes"}, "True or False"),
    ):
        with pytest.raises((wf.errors.DTypeError, wf.errors.ShapeError), match=match):
            wf.fit(model, F.cross_entropy, opt, loader, epochs=1, progress=False, **options)
    with pytest.raises(wf.errors.ShapeError, match="an optimizer of the model's parameters"):
        wf.fit(model, F.cross_entropy, other, loader, epochs=1, progress=False)
    assert bits(model) == before
    with pytest.raises(wf.errors.DTypeError, match="a loss that gives a tensor, got float"):
        wf.fit(model, lambda out, y: 1.0, opt, loader, epochs=1, progress=False)


def test_an_optimizer_may_be_of_the_loss_alone():
    model, _, _, loader = make()

    class Scaled(nn.Module):
        def __init__(self):
            self.scale = nn.Parameter(1.0)

        def forward(self, out, target):
            return F.cross_entropy(out * self.scale, target)

    loss, before = Scaled(), bits(model[4])
    opt = wf.optim.SGD(loss.parameters(), lr=0.1)
    wf.fit(model, loss, opt, loader, epochs=1, progress=False)
    assert loss.scale.item() != 1.0 and bits(model[4]) == before


def test_curves_for_tensorboard(tmp_path):
    """One file a call; gone on from a checkpoint, the curves do too."""
    folder, path = tmp_path / "runs" / "first", tmp_path / "run.wf"
    for epochs in (1, 3):
        _, history = run(epochs, checkpoint=path, tensorboard=folder, scheduler_step="step")
    first, second = (list(events(p)) for p in sorted(folder.iterdir(), key=lambda p: p.name[-1]))
    found = {(tag, step): value for step, tag, value in first + second}
    assert len(found) == len(first) + len(second)
    assert {s for t, s in found if t == "step/loss"} == set(range(1, 16))
    losses = [found["epoch/loss", n] for n in (1, 2, 3)]
    np.testing.assert_allclose(losses, [h["loss"] for h in history], rtol=1e-6)
    mean = np.mean([found["step/loss", n] for n in range(1, 6)])
    assert losses[0] == pytest.approx(mean, rel=1e-6)
    assert found["step/rate", 1] == pytest.approx(0.02)
    assert found["epoch/rate", 3] < found["epoch/rate", 1]


def events(path):
    """(step, tag, value) of a file, by TensorBoard's layout."""
    data = path.read_bytes()
    while data:
        size = int.from_bytes(data[:8], "little")
        body, data = data[12 : 12 + size], data[16 + size :]
        fields = dict(fields_of(body))
        for value in (v for number, v in fields_of(fields.get(5, b"")) if number == 1):
            said = dict(fields_of(value))
            yield fields[2], said[1].decode(), struct.unpack("<f", said[2])[0]


def fields_of(data):
    """The fields of a message of protocol buffers: number and value."""
    at = 0

    def varint():
        nonlocal at
        n = shift = 0
        while True:
            byte = data[at]
            n, shift, at = n | (byte & 127) << shift, shift + 7, at + 1
            if byte < 128:
                return n

    while at < len(data):
        number, kind = divmod(varint(), 8)
        if kind == 0:
            yield number, varint()
            continue
        size = {1: 8, 5: 4}.get(kind) or varint()
        yield number, data[at : at + size]
        at += size


def test_a_schedule_of_one_cycle_goes_on_after_every_step():
    model, opt, _, loader = make()
    total = 2 * len(loader)
    cycle = wf.optim.OneCycleLR(opt, max_lr=0.1, total_steps=total + 1)
    wf.fit(model, F.cross_entropy, opt, loader, epochs=2, scheduler=cycle, progress=False)
    assert cycle.last_epoch == total
    cycle = wf.optim.OneCycleLR(opt, max_lr=0.1, total_steps=9)
    wf.fit(
        model, F.cross_entropy, opt, loader, epochs=2, scheduler=cycle, scheduler_step="epoch",
        progress=False,
    )  # fmt: skip
    assert cycle.last_epoch == 2
