"""Values for which rules that look right are wrong: signed zeros, infinities, NaN, numbers too
small to be normal, the least and the largest.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np


def of(dtype: np.dtype) -> np.ndarray:
    """Those of a dtype."""
    if dtype == np.bool_:
        return np.array([False, True])
    if dtype.kind in "iu":
        i = np.iinfo(dtype)
        return np.array([0, 1, i.min, i.max, i.max - 1], dtype)
    f = ml_dtypes.finfo(dtype)
    small, tiny, most = float(f.smallest_subnormal), float(f.tiny), float(f.max)
    some = [-0.0, 0.0, np.inf, -np.inf, np.nan, small, -small, tiny, most, -most, 1.0]
    return np.array(some).astype(dtype)


def among(a: np.ndarray, rng: np.random.Generator, part: float = 0.3) -> np.ndarray:
    """The array with such values in a part of its places."""
    return np.where(rng.random(a.shape) < part, rng.choice(of(a.dtype), a.shape), a).astype(a.dtype)


def bits(a: np.ndarray) -> bytes:
    """The bits, but for what IEEE leaves open: the sign and payload of what is not a number."""
    a = np.array(a)
    nan = a != a
    if nan.any():
        a[nan] = np.nan
    return a.tobytes()
