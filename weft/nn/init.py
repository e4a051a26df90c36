"""First values of parameters, by PyTorch's names. Numbers come from Weft's generator
(`wf.manual_seed`).

Glorot and Bengio, 2010 (xavier); He et al., https://arxiv.org/abs/1502.01852 (kaiming).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from weft.autodiff.mode import no_grad
from weft.errors import ShapeError
from weft.ops.define import in_standard_mode
from weft.tensor.arguments import number, word
from weft.tensor.creation import eye, full
from weft.tensor.elementwise import clip, erfinv
from weft.tensor.random import rand, randn
from weft.tensor.tensor import Tensor

_GAINS = {
    "linear": 1.0, "conv1d": 1.0, "conv2d": 1.0, "conv_transpose1d": 1.0, "conv_transpose2d": 1.0,
    "sigmoid": 1.0, "tanh": 5.0 / 3.0, "relu": math.sqrt(2.0), "leaky_relu": 0.0, "selu": 0.75,
}  # fmt: skip


def _filled(x: Tensor, value: Any) -> Tensor:
    with no_grad():
        return x.assign(value)


@in_standard_mode
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0) -> Tensor:
    """Uniform in [a, b).

    >>> import weft as wf
    >>> x = wf.nn.init.uniform_(wf.zeros(100), 2.0, 3.0)
    >>> bool(((x >= 2) & (x < 3)).all())
    True
    """
    a, b = number(a, "uniform_", "a"), number(b, "uniform_", "b")
    return _filled(tensor, rand(tensor.shape, dtype=tensor.dtype) * (b - a) + a)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    """Normal, of a mean and a standard deviation.

    >>> import weft as wf
    >>> wf.nn.init.normal_(wf.empty((2, 3))).shape
    (2, 3)
    """
    std = number(std, "normal_", "std", least=0)
    return _filled(tensor, randn(tensor.shape, dtype=tensor.dtype) * std + number(mean, "normal_"))


@in_standard_mode
def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0
) -> Tensor:
    """Normal, but only what lies between a and b.

    >>> import weft as wf
    >>> bool((wf.nn.init.trunc_normal_(wf.empty((100,))).abs() <= 2).all())
    True
    """
    mean, std = number(mean, "trunc_normal_"), number(std, "trunc_normal_", "std", least=0)
    low, high = (math.erf((x - mean) / std / math.sqrt(2.0)) for x in (a, b))
    u = rand(tensor.shape, dtype=tensor.dtype) * (high - low) + low
    return _filled(tensor, clip(erfinv(u) * (std * math.sqrt(2.0)) + mean, a, b))


def constant_(tensor: Tensor, val: float) -> Tensor:
    """One number everywhere.

    >>> import weft as wf
    >>> wf.nn.init.constant_(wf.empty((2,)), 0.5)
    tensor([0.5, 0.5])
    """
    return _filled(tensor, full(tensor.shape, number(val, "constant_"), dtype=tensor.dtype))


def zeros_(tensor: Tensor) -> Tensor:
    """Zeros.

    >>> import weft as wf
    >>> wf.nn.init.zeros_(wf.empty((2,)))
    tensor([0., 0.])
    """
    return constant_(tensor, 0.0)


def ones_(tensor: Tensor) -> Tensor:
    """Ones.

    >>> import weft as wf
    >>> wf.nn.init.ones_(wf.empty((2,)))
    tensor([1., 1.])
    """
    return constant_(tensor, 1.0)


def eye_(tensor: Tensor) -> Tensor:
    """The identity matrix.

    >>> import weft as wf
    >>> wf.nn.init.eye_(wf.empty((2, 2)))
    tensor([[1., 0.],
            [0., 1.]])
    """
    if tensor.ndim != 2:
        raise ShapeError("eye_", expected="a matrix", got=str(tensor.type))
    return _filled(tensor, eye(*tensor.shape, dtype=tensor.dtype))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Filters (O, I, …) that pass channels through unchanged.

    >>> import weft as wf
    >>> wf.nn.init.dirac_(wf.empty((2, 2, 3)))[0]
    tensor([[0., 1., 0.],
            [0., 0., 0.]])
    """
    if tensor.ndim < 3 or tensor.shape[0] % groups:
        got = f"{tensor.type}, {groups} groups"
        raise ShapeError("dirac_", expected="filters (O, I, …), O a multiple of groups", got=got)
    a = np.zeros(tensor.shape, tensor.dtype.np)
    per, middle = tensor.shape[0] // groups, tuple(n // 2 for n in tensor.shape[2:])
    for g in range(groups):
        for d in range(min(per, tensor.shape[1])):
            a[(g * per + d, d, *middle)] = 1
    return _filled(tensor, a)


def fans(tensor: Tensor) -> tuple[int, int]:
    """How many inputs an output of these weights (out, in, …) has, and the reverse.

    >>> import weft as wf
    >>> wf.nn.init.fans(wf.empty((8, 4, 3, 3)))
    (36, 72)
    """
    if tensor.ndim < 2:
        raise ShapeError("fan in and fan out", expected="at least two axes", got=str(tensor.type))
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


@in_standard_mode
def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """By how much weights should be larger to make up for what comes after them.

    >>> import weft as wf
    >>> round(wf.nn.init.calculate_gain("relu"), 4)
    1.4142
    """
    word(nonlinearity, "calculate_gain", _GAINS)
    if nonlinearity != "leaky_relu":
        return _GAINS[nonlinearity]
    slope = 0.01 if param is None else number(param, "calculate_gain", "param")
    return math.sqrt(2.0 / (1.0 + slope * slope))


@in_standard_mode
def xavier_uniform_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Uniform, of variance 2 / (fan in + fan out).

    >>> import weft as wf
    >>> bool((wf.nn.init.xavier_uniform_(wf.empty((3, 3))).abs() <= 1).all())
    True
    """
    bound = number(gain, "xavier_uniform_") * math.sqrt(6.0 / sum(fans(tensor)))
    return uniform_(tensor, -bound, bound)


@in_standard_mode
def xavier_normal_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Normal, of variance 2 / (fan in + fan out).

    >>> import weft as wf
    >>> wf.nn.init.xavier_normal_(wf.empty((3, 4))).shape
    (3, 4)
    """
    std = number(gain, "xavier_normal_") * math.sqrt(2.0 / sum(fans(tensor)))
    return normal_(tensor, 0.0, std)


def _kaiming(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    word(mode, "kaiming", ("fan_in", "fan_out"))
    fan = fans(tensor)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan) if fan else 0.0


@in_standard_mode
def kaiming_uniform_(
    tensor: Tensor, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu"
) -> Tensor:
    """Uniform, of variance gain² / fan.

    >>> import weft as wf
    >>> bool((wf.nn.init.kaiming_uniform_(wf.empty((2, 6))).abs() <= 1).all())
    True
    """
    bound = math.sqrt(3.0) * _kaiming(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound)


@in_standard_mode
def kaiming_normal_(
    tensor: Tensor, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu"
) -> Tensor:
    """Normal, of variance gain² / fan.

    >>> import weft as wf
    >>> wf.nn.init.kaiming_normal_(wf.empty((3, 4))).shape
    (3, 4)
    """
    return normal_(tensor, 0.0, _kaiming(tensor, a, mode, nonlinearity))


@in_standard_mode
def orthogonal_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Rows (or columns, if there are fewer) at right angles to each other, of length `gain`.

    >>> import weft as wf
    >>> w = wf.nn.init.orthogonal_(wf.empty((3, 3)))
    >>> bool(((w @ w.T - wf.eye(3)).abs() < 1e-5).all())
    True
    """
    if tensor.ndim < 2:
        raise ShapeError("orthogonal_", expected="at least two axes", got=str(tensor.type))
    rows, columns = tensor.shape[0], math.prod(tensor.shape[1:])
    if not rows * columns:
        return tensor
    a = randn(max(rows, columns), min(rows, columns), dtype="float64").numpy()
    q, r = np.linalg.qr(a)
    q = q * np.sign(np.diag(r))
    q = q.T if rows < columns else q
    return _filled(tensor, q.reshape(tensor.shape) * number(gain, "orthogonal_"))


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01) -> Tensor:
    """Normal, with that part of every column zero.

    >>> import weft as wf
    >>> int((wf.nn.init.sparse_(wf.empty((4, 3)), 0.5) == 0).sum())
    6
    """
    if tensor.ndim != 2:
        raise ShapeError("sparse_", expected="a matrix", got=str(tensor.type))
    few = math.ceil(number(sparsity, "sparse_", "a sparsity", 0, 1) * tensor.shape[0])
    ranks = np.argsort(np.argsort(rand(tensor.shape).numpy(), axis=0), axis=0)
    normal_(tensor, 0.0, std)
    return _filled(tensor, np.where(ranks < few, 0.0, tensor.numpy()))
