"""The law of integers: what C leaves undefined is what NumPy gives, for every dtype."""

from __future__ import annotations

import pytest

import weft as wf
from tests.laws import integers
from tests.laws.lab import differences, failed


@pytest.mark.parametrize("kind", [integers.results, integers.casts], ids=["arithmetic", "casts"])
def test_integers_are_as_numpy_has_them(kind):
    found = list(kind())
    failed(
        [said for what, got, want in found for said in differences([got], [want], what)], len(found)
    )
    print(f"\n{len(found)} kinds of arithmetic and casts")


@pytest.mark.tiny
@pytest.mark.parametrize("said", ["//", "%"])
def test_a_number_that_is_zero_is_refused_as_a_divisor(said):
    for d in integers.INTEGERS:
        with pytest.raises(wf.errors.DivisionError, match="other than 0"):
            integers.OPERATORS[said](wf.ones(3, dtype=d), 0)
