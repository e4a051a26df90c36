"""Sequences of different lengths: few captures, and the bits that each would have alone."""

import numpy as np
import pytest

import weft as wf
import weft.nn.functional as F
from weft import nn
from weft.data import BucketSampler, DataLoader, pad_sequence
from weft.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

LENGTHS = (3, 17, 8, 64, 1, 33)
PADDED = 70  # beyond the longest


def sequences(width=6):
    rng = np.random.default_rng(0)
    return [wf.tensor(rng.normal(size=(n, width)).astype(np.float32)) for n in LENGTHS]


def same(a, b):
    return a.shape == b.shape and a.numpy().tobytes() == b.numpy().tobytes()


def recurrent(kind, **options):
    wf.manual_seed(0)
    return getattr(nn, kind)(6, 5, batch_first=True, bidirectional=True, **options)


def recurrent_outputs(net, rows, to=None):
    """Outputs (N, T, 10) of sequences, and their last states."""
    lengths = [len(r) for r in rows]
    packed = pack_padded_sequence(pad_sequence(rows, batch_first=True, to=to), lengths, True)
    out, state = net(packed)
    return pad_packed_sequence(out, batch_first=True)[0], state


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_recurrent_modules_give_the_bits_of_each_sequence_alone(kind, compiled):
    net, rows = recurrent(kind, num_layers=2), sequences()
    run = lambda *rows: recurrent_outputs(net, rows, PADDED)
    out, state = (wf.compile(run, fallback=False) if compiled else run)(*rows)
    assert out.shape == (len(rows), PADDED, 10)
    for i, row in enumerate(rows):
        alone, last = net(row.expand_dims(0))
        assert same(out[i, : len(row)], alone[0])
        assert not out[i, len(row) :].numpy().any()
        for all_, own in zip(*map(parts, (state, last)), strict=True):
            assert same(all_[:, i], own[:, 0])


def parts(state):
    return state if isinstance(state, tuple) else (state,)


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_gradients_do_not_see_the_padding(kind):
    """Of one sequence by itself and of it padded; what is padded may hold anything."""
    net, row = recurrent(kind), sequences()[1]
    grads = []
    for to in (None, PADDED):
        net.zero_grad()
        x = row.clone()
        x.requires_grad = True
        out, _ = recurrent_outputs(net, [x], to)
        (out[:, : len(row)] ** 2).sum().backward()
        grads.append([x.grad, *(p.grad for p in net.parameters())])
    assert all(same(a, b) for a, b in zip(*grads, strict=True))


class Reader(nn.Module):
    """An encoder that looks at no padding, and a mean over what is there."""

    def __init__(self, norm_first):
        wf.manual_seed(0)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                6, 2, 12, 0.0, "gelu", norm_first=norm_first, batch_first=True
            )
            for _ in range(2)
        )

    def forward(self, x, mask):  # (N, T, 6), (N, T)
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=~mask)
        return x, (x * mask.expand_dims(-1)).sum(axis=1) / mask.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("norm_first", [False, True])
def test_attention_gives_the_bits_of_each_sequence_alone(norm_first, compiled):
    net, rows = Reader(norm_first), sequences()
    run = wf.compile(net, fallback=False) if compiled else net
    x, mask = pad_sequence(rows, batch_first=True, to=PADDED, return_mask=True)
    out, mean = run(x, mask)
    for i, row in enumerate(rows):
        alone, own = net(row.expand_dims(0), wf.ones((1, len(row)), dtype=wf.bool))
        assert same(out[i, : len(row)], alone[0])
        assert same(mean[i], own[0])


class Classifier(nn.Module):
    def __init__(self):
        self.embed = nn.Embedding(9, 8)
        self.read = nn.RNN(8, 8, batch_first=True)
        self.head = nn.Linear(8, 2)

    def forward(self, ids, lengths):
        _, h = self.read(pack_padded_sequence(self.embed(ids), lengths, batch_first=True))
        return self.head(h[0])


def test_an_epoch_over_lengths_5_to_200_has_a_capture_a_bucket():
    rng = np.random.default_rng(0)
    data = [rng.integers(0, 9, n) for n in rng.permutation(np.arange(5, 201))]
    sampler = BucketSampler(data, batch_size=7, boundaries=[53, 102, 151, 200])

    def collate(batch):
        ids = pad_sequence(batch, batch_first=True, to=sampler.boundaries)
        lengths, labels = [len(s) for s in batch], [int(s[0] > 4) for s in batch]
        return ids, wf.tensor(lengths), wf.tensor(labels)

    model = Classifier()
    opt = wf.optim.Adam(model.parameters())

    def step(ids, lengths, labels):
        opt.zero_grad()
        loss = F.cross_entropy(model(ids, lengths), labels)
        loss.backward()
        opt.step()
        return loss

    run = wf.compile(step, fallback=False)
    shapes, seen = set(), 0
    for batch in DataLoader(data, batch_sampler=sampler, collate_fn=collate):
        run(*batch)
        shapes.add(batch[0].shape)
        seen += len(batch[0])
    assert len(shapes) == len(sampler.boundaries) == 4 and seen == len(data)
    assert run.captures <= len(sampler.boundaries) + 1


@pytest.mark.parametrize("order", ["shuffled", "full ones first", "full ones last"])
def test_smaller_last_batches_are_no_captures_of_their_own(order):
    """A program for each bucket, and one more at most, whatever comes first."""
    rng = np.random.default_rng(1)
    lengths = rng.permutation(np.repeat(np.arange(5, 25), 4))[:70]
    data = [rng.integers(0, 9, n) for n in lengths]
    sampler = BucketSampler(data, batch_size=8, boundaries=[9, 14, 19, 24])
    wf.manual_seed(2)
    batches = list(sampler)
    if order != "shuffled":
        batches.sort(key=len, reverse=order == "full ones first")
    model = Classifier()

    @wf.compile(fallback=False)
    def loss_of(ids, lengths, labels):
        return F.cross_entropy(model(ids, lengths), labels)

    shapes = set()
    for numbers in batches:
        rows = [data[i] for i in numbers]
        ids = pad_sequence(rows, batch_first=True, to=sampler.boundaries)
        lengths, labels = [len(r) for r in rows], [int(r[0] > 4) for r in rows]
        given = ids, wf.tensor(lengths), wf.tensor(labels)
        assert same(loss_of(*given), F.cross_entropy(model(*given[:2]), given[2]))
        shapes.add(ids.shape)
    assert len(shapes) > 5 and loss_of.captures <= 5
