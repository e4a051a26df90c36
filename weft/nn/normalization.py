"""Normalisation layers. Running statistics are buffers that training assigns to."""

from __future__ import annotations

from typing import Any

from weft.autodiff.mode import no_grad
from weft.errors import ShapeError
from weft.nn import functional as F, init
from weft.nn.linear import size
from weft.nn.module import Module
from weft.nn.parameter import Parameter
from weft.ops.elementwise import astype
from weft.tensor.arguments import flag, number, sizes
from weft.tensor.creation import empty, ones, zeros, zeros_like
from weft.tensor.data import tensor
from weft.tensor.shapes import expand_dims, squeeze
from weft.tensor.tensor import Tensor
from weft.types.dtype import int64


def _affine(module: Module, shape: Any, weight: bool, bias: bool, dtype: Any) -> None:
    """A weight of ones and a bias of zeros, each if wanted."""
    for name, wanted in (("weight", weight), ("bias", bias)):
        p = Parameter(empty(shape, dtype=dtype)) if wanted else None
        module.register_parameter(name, p)


def _reset_affine(module: Any) -> None:
    if module.weight is not None:
        init.ones_(module.weight)
    if getattr(module, "bias", None) is not None:
        init.zeros_(module.bias)


class _BatchNorm(Module):
    axes: tuple[int, ...]
    weight: Parameter | None
    bias: Parameter | None
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        *,
        bias: bool = True,
        dtype: Any = None,
    ) -> None:
        name = type(self).__name__
        self.num_features = size(num_features, f"{name} num_features")
        self.eps = number(eps, name, "eps", least=0)
        self.momentum = None if momentum is None else number(momentum, name, "momentum", 0, 1)
        self.affine = flag(affine, f"{name} affine")
        self.track_running_stats = flag(track_running_stats, f"{name} track_running_stats")
        n = self.num_features
        _affine(self, (n,), self.affine, self.affine and flag(bias, f"{name} bias"), dtype)
        tracked = self.track_running_stats
        self.register_buffer("running_mean", zeros(n, dtype=dtype) if tracked else None)
        self.register_buffer("running_var", ones(n, dtype=dtype) if tracked else None)
        count = tensor(0, dtype=int64) if tracked else None
        self.register_buffer("num_batches_tracked", count)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Mean 0 and variance 1, of no batches."""
        if self.running_mean is not None and self.running_var is not None:
            init.zeros_(self.running_mean)
            init.ones_(self.running_var)
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.assign(0)

    def reset_parameters(self) -> None:
        """Weight 1 and bias 0, and no running statistics."""
        self.reset_running_stats()
        _reset_affine(self)

    def forward(self, x: Any) -> Any:
        if x.ndim not in self.axes:
            said = " or ".join(map(str, self.axes))
            raise ShapeError(type(self).__name__, expected=f"{said} axes", got=str(x.type))
        if not self.training or self.num_batches_tracked is None:
            batch = self.training or self.running_mean is None
            mean, var = (None, None) if batch else (self.running_mean, self.running_var)
            return F.batch_norm(x, mean, var, self.weight, self.bias, batch, 0.0, self.eps)
        with no_grad():
            self.num_batches_tracked.assign(self.num_batches_tracked + 1)
        if self.momentum is None:
            return self._averaged(x)
        return F.batch_norm(
            x,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            True,
            self.momentum,
            self.eps,
        )

    def _averaged(self, x: Any) -> Any:
        """In training, with running statistics that are the mean over all batches so far."""
        running = [self.running_mean, self.running_var]
        now = [zeros_like(r) for r in running]
        out = F.batch_norm(x, now[0], now[1], self.weight, self.bias, True, 1.0, self.eps)
        with no_grad():
            for old, new in zip(running, now, strict=True):
                count = astype(self.num_batches_tracked, dtype=old.dtype)  # type: ignore[union-attr]
                old.assign(old + (new - old) / count)  # type: ignore[union-attr]
        return out

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(_BatchNorm):
    """Channels of x (N, C) or (N, C, L) brought to mean 0 and variance 1 over the batch.

    >>> import weft as wf
    >>> wf.nn.BatchNorm1d(3)(wf.randn(8, 3)).shape
    (8, 3)
    """

    axes = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Channels of x (N, C, H, W) brought to mean 0 and variance 1 over the batch.

    >>> import weft as wf
    >>> norm = wf.nn.BatchNorm2d(3)
    >>> norm(wf.randn(8, 3, 4, 4)).shape, int(norm.num_batches_tracked)
    ((8, 3, 4, 4), 1)
    """

    axes = (4,)


class _InstanceNorm(_BatchNorm):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        *,
        bias: bool = True,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, bias=bias, dtype=dtype
        )

    def forward(self, x: Any) -> Any:
        lone, batched = self.axes
        if x.ndim not in self.axes:
            expected = f"{lone} or {batched} axes"
            raise ShapeError(type(self).__name__, expected=expected, got=str(x.type))
        own = self.training or self.running_mean is None
        out = F.instance_norm(
            x if x.ndim == batched else expand_dims(x, 0),
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            own,
            self.momentum,  # type: ignore[arg-type]
            self.eps,
        )
        return out if x.ndim == batched else squeeze(out, 0)


class InstanceNorm1d(_InstanceNorm):
    """Channels of each x (C, L) brought to mean 0 and variance 1.

    >>> import weft as wf
    >>> wf.nn.InstanceNorm1d(3)(wf.randn(8, 3, 5)).shape
    (8, 3, 5)
    """

    axes = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Channels of each x (C, H, W) brought to mean 0 and variance 1.

    >>> import weft as wf
    >>> wf.nn.InstanceNorm2d(3)(wf.randn(8, 3, 5, 5)).shape
    (8, 3, 5, 5)
    """

    axes = (3, 4)


class LayerNorm(Module):
    """The last axes brought to mean 0 and variance 1, then scaled and shifted.

    >>> import weft as wf
    >>> wf.nn.LayerNorm(4)(wf.randn(2, 3, 4)).shape
    (2, 3, 4)
    """

    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        *,
        dtype: Any = None,
    ) -> None:
        self.normalized_shape = sizes(normalized_shape, "LayerNorm normalized_shape")
        self.eps = number(eps, "LayerNorm", "eps", least=0)
        self.elementwise_affine = flag(elementwise_affine, "LayerNorm elementwise_affine")
        shifted = flag(bias, "LayerNorm bias") and self.elementwise_affine
        _affine(self, self.normalized_shape, self.elementwise_affine, shifted, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weight 1 and bias 0."""
        _reset_affine(self)

    def forward(self, x: Any) -> Any:
        return F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        affine = self.elementwise_affine
        said = f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={affine}"
        return f"{said}, bias={self.bias is not None}"


class RMSNorm(Module):
    """The last axes divided by the root of their mean square, then scaled.

    >>> import weft as wf
    >>> wf.nn.RMSNorm(3)(wf.tensor([3.0, 3.0, -3.0])).tolist()
    [1.0, 1.0, -1.0]
    """

    weight: Parameter | None

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        *,
        dtype: Any = None,
    ) -> None:
        self.normalized_shape = sizes(normalized_shape, "RMSNorm normalized_shape")
        self.eps = None if eps is None else number(eps, "RMSNorm", "eps", least=0)
        self.elementwise_affine = flag(elementwise_affine, "RMSNorm elementwise_affine")
        p = Parameter(empty(self.normalized_shape, dtype=dtype))
        self.register_parameter("weight", p if self.elementwise_affine else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weight 1."""
        _reset_affine(self)

    def forward(self, x: Any) -> Any:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        affine = self.elementwise_affine
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={affine}"


class GroupNorm(Module):
    """Groups of channels of each example of x (N, C, …) brought to mean 0 and variance 1.

    >>> import weft as wf
    >>> wf.nn.GroupNorm(2, 6)(wf.randn(4, 6, 5)).shape
    (4, 6, 5)
    """

    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        *,
        bias: bool = True,
        dtype: Any = None,
    ) -> None:
        self.num_groups = size(num_groups, "GroupNorm num_groups")
        self.num_channels = size(num_channels, "GroupNorm num_channels")
        if self.num_channels % self.num_groups:
            got = f"{self.num_channels} channels"
            expected = f"channels that {self.num_groups} groups divide"
            raise ShapeError("GroupNorm", expected=expected, got=got)
        self.eps = number(eps, "GroupNorm", "eps", least=0)
        self.affine = flag(affine, "GroupNorm affine")
        shifted = self.affine and flag(bias, "GroupNorm bias")
        _affine(self, (self.num_channels,), self.affine, shifted, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weight 1 and bias 0."""
        _reset_affine(self)

    def forward(self, x: Any) -> Any:
        return F.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        said = f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"
        return f"{said}, bias={self.bias is not None}"
