"""Images and sequences of another size, as modules."""

from __future__ import annotations

from typing import Any

from weft.nn import functional as F
from weft.nn.module import Module


class Upsample(Module):
    """x (N, C, L) or (N, C, H, W) at another size, or at its own times a factor.

    >>> import weft as wf
    >>> wf.nn.Upsample(scale_factor=2)(wf.ones((1, 3, 4, 4))).shape
    (1, 3, 8, 8)
    """

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
    ) -> None:
        self.size, self.scale_factor = size, scale_factor
        self.mode, self.align_corners = mode, align_corners

    def forward(self, x: Any) -> Any:
        return F.interpolate(x, self.size, self.scale_factor, self.mode, self.align_corners)

    def extra_repr(self) -> str:
        by = f"scale_factor={self.scale_factor}" if self.size is None else f"size={self.size}"
        return f"{by}, mode={self.mode!r}"


class PixelShuffle(Module):
    """x (…, C r², H, W) as (…, C, H r, W r): channels become pixels.

    >>> import weft as wf
    >>> wf.nn.PixelShuffle(2)(wf.ones((1, 12, 3, 3))).shape
    (1, 3, 6, 6)
    """

    def __init__(self, upscale_factor: int) -> None:
        self.upscale_factor = upscale_factor

    def forward(self, x: Any) -> Any:
        return F.pixel_shuffle(x, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """x (…, C, H r, W r) as (…, C r², H, W): what `PixelShuffle` undoes.

    >>> import weft as wf
    >>> wf.nn.PixelUnshuffle(2)(wf.ones((1, 3, 6, 6))).shape
    (1, 12, 3, 3)
    """

    def __init__(self, downscale_factor: int) -> None:
        self.downscale_factor = downscale_factor

    def forward(self, x: Any) -> Any:
        return F.pixel_unshuffle(x, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"
