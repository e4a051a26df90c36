"""What Python reads of objects by itself: operators, loops, len(), `in` and the like run methods
that no converted call leads to, so what such an object holds is guarded as a whole.
"""

from __future__ import annotations

import functools
import os
import sysconfig
import types
from collections.abc import Iterator

#: special methods that are called by name, or read nothing that a result could depend on
_EXPLICIT = {
    "__annotate__", "__annotate_func__", "__call__", "__class_getitem__", "__copy__",
    "__deepcopy__", "__del__", "__delattr__", "__delitem__", "__dir__", "__getnewargs__",
    "__getstate__", "__init__", "__init_subclass__", "__new__", "__post_init__", "__reduce__",
    "__reduce_ex__", "__repr__", "__set_name__", "__setattr__", "__setitem__", "__setstate__",
    "__sizeof__",
}  # fmt: skip
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
#: parts of the package that are converted like a user's own
_OPEN = (*(_PACKAGE + name + os.sep for name in ("nn", "optim")), _PACKAGE + "fit.py")
_CLOSED = tuple(
    _PACKAGE + os.path.join(*names) for names in (("nn", "functional"), ("optim", "state.py"))
)
_LIBRARIES = tuple(
    {
        os.path.abspath(sysconfig.get_path(name)) + os.sep
        for name in ("stdlib", "platstdlib", "purelib", "platlib")
    }
    | {os.path.dirname(os.path.abspath(os.__file__)) + os.sep}
)


@functools.lru_cache(4096)
def is_library_file(file: str) -> bool:
    """Whether code of a file belongs to Python, an installed package or this one."""
    path = os.path.abspath(file)
    return path.startswith((_PACKAGE, *_LIBRARIES)) or file.startswith("<frozen ")


@functools.lru_cache(4096)
def is_users(file: str) -> bool:
    """Whether code of this file is converted: a user's, and modules, optimizers and the training
    loop of the package, but no library's.
    """
    path = os.path.abspath(file)
    if path.startswith(_PACKAGE):
        return path.startswith(_OPEN) and not path.startswith(_CLOSED)
    return not is_library_file(file)


@functools.lru_cache(4096)
def is_implicit(kind: type) -> bool:
    """Whether objects of a class have methods, written in Python, that run without being called."""
    return bool(_methods(kind))


@functools.lru_cache(4096)
def attributes(kind: type) -> tuple[str, ...] | None:
    """What these methods may read of such an object; None for all of it."""
    ours = all(f.__code__.co_filename.startswith(_PACKAGE) for f in _methods(kind))
    # what lists and dicts of modules and of parameters are about
    return ("_modules", "_parameters") if ours else None


def _methods(kind: type) -> list[types.FunctionType]:
    return [f for base in kind.__mro__ for name, f in vars(base).items() if _is_method(name, f)]


def _is_method(name: str, f: object) -> bool:
    """Whether it runs unseen, and is not one that Python wrote (comparisons of a dataclass)."""
    if type(f) is not types.FunctionType or name in _EXPLICIT:
        return False
    file = f.__code__.co_filename
    return name.startswith("__") and name.endswith("__") and file != "<string>" and is_users(file)


def slots(kind: type) -> Iterator[str]:
    """Names of the slots of a class."""
    for base in kind.__mro__:
        for name, found in vars(base).items():
            if isinstance(found, types.MemberDescriptorType):
                yield name
