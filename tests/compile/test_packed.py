"""Weights that are packed ahead: the bits of eager calls whatever becomes of the weights, and
memory only as long as somebody needs it.
"""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

import weft as wf
import weft.nn.functional as F
from tests.compile.lab import random, same
from weft import nn
from weft.runtime import packed as packing
from weft.runtime.start import engine

pytestmark = pytest.mark.usefixtures("two_threads")


@pytest.fixture
def two_threads():
    before = wf.get_num_threads()
    wf.set_num_threads(2)
    yield
    wf.set_num_threads(before)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(64, 64, 3, padding=1)
        self.fc = nn.Linear(64 * 49, 64)

    def forward(self, x):
        return self.fc(F.relu(self.conv(x)).reshape(x.shape[0], -1))


def made():
    net, x = Net().eval(), random(64, 64, 7, 7)
    return net, x, wf.compile(net)


def packed(compiled, x):
    with wf.no_grad():
        return compiled.explain(x).ahead


def put(p, value):
    with wf.no_grad():
        p.assign(value)


def check(compiled, net, x):
    with wf.no_grad():
        same(compiled(x), net(x))


def test_state_that_is_read_only_is_packed_once(monkeypatch):
    net, x, compiled = made()
    assert packed(compiled, x) >= net.conv.weight.nbytes
    copies = []
    monkeypatch.setattr(packing, "copy", lambda t, copy=packing.copy: copies.append(t) or copy(t))
    for _ in range(5):
        check(compiled, net, x)
    assert 1 <= len(copies) <= 2
    with wf.no_grad():
        said = compiled.explain(x)
    assert f"packed ahead: {said.ahead:,} bytes" in str(said)
    assert said.peak > said.ahead + said.arena


def test_new_values_are_packed_again():
    net, x, compiled = made()
    for k in range(12):
        for _ in range(1 + 5 * (k % 3)):
            check(compiled, net, x)
        put(net.conv.weight, net.conv.weight * 1.25)
        if k % 2:
            net.load_state_dict({n: v.detach() * 0.5 for n, v in net.state_dict().items()})
        net.fc.weight.data = random(64, 64 * 49).data
    check(compiled, net, x)


def test_a_new_buffer_at_an_old_address_is_not_taken_for_the_old_one():
    net, x, compiled = made()
    check(compiled, net, x)
    for k in range(20):  # the old buffer is gone before the new one is made
        put(net.conv.weight, wf.zeros((1,)).broadcast_to(net.conv.weight.shape))
        gc.collect()
        put(net.conv.weight, wf.full(net.conv.weight.shape, 0.1 * k))
        check(compiled, net, x)


def test_weights_of_another_layout():
    net, x, compiled = made()
    check(compiled, net, x)
    turned = random(3, 3, 64, 64)
    put(net.conv.weight, wf.permute_dims(turned, (2, 3, 0, 1)))
    assert not net.conv.weight.data.layout.is_dense
    for _ in range(3):
        check(compiled, net, x)


def test_memory_that_others_write_to_is_packed_in_every_call():
    net, x, compiled = made()
    array = np.random.default_rng(0).random((64, 64, 3, 3), np.float32)
    put(net.conv.weight, wf.asarray(array, copy=False))
    assert net.conv.weight.data.shared
    for k in range(3):
        array[:] = k + 1
        check(compiled, net, x)


def test_memory_that_was_lent_is_no_longer_packed_ahead():
    w = random(64, 64)
    assert not w.data.shared
    np.from_dlpack(w)
    assert w.data.shared


def test_weights_that_change_at_every_call_stop_being_packed_ahead(monkeypatch):
    net, x, compiled = made()
    copies = []
    monkeypatch.setattr(packing, "copy", lambda t, copy=packing.copy: copies.append(t) or copy(t))
    for _ in range(12):
        put(net.conv.weight, net.conv.weight + 0.01)
        put(net.fc.weight, net.fc.weight + 0.01)
        check(compiled, net, x)
    assert len(copies) < 12


def test_programs_of_one_state_share_what_they_packed():
    net, x, compiled = made()
    other = wf.compile(net)
    check(compiled, net, x)
    used = engine().memory_stats().used
    check(other, net, x)
    assert engine().memory_stats().used - used < net.conv.weight.nbytes // 2


def test_old_weights_are_not_kept():
    net, x, compiled = made()
    check(compiled, net, x)
    gc.collect()
    used = engine().memory_stats().used
    for _ in range(3):
        put(net.conv.weight, net.conv.weight + 0.01)
        put(net.fc.weight, net.fc.weight + 0.01)
    assert engine().memory_stats().used <= used  # of the old ones only what was packed
    check(compiled, net, x)
    gc.collect()
    assert engine().memory_stats().used <= used
    del net, compiled
    gc.collect()
    assert engine().memory_stats().used < used


def test_many_threads_see_whole_states():
    net, x, compiled = made()
    weights = [(random(64, 64, 3, 3), random(64, 64 * 49)) for _ in range(2)]
    wanted = []
    for conv, fc in weights:
        net.conv.weight.data, net.fc.weight.data = conv.data, fc.data
        with wf.no_grad():
            wanted.append(net(x).numpy())
    wrong, stop = [], threading.Event()

    def call():
        with wf.no_grad():
            while not stop.is_set():
                got = compiled(x).numpy()
                if not any(np.array_equal(got, w) for w in wanted):
                    wrong.append(got)

    def change(owners=(net.conv.weight, net.fc.weight)):
        for k in range(300):
            values = [w.data for w in weights[k % 2]]
            list(map(setattr, owners, ("data", "data"), values))  # both at once
        stop.set()

    threads = [threading.Thread(target=f) for f in (call, call, call, change)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
