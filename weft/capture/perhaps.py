"""What a variable, key or attribute has that some paths give a value and others don't: a value, and
a flag that says whether it is there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.capture.join import UNDEFINED, Unjoined, blank
from weft.capture.refusal import refused
from weft.capture.runs import aligned, later as of_runs
from weft.capture.structure import LEAF, SPECIAL, Form, flatten
from weft.control.region import refill
from weft.ops.define import Value, capturing, data_of


class Unsure(str):
    """The name of a variable that may be read before it has a value."""

    __slots__ = ()


class Perhaps(Unjoined):
    """A value that is there if a flag says so."""

    value: Any
    flag: Any
    checked: list[Any]
    error: Any

    def __init__(self, value: Any, flag: Any) -> None:
        for name, x in {"value": value, "flag": flag, "checked": [], "error": None}.items():
            object.__setattr__(self, name, x)

    def used(self, *_: Any, **__: Any) -> Any:
        raise refused(
            "a variable, key or attribute that only some paths define",
            "to be read by itself",
            "another use of it, or of all that is beside it",
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


def sides(x: Any, y: Any, regions: Sequence[Any] | None = None) -> tuple[Any, Any]:
    """What two paths leave, if it is not there on some path: that it may be. `regions` are those of
    the paths, where they are known.
    """
    if not any(v is UNDEFINED or type(v) is Perhaps for v in (x, y)) or x is y:
        return x, y
    if type(x) is Unjoined or type(y) is Unjoined:
        return x, y
    left, right = (Perhaps(v, True) if type(v) is not Perhaps else v for v in (x, y))
    if x is UNDEFINED:
        left = Perhaps(outside(right.value, regions), False)
    if y is UNDEFINED:
        right = Perhaps(outside(left.value, regions), False)
    return left, right


def missing(x: Any) -> Perhaps:
    """What is there before the first value."""
    return Perhaps(blank(x.value if type(x) is Perhaps else x), False)


def merged(a: dict[Any, Any], b: dict[Any, Any]) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """The dicts that two paths leave, each with the keys of both."""
    one, two = [k for k in a if k in b], [k for k in b if k in a]
    if one != two:
        return a, b
    keys: dict[Any, None] = {}
    rest = iter([*b, None])
    for k in a:
        while k in b and k not in keys:
            keys[next(rest)] = None
        keys[k] = None
    keys.update(dict.fromkeys(b))
    pairs = {k: _both(a.get(k, UNDEFINED), b.get(k, UNDEFINED)) for k in keys}
    return {k: x for k, (x, _) in pairs.items()}, {k: y for k, (_, y) in pairs.items()}


def _both(x: Any, y: Any) -> tuple[Any, Any]:
    x, y = sides(x, y)
    return (x, y) if type(x) is Perhaps else aligned(x, y)


def refilled(x: dict[Any, Any], content: dict[Any, Any]) -> None:
    """Give a dict other keys, with the capture under way told."""
    change = getattr(capturing.now, "change", None)
    if change is not None:
        change(x, None)
    refill(x, content)


def depends(x: Any) -> bool:
    """Whether it depends on values which keys a dict has."""
    return isinstance(x, dict) and any(type(v) is Perhaps for v in x.values())


def outside(x: Any, regions: Sequence[Any] | None) -> Any:
    """What stands for a value on the path that has not given it: it itself, where it was there
    before, so that it stays the one that other names have.
    """
    if regions is None:
        return blank(x)
    if isinstance(x, Value):
        made = any(data_of(x) in r.nodes for r in regions)
        return blank(x) if made else x
    leaves, form = flatten(x)
    if form.kind is None:
        return x
    if not any(id(x) in r.objects for r in regions) and form.kind in (list, dict):
        return x
    return form.build([outside(v, regions) for v in leaves])


def there(x: Perhaps, unless: Callable[[Any], None]) -> Any:
    """The value; `unless` says what is raised if the flag does not hold."""
    if not x.is_checked:
        unless(x.flag)
        if capturing.now is not None:
            x.checked.append(capturing.now)
    return x.value


of_runs.perhaps, of_runs.sides, of_runs.merged = Perhaps, sides, merged
