"""Training steps of the examples in Weft: modes "eager" and "compile"."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import weft as wf
import weft.nn.functional as F
from benchmarks.worker import THREADS, Case
from benchmarks.workloads import of_examples
from weft import Tensor, nn, optim


def build(name: str) -> tuple[nn.Module, Any]:
    """The example's model, and its loss on a batch."""
    module = of_examples.example(name)
    if name in ("digits", "images"):
        model = module.network()
        return model, lambda x, y: F.cross_entropy(model(x), y)
    if name == "chargpt":
        gpt = module.GPT(len(set(module.text())), of_examples.GPT_LENGTH)
        return gpt, lambda x, y: _tokens(gpt(x), y)
    if name == "sentiment":
        reader = module.Reader()
        return reader, lambda x, n, y: F.binary_cross_entropy_with_logits(reader(x, n), y)
    if name == "dates":
        translator = module.Translator()
        return translator, lambda x, y: _tokens(translator(x, y), y)
    if name in OTHERS:
        return OTHERS[name](module)
    appraiser = module.Appraiser()

    def off(image: Tensor, text: Tensor, table: Tensor, price: Tensor) -> Tensor:
        return F.huber_loss(appraiser({"image": image, "text": text, "table": table}), price)

    return appraiser, off


def _vae(module: Any) -> tuple[nn.Module, Any]:
    vae = module.VAE()

    def cost(x: Tensor, noise: Tensor) -> Tensor:
        h = vae.encoder(x)
        mean, log_variance = vae.mean(h), vae.log_variance(h)
        z = mean + (0.5 * log_variance).exp() * noise
        return module.bound(x, vae.decoder(z), mean, log_variance)

    return vae, cost


def _oscillator(module: Any) -> tuple[nn.Module, Any]:
    model = nn.Sequential(
        nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1)
    )
    first = wf.grad(lambda t: model(t).sum())
    second = wf.grad(lambda t: first(t).sum())

    def residual(t: Tensor) -> Tensor:
        law = second(t) + 2 * module.DAMPING * first(t) + module.FREQUENCY**2 * model(t)
        zero = wf.zeros((1, 1))
        start = (model(zero) - 1.0) ** 2 + first(zero) ** 2
        return (law**2).mean() + 20.0 * start.sum()

    return model, residual


def _cartpole(module: Any) -> tuple[nn.Module, Any]:
    player = module.Player()

    def surprise(states: Tensor, pushes: Tensor, worth: Tensor, alive: Tensor) -> Tensor:
        odds, guess = player(states)
        each = F.binary_cross_entropy_with_logits(odds, pushes, reduction="none")
        better = (worth - guess).detach()
        better = better / ((alive * better**2).sum() / alive.sum() + 1e-3).sqrt()
        policy = (alive * better * each).sum() / alive.sum()
        return policy + 0.5 * (alive * (worth - guess) ** 2).sum() / alive.sum()

    return player, surprise


def _trees(module: Any) -> tuple[nn.Module, Any]:
    model = module.TreeNet()

    def planted(tree: Any) -> Any:
        return wf.tensor([tree]) if isinstance(tree, int) else (tree[0], *map(planted, tree[1:]))

    tree = planted(of_examples.TREE)
    return model, lambda answer: F.binary_cross_entropy_with_logits(model(tree), answer)


OTHERS = {"vae": _vae, "oscillator": _oscillator, "cartpole": _cartpole, "trees": _trees}


def _tokens(scores: Tensor, ids: Tensor) -> Tensor:
    return F.cross_entropy(scores.reshape(-1, scores.shape[-1]), ids.reshape(-1))


def start(name: str, compiled: bool) -> Case:
    model, loss_of = build(name)
    model.load_state_dict(of_examples.weights((k, p.shape) for k, p in model.named_parameters()),
                          strict=False)  # fmt: skip
    for m in model.modules():
        if isinstance(m, nn.Dropout):
            m.p = 0.0  # else no two peers would agree
    batch = [wf.tensor(a) for a in of_examples.batch(name)]
    opt = optim.AdamW(model.parameters(), 1e-3)

    def step(*batch: Tensor) -> Tensor:
        opt.zero_grad()
        loss = loss_of(*batch)
        loss.backward()
        opt.step()
        return loss

    call = wf.compile(step, fallback=False) if compiled else step
    return Case(lambda: call(*batch), lambda loss: loss.detach().numpy())


def cases(mode: str) -> dict[str, Callable[[], Case]]:
    wf.set_num_threads(THREADS)
    return {name: partial(start, name, mode == "compile") for name in of_examples.NAMES}
