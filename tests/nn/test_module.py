"""What a module is: names, state, modes, hooks, copies, and what it says about mistakes."""

import copy
import pickle

import numpy as np
import pytest
import torch

import weft as wf
from weft import nn
from weft.errors import DeviceError, DTypeError, IndexRangeError, ShapeError, StateError


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.blocks = nn.ModuleList([nn.Linear(4, 4), nn.BatchNorm1d(4)])
        self.scale = nn.Parameter(wf.ones(1))
        self.register_buffer("seen", wf.zeros(2))
        self.register_buffer("cache", wf.zeros(2), persistent=False)
        self.note = "not registered"

    def forward(self, x):
        x = self.first(x).relu()
        for block in self.blocks:
            x = block(x)
        return x * self.scale


class Forgetful(nn.Module):
    def __init__(self):
        self.layer = nn.Linear(2, 2)  # no super().__init__()

    def forward(self, x):
        return self.layer(x)


# names and state


def test_attributes_register():
    net = Net()
    assert [n for n, _ in net.named_parameters()] == [
        "scale", "first.weight", "first.bias", "blocks.0.weight", "blocks.0.bias",
        "blocks.1.weight", "blocks.1.bias",
    ]  # fmt: skip
    assert [n for n, _ in net.named_buffers()] == [
        "seen", "cache", "blocks.1.running_mean", "blocks.1.running_var",
        "blocks.1.num_batches_tracked",
    ]  # fmt: skip
    assert [n for n, _ in net.named_modules()] == ["", "first", "blocks", "blocks.0", "blocks.1"]
    assert list(net.children()) == [net.first, net.blocks]
    assert net.get_submodule("blocks.1") is net.blocks[1]
    assert net(wf.ones((2, 3))).shape == (2, 4)
    assert "cache" not in net.state_dict() and "seen" in net.state_dict()
    assert all(isinstance(p, nn.Parameter) and p.requires_grad for p in net.parameters())


def test_forgetting_the_base_constructor_does_no_harm():
    net = Forgetful()
    assert len(list(net.parameters())) == 2 and net(wf.ones((1, 2))).shape == (1, 2)


def test_attributes_can_be_changed_and_deleted():
    net = Net()
    net.first = nn.Linear(3, 4, bias=False)
    net.scale = None
    assert "scale" not in dict(net.named_parameters()) and net.first.bias is None
    net.scale = nn.Parameter(wf.ones(1))
    del net.first
    assert "first.weight" not in net.state_dict() and not hasattr(net, "first")
    net.seen = wf.ones(2)
    assert net.state_dict()["seen"].tolist() == [1, 1]
    net.note = nn.Parameter(wf.ones(1))
    assert "note" in dict(net.named_parameters())


def test_shared_parameters_count_once():
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    net[1].weight = net[0].weight
    net.append(net[0])
    assert len(list(net.parameters())) == 3
    assert len(list(net.named_parameters(remove_duplicate=False))) == 6
    assert len(net.state_dict()) == 6
    again = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2))
    again.load_state_dict(net.state_dict())


def test_a_state_is_a_snapshot():
    net = Net()
    before = net.state_dict()
    old = before["first.weight"].tolist()
    with wf.no_grad():
        net.first.weight.assign(wf.zeros((4, 3)))
    assert before["first.weight"].tolist() == old
    weight = net.first.weight
    net.load_state_dict(before)
    assert net.first.weight is weight and weight.tolist() == old and weight.is_leaf
    assert not before["first.weight"].requires_grad


def test_state_goes_to_pytorch_and_back():
    mine = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.LSTM(2, 3, 2))
    theirs = torch.nn.Sequential(
        torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.LSTM(2, 3, 2)
    )
    arrays = {k: torch.tensor(v.numpy().copy()) for k, v in mine.state_dict().items()}
    theirs.load_state_dict(arrays)
    other = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.LSTM(2, 3, 2))
    other.load_state_dict(dict(theirs.named_parameters()) | dict(theirs.named_buffers()))
    for a, b in zip(mine.state_dict().values(), other.state_dict().values(), strict=True):
        assert a.dtype is b.dtype and a.tolist() == b.tolist()
    half = torch.nn.Linear(2, 2).bfloat16()
    into = nn.Linear(2, 2)
    into.load_state_dict(half.state_dict())
    assert into.weight.dtype is wf.float32
    assert into.weight.tolist() == half.weight.float().tolist()
    held = torch.ones(2, 2)
    into.load_state_dict({"weight": held, "bias": np.zeros(2)})
    held.add_(1)
    assert into.weight.tolist() == [[1, 1], [1, 1]]


def test_states_that_do_not_fit_change_nothing():
    net = Net()
    state = net.state_dict()
    old = net.first.bias.tolist()
    state["first.bias"] = state["first.bias"] + 1
    del state["scale"]
    state["more"] = wf.ones(1)
    state["blocks.0.weight"] = wf.ones((4, 5))
    with pytest.raises(StateError) as caught:
        net.load_state_dict(state)
    said = str(caught.value)
    for part in (
        "load_state_dict of Net",
        "missing: scale",
        "unexpected: more",
        "blocks.0.weight is (4, 5), expected (4, 4)",
    ):
        assert part in said
    assert net.first.bias.tolist() == old and isinstance(caught.value, RuntimeError)
    with pytest.raises(StateError, match="of other shapes"):
        net.load_state_dict(state, strict=False)
    del state["blocks.0.weight"]
    loaded = net.load_state_dict(state, strict=False)
    assert loaded.missing_keys == ["scale", "blocks.0.weight"]
    assert loaded.unexpected_keys == ["more"] and net.first.bias.tolist() != old
    with pytest.raises(StateError, match="strict=False"):
        net.load_state_dict({})
    with pytest.raises(StateError, match="and 3 more"):
        net.load_state_dict({f"x{i}": 1 for i in range(11)})
    with pytest.raises(DTypeError, match="a dict"):
        net.load_state_dict([1])
    with pytest.raises(StateError, match="str"):
        nn.Linear(1, 1).load_state_dict({"weight": "text", "bias": wf.ones(1)})


# modes, dtypes, hooks


def test_modes_reach_everything_inside():
    net = Net()
    assert net.training and net.blocks[1].training
    assert net.eval() is net and not net.blocks[1].training
    net.train()
    assert net.blocks[1].training
    with pytest.raises(DTypeError):
        net.train("yes")


def test_batch_norm_counts_and_moves_only_in_training():
    norm = nn.BatchNorm1d(2)
    cell = norm.running_mean
    norm(wf.ones((4, 2)) * 3)
    assert int(norm.num_batches_tracked) == 1 and norm.running_mean is cell
    np.testing.assert_allclose(cell.numpy(), 0.3, rtol=1e-6)
    norm.eval()(wf.ones((4, 2)))
    assert int(norm.num_batches_tracked) == 1
    norm.reset_running_stats()
    assert cell.tolist() == [0, 0] and int(norm.num_batches_tracked) == 0


def test_dtypes_change_in_place():
    net = Net()
    weight = net.first.weight
    opt = wf.optim.SGD(net.parameters())
    (net(wf.ones((2, 3))) ** 2).sum().backward()
    net.double()
    assert net.first.weight is weight and weight.dtype is wf.float64
    assert weight.grad.dtype is wf.float64 and weight.is_leaf and weight.requires_grad
    assert net.blocks[1].num_batches_tracked.dtype is wf.int64
    assert net.seen.dtype is wf.float64
    opt.step()
    assert net.to(wf.bfloat16).scale.dtype is wf.bfloat16
    assert net.to("cpu").float().half().scale.dtype is wf.float16
    assert net.to("float64").scale.dtype is wf.float64
    with pytest.raises(DeviceError):
        net.to("cuda")
    with pytest.raises(DTypeError):
        net.to(wf.int32)


def test_gradients_can_be_switched_off_and_forgotten():
    net = Net()
    net.first.requires_grad_(False)
    net(wf.ones((2, 3))).sum().backward()
    assert net.first.weight.grad is None and net.scale.grad is not None
    net.zero_grad(set_to_none=False)
    assert net.scale.grad.tolist() == [0.0]
    net.zero_grad()
    assert net.scale.grad is None


def test_hooks():
    net, said = nn.Linear(2, 2), []
    before = net.register_forward_pre_hook(lambda m, args: said.append("before"))
    after = net.register_forward_hook(lambda m, args, out: out * 0)
    x = wf.ones((1, 2))
    assert not net(x).numpy().any() and said == ["before"]
    before.remove()
    after.remove()
    after.remove()
    assert net(x).numpy().any() and said == ["before"]
    with net.register_forward_pre_hook(lambda m, args: args[0] * 0):
        assert net(x).tolist() == [net.bias.tolist()]
    with pytest.raises(DTypeError):
        net.register_forward_hook(3)


def test_apply_goes_through_all():
    seen = []
    Net().apply(lambda m: seen.append(type(m).__name__))
    assert seen == ["Linear", "Linear", "BatchNorm1d", "ModuleList", "Net"]


def test_copies_are_independent():
    net = Net()
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert isinstance(other.first.weight, nn.Parameter)
        assert other.first.weight is dict(other.named_parameters())["first.weight"]
        for (n, a), (m, b) in zip(net._cells(), other._cells(), strict=True):
            assert n == m and a is not b and a.tolist() == b.tolist()
        with wf.no_grad():
            other.first.weight.assign(wf.zeros((4, 3)))
        assert net.first.weight.numpy().any()
    net.scale.requires_grad = False
    assert not copy.deepcopy(net).scale.requires_grad
    assert isinstance(copy.copy(net.scale), nn.Parameter)


def test_display():
    assert repr(nn.Sequential(nn.Linear(1, 2, bias=False), nn.Sequential(nn.ReLU()))) == (
        "Sequential(\n"
        "  (0): Linear(in_features=1, out_features=2, bias=False)\n"
        "  (1): Sequential(\n"
        "    (0): ReLU()\n"
        "  )\n"
        ")"
    )
    assert repr(nn.Parameter([1.0])) == "Parameter([1.])"
    layers = nn.ModuleList([nn.Linear(1, 1), *(nn.Sequential(nn.Tanh()) for _ in range(3))])
    assert repr(layers) == (
        "ModuleList(\n"
        "  (0): Linear(in_features=1, out_features=1, bias=True)\n"
        "  (1-3): 3 x Sequential(\n"
        "    (0): Tanh()\n"
        "  )\n"
        ")"
    )
    assert repr(nn.ModuleList()) == "ModuleList()"


@pytest.mark.parametrize(
    "make",
    [
        lambda nn: nn.ConvTranspose2d(3, 4, 3, stride=2, output_padding=1),
        lambda nn: nn.Conv2d(3, 4, 3, padding="same", dilation=2, groups=1, padding_mode="reflect"),
        lambda nn: nn.BatchNorm2d(3, affine=False),
        lambda nn: nn.LayerNorm(3, bias=False),
        lambda nn: nn.GroupNorm(1, 3),
        lambda nn: nn.InstanceNorm1d(3),
        lambda nn: nn.MaxPool2d(2, ceil_mode=True),
        lambda nn: nn.PReLU(),
        lambda nn: nn.Bilinear(1, 2, 3),
        lambda nn: nn.Unflatten(1, (2, 3)),
        lambda nn: nn.Upsample(scale_factor=2.0),
        lambda nn: nn.PixelShuffle(2),
        lambda nn: nn.LSTM(3, 4, 2, dropout=0.1),
    ],
)
def test_layers_say_what_pytorchs_say(make):
    assert repr(make(nn)) == repr(make(torch.nn))


# containers


def test_lists_of_modules():
    layers = nn.ModuleList(nn.Linear(1, i + 1) for i in range(4))
    assert len(layers) == 4 and layers[-1].out_features == 4
    assert [m.out_features for m in layers[1:3]] == [2, 3]
    del layers[1]
    layers.insert(0, nn.Linear(1, 9))
    assert [m.out_features for m in layers] == [9, 1, 3, 4]
    layers[0] = nn.ReLU()
    assert next(iter(layers.state_dict())) == "1.weight"
    layers.extend([nn.Tanh()]).append(nn.Tanh())
    assert len(layers) == 6
    with pytest.raises(IndexRangeError):
        layers[6]


def test_dicts_of_modules():
    heads = nn.ModuleDict({"a": nn.Linear(1, 2)})
    heads["b"] = nn.ReLU()
    assert list(heads) == ["a", "b"] and "a" in heads and len(heads) == 2
    assert list(heads.state_dict()) == ["a.weight", "a.bias"]
    del heads["a"]
    assert list(heads.keys()) == ["b"] and len(list(heads.items())) == len(list(heads.values()))
    with pytest.raises(ShapeError, match="free"):
        heads["update"] = nn.ReLU()


class Weighted(nn.Module):
    def __init__(self):
        self.steps = nn.ParameterList([wf.ones(2), nn.Parameter(wf.ones(2))])
        self.ends = nn.ParameterDict({"a": wf.ones(2)})

    def forward(self, x):
        for p in self.steps:
            x = x * 2 + p
        return x * self.steps[-1] + self.ends["a"] * len(self.steps)


def test_lists_and_dicts_of_parameters():
    net = Weighted()
    assert list(net.state_dict()) == ["steps.0", "steps.1", "ends.a"]
    theirs = torch.nn.ParameterList([torch.ones(2), torch.ones(2)])
    net.steps.load_state_dict(theirs.state_dict())
    assert "a" in net.ends and list(net.ends.keys()) == ["a"] == list(net.ends)
    assert len(net.steps[1:]) == 1 and repr(net.ends) == "ParameterDict(\n  (a): f32[2]\n)"
    assert len(copy.deepcopy(net.steps)) == len(pickle.loads(pickle.dumps(net.steps))) == 2
    run, x = wf.compile(net, fallback=False), wf.ones(2)

    def change(n):
        assert run(x).tolist() == net(x).tolist() and run.captures == n

    change(1)
    net.steps.append(wf.zeros(2))
    change(2)
    net.steps[0] = wf.full((2,), 5.0)
    change(3)
    net.ends["a"] = wf.zeros(2)
    change(4)
    del net.ends["a"]
    with pytest.raises(KeyError):
        run(x)
    with pytest.raises(IndexRangeError):
        net.steps[3]


def test_sequential_by_name():
    net = nn.Sequential({"in": nn.Linear(2, 3), "out": nn.Linear(3, 1)})
    assert next(iter(net.state_dict())) == "in.weight" and net[0].out_features == 3
    tail = net[1:]
    assert isinstance(tail, nn.Sequential) and list(tail.state_dict()) == ["out.weight", "out.bias"]
    rest = nn.Sequential(nn.ReLU(), nn.Linear(1, 2))[1:].append(nn.Linear(2, 1))
    assert list(rest.state_dict()) == ["1.weight", "1.bias", "2.weight", "2.bias"]
    with pytest.raises(DTypeError, match="wrap a function"):
        nn.Sequential(len)


# mistakes


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: nn.Linear(2.5, 1), ShapeError, "in_features"),
        (lambda: nn.Linear(-2, 1), ShapeError, "0 or more"),
        (lambda: nn.Linear(2, 1, bias=3), DTypeError, "bias"),
        (lambda: nn.Linear(2, 1)(wf.ones(3)), ShapeError, "linear"),
        (lambda: nn.Conv2d(3, 4, 3, groups=2), ShapeError, "groups divide"),
        (lambda: nn.Conv2d(3, 4, 3, padding="some"), ShapeError, "valid"),
        (lambda: nn.Conv2d(3, 4, 3, 2, padding="same"), ShapeError, "stride 1"),
        (lambda: nn.Conv2d(3, 4, 3, padding_mode="no"), ShapeError, "zeros"),
        (lambda: nn.ConvTranspose2d(3, 4, 3, padding="same"), ShapeError, "numbers"),
        (lambda: nn.BatchNorm2d(3)(wf.ones((2, 3))), ShapeError, "4 axes"),
        (lambda: nn.BatchNorm1d(3, momentum=2.0), ShapeError, "momentum"),
        (lambda: nn.GroupNorm(2, 3), ShapeError, "groups divide"),
        (lambda: nn.Embedding(3, 2, padding_idx=3), IndexRangeError, "padding_idx"),
        (lambda: nn.Embedding(3, 2)(wf.tensor([3])), IndexRangeError, "embedding"),
        (lambda: nn.Dropout(1.5), ShapeError, "probability"),
        (lambda: nn.LSTM(3, 0), ShapeError, "hidden_size"),
        (lambda: nn.LSTM(3, 2)(wf.ones((4, 2, 5))), ShapeError, r"\(L, N, 3\)"),
        (lambda: nn.LSTM(3, 2)(wf.ones((4, 2, 3)), wf.ones((1, 2, 2))), DTypeError, "pair"),
        (lambda: nn.GRU(3, 2)(wf.ones((4, 2, 3)), wf.ones((1, 2, 3))), ShapeError, "states"),
        (lambda: nn.RNN(3, 2, nonlinearity="sin"), ShapeError, "tanh"),
        (lambda: nn.MultiheadAttention(5, 2), ShapeError, "heads divide"),
        (lambda: nn.MultiheadAttention(4, 2)(*[wf.ones((2, 3, 5))] * 3), ShapeError, "features"),
        (
            lambda: nn.MultiheadAttention(4, 2)(
                *[wf.ones((2, 3, 4))] * 3, attn_mask=wf.ones((3, 3))
            ),
            ShapeError,
            "attn_mask",
        ),
        (lambda: nn.TransformerEncoderLayer(4, 2, activation="sin"), DTypeError, "gelu"),
        (lambda: nn.TransformerEncoder(3, 2), DTypeError, "layer"),
        (lambda: nn.CrossEntropyLoss(reduction="max"), ShapeError, "mean"),
        (lambda: nn.Module()(1), NotImplementedError, "forward"),
        (lambda: nn.Module().register_buffer("a.b", wf.ones(1)), ShapeError, "without dots"),
        (lambda: nn.Module().register_buffer("x", 3), DTypeError, "a tensor or None"),
        (lambda: setattr(nn.Linear(1, 1), "weight", wf.ones(1)), DTypeError, "assign"),
        (lambda: setattr(nn.Sequential(nn.ReLU()), "0", 3), DTypeError, "a module"),
        (lambda: Net().get_submodule("blocks.7"), StateError, "'7'"),
    ],
)
def test_mistakes_are_named(make, error, match):
    with pytest.raises(error, match=match):
        make()


# first values


def test_initialisers():
    wf.manual_seed(0)
    init, x = nn.init, wf.zeros((200, 300))
    assert init.constant_(x, 3.0) is x and (x.numpy() == 3).all()
    assert (init.eye_(wf.zeros((2, 3))).numpy() == np.eye(2, 3)).all()
    a = init.uniform_(x, -1.0, 2.0).numpy()
    assert -1 <= a.min() < -0.99 and 1.99 < a.max() < 2
    a = init.trunc_normal_(x, std=2.0).numpy()
    assert np.abs(a).max() <= 2.0 and 1.0 < a.std() < 1.2
    for f, std in [
        (init.xavier_uniform_, np.sqrt(2 / 500)),
        (init.xavier_normal_, np.sqrt(2 / 500)),
        (lambda t: init.kaiming_normal_(t, nonlinearity="relu"), np.sqrt(2 / 300)),
        (lambda t: init.kaiming_uniform_(t, mode="fan_out"), np.sqrt(2 / 200)),
        (lambda t: init.normal_(t, 5.0, 0.5), 0.5),
    ]:
        np.testing.assert_allclose(f(x).numpy().std(), std, rtol=0.02)
    for shape in ((4, 6), (6, 4), (4, 2, 3)):
        q = init.orthogonal_(wf.zeros(shape), gain=2.0).numpy().reshape(shape[0], -1)
        square = q @ q.T if q.shape[0] <= q.shape[1] else q.T @ q
        np.testing.assert_allclose(square, 4 * np.eye(len(square)), atol=1e-5)
    assert (init.sparse_(wf.ones((10, 5)), 0.3).numpy() == 0).sum(0).tolist() == [3] * 5
    kept = init.dirac_(wf.zeros((4, 4, 3)))
    y = nn.functional.conv1d(wf.ones((1, 4, 5)), kept, padding=1)
    assert (y.numpy() == 1).all()
    p = nn.Linear(2, 2).weight
    assert init.zeros_(p) is p and p.requires_grad and p.is_leaf
    for bad in (
        lambda: init.kaiming_normal_(wf.zeros(3)),
        lambda: init.kaiming_normal_(wf.zeros((3, 3)), mode="fan"),
        lambda: init.calculate_gain("sine"),
        lambda: init.eye_(wf.zeros(3)),
        lambda: init.orthogonal_(wf.zeros(3)),
    ):
        with pytest.raises(ShapeError):
            bad()
