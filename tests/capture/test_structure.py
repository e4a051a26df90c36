"""Structures of values: apart and together again they are what they were."""

import dataclasses
from collections import OrderedDict, defaultdict, namedtuple

import pytest
from hypothesis import given, strategies as st

from weft.capture.structure import flatten

pytestmark = pytest.mark.tiny
Pair = namedtuple("Pair", "a b")


@dataclasses.dataclass
class Record:
    a: object
    b: object = 0


leaves = st.one_of(st.integers(), st.floats(allow_nan=False), st.none(), st.text(max_size=2))
structures = st.recursive(
    leaves,
    lambda x: st.one_of(
        st.lists(x, max_size=3),
        st.lists(x, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=2), x, max_size=3),
        st.builds(Pair, x, x),
        st.builds(Record, x, x),
        st.dictionaries(st.text(max_size=2), x, max_size=3).map(OrderedDict),
        st.dictionaries(st.text(max_size=2), x, max_size=3).map(lambda d: defaultdict(list, d)),
    ),
    max_leaves=12,
)


@given(structures)
def test_apart_and_together(x):
    found, form = flatten(x)
    again = form.build(found)
    assert again == x and type(again) is type(x)
    assert form.count == len(found) == len(form.paths())
    other = flatten(again)
    assert other[1] == form and hash(other[1]) == hash(form)


@given(structures, structures)
def test_forms_are_equal_if_structures_are(x, y):
    (a, f), (b, g) = flatten(x), flatten(y)
    if f == g:
        assert g.build(a) == x and f.build(b) == y


def test_paths_are_what_a_reader_would_write():
    _, form = flatten({"a": (1, [2]), "r": Record(3, Pair(4, 5))})
    assert form.paths() == ["['a'][0]", "['a'][1][0]", "['r'].a", "['r'].b.a", "['r'].b.b"]


def test_order_of_keys_matters():
    """A function may go over them."""
    assert flatten({"a": 1, "b": 2})[1] != flatten({"b": 1, "a": 2})[1]
