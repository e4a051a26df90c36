"""The floating-point mode of the host program: rounding, and what becomes of denormal numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import mxcsr
from mxcsr import MODES


@contextmanager
def host_mode(name: str) -> Iterator[None]:
    """Run a block in that mode, and see that it is still the mode at the end."""
    mxcsr.put(MODES[name])
    try:
        yield
        then = mxcsr.get()
    finally:
        mxcsr.put(mxcsr.STANDARD)
    assert then & 0xFFC0 == MODES[name], f"the host's mode was left as {then:#x}"
