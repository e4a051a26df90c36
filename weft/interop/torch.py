"""PyTorch beside Weft, for porting: tensors without a copy, weights both ways, and where a ported
model first gives something else.

Needs PyTorch (`pip install weft[torch]`); `import weft` does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils import dlpack

from weft.autodiff.mode import no_grad
from weft.errors import DTypeError, StateError
from weft.nn.module import Module
from weft.optim.optimizer import Optimizer
from weft.tensor.data import from_dlpack, tensor
from weft.tensor.tensor import Tensor


def from_torch(x: torch.Tensor) -> Tensor:
    """A tensor of PyTorch's as Weft's, in the same memory; its gradient is left behind.

    >>> import torch
    >>> from_torch(torch.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    if not isinstance(x, torch.Tensor):
        raise DTypeError("from_torch", expected="a tensor of PyTorch's", got=type(x).__name__)
    found: Tensor = from_dlpack(x.detach())
    return found


def to_torch(x: Tensor) -> torch.Tensor:
    """A tensor as PyTorch's, in the same memory; its gradient is left behind.

    Weft's tensors stay what they are: write to the result only after a `.clone()`.

    >>> import weft as wf
    >>> to_torch(wf.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    if not isinstance(x, Tensor):
        raise DTypeError("to_torch", expected="a tensor of Weft's", got=type(x).__name__)
    found: torch.Tensor = dlpack.from_dlpack(x.detach())
    return found


def copy_weights(source: Any, target: Any, strict: bool = True) -> None:
    """Give `target` the parameters and buffers of `source`, by name: one of them is a module of
    PyTorch's, the other of Weft's. What doesn't fit is an error that lists it all.

    >>> import torch, weft as wf
    >>> theirs, ours = torch.nn.Linear(3, 2), wf.nn.Linear(3, 2)
    >>> copy_weights(theirs, ours)
    >>> bool((to_torch(ours.weight) == theirs.weight).all())
    True
    """
    if isinstance(source, torch.nn.Module) and isinstance(target, Module):
        target.load_state_dict(source.state_dict(), strict)
    elif isinstance(source, Module) and isinstance(target, torch.nn.Module):
        state = {k: to_torch(v).clone() for k, v in source.state_dict().items()}
        try:
            target.load_state_dict(state, strict)
        except RuntimeError as e:
            raise StateError("copy_weights", got=str(e)) from None
    else:
        raise DTypeError(
            "copy_weights",
            expected="a module of PyTorch's and one of Weft's",
            got=f"{type(source).__name__} and {type(target).__name__}",
        )


def copy_optimizer(source: Any, target: Any) -> None:
    """Give `target` the state and the numbers of `source`: one of them is an optimizer of
    PyTorch's, the other Weft's of the same name, with as many parameters in the same order.

    >>> import torch, weft as wf
    >>> theirs = torch.optim.Adam(torch.nn.Linear(3, 2).parameters(), lr=0.5)
    >>> ours = wf.optim.Adam(wf.nn.Linear(3, 2).parameters())
    >>> copy_optimizer(theirs, ours)
    >>> ours.param_groups[0]["lr"]
    0.5
    """
    kinds = f"{type(source).__name__} and {type(target).__name__}"
    pair = isinstance(source, torch.optim.Optimizer), isinstance(target, torch.optim.Optimizer)
    ours = target if pair[0] else source
    alike = type(source).__name__ == type(target).__name__
    if pair[0] == pair[1] or not isinstance(ours, Optimizer) or not alike:
        expected = "an optimizer of PyTorch's and Weft's of that name"
        raise DTypeError("copy_optimizer", expected=expected, got=kinds)
    if pair[0]:
        target.load_state_dict(source.state_dict())
        return
    state, mine = target.state_dict(), source.state_dict()
    sizes = [[len(g["params"]) for g in s["param_groups"]] for s in (state, mine)]
    if sizes[0] != sizes[1]:
        expected, got = f"groups of {sizes[0]} parameters", f"groups of {sizes[1]}"
        raise StateError("copy_optimizer", expected=expected, got=got)
    for group, numbers in zip(state["param_groups"], mine["param_groups"], strict=True):
        group.update({k: v for k, v in numbers.items() if k in group and k != "params"})
    # PyTorch's parameters have no state before their first step
    moved = {n: entry for n, entry in mine["state"].items() if int(entry["step"])}
    state["state"] = {
        n: {k: torch.tensor(float(v)) if k == "step" else to_torch(v).clone() for k, v in e.items()}
        for n, e in moved.items()
    }
    target.load_state_dict(state)


class Row(NamedTuple):
    """One layer of both models: how far apart what goes in and what comes out are, at most, of the
    size of PyTorch's largest.
    """

    name: str
    kind: str
    inputs: float
    outputs: float


class Comparison:
    """Layers in the order they finished. `first` is the first that differs, or None."""

    def __init__(self, rows: list[Row], weights: list[str], tolerance: float) -> None:
        self.rows, self.weights, self.tolerance = rows, weights, tolerance
        self.first = next((r for r in rows if not r.outputs <= tolerance), None)

    def __bool__(self) -> bool:
        return self.first is None

    def __str__(self) -> str:
        wide = max([len(r.name) for r in self.rows], default=0)
        lines = []
        for r in self.rows:
            mark = " <- differs first" if r is self.first else ""
            lines.append(f"{r.name:{wide}s}  {r.kind:20s} {r.outputs:8.1e}{mark}")
        if self.first is None:
            return "\n".join([*lines, f"all agree within {self.tolerance:.0e}"])
        own = [w for w in self.weights if w.rpartition(".")[0] == self.first.name]
        if own:
            why = f"its weights differ: {', '.join(own)}"
        elif self.first.inputs <= self.tolerance:
            why = "its inputs and weights agree, so it computes something else"
        else:
            why = "its inputs differ, by something between the layers"
        return "\n".join([*lines, f"{self.first.name or 'the model'}: {why}"])


def compare(theirs: Any, ours: Any, *inputs: Any, tolerance: float = 1e-4) -> Comparison:
    """Run a module of PyTorch's and its port on the same inputs, and compare what modules of the
    same name give. Both are run as in evaluation.

    >>> import numpy as np, torch, weft as wf
    >>> a = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.GELU(), torch.nn.Linear(3, 3))
    >>> b = wf.nn.Sequential(wf.nn.Linear(3, 3), wf.nn.ReLU(), wf.nn.Linear(3, 3))
    >>> copy_weights(a, b)
    >>> x = np.linspace(-2, 2, 12, dtype=np.float32).reshape(4, 3)
    >>> print(str(compare(a, b, x)).splitlines()[-1])
    1: its inputs and weights agree, so it computes something else
    """
    if not isinstance(theirs, torch.nn.Module) or not isinstance(ours, Module):
        got = f"{type(theirs).__name__} and {type(ours).__name__}"
        expected = "a module of PyTorch's, then one of Weft's"
        raise DTypeError("compare", expected=expected, got=got)
    arrays = [_array(x) for x in inputs]
    with torch.no_grad():
        left = _seen(theirs, [torch.tensor(a) for a in arrays])
    with no_grad():
        right = _seen(ours, [tensor(a) for a in arrays])
    rows = []
    for name, (kind, given, found) in left.items():
        if name in right:
            _, given_here, found_here = right[name]
            rows.append(Row(name, kind, _apart(given, given_here), _apart(found, found_here)))
    return Comparison(rows, _different(theirs, ours), tolerance)


def _seen(model: Any, inputs: list[Any]) -> dict[str, tuple[str, list[Any], list[Any]]]:
    """What went into and came out of every module, when it was last called, by name."""
    found: dict[str, tuple[str, list[Any], list[Any]]] = {}
    handles = []

    def watch(name: str) -> Any:
        def hook(module: Any, args: Any, out: Any) -> None:
            found[name] = (type(module).__name__, list(_arrays(args)), list(_arrays(out)))

        return hook

    modes = [(m, m.training) for m in model.modules()]
    model.eval()
    try:
        for name, module in model.named_modules():
            handles.append(module.register_forward_hook(watch(name)))
        model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes:
            module.training = mode
    return found


def _array(x: Any) -> np.ndarray:
    if isinstance(x, torch.Tensor | Tensor):
        return np.asarray(x.detach().numpy())
    return np.asarray(x)


def _arrays(x: Any) -> Iterator[np.ndarray]:
    """The tensors of nested values, copied: both libraries may write where they lie."""
    if isinstance(x, torch.Tensor):
        x = x.detach()
        yield np.array(x.float().numpy() if x.dtype is torch.bfloat16 else x.numpy())
    elif isinstance(x, Tensor):
        yield np.array(x.detach().numpy())
    elif isinstance(x, Mapping):
        for v in x.values():
            yield from _arrays(v)
    elif isinstance(x, tuple | list):
        for v in x:
            yield from _arrays(v)


def _apart(theirs: list[np.ndarray], ours: list[np.ndarray]) -> float:
    """The largest difference, of the size of PyTorch's largest element; infinite where shapes or
    numbers of tensors differ.
    """
    if len(theirs) != len(ours):
        return float("inf")
    worst = 0.0
    for a, b in zip(theirs, ours, strict=True):
        if a.shape != b.shape:
            return float("inf")
        a, b = a.astype(np.float64), b.astype(np.float64)
        if a.size and not np.array_equal(a, b, equal_nan=True):
            apart = float(np.abs(a - b).max()) / max(float(np.abs(a).max()), 1e-30)
            worst = max(worst, apart if apart == apart else float("inf"))
    return worst


def _different(theirs: torch.nn.Module, ours: Module) -> list[str]:
    """Names of weights that are on one side only, or of other values."""
    left = {k: next(_arrays(v)) for k, v in theirs.state_dict().items()}
    right = {k: next(_arrays(v)) for k, v in ours.state_dict().items()}
    return [
        k
        for k in {**left, **right}
        if k not in left or k not in right or _apart([left[k]], [right[k]]) > 0
    ]
