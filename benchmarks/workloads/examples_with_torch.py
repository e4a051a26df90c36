"""Training steps of the examples in PyTorch: modes "eager" and "compile"."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.worker import THREADS, Case
from benchmarks.workloads import of_examples


class Block(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.short = nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.short(x))


class GPTBlock(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attend = nn.MultiheadAttention(width, heads, batch_first=True)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        h = self.norm1(x)
        h = self.attend(h, h, h, need_weights=False, attn_mask=mask, is_causal=True)[0]
        x = x + h
        return x + self.narrow(F.gelu(self.wide(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self, characters: int, length: int, width: int = 64, heads: int = 4) -> None:
        super().__init__()
        self.token, self.place = nn.Embedding(characters, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(GPTBlock(width, heads) for _ in range(2))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, characters, bias=False)
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.token(ids) + self.place(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x, self.mask)
        return self.head(self.norm(x))


class Reader(nn.Module):
    def __init__(self, words: int, width: int = 32) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, width, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * width, 1)

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(
            self.embed(ids), lengths, batch_first=True, enforce_sorted=False
        )
        _, (h, _) = self.lstm(packed)
        return self.head(torch.cat([h[0], h[1]], dim=1)).reshape(-1)


class Translator(nn.Module):
    def __init__(self, characters: int, width: int = 48) -> None:
        super().__init__()
        self.embed = nn.Embedding(characters, width)
        self.read = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.keys = nn.Linear(2 * width, width)
        self.write = nn.GRUCell(3 * width, width)
        self.out = nn.Linear(3 * width, characters)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        memory, last = self.read(self.embed(source))
        keys, h, scores = self.keys(memory), last[1], []
        token = torch.ones_like(target[:, 0])
        for t in range(target.shape[1]):
            weights = F.softmax((keys @ h.unsqueeze(-1)).squeeze(-1) / 7.0, dim=-1)
            seen = (weights.unsqueeze(1) @ memory).squeeze(1)
            h = self.write(torch.cat([self.embed(token), seen], dim=1), h)
            scores.append(self.out(torch.cat([h, seen], dim=1)))
            token = target[:, t]
        return torch.stack(scores, dim=1)


class Appraiser(nn.Module):
    def __init__(self, words: int, width: int = 32) -> None:
        super().__init__()
        self.look = nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, width),
        )  # fmt: skip
        self.embed = nn.Embedding(words, width, padding_idx=0)
        self.read = nn.TransformerEncoderLayer(width, 4, 64, dropout=0.0, batch_first=True)
        self.count = nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Linear(width, width))
        self.decide = nn.Sequential(nn.Linear(3 * width, width), nn.GELU(), nn.Linear(width, 1))

    def forward(self, image: Tensor, text: Tensor, table: Tensor) -> Tensor:
        padded = text == 0
        words = self.read(self.embed(text), src_key_padding_mask=padded)
        own = torch.where(padded, 0.0, 1.0).unsqueeze(-1)
        read = (words * own).sum(dim=1) / text.shape[1]
        parts = [self.look(image), read, self.count(table)]
        return self.decide(torch.cat(parts, dim=1)).squeeze(-1)


class VAE(nn.Module):
    def __init__(self, side: int, width: int = 64, latent: int = 2) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(side * side, width), nn.Tanh())
        self.mean, self.log_variance = nn.Linear(width, latent), nn.Linear(width, latent)
        self.decoder = nn.Sequential(
            nn.Linear(latent, width), nn.Tanh(), nn.Linear(width, side * side)
        )

    def forward(self, x: Tensor, noise: Tensor) -> Tensor:
        h = self.encoder(x)
        mean, log_variance = self.mean(h), self.log_variance(h)
        logits = self.decoder(mean + (0.5 * log_variance).exp() * noise)
        paint = F.binary_cross_entropy_with_logits(logits, x, reduction="sum")
        say = -0.5 * (1 + log_variance - mean * mean - log_variance.exp()).sum()
        return (paint + say) / x.shape[0]


class Player(nn.Module):
    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, width), nn.Tanh())
        self.push, self.worth = nn.Linear(width, 1), nn.Linear(width, 1)

    def forward(self, states: Tensor, pushes: Tensor, worth: Tensor, alive: Tensor) -> Tensor:
        h = self.body(states)
        odds, guess = self.push(h).squeeze(-1), self.worth(h).squeeze(-1)
        each = F.binary_cross_entropy_with_logits(odds, pushes, reduction="none")
        better = (worth - guess).detach()
        better = better / ((alive * better**2).sum() / alive.sum() + 1e-3).sqrt()
        policy = (alive * better * each).sum() / alive.sum()
        return policy + 0.5 * (alive * (worth - guess) ** 2).sum() / alive.sum()


class TreeNet(nn.Module):
    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.letters = nn.Embedding(2, width)
        self.operations = nn.ModuleDict(
            {"not": nn.Linear(width, width)}
            | {name: nn.Linear(2 * width, width) for name in ("and", "or")}
        )
        self.head = nn.Linear(width, 1)

    def vector(self, tree: Any) -> Tensor:
        if isinstance(tree, Tensor):
            return self.letters(tree)
        operation, *operands = tree
        parts = torch.cat([self.vector(t) for t in operands], dim=1)
        return torch.tanh(self.operations[operation](parts))

    def forward(self, tree: Any) -> Tensor:
        return self.head(self.vector(tree)).reshape(())


def _oscillator(module: Any) -> tuple[nn.Module, Any]:
    model = nn.Sequential(
        nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1)
    )

    first = torch.func.grad(lambda t: model(t).sum())
    second = torch.func.grad(lambda t: first(t).sum())

    def residual(t: Tensor) -> Tensor:
        law = second(t) + 2 * module.DAMPING * first(t) + module.FREQUENCY**2 * model(t)
        zero = torch.zeros(1, 1)
        start = (model(zero) - 1.0) ** 2 + first(zero) ** 2
        return (law**2).mean() + 20.0 * start.sum()

    return model, residual


def _trees(module: Any) -> tuple[nn.Module, Any]:
    model = TreeNet()

    def planted(tree: Any) -> Any:
        return torch.tensor([tree]) if isinstance(tree, int) else (tree[0], *map(planted, tree[1:]))

    tree = planted(of_examples.TREE)
    return model, lambda answer: F.binary_cross_entropy_with_logits(model(tree), answer)


def _whole(model: nn.Module) -> tuple[nn.Module, Any]:
    """A model that gives its loss."""
    return model, model


OTHERS: dict[str, Callable[[Any], tuple[nn.Module, Any]]] = {
    "vae": lambda module: _whole(VAE(module.SIDE)),
    "oscillator": _oscillator,
    "cartpole": lambda module: _whole(Player()),
    "trees": _trees,
}


def build(name: str) -> tuple[nn.Module, Any]:
    """The example's model, and its loss on a batch."""
    module = of_examples.example(name)
    model: Any
    if name == "digits":
        model = nn.Sequential(
            nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.0), nn.Linear(64, 64), nn.ReLU(),
            nn.Linear(64, 10),
        )  # fmt: skip
    elif name == "images":
        model = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), Block(8, 16, 2), Block(16, 32, 2),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, len(module.KINDS)),
        )  # fmt: skip
    elif name == "chargpt":
        model = GPT(len(set(module.text())), of_examples.GPT_LENGTH)
        return model, lambda x, y: _tokens(model(x), y)
    elif name == "sentiment":
        model = Reader(len(module.WORDS))
        return model, lambda x, n, y: F.binary_cross_entropy_with_logits(model(x, n), y)
    elif name == "dates":
        model = Translator(len(module.CHARACTERS))
        return model, lambda x, y: _tokens(model(x, y), y)
    elif name in OTHERS:
        return OTHERS[name](module)
    else:
        model = Appraiser(len(module.WORDS))
        return model, lambda image, text, table, price: F.huber_loss(
            model(image, text, table), price
        )
    return model, lambda x, y: F.cross_entropy(model(x), y)


def _tokens(scores: Tensor, ids: Tensor) -> Tensor:
    return F.cross_entropy(scores.reshape(-1, scores.shape[-1]), ids.reshape(-1))


def start(name: str, compiled: bool) -> Case:
    model, loss_of = build(name)
    first = of_examples.weights((k, tuple(p.shape)) for k, p in model.named_parameters())
    model.load_state_dict({k: torch.tensor(v) for k, v in first.items()}, strict=False)
    batch = [torch.tensor(a) for a in of_examples.batch(name)]
    opt = torch.optim.AdamW(model.parameters(), 1e-3)
    call = torch.compile(loss_of) if compiled else loss_of

    def step() -> Tensor:
        opt.zero_grad()
        loss = call(*batch)
        loss.backward()
        opt.step()
        return loss

    return Case(step, lambda loss: loss.detach().numpy())


def cases(mode: str) -> dict[str, Callable[[], Case]]:
    torch.set_num_threads(THREADS)
    return {name: partial(start, name, mode == "compile") for name in of_examples.NAMES}
