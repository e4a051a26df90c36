"""Lists that grow in loops: one program for every length, with eager's bits and gradients."""

import pytest
from control_lab import bits, slopes

import weft as wf
from weft import nn
from weft.errors import CaptureError, CaptureWarning


def outputs(x, w, b):
    h, out = x[0] * 0, []
    for t in range(x.shape[0]):
        h = (x[t] @ w + h * b + h.sin() * h).tanh()
        out.append(h)
    return wf.stack(out)


def other_values(x, w, b):
    h, out = x[0] * 0, []
    for row in x:
        h = (row @ w + h * b + h.sin() * h).tanh()
        y = h @ w
        out.append(y)
        b = b + y.mean()
    return wf.stack(out, axis=1) * b


def several(x, w, b):
    h, out, states = x[0] * 0, [], []
    c = h + b
    for t, row in enumerate(x):
        out.append(h)
        h = (row @ w + h * b + c.sin() * h).tanh()
        c = c * h + t
        out.append(h)
        states.append(c)
    whole = wf.concat(out, axis=0).sum() * h + wf.stack(states).sum(axis=0)
    return whole + out[-1] * out[0] + len(out) + states[2]


def two_layers(x, w, b):
    out, more = [], []
    h = z = x[0] * 0
    for row in x:
        h = (row @ w + h * b).tanh()
        out.append(h)
    for o in out:
        z = (o @ w + z * b * z).tanh()
        more.append(z * o)
    return wf.stack(more), out


def nested(x, w, b):
    out = []
    for row in x:
        parts, h = [], row
        for r in x:
            h = h + r * b
            parts.append(h)
        out.append(wf.stack(parts).mean(axis=0))
        out.extend(parts)
    return wf.stack(out).sum(axis=0) + sum(out)


def returned(x, w, b):
    out = [x[0]]
    for i in range(1, x.shape[0], 2):
        out = out + [x[i] @ w + out[0] * b]  # noqa: RUF005
    last = out.pop()
    return [o * 2 for o in out], last


def of_numbers(x, w, b):
    rows, numbers = [], []
    for i in range(x.shape[0]):
        rows.append(x[i] * b)
        numbers.append(i * 2)
    return wf.stack(rows) * numbers[1] + len(numbers)


def in_two_lists(x, w, b):
    h, one, other = x[0] * 0, [], []
    for row in x:
        h = (row @ w + h * b + h.sin() * h).tanh()
        one.append(h)
        other.append(h)
        other.append(row)
    return wf.stack(one) * 3, wf.stack(other), h * b


def backwards(x, w, b):
    out = []
    for i, (row, other) in enumerate(zip(reversed(x), x, strict=True)):
        out.append(row * i + other @ w)
    return wf.concat([o * b for o in out], axis=1)


PROGRAMS = [
    outputs,
    other_values,
    several,
    two_layers,
    nested,
    returned,
    of_numbers,
    backwards,
    in_two_lists,
]
LENGTHS = (3, 5, 20, 4, 7)


def given(f, length):
    wf.manual_seed(length)
    n = max(length, 3) if f is several else length
    return wf.rand((n, 2, 4)) - 0.5, wf.rand((4, 4)) - 0.5, wf.rand((4,))


@pytest.mark.parametrize("f", PROGRAMS)
def test_one_program_serves_every_length(f):
    compiled = wf.compile(f, fallback=False)
    for length in LENGTHS:
        args = given(f, length)
        assert bits(compiled(*args)) == bits(f(*args))
    assert compiled.captures <= 2


@pytest.mark.parametrize("f", PROGRAMS)
def test_gradients_inside_have_eager_bits(f):
    gradient = slopes(f, [0, 1, 2])
    compiled = wf.compile(gradient, fallback=False)
    for length in (3, 5, 20):
        args = given(f, length)
        assert bits(compiled(*args), False) == bits(gradient(*args), False)
    assert compiled.captures <= 2 or f in (two_layers, returned)  # `slopes` takes lists apart


@pytest.mark.parametrize("f", PROGRAMS)
def test_gradients_outside_have_eager_bits(f):
    gradient = slopes(f, [0, 1, 2])
    compiled = slopes(wf.compile(f, fallback=False), [0, 1, 2])
    for length in (4, 5):
        args = given(f, length)
        assert bits(compiled(*args), False) == bits(gradient(*args), False)


class Decoder(nn.Module):
    """Takes its own last token for the next, until it says the last one or has said enough."""

    def __init__(self, tokens=7, width=8):
        super().__init__()
        self.embedding = nn.Embedding(tokens, width)
        self.cell = nn.GRUCell(width, width)
        self.out = nn.Linear(width, tokens)

    def forward(self, h, most):
        token = wf.zeros((h.shape[0],), dtype=wf.int64)
        said, scores = [], []
        for _ in range(most):
            h = self.cell(self.embedding(token), h)
            score = self.out(h)
            token = score.argmax(axis=-1)
            said.append(token)
            scores.append(score)
            if (token == 5).all():
                break
        return wf.stack(said, axis=1), wf.concat(scores)


def test_a_greedy_decoder_that_stops_early():
    wf.manual_seed(1)
    model = Decoder()
    compiled = wf.compile(model.forward, fallback=False)
    lengths = set()
    for seed in range(6):
        wf.manual_seed(seed)
        h = wf.randn((1, 8)) * 2
        want = model(h, 40)
        assert bits(compiled(h, 40)) == bits(want)
        lengths.add(want[0].shape[1])
    assert len(lengths) > 2  # or it proves little
    assert compiled.captures == 1


def test_a_decoder_is_trained_on_what_it_says():
    def step(h):
        said, scores = model(h, 12)
        loss = wf.nn.functional.cross_entropy(scores, (said[0] + 1) % 7)
        loss.backward()
        found = [p.grad for p in model.parameters()]
        model.zero_grad()
        return loss, found

    wf.manual_seed(1)
    model = Decoder()
    compiled = wf.compile(step, fallback=False)
    for seed in range(3):
        wf.manual_seed(seed)
        h = wf.randn((1, 8)) * 2
        assert bits(compiled(h), False) == bits(step(h), False)
    assert compiled.captures == 1


class Tagger(nn.Module):
    """An LSTM of cells that gives all of its states, and a second one over them."""

    def __init__(self):
        super().__init__()
        self.one, self.two, self.out = nn.LSTMCell(4, 6), nn.LSTMCell(6, 6), nn.Linear(6, 3)

    def layer(self, cell, xs, h):
        c, states = h, []
        for x in xs:
            h, c = cell(x, (h, c))
            states.append(h)
        return states, c

    def forward(self, x):
        h = wf.zeros((x.shape[1], 6))
        states, c = self.layer(self.one, x, h)
        states, c = self.layer(self.two, states, c)
        return self.out(wf.stack(states)) + c.mean()


def test_an_lstm_of_two_layers_is_trained_on_every_length():
    def step(x, y):
        model.zero_grad()
        loss = wf.nn.functional.mse_loss(model(x), y)
        loss.backward()
        return loss, [p.grad for p in model.parameters()]

    wf.manual_seed(1)
    model = Tagger()
    compiled = wf.compile(step, fallback=False)
    for length in (4, 7, 30, 2):
        wf.manual_seed(length)
        x, y = wf.randn((length, 3, 4)), wf.randn((length, 3, 3))
        assert bits(compiled(x, y), False) == bits(step(x, y), False)
    assert compiled.captures == 2


def test_what_a_loop_prints_is_printed_once(capsys):
    @wf.compile(fallback=False)
    def f(x):
        out = []
        while x.sum() < 20:
            x = x * 2
            print("now", len(out))
            out.append(x)
        return wf.stack(out)

    f(wf.tensor([1.0, 2.0]))
    assert capsys.readouterr().out == "now 0\nnow 1\nnow 2\n"
    assert "k0: found when the program runs" in str(f.explain(wf.tensor([1.0, 2.0])))
    assert "f32[k0, 2]" in str(f.graph(wf.tensor([1.0, 2.0])))


def test_a_scripted_program_finds_lengths_too():
    def f(x):
        out = [x]
        while out[0].sum() * 0 + x.sum() < 20:
            x = x * 2
            out.append(x)
        return out, len(out)

    program = wf.script(f)(wf.zeros((2,)))
    for x in (wf.tensor([1.0, 2.0]), wf.tensor([8.0, 1.0]), wf.tensor([30.0, 1.0])):
        assert bits(program(x)) == bits(f(x))


def test_a_list_of_unknown_length_is_no_part_of_a_branch():
    def f(x):
        if x.sum() > 0:
            out = []
            while x.sum() < 20:
                x = x * 2
                out.append(x)
            x = wf.stack(out).sum(axis=0)
        return x

    with pytest.raises(CaptureError, match="outside of branches and loops"):
        wf.compile(f, fallback=False)(wf.tensor([1.0, 2.0]))


def test_a_step_moves_only_the_rows_it_adds():
    compiled = wf.compile(slopes(two_layers, [0, 1, 2]), fallback=False)
    for length in (3, 5):
        compiled(*given(two_layers, length))
    program = list(compiled.programs.values())[-1][-1]
    puts = [s for s in program.forward.last.steps if any(n.op.name == "put_rows" for n in s.nodes)]
    assert len(puts) >= 4  # two forward, and the cotangents of what each loop goes through
    inside = [s for s in puts if s.operands[0].block is s.operands[-1].block]
    assert len(inside) >= 3


def some(x):
    """As many elements as are positive, for inputs of any size."""
    out = [x]
    for v in x:
        if v > 0:
            out.append(x * v)
    return out, len(out)


def in_two_rooms(x):
    """Rows that loops inside of each other put behind elements of one path."""
    out = [x]
    if x.sum() > 0:
        out.append(x * 2)
    for v in x:
        out.append(out[-1] + v)
        for w in x:
            out.append(x * w)
    return out, len(out)


@pytest.mark.parametrize("f", [some, in_two_rooms])
def test_lengths_of_values_for_inputs_of_other_sizes(f):
    compiled = wf.compile(f, fallback=False)
    for n in (3, 3, 4, 5, 4, 2, 7):
        x = wf.arange(n) * 1.0
        assert bits(compiled(x)) == bits(f(x))


def keys_beside_a_list(x):
    """Keys that steps add, in front of what a loop is found to count."""
    out, d, c = [x], {"x": x}, x * 2
    for _ in x:
        if x.max() < 5 and d.get("y") is None:
            d["y"] = x * 1.5
        elif d.get("y") is not None:
            c = (c + out[-1]) * 0.5
            out.append(x.sin())
    return c, out, len(out), d["x"], d.get("y")


def test_what_is_a_number_stays_one_beside_keys_that_steps_add():
    compiled = wf.compile(keys_beside_a_list, fallback=False)
    for n in (3, 4, 6, 9):
        x = wf.arange(n) * 1.0
        assert bits(compiled(x)) == bits(keys_beside_a_list(x))


def shrinking(x, y):
    """Elements that a path takes away which may have none."""
    out = []
    for _ in y:
        if len(out) > 1:
            x = out.pop()
        if len(out) > 1:
            x = out.pop()
        if x.min() < 0.2:
            out.append(x * 0.5)
        y = (out[0] - x).tanh()
    return y


def test_lists_that_shrink_on_paths_that_are_not_taken():
    x, y = wf.tensor([-1.0, 2.0, 3.0]), wf.ones(3)
    with pytest.raises(CaptureError, match="lists that every path has elements of"):
        wf.compile(shrinking, fallback=False)(x, y)
    with pytest.warns(CaptureWarning, match="runs eagerly"):
        assert bits(wf.compile(shrinking)(x, y)) == bits(shrinking(x, y))
