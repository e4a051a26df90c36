"""Distance from the true value, in units in the last place."""

from __future__ import annotations

from typing import Any

import mpmath as mp
import numpy as np

Array = np.ndarray[Any, Any]
LEAST = {np.dtype(np.float32): (24, -149), np.dtype(np.float64): (53, -1074)}


def ulp(got: np.floating[Any], want: Any) -> float:
    """How far `got` is from the mpmath number `want`, in units of its type at `want`."""
    digits, least = LEAST[got.dtype]
    if mp.isnan(want) or np.isnan(got):
        return 0.0 if mp.isnan(want) and np.isnan(got) else np.inf
    if mp.isinf(want):
        return 0.0 if float(got) == float(want) else np.inf
    if want == 0:
        return 0.0 if got == 0 else np.inf
    unit = mp.ldexp(1, max(int(mp.frexp(abs(want))[1]) - digits, least))
    limit = mp.mpf(float(np.finfo(got.dtype).max))
    unit = min(unit, mp.ldexp(1, int(mp.frexp(limit)[1]) - digits))
    if np.isinf(got):  # stands for the number after the biggest, and all beyond
        return max(0.0, float((limit + unit - abs(want)) / unit)) if got * want > 0 else np.inf
    return float(abs(mp.mpf(float(got)) - want) / unit)


def ulps(got: Array, want: Array) -> Array:
    """The same for arrays of float32 and true values in float64, which may be infinite where
    float32 is.
    """
    size = np.abs(want)
    unit = np.ldexp(1.0, np.maximum(np.frexp(size)[1] - 24, -149))
    g = got.astype(np.float64)
    rounded = want.astype(np.float32)
    error = np.abs(g - want) / unit
    same = (g == want) | (np.isnan(g) & np.isnan(want)) | (np.isinf(g) & (got == rounded))
    biggest = np.finfo(np.float32).max
    error = np.where(np.isinf(g) & (size > biggest * (1 - 2**-23)) & (g * want > 0), 1.0, error)
    error = np.where(np.isinf(rounded) & (np.abs(g) == biggest) & (g * want > 0), 1.0, error)
    return np.where(same, 0.0, np.where(np.isnan(error), np.inf, error))
