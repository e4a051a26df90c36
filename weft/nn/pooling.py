"""Pooling as modules."""

from __future__ import annotations

from typing import Any

from weft.nn import functional as F
from weft.nn.module import Module
from weft.tensor.arguments import flag


class _MaxPool(Module):
    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.dilation = dilation
        self.return_indices = flag(return_indices, "return_indices")
        self.ceil_mode = flag(ceil_mode, "ceil_mode")

    def _said(self) -> tuple[Any, ...]:
        shape = (self.kernel_size, self.stride, self.padding, self.dilation)
        return (*shape, self.ceil_mode, self.return_indices)

    def extra_repr(self) -> str:
        stride = self.kernel_size if self.stride is None else self.stride
        said = f"kernel_size={self.kernel_size}, stride={stride}, padding={self.padding}"
        return f"{said}, dilation={self.dilation}, ceil_mode={self.ceil_mode}"


class MaxPool1d(_MaxPool):
    """The largest element of each window along the last axis.

    >>> import weft as wf
    >>> wf.nn.MaxPool1d(2)(wf.tensor([[1.0, 5.0, 2.0, 3.0]]))
    tensor([[5., 3.]])
    """

    def forward(self, x: Any) -> Any:
        return F.max_pool1d(x, *self._said())


class MaxPool2d(_MaxPool):
    """The largest element of each window over the last two axes.

    >>> import weft as wf
    >>> wf.nn.MaxPool2d(2)(wf.ones((1, 3, 8, 8))).shape
    (1, 3, 4, 4)
    """

    def forward(self, x: Any) -> Any:
        return F.max_pool2d(x, *self._said())


class AvgPool1d(Module):
    """The mean of each window along the last axis.

    >>> import weft as wf
    >>> wf.nn.AvgPool1d(2)(wf.tensor([[1.0, 5.0, 2.0, 3.0]]))
    tensor([[3. , 2.5]])
    """

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.ceil_mode = flag(ceil_mode, "ceil_mode")
        self.count_include_pad = flag(count_include_pad, "count_include_pad")

    def _said(self) -> tuple[Any, ...]:
        shape = (self.kernel_size, self.stride, self.padding)
        return (*shape, self.ceil_mode, self.count_include_pad)

    def forward(self, x: Any) -> Any:
        return F.avg_pool1d(x, *self._said())

    def extra_repr(self) -> str:
        stride = self.kernel_size if self.stride is None else self.stride
        return f"kernel_size={self.kernel_size}, stride={stride}, padding={self.padding}"


class AvgPool2d(AvgPool1d):
    """The mean of each window over the last two axes.

    >>> import weft as wf
    >>> wf.nn.AvgPool2d(2)(wf.ones((1, 3, 8, 8))).shape
    (1, 3, 4, 4)
    """

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__(kernel_size, stride, padding, ceil_mode, count_include_pad)
        self.divisor_override = divisor_override

    def forward(self, x: Any) -> Any:
        shape = (self.kernel_size, self.stride, self.padding)
        how = (self.ceil_mode, self.count_include_pad, self.divisor_override)
        return F.avg_pool2d(x, *shape, *how)


class _Adaptive(Module):
    def __init__(self, output_size: Any) -> None:
        self.output_size = output_size

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_Adaptive):
    """The means of `output_size` windows of nearly equal length.

    >>> import weft as wf
    >>> wf.nn.AdaptiveAvgPool1d(2)(wf.tensor([[1.0, 5.0, 2.0, 3.0]]))
    tensor([[3. , 2.5]])
    """

    def forward(self, x: Any) -> Any:
        return F.adaptive_avg_pool1d(x, self.output_size)


class AdaptiveAvgPool2d(_Adaptive):
    """The means of `output_size` windows of nearly equal size; None leaves an axis as it is.

    >>> import weft as wf
    >>> wf.nn.AdaptiveAvgPool2d(1)(wf.ones((1, 3, 8, 8))).shape
    (1, 3, 1, 1)
    """

    def forward(self, x: Any) -> Any:
        return F.adaptive_avg_pool2d(x, self.output_size)


class AdaptiveMaxPool1d(_Adaptive):
    """The largest elements of `output_size` windows of nearly equal length.

    >>> import weft as wf
    >>> wf.nn.AdaptiveMaxPool1d(2)(wf.tensor([[1.0, 5.0, 2.0, 3.0]]))
    tensor([[5., 3.]])
    """

    def forward(self, x: Any) -> Any:
        return F.adaptive_max_pool1d(x, self.output_size)


class AdaptiveMaxPool2d(_Adaptive):
    """The largest elements of `output_size` windows of nearly equal size.

    >>> import weft as wf
    >>> wf.nn.AdaptiveMaxPool2d(1)(wf.ones((2, 3, 5, 7))).shape
    (2, 3, 1, 1)
    """

    def forward(self, x: Any) -> Any:
        return F.adaptive_max_pool2d(x, self.output_size)
