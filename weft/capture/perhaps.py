"""What a variable, key or attribute has that some paths give a value and others don't: a value, and
a flag that says whether it is there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.capture.join import UNDEFINED, Unjoined, blank
from weft.capture.refusal import refused
from weft.capture.structure import LEAF, SPECIAL, Form, flatten
from weft.control.region import Region
from weft.ops.define import Value, capturing, data_of


class Unsure(str):
    """The name of a variable that may be read before it has a value."""

    __slots__ = ()


class Perhaps(Unjoined):
    """A value that is there if a flag says so."""

    def __init__(self, value: Any, flag: Any) -> None:
        for name, x in {"value": value, "flag": flag, "checked": [], "error": None}.items():
            object.__setattr__(self, name, x)

    def used(self, *_: Any, **__: Any) -> Any:
        raise refused(
            "a value that only some paths give",
            "a use by its name, key or attribute",
            "one by other ways",
            "give it a value before",
        )

    @property
    def is_checked(self) -> bool:
        """Whether an error was raised before, if it is not there."""
        now: Any = capturing.now
        while now is not None and now not in self.checked:
            now = getattr(now, "parent", None)
        return now is not None


def _parts(x: Perhaps) -> tuple[Form, Sequence[Any]]:
    leaves, form = flatten(x.value)
    return Form(Perhaps, (form,), (LEAF,) * (len(leaves) + 1)), [x.flag, *leaves]


def _built(form: Form, leaves: Sequence[Any]) -> Perhaps:
    return Perhaps(form.names[0].build(leaves[1:]), leaves[0])


SPECIAL[Perhaps] = _parts, _built


def sides(x: Any, y: Any, regions: Sequence[Any]) -> tuple[Any, Any]:
    """What two paths leave, if it is not there on some path: that it may be."""
    if not any(v is UNDEFINED or type(v) is Perhaps for v in (x, y)) or x is y:
        return x, y
    if type(x) is Unjoined or type(y) is Unjoined:
        return x, y
    left, right = (Perhaps(v, True) if type(v) is not Perhaps else v for v in (x, y))
    if x is UNDEFINED:
        left = Perhaps(_outside(right.value, regions), False)
    if y is UNDEFINED:
        right = Perhaps(_outside(left.value, regions), False)
    return left, right


def missing(x: Any) -> Perhaps:
    """What is there before the first value."""
    return Perhaps(blank(x.value if type(x) is Perhaps else x), False)


def _outside(x: Any, regions: Sequence[Any]) -> Any:
    """What stands for a value on the path that has not given it: it itself, where it was there
    before, so that it stays the one that other names have.
    """
    if isinstance(x, Value):
        made = any(data_of(x) in r.nodes for r in regions)
        return blank(x) if made else x
    leaves, form = flatten(x)
    if form.kind is None:
        return x
    if not any(id(x) in r.objects for r in regions) and form.kind in (list, dict):
        return x
    return form.build([_outside(v, regions) for v in leaves])


def there(x: Perhaps, unless: Callable[[Any], None]) -> Any:
    """The value; `unless` says what is raised if the flag does not hold."""
    if not x.is_checked:
        unless(x.flag)
        if isinstance(capturing.now, Region) or capturing.now is not None:
            x.checked.append(capturing.now)
    return x.value
