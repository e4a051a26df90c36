"""Functions that a module calls around its own: on what goes in, what comes out, and the gradients
that come back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Self

from weft.autodiff.custom import custom_vjp
from weft.errors import DTypeError
from weft.ops.define import inside
from weft.tensor.tensor import Tensor

Hook = Callable[..., Any]


class Entry(NamedTuple):
    """A hook, and whether it takes keyword arguments too."""

    hook: Hook
    with_kwargs: bool


Hooks = dict[int, Entry]


class Handle:
    """What registering a hook gives: `remove()` takes the hook away again."""

    def __init__(self, hooks: Hooks, key: int) -> None:
        self._hooks, self._key = hooks, key

    def remove(self) -> None:
        """Take the hook away; a second time does nothing."""
        self._hooks.pop(self._key, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


_count = iter(range(1 << 62))


def register(
    place: str, hooks: Hooks, hook: Hook, prepend: bool = False, with_kwargs: bool = False
) -> Handle:
    """Add a hook behind the others, or before them."""
    if not callable(hook):
        raise DTypeError(place, expected="a function", got=repr(hook))
    key, others = next(_count), dict(hooks) if prepend else {}
    if prepend:
        hooks.clear()
    hooks[key] = Entry(hook, with_kwargs)
    hooks.update(others)
    return Handle(hooks, key)


def called(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a module with hooks gives."""
    for hook, with_kwargs in tuple(module._before.values()):
        if with_kwargs:
            changed = hook(module, args, kwargs)
            if changed is not None:
                args, kwargs = changed
            continue
        changed = hook(module, args)
        if changed is not None:
            args = changed if isinstance(changed, tuple) else (changed,)
    watch = None
    if module._back:
        watch, args = _watched(module, args)
    with inside():
        out = module.forward(*args, **kwargs)
    for hook, with_kwargs in tuple(module._after.values()):
        changed = hook(module, args, kwargs, out) if with_kwargs else hook(module, args, out)
        out = out if changed is None else changed
    return out if watch is None else watch(out)


def _watched(module: Any, args: tuple[Any, ...]) -> tuple[Hook, tuple[Any, ...]]:
    """The arguments by way of a call that hands the hooks what comes back through it, and what
    does the same for the results.
    """
    places = [i for i, x in enumerate(args) if isinstance(x, Tensor) and x.note is not None]
    came: list[tuple[Any, ...]] = []  # gradients of the results

    def tell(own: tuple[Any, ...]) -> tuple[Any, ...]:
        """The gradients of the arguments, or those that hooks put in their place."""
        found: list[Any] = [None] * len(args)
        for i, g in zip(places, own, strict=True):
            found[i] = g
        slopes = tuple(found)
        for hook, _ in tuple(module._back.values()):
            changed = hook(module, slopes, came[-1])
            if changed is not None:
                slopes = changed if isinstance(changed, tuple) else (changed,)
        return tuple([slopes[i] for i in places])

    def leave(kept: Any, g: Any) -> tuple[Any, ...]:
        came.append(g if isinstance(g, tuple) else (g,))
        if not places:
            tell(())
        return came[-1]

    def watch(out: Any) -> Any:
        outs = out if isinstance(out, tuple) else (out,)
        if not all(isinstance(o, Tensor) for o in outs):
            kinds = ", ".join(type(o).__name__ for o in outs)
            raise DTypeError(
                f"backward hook of {type(module).__name__}",
                expected="tensors as results",
                got=kinds,
            )
        found = _passed(leave)(*outs)
        return tuple(found) if isinstance(out, tuple) else found[0]

    if places:
        fresh = _passed(lambda kept, g: tell(g if isinstance(g, tuple) else (g,)))(
            *[args[i] for i in places]
        )
        given = list(args)
        for i, x in zip(places, fresh, strict=True):
            given[i] = x
        args = tuple(given)
    return watch, args


def _passed(backward: Hook) -> Any:
    """Tensors as they are, whose gradients go through a function."""

    def passed(*xs: Any) -> Any:
        return xs

    out = custom_vjp(passed)
    out.defvjp(lambda *xs: (xs, None), backward)
    return out
