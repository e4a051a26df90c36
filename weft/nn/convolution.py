"""Convolutions over x (N, C, …); weights as PyTorch lays them out."""

from __future__ import annotations

import math
from typing import Any

from weft.errors import ShapeError
from weft.nn import functional as F, init
from weft.nn.functional.convolution import per_axis
from weft.nn.linear import size
from weft.nn.module import Module
from weft.nn.parameter import Parameter
from weft.ops.define import in_standard_mode
from weft.tensor.arguments import flag, word
from weft.tensor.creation import empty

Ints = tuple[int, ...]
_MODES = ("zeros", "reflect", "replicate", "circular")


class _Convolution(Module):
    """What all convolutions have: filters, a bias, and how to go over the axes."""

    spatial: int
    transposed: bool = False
    bias: Parameter | None

    def _build(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        dilation: Any,
        groups: int,
        bias: bool,
        dtype: Any,
    ) -> None:
        name = type(self).__name__
        self.in_channels = size(in_channels, f"{name} in_channels")
        self.out_channels = size(out_channels, f"{name} out_channels")
        self.groups = size(groups, f"{name} groups")
        if self.in_channels % self.groups or self.out_channels % self.groups:
            raise ShapeError(
                name,
                expected=f"channels that {self.groups} groups divide",
                got=f"{self.in_channels} in, {self.out_channels} out",
            )
        n = self.spatial
        self.kernel_size = per_axis(name, "kernel_size", kernel_size, n, 1)
        self.stride = per_axis(name, "stride", stride, n, 1)
        self.dilation = per_axis(name, "dilation", dilation, n, 1)
        self.padding: Any = padding
        if isinstance(padding, str):
            word(padding, f"{name} padding", ("valid", "same"))
            if padding == "same" and max(self.stride) > 1:
                got = f"stride {self.stride}"
                raise ShapeError(name, expected="stride 1 with padding 'same'", got=got)
        else:
            self.padding = per_axis(name, "padding", padding, n, 0)
        ins, outs = self.in_channels, self.out_channels
        lead = (ins, outs // self.groups) if self.transposed else (outs, ins // self.groups)
        self.weight = Parameter(empty((*lead, *self.kernel_size), dtype=dtype))
        wanted = flag(bias, f"{name} bias")
        self.register_parameter("bias", Parameter(empty((outs,), dtype=dtype)) if wanted else None)
        self.reset_parameters()

    @in_standard_mode
    def reset_parameters(self) -> None:
        """Other first values: uniform within 1 / sqrt(fan in)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5.0))
        if self.bias is not None:
            bound = 1.0 / math.sqrt(init.fans(self.weight)[0])
            init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        said = [f"{self.in_channels}, {self.out_channels}", f"kernel_size={self.kernel_size}"]
        said.append(f"stride={self.stride}")
        for name, usual in (("padding", 0), ("dilation", 1), ("output_padding", 0)):
            value = getattr(self, name, (usual,) * self.spatial)
            if value != (usual,) * self.spatial:
                said.append(f"{name}={value}")
        said += [f"groups={self.groups}"] * (self.groups > 1) + ["bias=False"] * (self.bias is None)
        mode = getattr(self, "padding_mode", "zeros")
        said += [f"padding_mode={mode}"] * (mode != "zeros")
        return ", ".join(said)


class _Forward(_Convolution):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        *,
        dtype: Any = None,
    ) -> None:
        self.padding_mode = word(padding_mode, f"{type(self).__name__} padding_mode", _MODES)
        self._build(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, dtype
        )

    def forward(self, x: Any) -> Any:
        conv = F.conv1d if self.spatial == 1 else F.conv2d
        padding = self.padding
        if self.padding_mode != "zeros":
            x, padding = F.pad(x, self._borders(), mode=self.padding_mode), 0
        return conv(x, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)

    def _borders(self) -> list[int]:
        """Widths to pad by, the last axis first."""
        out: list[int] = []
        for axis in reversed(range(self.spatial)):
            if self.padding == "same":
                whole = self.dilation[axis] * (self.kernel_size[axis] - 1)
                out += [whole // 2, whole - whole // 2]
            else:
                out += [0 if self.padding == "valid" else self.padding[axis]] * 2
        return out


class Conv1d(_Forward):
    """Filters (out, in / groups, k) over x (N, in, L).

    >>> import weft as wf
    >>> wf.nn.Conv1d(2, 4, 3, padding=1)(wf.ones((5, 2, 8))).shape
    (5, 4, 8)
    """

    spatial = 1


class Conv2d(_Forward):
    """Filters (out, in / groups, kh, kw) over x (N, in, H, W).

    >>> import weft as wf
    >>> wf.nn.Conv2d(3, 8, 3, stride=2)(wf.ones((1, 3, 9, 9))).shape
    (1, 8, 4, 4)
    """

    spatial = 2


class _Transposed(_Convolution):
    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        *,
        dtype: Any = None,
    ) -> None:
        name = type(self).__name__
        if isinstance(padding, str):
            raise ShapeError(name, expected="padding as numbers", got=repr(padding))
        self.output_padding = per_axis(name, "output_padding", output_padding, self.spatial, 0)
        self._build(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, dtype
        )

    def forward(self, x: Any, output_size: Any = None) -> Any:
        conv = F.conv_transpose1d if self.spatial == 1 else F.conv_transpose2d
        more = self.output_padding if output_size is None else self._reach(x, output_size)
        return conv(
            x, self.weight, self.bias, self.stride, self.padding, more, self.groups, self.dilation
        )

    def _reach(self, x: Any, output_size: Any) -> Ints:
        """The output padding that gives a size."""
        name = type(self).__name__
        wanted = per_axis(name, "output_size", tuple(output_size)[-self.spatial :], self.spatial, 1)
        out = []
        for axis, n in enumerate(x.shape[-self.spatial :]):
            least = (n - 1) * self.stride[axis] - 2 * self.padding[axis]
            least += self.dilation[axis] * (self.kernel_size[axis] - 1) + 1
            most = least + self.stride[axis] - 1
            if not least <= wanted[axis] <= most:
                expected = f"an output_size from {least} to {most} along axis {axis}"
                raise ShapeError(name, expected=expected, got=str(wanted[axis]))
            out.append(wanted[axis] - least)
        return tuple(out)


class ConvTranspose1d(_Transposed):
    """The transpose of Conv1d; filters are (in, out / groups, k).

    >>> import weft as wf
    >>> wf.nn.ConvTranspose1d(8, 3, 2, stride=2)(wf.ones((1, 8, 4))).shape
    (1, 3, 8)
    """

    spatial = 1


class ConvTranspose2d(_Transposed):
    """The transpose of Conv2d; filters are (in, out / groups, kh, kw).

    >>> import weft as wf
    >>> wf.nn.ConvTranspose2d(8, 3, 2, stride=2)(wf.ones((1, 8, 4, 4))).shape
    (1, 3, 8, 8)
    """

    spatial = 2
