"""How errors name the parts of a loop's state."""

from __future__ import annotations

from collections.abc import Sequence

from weft.capture.structure import Form

_OBJECT = "a list, dict or object"  # that a variable holds


def named(i: int, form: Form, names: Sequence[str]) -> str:
    """What a reader calls a leaf of a loop's state."""
    for name, variable in zip(names, form.children[0].children, strict=False):
        if i < variable.count:
            return name
        i -= variable.count
    return "a value changed in place"


def first_other(form: Form, other: Form, names: Sequence[str]) -> tuple[str, Form, Form]:
    """What changed its form, and both, as far inside as only one part differs."""
    name = _OBJECT
    pairs = zip(names, form.children[0].children, other.children[0].children, strict=False)
    for n, a, b in pairs:
        if a != b:
            name, form, other = n, a, b
            break
    while form.kind is other.kind and len(form.children) == len(other.children):
        pair = next(
            ((a, b) for a, b in zip(form.children, other.children, strict=True) if a != b), None
        )
        if pair is None:
            break
        form, other = pair
    return name, form, other


def outline(form: Form) -> str:
    return f"a {form.kind.__name__} of {len(form.children)}" if form.kind else "one value"
