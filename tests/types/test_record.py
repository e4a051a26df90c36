import dataclasses
import pickle
from dataclasses import field
from typing import ClassVar

import pytest

from weft.types.record import dataclass

pytestmark = pytest.mark.tiny


def point(decorate):
    """The same class by either decorator: a default, a factory, fields left out of comparing."""

    @decorate(frozen=True)
    class Point:
        """A point."""

        kind: ClassVar[str] = "point"
        x: int
        y: float = 2.0
        tags: list = field(default_factory=list, compare=False, repr=False)
        name: str = field(default="p", compare=False)
        size: int = field(init=False)

        def __post_init__(self):
            object.__setattr__(self, "size", self.x + len(self.tags))

    return Point


ours, theirs = point(dataclass), point(dataclasses.dataclass)


@dataclass(frozen=True)
class Nothing:
    pass


@pytest.mark.parametrize("args", [(1,), (1, 3.0), (1, 3.0, ["t"]), (1, 3.0, [], "q")])
def test_is_made_and_shown_as_the_standard_one(args):
    a, b = ours(*args), theirs(*args)
    assert repr(a) == repr(b)
    assert dataclasses.asdict(a) == dataclasses.asdict(b)
    assert dataclasses.replace(a, x=7).size == dataclasses.replace(b, x=7).size


def test_equal_and_hashed_by_the_compared_fields_of_one_class():
    a = ours(1, 2.0)
    assert a == ours(1, 2.0, name="other") and hash(a) == hash(ours(1, 2.0, name="other"))
    assert a != ours(2, 2.0) and a != theirs(1, 2.0) and a != (1, 2.0)
    assert a != ours(1, 2.0, ["longer"])  # `size` is compared


def test_every_instance_has_a_list_of_its_own():
    assert ours(1).tags is not ours(1).tags


@pytest.mark.parametrize(
    ("args", "kwargs"), [((), {}), ((1, 2, 3, 4, 5), {}), ((1,), {"z": 2}), ((1,), {"size": 2})]
)
def test_wrong_arguments_raise_as_ever(args, kwargs):
    with pytest.raises(TypeError):
        ours(*args, **kwargs)


def test_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        ours(1).x = 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        del ours(1).x


def test_methods_of_the_class_stay():
    @dataclass(frozen=True)
    class Loud:
        x: int

        def __repr__(self):
            return "LOUD"

        def __hash__(self):
            return 7

    assert repr(Loud(1)) == "LOUD" and hash(Loud(1)) == 7 and Loud(1) == Loud(1)


def test_one_field_none_at_all_and_identity():
    @dataclass(frozen=True)
    class One:
        x: float

    @dataclass(frozen=True, eq=False)
    class Self:
        x: int

    nan = float("nan")
    assert One(nan) == One(nan) and hash(One(1.0)) == hash(One(1.0))
    assert Nothing() == Nothing() and repr(Nothing()) == "Nothing()"
    me = Self(1)
    assert me != Self(1) and len({me, Self(1), me}) == 2


def test_pickles():
    assert pickle.loads(pickle.dumps(slice(1, Nothing()))) == slice(1, Nothing())


def test_anything_else_is_the_standard_decorator():
    @dataclass(frozen=True, slots=True)
    class Slotted:
        x: int

    @dataclass
    class Loose:
        x: int

    assert Slotted.__slots__ == ("x",)
    loose = Loose(1)
    loose.x = 2
    assert loose == Loose(2)
