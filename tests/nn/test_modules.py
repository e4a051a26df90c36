"""Modules agree with PyTorch's of the same name: parameters, outputs, gradients, training."""

import itertools

import numpy as np
import pytest
import torch
from nn.module_cases import LAYERS, STATELESS

import weft as wf
import weft.nn.functional as F


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def as_tree(x):
    """Arrays of nested results, in order; None is left out."""
    if isinstance(x, tuple | list):
        return [a for y in x for a in as_tree(y)]
    return [] if x is None else [x]


def given(make, x):
    return tuple(given(make, y) for y in x) if isinstance(x, tuple) else make(x)


def mine_of(x):
    return wf.tensor(x) if isinstance(x, np.ndarray) else x


def theirs_of(x):
    return torch.tensor(x) if isinstance(x, np.ndarray) else x


def pair(case):
    """Both modules, with one state."""
    theirs = getattr(torch.nn, case.name)(*case.args, **case.kwargs)
    for p in theirs.parameters():  # PyTorch's first values are often 0 or 1
        torch.nn.init.normal_(p, std=0.5)
    mine = getattr(wf.nn, case.name)(*case.args, **case.kwargs)
    state = theirs.state_dict()
    mine.load_state_dict(state)
    assert {k: v.shape for k, v in mine.state_dict().items()} == {
        k: tuple(v.shape) for k, v in state.items()
    }
    return mine, theirs


def outputs(case, mine, theirs):
    a = mine(
        *given(mine_of, case.inputs),
        **{k: mine_of(v) for k, v in case.called.items()},
    )
    b = theirs(
        *given(theirs_of, case.inputs),
        **{k: theirs_of(v) for k, v in case.called.items()},
    )
    return as_tree(a), as_tree(b)


def close(a, b, rtol=2e-5, atol=2e-5):
    b = b.detach().numpy()
    assert a.shape == b.shape and a.numpy().dtype == b.dtype
    np.testing.assert_allclose(a.numpy(), b, rtol, atol)


def loss_of(outs):
    return sum((o * o).mean() for o in outs if "float" in str(o.dtype))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", LAYERS + STATELESS, ids=str)
def test_output_agrees_with_pytorch(case):
    mine, theirs = pair(case)
    for a, b in zip(*outputs(case, mine, theirs), strict=True):
        close(a, b)
    mine.eval()
    theirs.eval()
    for a, b in zip(*outputs(case, mine, theirs), strict=True):
        close(a, b)
    for name, b in theirs.state_dict().items():
        close(mine.state_dict()[name], b)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", LAYERS, ids=str)
def test_twenty_steps_of_training_agree_with_pytorch(case):
    mine, theirs = pair(case)
    if not list(mine.parameters()):
        return
    opt = wf.optim.SGD(mine.parameters(), lr=0.02, momentum=0.5)
    torch_opt = torch.optim.SGD(theirs.parameters(), lr=0.02, momentum=0.5)
    for step in range(20):
        ours, others = outputs(case, mine, theirs)
        opt.zero_grad()
        torch_opt.zero_grad()
        loss, other = loss_of(ours), loss_of(others)
        loss.backward()
        other.backward()
        if step == 0:
            for (name, p), q in zip(mine.named_parameters(), theirs.parameters(), strict=True):
                assert (p.grad is None) == (q.grad is None), name
                if q.grad is not None:
                    close(p.grad, q.grad, 1e-4, 2e-5)
        opt.step()
        torch_opt.step()
    np.testing.assert_allclose(loss.item(), other.item(), 1e-4, 1e-5)
    for name, b in theirs.state_dict().items():
        close(mine.state_dict()[name], b, 1e-3, 2e-4)


def test_first_values_are_of_pytorchs_families():
    """Mean and spread of every parameter that PyTorch draws at random."""
    wf.manual_seed(0)
    torch.manual_seed(0)
    makers = [
        lambda nn: nn.Linear(300, 200),
        lambda nn: nn.Conv2d(32, 64, 5),
        lambda nn: nn.ConvTranspose2d(64, 32, 5),
        lambda nn: nn.Embedding(500, 100),
        lambda nn: nn.LSTM(100, 80),
        lambda nn: nn.GRUCell(100, 80),
        lambda nn: nn.MultiheadAttention(160, 2),
        lambda nn: nn.Bilinear(30, 20, 50),
    ]
    for make in makers:
        mine, theirs = make(wf.nn), make(torch.nn)
        for (name, p), q in zip(mine.named_parameters(), theirs.parameters(), strict=True):
            a, b = p.numpy(), q.detach().numpy()
            noise = 6 * b.std() / np.sqrt(b.size) + 1e-9
            assert abs(a.mean() - b.mean()) < 2 * noise, name
            assert abs(a.std() - b.std()) < 2 * noise, name
            assert np.abs(a).max() == pytest.approx(np.abs(b).max(), rel=0.3), name


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_packed_sequences_agree_with_pytorch(kind, batch_first):
    from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

    from weft.nn.utils import rnn

    theirs = getattr(torch.nn, kind)(4, 6, bidirectional=True, batch_first=batch_first)
    mine = getattr(wf.nn, kind)(4, 6, bidirectional=True, batch_first=batch_first)
    mine.load_state_dict(theirs.state_dict())
    shape = (3, 5, 4) if batch_first else (5, 3, 4)
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    lengths = [2, 5, 3]
    packed = rnn.pack_padded_sequence(wf.tensor(x), lengths, batch_first)
    out, state = mine(packed)
    padded, sizes = rnn.pad_packed_sequence(out, batch_first, -1.0)
    other = pack_padded_sequence(torch.tensor(x), lengths, batch_first, enforce_sorted=False)
    other_out, other_state = theirs(other)
    close(padded, pad_packed_sequence(other_out, batch_first, -1.0)[0])
    for a, b in zip(as_tree(state), as_tree(other_state), strict=True):
        close(a, b)
    assert sizes.tolist() == lengths
    (padded * padded).sum().backward()
    loss = (pad_packed_sequence(other_out, batch_first, -1.0)[0] ** 2).sum()
    loss.backward()
    for p, q in zip(mine.parameters(), theirs.parameters(), strict=True):
        close(p.grad, q.grad, 1e-4, 1e-4)


def test_padding_and_unpadding_as_pytorch():
    from torch.nn.utils import rnn as theirs

    from weft.nn.utils import rnn

    x = np.arange(24, dtype=np.float32).reshape(4, 3, 2)
    lengths = [2, 4, 1]
    packed = rnn.pack_padded_sequence(wf.tensor(x), lengths, enforce_sorted=False)
    other = theirs.pack_padded_sequence(torch.tensor(x), lengths, enforce_sorted=False)
    for first in (False, True):
        got, _ = rnn.pad_packed_sequence(packed, first, -1.0, total_length=6)
        close(got, theirs.pad_packed_sequence(other, first, -1.0, total_length=6)[0])
        back = rnn.unpad_sequence(got, lengths, first)
        assert [r.tolist() for r in back] == [x[:n, i].tolist() for i, n in enumerate(lengths)]
    with pytest.raises(wf.errors.ShapeError, match="total_length of 4 or more, got 3"):
        rnn.pad_packed_sequence(packed, total_length=3)
    with pytest.raises(wf.errors.ShapeError, match="3 lengths of at most 4"):
        rnn.unpad_sequence(wf.tensor(x), [1, 2])


@pytest.mark.parametrize("kwargs", [{"scale_factor": 2}, {"size": 7, "mode": "bilinear"}])
def test_resizing_in_programs_of_any_size(kwargs):
    run = wf.compile(lambda x: F.interpolate(x, **kwargs), fallback=False)
    for n in (3, 4, 5, 6):
        x = wf.randn(2, 3, n, n)
        assert run(x).numpy().tobytes() == F.interpolate(x, **kwargs).numpy().tobytes()
    assert run.captures == 2


def test_stacked_transformers_agree_with_pytorch():
    def make(nn):
        encoder = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)
        decoder = nn.TransformerDecoderLayer(8, 2, 16, 0.0, batch_first=True)
        return (
            nn.TransformerEncoder(encoder, 2, nn.LayerNorm(8)),
            nn.TransformerDecoder(decoder, 2),
        )

    (encoder, decoder), (their_encoder, their_decoder) = make(wf.nn), make(torch.nn)
    encoder.load_state_dict(their_encoder.state_dict())
    decoder.load_state_dict(their_decoder.state_dict())
    x, y = (np.random.default_rng(i).normal(size=(2, 5, 8)).astype("f4") for i in range(2))
    mask = np.triu(np.ones((5, 5), bool), 1)
    got = decoder(wf.tensor(y), encoder(wf.tensor(x)), tgt_mask=wf.tensor(mask))
    want = their_decoder(
        torch.tensor(y), their_encoder(torch.tensor(x)), tgt_mask=torch.tensor(mask)
    )
    close(got, want, 1e-4, 1e-5)


def test_causal_attention_is_the_mask_above_the_diagonal():
    attend = wf.nn.MultiheadAttention(4, 2, batch_first=True)
    x, mask = wf.randn(2, 5, 4), wf.triu(wf.ones((5, 5)), k=1) > 0
    want, weights = attend(x, x, x, attn_mask=mask)
    for need in (True, False):
        got, seen = attend(x, x, x, need_weights=need, is_causal=True)
        np.testing.assert_allclose(got.numpy(), want.numpy(), 1e-5, 1e-6)
        assert (seen is None) != need
    assert not weights.numpy()[:, 0, 1:].any()


@pytest.mark.parametrize("compiled", [False, True])
def test_a_cache_gives_what_causal_attention_gives(compiled):
    attend = wf.nn.MultiheadAttention(8, 2, batch_first=True)
    x = wf.randn(3, 7, 8)
    want, _ = attend(x, x, x, need_weights=False, is_causal=True)
    cache = wf.nn.KeyValueCache(3, 2, 10, 4)

    def step(x):
        return attend(x, x, x, need_weights=False, cache=cache)[0]

    with wf.no_grad():
        run = wf.compile(step, fallback=False) if compiled else step
        for _ in range(2):
            cache.reset()
            outs = [step(x[:, :3])] + [run(x[:, i : i + 1]) for i in range(3, 7)]
            got = np.concatenate([o.numpy() for o in outs], 1)
            np.testing.assert_allclose(got, want.numpy(), 1e-5, 1e-6)
        assert int(cache.size) == 7 and (not compiled or run.captures == 1)
        with pytest.raises(IndexError):
            step(x[:, :4])
    with pytest.raises(wf.errors.ShapeError, match="causal"):
        attend(x, x, x, attn_mask=wf.zeros((7, 10)), cache=wf.nn.KeyValueCache(3, 2, 10, 4))


def test_dropout_only_in_training():
    wf.manual_seed(0)
    drop = wf.nn.Dropout(0.5)
    x = wf.ones((100, 100))
    kept = drop(x).numpy()
    assert set(np.unique(kept)) == {0.0, 2.0} and 0.45 < (kept > 0).mean() < 0.55
    assert (drop.eval()(x).numpy() == 1).all()
    channels = wf.nn.Dropout2d(0.5)(wf.ones((8, 16, 3, 3))).numpy().reshape(128, 9)
    assert all(len(set(row)) == 1 for row in channels)


@pytest.mark.parametrize(
    "name",
    ["ReLU", "ReLU6", "LeakyReLU", "ELU", "CELU", "SELU", "SiLU", "Mish", "Hardswish",
     "Hardsigmoid", "Hardtanh"],
)  # fmt: skip
def test_nothing_is_changed_in_place(name):
    """`inplace` is taken where PyTorch takes it, and the result is the same."""
    x = wf.tensor([-1.0, 0.5, 2.0])
    function = getattr(F, {"LeakyReLU": "leaky_relu"}.get(name, name.lower()))
    want = getattr(torch.nn, name)()(torch.tensor(x.tolist()))
    close(getattr(wf.nn, name)(inplace=True)(x), want)
    close(function(x, inplace=True), want)
    assert x.tolist() == [-1.0, 0.5, 2.0]


def test_a_small_classifier_learns():
    """Two spirals, which no line divides."""
    wf.manual_seed(3)
    t = np.linspace(0.3, 3, 100)
    angles = np.concatenate([3 * t, 3 * t + np.pi])
    radii = np.concatenate([t, t])
    x = wf.tensor(np.stack([radii * np.cos(angles), radii * np.sin(angles)], 1).astype(np.float32))
    y = wf.tensor(np.repeat([0, 1], 100))
    net = wf.nn.Sequential(
        wf.nn.Linear(2, 32), wf.nn.Tanh(), wf.nn.Linear(32, 32), wf.nn.Tanh(), wf.nn.Linear(32, 2)
    )
    opt = wf.optim.AdamW(net.parameters(), lr=1e-2)
    for step in itertools.count():
        loss = wf.nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if loss.item() < 0.02 or step == 1500:
            break
    accuracy = (net(x).argmax(axis=1) == y).astype(wf.float32).mean().item()
    assert accuracy > 0.99


def test_options_of_pytorchs_that_change_nothing_here():
    layer = wf.nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True, norm_first=True)
    usual = wf.nn.TransformerEncoder(layer, 2)
    given = wf.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False, mask_check=False)
    given.load_state_dict(usual.state_dict())
    x = wf.randn(2, 3, 8)
    assert (usual(x) == given(x)).all()
    with pytest.raises(wf.errors.DTypeError, match="enable_nested_tensor"):
        wf.nn.TransformerEncoder(layer, 2, enable_nested_tensor="no")
