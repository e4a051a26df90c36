"""The operator for calls: converts functions of the user's on the way into them."""

from __future__ import annotations

import builtins
import dis
import functools
import inspect
import sys
import types
from typing import Any

from weft.capture.effects import root, tell
from weft.capture.implicit import is_library_file, is_users
from weft.capture.numbers import computed, is_numeric
from weft.capture.perhaps import Perhaps
from weft.capture.places import MISSING
from weft.capture.pythonic import is_math, math_call
from weft.capture.runs import is_grown, spell_out
from weft.capture.source.convert import convert, is_converted, why_not
from weft.capture.source.reads import (
    CONTAINERS,
    attr,
    changes,
    changing,
    del_item,
    guards,
    item,
    later,
    made,
    read,
    refuse,
    set_attr,
    set_item,
    used,
)
from weft.capture.source.recursion import entered
from weft.capture.text import is_deferred, method, unmade, written
from weft.ops.define import Value, capturing, host_number
from weft.types.size import is_symbolic

#: functions whose result is another one each time, or that do something outside
_EFFECTS = {builtins.input, builtins.open}
_UNSTEADY = {"random", "time", "datetime", "secrets", "uuid", "os", "posix", "io", "_io", "logging"}


def call(f: Any, /, *args: Any, **kwargs: Any) -> Any:
    """`f(*args, **kwargs)`"""
    kind = type(f)
    if kind is later.pick:
        return f.each(lambda x: _called(x, args, kwargs), tried=False)
    if is_math(f, args):
        return math_call(f, args)
    if is_numeric(f) and not kwargs and any(map(is_symbolic, args)):
        return computed(f, args)
    if kind is types.FunctionType:
        if is_converted(f):
            return entered(f, f, args, kwargs)
        if is_users(f.__code__.co_filename):
            return entered(f, _entered(f), args, kwargs)
        if f in SPECIAL:
            return SPECIAL[f](*args, **kwargs)
        return _library(_with_converted_cells(f), args, kwargs)
    if kind is types.MethodType:
        if type(f.__self__).__module__ in _UNSTEADY:
            return _library(f, args, kwargs)
        return call(f.__func__, f.__self__, *args, **kwargs)
    if kind is functools.partial:
        g = guards()
        if g is not None and id(f) not in g.made:
            used(f.keywords)
        return call(f.func, *f.args, *args, **{**f.keywords, **kwargs})
    if isinstance(f, type):
        return _instance(f, args, kwargs)
    if kind in _NATIVE:
        return _builtin(f, args, kwargs)
    if isinstance(f, functools._lru_cache_wrapper) and capturing.now is not None:
        return call(f.__wrapped__, *args, **kwargs)
    method = kind.__dict__.get("__call__") or kind.__call__
    if isinstance(method, types.FunctionType) and is_users(method.__code__.co_filename):
        return call(method, f, *args, **kwargs)
    return _library(f, args, kwargs)


later.call = call

_NATIVE = {types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType,
           types.MethodWrapperType}  # fmt: skip


def _called(f: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
    """The call of one of several things."""
    if callable(f):
        return call(f, *args, **kwargs)
    raise later.error(TypeError(f"{type(f).__name__!r} object is not callable"))


def _entered(f: Any) -> Any:
    """A user's function converted, what it reads from outside guarded."""
    g = guards()
    if g is not None:
        reason = why_not(f)
        if reason:
            if not _is_generated(f):
                g.unguarded.append(reason)
        elif (id(f), "entered") not in g.made:
            g.made[id(f), "entered"] = f
            _guard_names(f, g)
    return convert(f)


def _is_generated(f: Any) -> bool:
    """Whether a function is one that Python wrote: a dataclass's, a named tuple's."""
    return bool(f.__code__.co_filename == "<string>" and f.__name__.startswith("__"))


def _guard_names(f: Any, g: Any) -> None:
    code = f.__code__
    space = f.__globals__
    if not is_library_file(code.co_filename):
        g.function(f)
    for name in () if is_library_file(code.co_filename) else _global_names(code):
        if name in space:
            g.item(space, name, space[name], f"the global {name}")
    for name, cell in zip(code.co_freevars, f.__closure__ or (), strict=True):
        if name != "__class__":
            g.cell(cell, name)


@functools.lru_cache(4096)
def _global_names(code: types.CodeType) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for i in dis.get_instructions(code):
        if i.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            names[i.argval] = None
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            names.update(dict.fromkeys(_global_names(c)))
    return tuple(names)


def _with_converted_cells(f: Any) -> Any:
    """A library's wrapper of a user's function (`functools.wraps`, or a transform such as
    `wf.grad`), around the converted one.
    """
    wrapped = getattr(f, "__wrapped__", None)
    transform = _module(f).startswith("weft.autodiff")
    if not f.__closure__ or not (transform or type(wrapped) is types.FunctionType):
        return f
    cells = [_converted_cell(c) if transform or _holds(c, wrapped) else c for c in f.__closure__]
    if all(a is b for a, b in zip(cells, f.__closure__, strict=True)):
        return f
    new = types.FunctionType(f.__code__, f.__globals__, f.__name__, f.__defaults__, tuple(cells))
    new.__kwdefaults__ = f.__kwdefaults__
    return new


def _converted_cell(c: types.CellType) -> types.CellType:
    """A cell with the same function converted, if it holds one."""
    held = c.cell_contents
    if type(held) is types.FunctionType and not is_users(held.__code__.co_filename):
        new = _with_converted_cells(held)
    else:
        new = _converted(_as_function(held))
    return c if new is held else types.CellType(new)


def _as_function(x: Any) -> Any:
    """A callable object of the user's as the method that is called."""
    method = inspect.getattr_static(type(x), "__call__", None)
    users = type(method) is types.FunctionType and is_users(method.__code__.co_filename)
    return types.MethodType(method, x) if users else x


def _converted(x: Any) -> Any:
    """A user's function or method, converted."""
    if type(x) is types.MethodType:
        inner = _converted(x.__func__)
        return x if inner is x.__func__ else types.MethodType(inner, x.__self__)
    users = type(x) is types.FunctionType and is_users(x.__code__.co_filename)
    return _entered(x) if users and not is_converted(x) else x


def _holds(cell: Any, x: Any) -> bool:
    try:
        return cell.cell_contents is x
    except ValueError:
        return False


# classes


def _instance(kind: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if type(kind).__call__ is not type.__call__ or kind in _FUNCTIONS or kind in SPECIAL:
        return _builtin(kind, args, kwargs)
    start: Any = inspect.getattr_static(kind, "__init__")
    maker: Any = kind.__new__
    error = issubclass(kind, BaseException)
    usual = error or maker is object.__new__ or str(maker.__module__).startswith("weft.nn")
    if (
        usual
        and type(start) is types.FunctionType
        and is_users(start.__code__.co_filename)
        and not why_not(start)
    ):
        new = maker(kind, *args) if error else maker(kind)
        made(new)
        for x in vars(new).values() if maker is not object.__new__ else ():
            if type(x) in CONTAINERS:  # a module's, for its parameters
                made(x)
        call(start, new, *args, **kwargs)
        return new
    own = error and type(start) is types.FunctionType
    if own and root() is not None and (is_deferred(args) or is_deferred(kwargs)):
        return unmade(kind, args, kwargs)
    return made(_library(kind, args, kwargs))


# what is not converted


def _library(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of a library's function; functions of the user's among its arguments are converted."""
    if capturing.now is not None:
        one = later.pick_among(f, args, kwargs)
        if one is not None:
            return one.each(lambda x: _library(f, *later.instead((args, kwargs), one, x)))
        if _hashable(f) and f in OF_SEQUENCES:
            found = OF_SEQUENCES[f](*args, **kwargs)
            if found is not NotImplemented:
                return found
        module = _module(f)
        if _is_writer(f, module) and root() is not None:
            tell(written(f, args, kwargs, "apply"))
            return None
        stream = _stream(f)
        if stream and root() is not None:
            tell(written("write", (stream, *args)))
            return None
        if module in _UNSTEADY or module.startswith("numpy.random"):
            name = getattr(f, "__qualname__", repr(f))
            hint = "it gives something else every time: pass it as an argument, or use wf.rand"
            raise refuse(f"a call of {module}.{name}", hint)
        if f is host_number:
            g = guards()
            g.paused += 1
            try:
                return f(*args, **kwargs)
            finally:
                g.paused -= 1
    builtin = isinstance(f, type | types.BuiltinFunctionType) and _hashable(f)
    given = _handed if builtin and f in _HANDING else _given
    if _module(f).startswith("weft.autodiff"):
        args = tuple([_as_function(a) for a in args])
    return f(*[given(a) for a in args], **{k: given(v) for k, v in kwargs.items()})


def _module(f: Any) -> str:
    """Where a function comes from; a method, where its class does."""
    of_class = type(getattr(f, "__self__", None)).__module__
    found = of_class if of_class in _UNSTEADY else getattr(f, "__module__", None) or of_class
    return found if isinstance(found, str) else ""


def _is_writer(f: Any, module: str) -> bool:
    """Whether a function writes something somewhere, and gives nothing that one would use."""
    return module in ("logging", "warnings", "_warnings") and f.__name__ in _WRITERS


def _stream(f: Any) -> str:
    """The standard stream whose method to write this is."""
    owner = getattr(f, "__self__", None) if getattr(f, "__name__", "") == "write" else None
    found = [name for name in ("stdout", "stderr") if owner is getattr(sys, name)]
    return found[0] if found and owner is not None else ""


_WRITERS = {"debug", "info", "warning", "error", "critical", "exception", "log", "warn"}


def _given(x: Any) -> Any:
    new = _converted(x)
    return read(x) if new is x else new


def _handed(x: Any) -> Any:
    return used(x) if type(x) in CONTAINERS else _given(x)


def _builtin(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    special = SPECIAL.get(f) if _hashable(f) else None
    if special is not None:
        return special(*args, **kwargs)
    if f is id or f is callable:  # see which object it is, and of which class, but nothing in it
        return f(*args, **kwargs)
    if capturing.now is not None:
        if f in _EFFECTS:
            raise refuse(f"a call of {f.__name__}()", "call it outside of the function")
        owner = getattr(f, "__self__", None)
        if type(owner) is str and (is_deferred(args) or is_deferred(kwargs)):
            return method(f.__name__, owner, args, kwargs)
        if type(owner) is dict and args and type(owner.get(_key(args[0]))) is Perhaps:
            found = _of_perhaps(owner, f.__name__, args)
            if found is not NotImplemented:
                return found
        if f.__name__ == "get" and args and later.is_dynamic(owner, args[0]):
            return later.get_or(owner, *args)
        if type(owner) is list and any(map(is_grown, (owner, *args))):
            if f.__name__ in GROWN_METHODS:
                return GROWN_METHODS[f.__name__](owner, *args, **kwargs)
            if changes(owner, f.__name__):
                spell_out(owner)
        if changes(owner, f.__name__):
            changing(owner, f"{type(owner).__name__}.{f.__name__}()")
        if f.__name__ == "__setattr__" and isinstance(args[-1], Value):
            changing(args[0] if owner is None else owner, f"an assignment to .{args[-2]}")
        used(owner)
    out = _library(f, args, kwargs)
    return made(out) if type(out) in CONTAINERS else out


def _key(x: Any) -> Any:
    """A key, if nothing but its value matters."""
    return x if type(x) in (str, int, bool, float, bytes) else None


def _of_perhaps(owner: dict[Any, Any], name: str, args: tuple[Any, ...]) -> Any:
    """A method of a dict, of a key that only some paths have given it."""
    key, default = args[0], args[1] if len(args) > 1 else None
    x = owner[key]
    if name == "pop" and len(args) == 1:
        value = item(owner, key)
        del_item(owner, key)
        return value
    if name not in ("get", "setdefault"):
        return NotImplemented
    value = later.choose(x.flag, lambda: x.value, lambda: default)
    if name == "setdefault":
        set_item(owner, key, value)
    return value


def _hashable(f: Any) -> bool:
    return getattr(f, "__self__", None) is None or isinstance(f.__self__, types.ModuleType)


def _getattr(owner: Any, name: str, *default: Any) -> Any:
    x = getattr(owner, "__dict__", {}).get(name) if default else None
    if type(x) is Perhaps and not hasattr(type(owner), name):
        if default[0] is MISSING:
            return Perhaps(x, x.flag)
        return later.choose(x.flag, lambda: x.value, lambda: default[0])
    try:
        return attr(owner, name)
    except AttributeError:
        if not default:
            raise
        g = guards()
        inside = getattr(owner, "__dict__", None)
        if g is not None and isinstance(inside, dict):
            g.attribute(owner, name, default[0])
        return default[0]


def _hasattr(owner: Any, name: str) -> bool:
    found = _getattr(owner, name, MISSING)
    return found.flag if type(found) is Perhaps else found is not MISSING


#: classes that are called like functions
_FUNCTIONS = {bool, int, float, str, range, enumerate, zip, map, filter, reversed, list, tuple,
              dict, set, frozenset, type, super}  # fmt: skip
#: of them, and of others, those that hand elements on without looking into them
_HANDING = _FUNCTIONS - {int, float, str, sorted} | {len, isinstance, iter, next}
#: builtins that are operators here; more are added where they are defined
SPECIAL: dict[Any, Any] = {getattr: _getattr, hasattr: _hasattr, setattr: set_attr}
#: what functions do with lists that grew in loops, and other sequences whose length is open;
#: NotImplemented: what they do with any
OF_SEQUENCES: dict[Any, Any] = {}
#: methods of lists that grew in loops
GROWN_METHODS: dict[str, Any] = {}
