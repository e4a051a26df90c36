"""What optimizers share: groups of parameters with numbers of their own, state, steps.

State is there before a step and is given new values with `assign`, and numbers that may change
between steps (a learning rate) are read through `host_number`: so a step is calls of ops on cells,
and a captured step follows what a user or a schedule sets later.

Every parameter counts the steps in which it had a gradient; without one it is left as it was. The
counts of a group are one tensor, so that what depends on them is computed for all at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Any

from weft.autodiff.mode import enable_grad, no_grad
from weft.errors import DTypeError, GradError, ShapeError, StateError
from weft.nn.module import forget_gradient
from weft.nn.state import as_tensor
from weft.ops.creation import full as full_op
from weft.ops.define import host_number, inside
from weft.optim.state import Complete, entry, steps_made, with_states
from weft.tensor.creation import full, zeros
from weft.tensor.data import tensor
from weft.tensor.tensor import Tensor
from weft.types import DType
from weft.types.dtype import float64, int64

Group = dict[str, Any]
#: parameters of a group that have a gradient, by their place in it
Cells = list[tuple[int, Tensor]]


def host(read: Callable[[], float], dtype: DType = float64) -> Any:
    """A number of the host's as a 0-d tensor: what an update takes as an operand."""
    return full_op(host_number(read), shape=(), dtype=dtype)


class Optimizer:
    """Base class: `param_groups` holds parameters and their numbers, `state` what each parameter
    has beside it.

    >>> import weft as wf
    >>> opt = wf.optim.SGD([wf.nn.Parameter(wf.ones(1))], lr=0.5)
    >>> isinstance(opt, wf.optim.Optimizer), opt.param_groups[0]["lr"]
    (True, 0.5)
    """

    def __init__(self, params: Any, defaults: Mapping[str, Any]) -> None:
        self.defaults = dict(defaults)
        self.state: dict[Tensor, dict[str, Tensor]] = {}
        self.param_groups: list[Group] = []
        self.steps: list[Tensor] = []
        self._complete = Complete(self.state, self.param_groups, self._slots)
        name = type(self).__name__
        if isinstance(params, Tensor):
            hint = "give a list: [parameter]"
            raise DTypeError(name, expected="several parameters", got="one tensor", hint=hint)
        if not isinstance(params, Iterable):
            hint = "give model.parameters()"
            got = type(params).__name__
            raise DTypeError(name, expected="parameters to optimize", got=got, hint=hint)
        groups = list(params)
        if not groups:
            raise ShapeError(
                name,
                expected="at least one parameter",
                got="none",
                hint="are layers set as attributes of a Module (lists as nn.ModuleList)?",
            )
        if not isinstance(groups[0], Mapping):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    # what a subclass says

    def _check(self, group: Group) -> None:
        """Raise unless the numbers of a group are allowed."""

    @staticmethod
    def _slots(group: Mapping[str, Any]) -> dict[str, float]:
        """The states a parameter of the group has, and what they start with."""
        return {}

    def _update(self, group: Group, steps: Tensor, cells: Cells) -> None:
        """Give the parameters that have a gradient, and their state, new values."""
        raise NotImplementedError

    # groups

    def add_param_group(self, param_group: Mapping[str, Any]) -> None:
        """Add parameters with numbers of their own: `{"params": […], "lr": 0.1}`."""
        name = type(self).__name__
        if not isinstance(param_group, Mapping) or "params" not in param_group:
            got = repr(param_group)[:60]
            raise DTypeError(f"{name} group", expected='a dict with "params"', got=got)
        unknown = param_group.keys() - self.defaults.keys() - {"params"}
        if unknown:
            expected = f"some of {', '.join(self.defaults)}"
            raise ShapeError(f"{name} group", expected=expected, got=", ".join(sorted(unknown)))
        given = param_group["params"]
        params = [given] if isinstance(given, Tensor) else list(given)
        group: Group = {**self.defaults, **param_group, "params": params}
        self._check_params(params)
        self._check(group)
        self.param_groups.append(group)
        self.steps.append(zeros(len(params), dtype=int64))
        self._complete(len(self.steps) - 1)

    def _check_params(self, params: list[Any]) -> None:
        name, seen = type(self).__name__, set(map(id, self.state))
        if isinstance(params, list) and not params:
            raise ShapeError(f"{name} group", expected="at least one parameter", got="none")
        for p in params:
            if not isinstance(p, Tensor):
                hint = "give model.parameters(), not named_parameters()"
                got = type(p).__name__
                raise DTypeError(name, expected="parameters", got=got, hint=hint * (got == "tuple"))
            if not p.is_leaf:
                got = "a tensor that other tensors were computed into"
                hint = "make it a Parameter, or detach() it"
                raise GradError(name, expected="leaves", got=got, hint=hint)
            if not p.dtype.is_float:
                raise DTypeError(name, expected="floating parameters", got=str(p.type))
            if id(p) in seen:
                raise ShapeError(name, expected="each parameter once", got=f"{p.type} twice")
            seen.add(id(p))

    # stepping

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or with `set_to_none=False` make them zeros."""
        for group in self.param_groups:
            for p in group["params"]:
                forget_gradient(p, set_to_none)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Move every parameter that has a gradient. `closure`, if given, computes the loss and the
        gradients first; its loss is given back.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with no_grad(), inside():
            for number, (group, steps) in enumerate(
                zip(self.param_groups, self.steps, strict=True)
            ):
                params = group["params"]
                cells = [(n, p) for n, p in enumerate(params) if p.grad is not None]
                if cells:
                    self._complete(number)
                    went = [int(p.grad is not None) for p in params]
                    steps.assign(steps + (1 if all(went) else tensor(went)))
                    self._update(group, steps, cells)
        return loss

    # state

    def state_dict(self) -> dict[str, Any]:
        """State and numbers as they are now, in PyTorch's form: parameters are counted through all
        groups, and have an entry once they have made a step.
        """
        state: dict[int, Any] = {}
        groups = []
        first = 0
        for group, steps in zip(self.param_groups, self.steps, strict=True):
            params = group["params"]
            for n, (p, made) in enumerate(zip(params, steps.tolist(), strict=True)):
                if made:
                    cells = {k: v.detach() for k, v in self.state[p].items()}
                    state[first + n] = {"step": steps[n], **cells}
            said = {k: v for k, v in group.items() if k != "params"}
            groups.append({**said, "params": list(range(first, first + len(params)))})
            first += len(params)
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from a state that `state_dict` gave, or PyTorch's optimizer of that name.

        Nothing is changed unless all of it fits.
        """
        place = f"load_state_dict of {type(self).__name__}"
        try:
            groups, states = state_dict["param_groups"], state_dict["state"]
            have = [len(g["params"]) for g in groups]
        except (TypeError, KeyError, AttributeError):
            expected = 'a dict with "state" and "param_groups"'
            raise StateError(place, expected=expected, got=type(state_dict).__name__) from None
        want = [len(g["params"]) for g in self.param_groups]
        if have != want:
            raise StateError(
                place, expected=f"groups of {want} parameters", got=f"groups of {have}"
            )
        loaded = []
        for group, given in zip(self.param_groups, groups, strict=True):
            known = {*group, "initial_lr"} - {"params"}
            numbers = {k: v for k, v in given.items() if k in known}
            numbers = {k: tuple(v) if isinstance(v, list) else v for k, v in numbers.items()}
            self._check({**group, **numbers})
            entries = [entry(states, n) for n in given["params"]]
            steps = tensor([steps_made(place, e) for e in entries], dtype=int64)
            loaded.append((numbers, steps, self._values(place, {**group, **numbers}, entries)))
        with no_grad():
            for n, (numbers, steps, _) in enumerate(loaded):
                self.param_groups[n].update(numbers)
                self.steps[n].assign(steps)
            for p, values in chain.from_iterable(pairs for _, _, pairs in loaded):
                kept = {k: v for k, v in self.state[p].items() if k in values}
                if values.keys() != self.state[p].keys():  # a dict that stays is no new program
                    self.state[p] = with_states(p, dict.fromkeys(values, 0.0), kept)
                for name, value in values.items():
                    self.state[p][name].assign(value)

    def _values(
        self, place: str, group: Group, entries: list[Mapping[str, Any]]
    ) -> list[tuple[Tensor, dict[str, Tensor]]]:
        """The parameters of a group, and the values their states are given by name."""
        out = []
        for p, given in zip(group["params"], entries, strict=True):
            fresh = {k: full(p.shape, v, dtype=p.dtype) for k, v in self._slots(group).items()}
            found = {k: as_tensor(v) for k, v in given.items() if k != "step" and v is not None}
            for name, value in found.items():
                if value.shape != p.shape:
                    expected = f"{name} of shape {p.shape}"
                    raise StateError(place, expected=expected, got=str(value.type))
            out.append((p, {**fresh, **found}))
        return out

    def __repr__(self) -> str:
        lines = []
        for n, group in enumerate(self.param_groups):
            said = {k: v for k, v in group.items() if k != "params"}
            count = len(group["params"])
            lines.append(f"  group {n}: {count} parameters, {said}")
        return "\n".join([f"{type(self).__name__} (", *lines, ")"])
