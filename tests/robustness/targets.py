"""What is called with bad arguments: every op record, every public function, every method."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import weft as wf
from tests.robustness.good_calls import GOOD
from weft.ops.define import OPS, Op


@dataclass(frozen=True)
class Target:
    """Something to call, and calls of it that succeed."""

    name: str
    run: Callable[..., Any]
    good: list[tuple[tuple[Any, ...], dict[str, Any]]]
    file: str = __file__


def names() -> dict[str, list[str]]:
    """Every target, by family."""
    public = [n for n, f in vars(wf).items() if callable(f) and _ours(f) and n[0] != "_"]
    public = [n for n in public if n not in _CLASSES]
    functional = [f"nn.functional.{n}" for n, f in vars(wf.nn.functional).items() if callable(f)]
    return {
        "records": [f"op {n}" for n, op in sorted(OPS.items()) if op.samples is not None],
        "functions": sorted(public),
        "functional": sorted(functional),
        "methods": [f"Tensor.{n}" for n in sorted(dir(wf.Tensor)) if _is_own_method(n)],
    }


_CLASSES = ("DType", "Dim", "Tensor", "load", "save")  # and what takes a path


def _ours(f: Any) -> bool:
    return str(getattr(f, "__module__", "")).startswith("weft")


#: what Python and NumPy call with arguments of their own, and errors of their own
_PROTOCOLS = {
    "__array__", "__deepcopy__", "__dlpack__", "__format__", "__getattr__", "__init__",
    "__init_subclass__", "__int__",
    "__subclasshook__",
}  # fmt: skip


def _is_own_method(name: str) -> bool:
    """Methods and operators that are not a function of the package under the same name."""
    method = getattr(wf.Tensor, name, None)  # names of elsewhere are listed, and not there
    if not callable(method) or method is getattr(object, name, None) or name in _PROTOCOLS:
        return False
    return (name.startswith("__") or name[0] != "_") and method is not getattr(wf, name, None)


def find(name: str) -> Target:
    """The target of that name."""
    if name.startswith("op "):
        op = OPS[name[3:]]
        return Target(name, lambda *a, **k: op(*a, **k), _samples(op))
    if name.startswith("Tensor."):
        good = GOOD[name]() if name in GOOD else _derived(getattr(wf.Tensor, name[7:]), name[7:])
        return Target(name, partial(_method, name[7:]), [_pair(g) for g in good])
    f: Any = wf
    for part in name.split("."):
        f = getattr(f, part)
    good = GOOD[name]() if name in GOOD else _derived(f)
    return Target(name, partial(_function, f), [_pair(g) for g in good])


def _method(name: str, /, *args: Any, **kwargs: Any) -> Any:
    """Call a method of the first argument, which a flaw may have made something else."""
    if not args or not isinstance(args[0], wf.Tensor):
        return None
    out = getattr(args[0], name)(*args[1:], **kwargs)
    if out is NotImplemented:
        raise TypeError(f"unsupported operands of {name}")
    return next(out, None) if inspect.isgenerator(out) else out


_TRANSFORMS = {
    wf.checkpoint,
    wf.custom_vjp,
    wf.enable_grad,
    wf.no_grad,
    wf.grad,
    wf.gradcheck,
    wf.hessian,
    wf.jacobian,
    wf.jvp,
    wf.trace,
    wf.value_and_grad,
    wf.vjp,
}


def _function(f: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Call a function; what a transform gives is a function, too: call that. What a callable that
    is no function of tensors raises there is its own affair.
    """
    if f in _TRANSFORMS and args and callable(args[0]) and not inspect.isfunction(args[0]):
        return None
    out = f(*args, **kwargs)
    return out(wf.tensor([1.0, 2.0])) if inspect.isfunction(out) else out


def _samples(op: Op) -> list[Any]:
    assert op.samples is not None
    lift = lambda a: wf.asarray(a) if isinstance(a, (np.ndarray, np.generic)) else a
    found = [s for s in op.samples() if s.error is None]
    small = [s for s in found if all(np.size(a) < 5000 for a in s.args)] or found
    return [(tuple(map(lift, s.args)), s.attrs) for s in small]


def _pair(call: Any) -> Any:
    return call if len(call) == 2 and isinstance(call[1], dict) else (call, {})


def _derived(f: Any, name: str = "") -> list[Any]:
    """Calls of a function that takes tensors only; of a reflected operator, with a number."""
    reflected = name.startswith("__r") and name not in ("__repr__", "__reduce__")
    required = [
        p for p in inspect.signature(f).parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]  # fmt: skip
    return [
        (wf.tensor(a), *(a.flat[0].item() if reflected else wf.tensor(a) for _ in required[1:]))
        for a in (
            np.float32([[0.5, 1.0, 0.25], [0.75, 0.125, 1.0]]),
            np.arange(1, 5),
            np.array([True, False]),
        )
    ]
