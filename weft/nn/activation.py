"""Activation functions and dropout as modules."""

from __future__ import annotations

from typing import Any

from weft.nn import functional as F, init
from weft.nn.linear import size
from weft.nn.module import Module
from weft.nn.parameter import Parameter
from weft.tensor.arguments import number
from weft.tensor.creation import empty


class _Activation(Module):
    """A function of `weft.nn.functional`, and the arguments it is called with."""

    names: tuple[str, ...] = ()

    def _keep(self, *values: Any) -> None:
        for name, value in zip(self.names, values, strict=True):
            setattr(self, name, value)

    def _kept(self) -> tuple[Any, ...]:
        return tuple(getattr(self, n) for n in self.names)

    def extra_repr(self) -> str:
        return ", ".join(f"{n}={getattr(self, n)!r}" for n in self.names)


class _InPlace(_Activation):
    """One that takes `inplace` for PyTorch's sake, which changes nothing here."""

    def __init__(self, inplace: bool = False) -> None:
        pass


class ReLU(_InPlace):
    """x where it is positive, else 0. `inplace` is taken for PyTorch's sake and changes nothing.

    >>> import weft as wf
    >>> wf.nn.ReLU()(wf.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    def forward(self, x: Any) -> Any:
        return F.relu(x)


class ReLU6(_InPlace):
    """x kept between 0 and 6.

    >>> import weft as wf
    >>> wf.nn.ReLU6()(wf.tensor([-1.0, 2.0, 9.0]))
    tensor([0., 2., 6.])
    """

    def forward(self, x: Any) -> Any:
        return F.relu6(x)


class LeakyReLU(_Activation):
    """x where it is positive, else negative_slope * x.

    >>> import weft as wf
    >>> wf.nn.LeakyReLU(0.5)(wf.tensor([-1.0, 2.0]))
    tensor([-0.5,  2. ])
    """

    names = ("negative_slope",)

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        self._keep(negative_slope)

    def forward(self, x: Any) -> Any:
        return F.leaky_relu(x, *self._kept())


class PReLU(Module):
    """LeakyReLU with slopes that are learnt: one, or one per channel of x (N, C, …).

    >>> import weft as wf
    >>> wf.nn.PReLU()(wf.tensor([-1.0, 2.0]))
    tensor([-0.25,  2.  ], grad_fn=<leaky_relu>)
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25, *, dtype: Any = None) -> None:
        self.num_parameters = size(num_parameters, "PReLU num_parameters")
        self.init = number(init, "PReLU", "init")
        self.weight = Parameter(empty((self.num_parameters,), dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """All slopes the first one."""
        init.constant_(self.weight, self.init)

    def forward(self, x: Any) -> Any:
        return F.prelu(x, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class ELU(_Activation):
    """x where it is positive, else alpha * (exp(x) - 1).

    >>> import weft as wf
    >>> wf.nn.ELU()(wf.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.    ])
    """

    names = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        self._keep(alpha)

    def forward(self, x: Any) -> Any:
        return F.elu(x, *self._kept())


class SELU(_InPlace):
    """ELU, scaled so that activations keep mean 0 and variance 1.

    >>> import weft as wf
    >>> wf.nn.SELU()(wf.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """

    def forward(self, x: Any) -> Any:
        return F.selu(x)


class CELU(_Activation):
    """x where it is positive, else alpha * (exp(x / alpha) - 1).

    >>> import weft as wf
    >>> wf.nn.CELU(2.0)(wf.tensor([-1.0, 2.0]))
    tensor([-0.7869,  2.    ])
    """

    names = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        self._keep(alpha)

    def forward(self, x: Any) -> Any:
        return F.celu(x, *self._kept())


class GELU(_Activation):
    """x times the normal distribution function of x, or of a tanh near it.

    >>> import weft as wf
    >>> wf.nn.GELU()(wf.tensor([-1.0, 2.0]))
    tensor([-0.1587,  1.9545])
    """

    names = ("approximate",)

    def __init__(self, approximate: str = "none") -> None:
        self._keep(approximate)

    def forward(self, x: Any) -> Any:
        return F.gelu(x, *self._kept())


class SiLU(_InPlace):
    """x * sigmoid(x).

    >>> import weft as wf
    >>> wf.nn.SiLU()(wf.tensor([-1.0, 2.0]))
    tensor([-0.2689,  1.7616])
    """

    def forward(self, x: Any) -> Any:
        return F.silu(x)


class Mish(_InPlace):
    """x * tanh(softplus(x)).

    >>> import weft as wf
    >>> wf.nn.Mish()(wf.tensor([-1.0, 2.0]))
    tensor([-0.3034,  1.944 ])
    """

    def forward(self, x: Any) -> Any:
        return F.mish(x)


class Hardswish(_InPlace):
    """x * clip(x + 3, 0, 6) / 6.

    >>> import weft as wf
    >>> wf.nn.Hardswish()(wf.tensor([-4.0, 0.0, 4.0]))
    tensor([-0.,  0.,  4.])
    """

    def forward(self, x: Any) -> Any:
        return F.hardswish(x)


class Hardsigmoid(_InPlace):
    """clip(x + 3, 0, 6) / 6.

    >>> import weft as wf
    >>> wf.nn.Hardsigmoid()(wf.tensor([-4.0, 0.0, 4.0]))
    tensor([0. , 0.5, 1. ])
    """

    def forward(self, x: Any) -> Any:
        return F.hardsigmoid(x)


class Hardtanh(_Activation):
    """x kept between two bounds.

    >>> import weft as wf
    >>> wf.nn.Hardtanh()(wf.tensor([-4.0, 0.5, 4.0]))
    tensor([-1. ,  0.5,  1. ])
    """

    names = ("min_val", "max_val")

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        self._keep(min_val, max_val)

    def forward(self, x: Any) -> Any:
        return F.hardtanh(x, *self._kept())


class Tanh(_Activation):
    """The hyperbolic tangent.

    >>> import weft as wf
    >>> wf.nn.Tanh()(wf.tensor([-1.0, 0.0]))
    tensor([-0.7616,  0.    ])
    """

    def forward(self, x: Any) -> Any:
        return F.tanh(x)


class Sigmoid(_Activation):
    """1 / (1 + exp(-x)).

    >>> import weft as wf
    >>> wf.nn.Sigmoid()(wf.tensor([0.0, 2.0]))
    tensor([0.5   , 0.8808])
    """

    def forward(self, x: Any) -> Any:
        return F.sigmoid(x)


class LogSigmoid(_Activation):
    """The logarithm of sigmoid.

    >>> import weft as wf
    >>> wf.nn.LogSigmoid()(wf.tensor([0.0, 4.0]))
    tensor([-0.6931, -0.0181])
    """

    def forward(self, x: Any) -> Any:
        return F.logsigmoid(x)


class Softplus(_Activation):
    """log(1 + exp(beta * x)) / beta.

    >>> import weft as wf
    >>> wf.nn.Softplus()(wf.tensor([0.0, 30.0]))
    tensor([ 0.6931, 30.    ])
    """

    names = ("beta", "threshold")

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        self._keep(beta, threshold)

    def forward(self, x: Any) -> Any:
        return F.softplus(x, *self._kept())


class Softsign(_Activation):
    """x / (1 + |x|).

    >>> import weft as wf
    >>> wf.nn.Softsign()(wf.tensor([-1.0, 3.0]))
    tensor([-0.5 ,  0.75])
    """

    def forward(self, x: Any) -> Any:
        return F.softsign(x)


class Tanhshrink(_Activation):
    """x - tanh(x).

    >>> import weft as wf
    >>> wf.nn.Tanhshrink()(wf.tensor([0.0, 1.0]))
    tensor([0.    , 0.2384])
    """

    def forward(self, x: Any) -> Any:
        return F.tanhshrink(x)


class Softshrink(_Activation):
    """x moved towards zero by lambd.

    >>> import weft as wf
    >>> wf.nn.Softshrink()(wf.tensor([-1.0, 0.25, 2.0]))
    tensor([-0.5,  0. ,  1.5])
    """

    names = ("lambd",)

    def __init__(self, lambd: float = 0.5) -> None:
        self._keep(lambd)

    def forward(self, x: Any) -> Any:
        return F.softshrink(x, *self._kept())


class Hardshrink(Softshrink):
    """x where it is further from zero than lambd, else 0.

    >>> import weft as wf
    >>> wf.nn.Hardshrink()(wf.tensor([-1.0, 0.25, 2.0]))
    tensor([-1.,  0.,  2.])
    """

    def forward(self, x: Any) -> Any:
        return F.hardshrink(x, *self._kept())


class Threshold(_Activation):
    """x where it is above a threshold, else another value.

    >>> import weft as wf
    >>> wf.nn.Threshold(0.5, 9.0)(wf.tensor([-1.0, 2.0]))
    tensor([9., 2.])
    """

    names = ("threshold", "value")

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        self._keep(threshold, value)

    def forward(self, x: Any) -> Any:
        return F.threshold(x, *self._kept())


class GLU(_Activation):
    """The first half of an axis times the sigmoid of the second.

    >>> import weft as wf
    >>> wf.nn.GLU()(wf.tensor([3.0, 4.0, 0.0, 0.0]))
    tensor([1.5, 2. ])
    """

    names = ("dim",)

    def __init__(self, dim: int = -1) -> None:
        self._keep(dim)

    def forward(self, x: Any) -> Any:
        return F.glu(x, *self._kept())


class Softmax(_Activation):
    """exp(x) / sum(exp(x)) along an axis, the last one unless said.

    >>> import weft as wf
    >>> wf.nn.Softmax()(wf.tensor([0.0, 0.0]))
    tensor([0.5, 0.5])
    """

    names = ("dim",)

    def __init__(self, dim: int = -1) -> None:
        self._keep(dim)

    def forward(self, x: Any) -> Any:
        return F.softmax(x, *self._kept())


class LogSoftmax(Softmax):
    """The logarithm of Softmax.

    >>> import weft as wf
    >>> wf.nn.LogSoftmax(dim=-1)(wf.tensor([0.0, 0.0]))
    tensor([-0.6931, -0.6931])
    """

    def forward(self, x: Any) -> Any:
        return F.log_softmax(x, *self._kept())


class Dropout(_Activation):
    """In training, elements are zeroed with probability p and the others divided by 1 - p.

    >>> import weft as wf
    >>> wf.nn.Dropout(0.5).eval()(wf.ones(3))
    tensor([1., 1., 1.])
    """

    names = ("p",)

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        self.p = number(p, type(self).__name__, "a probability", 0, 1)

    def forward(self, x: Any) -> Any:
        return F.dropout(x, self.p, self.training)


class Dropout1d(Dropout):
    """Dropout of whole channels of x (N, C, L).

    >>> import weft as wf
    >>> wf.nn.Dropout1d(0.5).eval()(wf.ones((1, 2, 3))).shape
    (1, 2, 3)
    """

    def forward(self, x: Any) -> Any:
        return F.dropout1d(x, self.p, self.training)


class Dropout2d(Dropout):
    """Dropout of whole channels of x (N, C, H, W).

    >>> import weft as wf
    >>> wf.nn.Dropout2d(0.5).eval()(wf.ones((1, 2, 3, 3))).shape
    (1, 2, 3, 3)
    """

    def forward(self, x: Any) -> Any:
        return F.dropout2d(x, self.p, self.training)
