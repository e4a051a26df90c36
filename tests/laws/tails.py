"""Every length of a vector and its tail, for the families whose elements or rows do not depend on
their neighbours.
"""

from __future__ import annotations

import numpy as np

import weft as wf
from tests.laws.lab import Array, good
from weft.ops.define import OPS

LONGEST = 70
TAILED: list[str] = []


def tail(name: str) -> list[Array]:
    return []
