"""The control-flow workloads in JAX, said with `lax.while_loop`, `lax.scan` and masks.

Modes: "jit"; "padded", where sequences are padded to the longest so that one program does for all.
What has no reverse in JAX (a loop of unknown length) is a scan over the most steps it may take.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks.worker import Case
from benchmarks.workloads import control_numbers as numbers

Params = dict[str, jax.Array]


def gated(c: jax.Array, i: jax.Array, f: jax.Array, g: jax.Array, o: jax.Array) -> Any:
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    return jax.nn.sigmoid(o) * jnp.tanh(c), c


def cross_entropy(y: jax.Array, labels: jax.Array) -> jax.Array:
    picked = jnp.take_along_axis(jax.nn.log_softmax(y), labels[:, None], 1)
    return -picked.mean()


def lstm_loss(p: Params, x: jax.Array, labels: jax.Array, length: jax.Array) -> jax.Array:
    def step(state: Any, given: Any) -> Any:
        h, c = state
        t, now = given
        gates = now @ p["wx"] + h @ p["wh"] + p["b"]
        new = gated(c, *jnp.split(gates, 4, 1))
        return jax.tree.map(lambda a, b: jnp.where(t < length, a, b), new, (h, c)), None

    zero = jnp.zeros((numbers.LSTM_BATCH, numbers.LSTM_WIDTH))
    (h, _), _ = lax.scan(step, (zero, zero), (jnp.arange(x.shape[0]), x))
    return cross_entropy(h @ p["head"], labels)


@jax.jit
def lstm_step(p: Params, x: jax.Array, labels: jax.Array, length: jax.Array) -> Any:
    loss, grads = jax.value_and_grad(lstm_loss)(p, x, labels, length)
    return loss, jax.tree.map(lambda a, g: a - 0.1 * g, p, grads)


def tree_loss(p: Params, words: jax.Array, pairs: jax.Array, root: jax.Array, label: Any) -> Any:
    i, o, u = jnp.split(p["words"][words] @ p["leaf"] + p["leaf_b"], 3, 1)
    c = jax.nn.sigmoid(i) * jnp.tanh(u)
    h = jax.nn.sigmoid(o) * jnp.tanh(c)
    room = jnp.zeros((39, numbers.TREE_WIDTH))

    def step(state: Any, given: Any) -> Any:
        h, c = state
        k, pair = given
        both = jnp.concatenate([h[pair[0]], h[pair[1]]])[None]
        i, fl, fr, o, u = jnp.split(both @ p["inner"] + p["inner_b"], 5, 1)
        new = jax.nn.sigmoid(i) * jnp.tanh(u)
        new = new + jax.nn.sigmoid(fl) * c[pair[0]] + jax.nn.sigmoid(fr) * c[pair[1]]
        return (h.at[k].set((jax.nn.sigmoid(o) * jnp.tanh(new))[0]), c.at[k].set(new[0])), None

    given = (jnp.arange(40, 79), pairs)
    (h, _), _ = lax.scan(step, (jnp.concatenate([h, room]), jnp.concatenate([c, room])), given)
    return cross_entropy(h[root][None] @ p["head"], label)


@jax.jit
def tree_step(p: Params, *data: Any) -> Any:
    loss, grads = jax.value_and_grad(tree_loss)(p, *data)
    return loss, jax.tree.map(lambda a, g: a - 0.05 * g, p, grads)


@jax.jit
def converge(x: jax.Array) -> jax.Array:
    def step(state: Any) -> Any:
        x, _, n = state
        d = 0.1 * (x @ x @ x - x)
        return x - d, jnp.abs(d).mean(), n + 1

    def go_on(state: Any) -> Any:
        return (state[1] >= numbers.TOLERANCE) & (state[2] < numbers.MOST)

    return lax.while_loop(go_on, step, (x, jnp.float32(1), 0))[0]


@jax.jit
def decode(h: jax.Array, p: Params) -> jax.Array:
    def step(state: Any) -> Any:
        h, word, n, out = state
        h = jnp.tanh(p["words"][word][None] @ p["wx"] + h @ p["wh"])
        word = (h @ p["out"]).reshape(-1).argmax().astype(jnp.int32)
        return h, word, n + 1, out.at[n].set(word)

    def go_on(state: Any) -> Any:
        return (state[1] != numbers.DECODER_END) & (state[2] < numbers.DECODER_LIMIT)

    out = jnp.zeros(numbers.DECODER_LIMIT, jnp.int32)
    return lax.while_loop(go_on, step, (h, jnp.int32(1), 0, out))[3]


@jax.jit
@jax.grad
def root_slope(a: jax.Array) -> jax.Array:
    def step(x: jax.Array, _: None) -> Any:
        more = jnp.abs(x * x * x - a).max() > 1e-3
        return lax.cond(more, lambda x: x - (x * x * x - a) / (3 * x * x), lambda x: x, x), None

    return lax.scan(step, a, None, numbers.NEWTON_MOST)[0].sum()


@jax.jit
def walk(x: jax.Array, limit: jax.Array) -> jax.Array:
    def row(i: jax.Array, total: jax.Array) -> jax.Array:
        def go_on(state: Any) -> Any:
            return (state[0] < x.shape[1]) & (state[1] <= limit)

        def step(state: Any) -> Any:
            j, far = state
            return j + 1, far + x[i, j]

        return total + lax.while_loop(go_on, step, (0, jnp.float32(0)))[1]

    return lax.fori_loop(0, x.shape[0], row, jnp.float32(0))


def inference(f: Callable[..., jax.Array], *xs: Any) -> Case:
    given = jax.tree.map(jnp.asarray, xs)
    return Case(lambda: f(*given).block_until_ready())


def lstm(padded: bool) -> Case:
    batches, arrays = numbers.lstm()
    state = {"p": jax.tree.map(jnp.asarray, arrays)}
    data = []
    for x, labels in batches:
        length = len(x)
        if padded:
            x = np.pad(x, ((0, numbers.LSTM_LONGEST - length), (0, 0), (0, 0)))
        data.append((jnp.asarray(x), jnp.asarray(labels), jnp.asarray(length)))
    return training(state, lstm_step, data)


def training(state: Any, step: Any, data: Any) -> Case:
    def run() -> Any:
        for d in data:
            loss, state["p"] = step(state["p"], *d)
        return jax.block_until_ready((loss, state["p"]))[0]

    return Case(run)


def trees() -> Case:
    data, arrays = numbers.trees()
    ready = []
    for tree, label in data:
        words, pairs = numbers.flat(tree)
        room = 40 - len(words)  # of 40 words, behind which pairs come
        pairs = [(a + room * (a >= len(words)), b + room * (b >= len(words))) for a, b in pairs]
        more = [(0, 0)] * (39 - len(pairs))
        given = (words + [0] * (40 - len(words)), pairs + more, 39 + len(pairs), [label])
        ready.append([jnp.asarray(g) for g in given])
    return training({"p": jax.tree.map(jnp.asarray, arrays)}, tree_step, ready)


def cases(mode: str) -> dict[str, Callable[[], Case]]:
    if mode == "padded":
        return {"W10": partial(lstm, True)}
    h, decoder = numbers.decoder()
    return {
        "W10": partial(lstm, False),
        "W11": trees,
        "W12": partial(inference, converge, numbers.symmetric()),
        "decoder": partial(inference, decode, h, decoder),
        "newton": partial(inference, root_slope, numbers.roots()),
        "nested": partial(inference, walk, *numbers.walks()),
    }
