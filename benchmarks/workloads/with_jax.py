"""The workloads in JAX, mode "jit": NHWC convolutions, attention by einsum, updates by hand."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, nn

from benchmarks.worker import Case
from benchmarks.workloads import numbers
from benchmarks.workloads.numbers import Arrays

Params = dict[str, jax.Array]
CONV = ("NHWC", "HWIO", "NHWC")


def elementwise(x: jax.Array, a: jax.Array, b: jax.Array) -> jax.Array:
    return jnp.tanh(nn.relu(x * a + b)) * nn.sigmoid(x) + jnp.exp(-x * x)


def layer_norm(x: jax.Array, g: jax.Array, b: jax.Array) -> jax.Array:
    mean = x.mean(-1, keepdims=True)
    var = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(var + 1e-5) * g + b


def norm(x: jax.Array, g: jax.Array, b: jax.Array) -> jax.Array:
    return nn.softmax(nn.gelu(layer_norm(x, g, b), approximate=False), axis=-1)


def linear(p: Params, name: str, x: jax.Array) -> jax.Array:
    y = x @ p[f"{name}.weight"]
    return y + p[f"{name}.bias"] if f"{name}.bias" in p else y


def stack(p: Params, x: jax.Array, activation: Callable[[jax.Array], jax.Array]) -> jax.Array:
    x = activation(linear(p, "0", x))
    return linear(p, "4", activation(linear(p, "2", x)))


def conv(p: Params, name: str, x: jax.Array, stride: int = 1) -> jax.Array:
    w = p[f"{name}.weight"]
    pad = w.shape[0] // 2
    return lax.conv_general_dilated(
        x, w, (stride, stride), ((pad, pad), (pad, pad)), dimension_numbers=CONV
    )


def batch_norm(p: Params, name: str, x: jax.Array, new: Params | None) -> jax.Array:
    """In training (`new` is given) by the batch's statistics, which also move the running ones."""
    if new is None:
        mean, var = p[f"{name}.running_mean"], p[f"{name}.running_var"]
    else:
        mean = x.mean((0, 1, 2))
        var = ((x - mean) ** 2).mean((0, 1, 2))
        n = x.size // x.shape[-1]
        new[f"{name}.running_mean"] = 0.9 * p[f"{name}.running_mean"] + 0.1 * mean
        new[f"{name}.running_var"] = 0.9 * p[f"{name}.running_var"] + 0.1 * var * n / (n - 1)
    return (x - mean) * lax.rsqrt(var + 1e-5) * p[f"{name}.weight"] + p[f"{name}.bias"]


def basic_block(p: Params, name: str, x: jax.Array, stride: int, new: Params | None) -> jax.Array:
    short = x
    if f"{name}.downsample.0.weight" in p:
        short = conv(p, f"{name}.downsample.0", x, stride)
        short = batch_norm(p, f"{name}.downsample.1", short, new)
    y = nn.relu(batch_norm(p, f"{name}.bn1", conv(p, f"{name}.conv1", x, stride), new))
    return nn.relu(batch_norm(p, f"{name}.bn2", conv(p, f"{name}.conv2", y), new) + short)


def cnn(p: Params, x: jax.Array, new: Params | None) -> jax.Array:
    x = nn.relu(batch_norm(p, "bn1", conv(p, "conv1", x), new))
    for n, (_, _, stride) in enumerate(numbers.CNN_STAGES):
        x = basic_block(p, f"blocks.{n}", x, stride, new)
    return linear(p, "fc", x.mean((1, 2)))


def resnet(p: Params, x: jax.Array) -> jax.Array:
    x = nn.relu(batch_norm(p, "bn1", conv(p, "conv1", x, 2), None))
    pad = ((0, 0), (1, 1), (1, 1), (0, 0))
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), pad)
    for name, _, _, stride in numbers.RESNET_BLOCKS:
        x = basic_block(p, name, x, stride, None)
    return linear(p, "fc", x.mean((1, 2)))


def attention(qkv: jax.Array) -> jax.Array:
    b, t, c = qkv.shape
    q, k, v = jnp.moveaxis(qkv.reshape(b, t, 3, numbers.GPT_HEADS, -1), 2, 0)  # (B, T, H, D)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
    scores = jnp.where(jnp.tril(jnp.ones((t, t), bool)), scores, -jnp.inf)
    return jnp.einsum("bhqk,bkhd->bqhd", nn.softmax(scores, axis=-1), v).reshape(b, t, c // 3)


def gpt(p: Params, ids: jax.Array) -> jax.Array:
    x = p["tok.weight"][ids] + p["pos.weight"]  # (B, T, C)
    for n in range(numbers.GPT_BLOCKS):
        at = partial(linear, p)
        ln = lambda k, x, n=n: layer_norm(x, p[f"blocks.{n}.{k}.weight"], p[f"blocks.{n}.{k}.bias"])
        x = x + at(f"blocks.{n}.proj", attention(at(f"blocks.{n}.qkv", ln("ln1", x))))
        h = nn.gelu(at(f"blocks.{n}.fc1", ln("ln2", x)), approximate=False)
        x = x + at(f"blocks.{n}.fc2", h)
    return linear(p, "head", layer_norm(x, p["ln.weight"], p["ln.bias"]))


def cross_entropy(logits: jax.Array, labels: jax.Array) -> jax.Array:
    picked = jnp.take_along_axis(nn.log_softmax(logits), labels[..., None], -1)
    return -picked.mean()


def sgd(rate: float, momentum: float) -> Any:
    def update(p: Params, g: Params, state: Any) -> tuple[Params, Any]:
        if momentum:
            state = jax.tree.map(lambda m, g: momentum * m + g, state, g)
            g = state
        return jax.tree.map(lambda p, g: p - rate * g, p, g), state

    return update, lambda p: jax.tree.map(jnp.zeros_like, p) if momentum else ()


def adam(rate: float, decay: float) -> Any:
    def update(p: Params, g: Params, state: Any) -> tuple[Params, Any]:
        t, m, v = state
        t = t + 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
        c1, c2 = 1 - 0.9**t, jnp.sqrt(1 - 0.999**t)
        step = lambda p, m, v: p * (1 - rate * decay) - rate / c1 * m / (jnp.sqrt(v) / c2 + 1e-8)
        return jax.tree.map(step, p, m, v), (t, m, v)

    zeros = lambda p: jax.tree.map(jnp.zeros_like, p)
    return update, lambda p: (jnp.float32(0), zeros(p), zeros(p))


def load(arrays: Arrays) -> Params:
    """Parameters in JAX's layouts: (in, out) and HWIO."""
    own = {}
    for name, a in arrays.items():
        if a.ndim == 4:
            a = a.transpose(2, 3, 1, 0)
        elif a.ndim == 2 and not name.startswith(("tok", "pos")):
            a = a.T
        own[name] = jnp.array(a)
    return own


def inference(f: Callable[..., jax.Array], arrays: Arrays, *inputs: np.ndarray) -> Case:
    xs: list[Any] = [jnp.array(a) for a in inputs]
    if arrays:
        xs.insert(0, load(arrays))
    call = jax.jit(f)
    return Case(lambda: call(*xs).block_until_ready())


def training(forward: Any, arrays: Arrays, optimizer: Any, x: np.ndarray, y: np.ndarray) -> Case:
    """A step with parameters and optimizer state donated; `forward(p, x, new)` may put new running
    statistics into `new`.
    """
    update, init = optimizer
    running = {k: v for k, v in load(arrays).items() if "running" in k}
    params = {k: v for k, v in load(arrays).items() if "running" not in k}
    state = (params, running, init(params))
    xs, ys = jnp.array(x), jnp.array(y)

    def loss_of(p: Params, running: Params, x: jax.Array, y: jax.Array) -> tuple[Any, Params]:
        new: Params = {}
        return cross_entropy(forward(p | running, x, new), y), new

    @partial(jax.jit, donate_argnums=0)
    def step(state: Any, x: jax.Array, y: jax.Array) -> Any:
        p, running, opt = state
        (loss, new), g = jax.value_and_grad(loss_of, has_aux=True)(p, running, x, y)
        p, opt = update(p, g, opt)
        return loss, (p, new, opt)

    def run() -> jax.Array:
        nonlocal state
        loss, state = step(state, xs, ys)
        jax.block_until_ready((loss, state))
        return loss

    return Case(run)


def nhwc(data: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    return data[0].transpose(0, 2, 3, 1), data[1]


def gpt_train(batch: int, length: int) -> Case:
    forward = lambda p, x, new: gpt(p, x)
    return training(forward, numbers.gpt(length), adam(3e-4, 0.01), *numbers.tokens(batch, length))


def call() -> Case:
    inputs = [jnp.zeros(16) for _ in range(10)]
    f = jax.jit(lambda *tensors: tensors)
    return Case(lambda: f(*inputs), lambda y: np.asarray(y[0]))


def cases(mode: str) -> dict[str, Callable[[], Case]]:
    if "JAX_COMPILATION_CACHE_DIR" in os.environ:  # keep everything, however quickly compiled
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    tiny = partial(stack, activation=jnp.tanh)
    tiny_params = partial(numbers.stack, 55, numbers.TINY_SIZES)
    return {
        "W1": lambda: inference(elementwise, {}, *numbers.elementwise()),
        "W2": lambda: inference(norm, {}, *numbers.norm()),
        "W3": lambda: training(
            lambda p, x, new: stack(p, x, nn.relu),
            numbers.stack(33, numbers.MLP_SIZES),
            adam(1e-3, 0.0),
            *numbers.classes(3, 64, (784,), 10),
        ),
        "W4": lambda: inference(tiny, tiny_params(), numbers.classes(4, 1, (8,), 2)[0]),
        "W5": lambda: training(
            lambda p, x, new: tiny(p, x),
            tiny_params(),
            sgd(0.1, 0.0),
            *numbers.classes(5, 32, (8,), 2),
        ),
        "W6": lambda: training(
            cnn, numbers.cnn(), sgd(0.05, 0.9), *nhwc(numbers.classes(66, 32, (3, 32, 32), 10))
        ),
        "W7": lambda: gpt_train(8, 128),
        "W8": lambda: inference(gpt, numbers.gpt(128), numbers.tokens(1, 128)[0]),
        "W9": lambda: inference(resnet, numbers.resnet(), numbers.image().transpose(0, 2, 3, 1)),
        "W13": lambda: gpt_train(32, 256),
        "call": call,
    }
