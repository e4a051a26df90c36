"""What reductions fold by is one table, and nothing else is folded by."""

from __future__ import annotations

import pytest

from weft.ops.define import OPS
from weft.ops.monoids import MONOIDS, PLACES
from weft.ops.reduction import fold
from weft.ops.scalar import const
from weft.types.dtype import DTYPES

pytestmark = pytest.mark.tiny


def test_every_fold_is_in_the_table():
    assert {op.fold for op in OPS.values() if op.fold} == {*MONOIDS, *PLACES}


def test_another_name_is_refused():
    with pytest.raises(ValueError, match="fold 'xor': no monoid"):
        fold("xor", lambda d: d)
    assert "xor" not in OPS


@pytest.mark.parametrize("name", MONOIDS)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
def test_a_neutral_value_is_one_of_the_dtype(name, dtype):
    rule = MONOIDS[name]
    held = rule.held(dtype, dtype)
    number = rule.neutral(held)
    assert rule.join(const(number, held), const(number, held)).dtype is held
    assert held.np.type(number) == number
