"""The module: parameters, buffers and other modules under the names they were set by, and a
`forward` that uses them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

from weft.autodiff.mode import no_grad
from weft.errors import DTypeError, ShapeError, StateError, WeftError
from weft.nn.hooks import Handle, Hook, Hooks, called, register
from weft.nn.parameter import Parameter
from weft.nn.state import Loaded, fitting
from weft.ops.define import capturing, inside, installed
from weft.tensor.arguments import flag
from weft.tensor.dtypes import astype
from weft.tensor.elsewhere import MODULE_ADVICE, put_elsewhere
from weft.tensor.tensor import Tensor
from weft.types import DType, as_dtype
from weft.types.dtype import bfloat16, float16, float32, float64


class Module:
    """Base class of layers and models.

    What is set as an attribute is registered under that name: parameters, modules, and tensors
    given to `register_buffer`. `super().__init__()` may be called, and need not be.

    >>> import weft as wf
    >>> class Net(wf.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.layer = wf.nn.Linear(3, 2)
    ...
    ...     def forward(self, x):
    ...         return self.layer(x).relu()
    >>> net = Net()
    >>> net(wf.ones((4, 3))).shape
    (4, 2)
    >>> [name for name, _ in net.named_parameters()]
    ['layer.weight', 'layer.bias']
    """

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]
    _unsaved: set[str]
    _before: Hooks
    _after: Hooks
    _back: Hooks

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        # here and not in __init__, so that a class that forgets to call that works all the same
        self = super().__new__(cls)
        self.__dict__.update(
            training=True, _parameters={}, _buffers={}, _modules={}, _unsaved=set(), _before={},
            _after={}, _back={},
        )  # fmt: skip
        return self

    def __init__(self) -> None:
        pass

    # calling

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes; subclasses say so."""
        raise NotImplementedError(f"{type(self).__name__} does not define forward()")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if capturing.now is None:
            static = installed.static and installed.static(self)
            if static:
                return static(*args, **kwargs)
        if self._before or self._after or self._back:
            return called(self, args, kwargs)
        if capturing.now is None:
            return self.forward(*args, **kwargs)
        with inside():
            return self.forward(*args, **kwargs)

    def register_forward_pre_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False
    ) -> Handle:
        """Call `hook(module, args)` before `forward`; what it returns, unless None, are the
        arguments instead. With `with_kwargs` it is `hook(module, args, kwargs)`, for both.
        """
        return register(self._hook_place, self._before, hook, prepend, with_kwargs)

    def register_forward_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False
    ) -> Handle:
        """Call `hook(module, args, output)` after `forward`; what it returns, unless None, is the
        output instead. With `with_kwargs` it is `hook(module, args, kwargs, output)`.
        """
        return register(self._hook_place, self._after, hook, prepend, with_kwargs)

    def register_full_backward_hook(self, hook: Hook, prepend: bool = False) -> Handle:
        """Call `hook(module, grad_input, grad_output)` when gradients have come back through the
        module: tuples of those of its positional arguments and results. What it returns, unless
        None, are the gradients of the arguments instead.
        """
        return register(self._hook_place, self._back, hook, prepend)

    @property
    def _hook_place(self) -> str:
        return f"hook of {type(self).__name__}"

    # registering

    def __setattr__(self, name: str, value: Any) -> None:
        registry: dict[str, Any] | None = None
        if isinstance(value, Parameter):
            registry = self._parameters
        elif isinstance(value, Module):
            registry = self._modules
        elif name in self._buffers:
            self._expect(name, "a tensor or None", value, Tensor)
            registry = self._buffers
        elif name in self._parameters:
            self._expect(name, "a Parameter or None", value, Parameter)
            registry = self._parameters
        elif name in self._modules:
            self._expect(name, "a module or None", value, Module)
            registry = self._modules
        if registry is not None:
            for other in (self._parameters, self._buffers, self._modules):
                if other is not registry:
                    other.pop(name, None)
            registry[name] = value
        object.__setattr__(self, name, value)

    def _expect(self, name: str, expected: str, value: Any, kind: type) -> None:
        if value is not None and not isinstance(value, kind):
            raise DTypeError(
                f"{type(self).__name__}.{name}",
                expected=expected,
                got=type(value).__name__,
                hint=f"change the value it holds with .assign(...), or `del` {name} first",
            )

    def __delattr__(self, name: str) -> None:
        for registry in (self._parameters, self._buffers, self._modules):
            registry.pop(name, None)
        self._unsaved.discard(name)
        object.__delattr__(self, name)

    def _named(self, name: Any, what: str) -> str:
        place = f"{what} of {type(self).__name__}"
        if not isinstance(name, str) or not name or "." in name:
            raise ShapeError(place, expected="a name without dots", got=repr(name))
        if hasattr(self, name) and not any(
            name in r for r in (self._parameters, self._buffers, self._modules)
        ):
            raise ShapeError(place, expected="a name that is free", got=repr(name))
        return name

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Set a parameter, or None to say that there could be one of that name."""
        self._expect(self._named(name, "parameter"), "a Parameter or None", param, Parameter)
        self._parameters[name] = param
        object.__setattr__(self, name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Set a tensor that is no parameter but part of the module's state, such as a running
        mean. With `persistent=False` it is left out of `state_dict`.
        """
        self._expect(self._named(name, "buffer"), "a tensor or None", tensor, Tensor)
        self._buffers[name] = tensor
        if flag(persistent, "register_buffer"):
            self._unsaved.discard(name)
        else:
            self._unsaved.add(name)
        object.__setattr__(self, name, tensor)

    def register_module(self, name: str, module: Module | None) -> None:
        """Set a module by a name that may not be a Python one."""
        self._expect(self._named(name, "module"), "a module or None", module, Module)
        self._modules[name] = module
        object.__setattr__(self, name, module)

    add_module = register_module

    # going through

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all inside it, with dotted names. Those in `memo` are left out, and those
        that are found are put into it.
        """
        seen = {id(m) for m in memo or ()}
        for name, module in self._inside(prefix, seen, remove_duplicate):
            if memo is not None and remove_duplicate:
                memo.add(module)
            yield name, module

    def _inside(self, prefix: str, seen: set[int], once: bool) -> Iterator[tuple[str, Module]]:
        # by number: a set of modules would look at them, and a program guard all that they hold
        if id(self) in seen:
            return
        if once:
            seen.add(id(self))
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module._inside(_joined(prefix, name), seen, once)

    def modules(self) -> Iterator[Module]:
        """This module and all inside it."""
        return (m for _, m in self.named_modules())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules set on this one, with their names."""
        return ((n, m) for n, m in self._modules.items() if m is not None)

    def children(self) -> Iterator[Module]:
        """The modules set on this one."""
        return (m for _, m in self.named_children())

    def _members(
        self, registry: str, prefix: str, recurse: bool, once: bool
    ) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        found = self.named_modules(prefix=prefix, remove_duplicate=once)
        for place, module in found if recurse else [(prefix, self)]:
            for name, value in getattr(module, registry).items():
                if value is not None and not (once and id(value) in seen):
                    seen.add(id(value))
                    yield _joined(place, name), value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters, each once, with dotted names."""
        return self._members("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters, each once: what an optimizer is given."""
        return (p for _, p in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The buffers, each once, with dotted names."""
        return self._members("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers, each once."""
        return (b for _, b in self.named_buffers(recurse=recurse))

    def get_submodule(self, target: str) -> Module:
        """The module of a dotted name; "" is this one."""
        module = self
        for name in target.split(".") if target else ():
            found = module._modules.get(name)
            if found is None:
                raise StateError(
                    f"get_submodule({target!r})",
                    expected=f"one of {', '.join(module._modules) or 'no modules'}",
                    got=repr(name),
                )
            module = found
        return module

    def get_parameter(self, target: str) -> Parameter:
        """The parameter of a dotted name."""
        found: Parameter = self._found(target, "_parameters", "get_parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer of a dotted name."""
        found: Tensor = self._found(target, "_buffers", "get_buffer")
        return found

    def _found(self, target: str, registry: str, place: str) -> Any:
        path, _, name = target.rpartition(".")
        there = getattr(self.get_submodule(path), registry)
        if there.get(name) is None:
            expected = f"one of {', '.join(k for k, v in there.items() if v is not None) or 'none'}"
            raise StateError(f"{place}({target!r})", expected=expected, got=repr(name))
        return there[name]

    # state

    def state_dict(self, *, prefix: str = "", keep_vars: bool = False) -> dict[str, Tensor]:
        """The values of all parameters and saved buffers, by dotted name, as they are now; with
        `keep_vars` the parameters and buffers themselves.

        >>> import weft as wf
        >>> list(wf.nn.BatchNorm1d(3).state_dict())
        ['weight', 'bias', 'running_mean', 'running_var', 'num_batches_tracked']
        """
        kept = flag(keep_vars, "state_dict keep_vars")
        return {name: cell if kept else cell.detach() for name, cell in self._cells(prefix)}

    def _cells(self, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
        """What the state consists of; shared tensors come under each of their names."""
        for name, param in self._parameters.items():
            if param is not None:
                yield prefix + name, param
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._unsaved:
                yield prefix + name, buffer
        for name, module in self._modules.items():
            if module is not None:
                yield from module._cells(f"{prefix}{name}.")

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> Loaded:
        """Take over the values of a state: tensors, NumPy arrays or PyTorch's tensors by name.

        Nothing is changed unless all of it fits. With `strict=False` entries may be missing or left
        over; the result says which.
        """
        cells = dict(self._cells())
        place = f"load_state_dict of {type(self).__name__}"
        values, loaded = fitting(place, cells, state_dict, flag(strict, "load_state_dict"))
        with no_grad():
            for name, value in values.items():
                cells[name].assign(value)
        return loaded

    # modes and types

    def train(self, mode: bool = True) -> Self:
        """Switch dropout, batch norm and the like to training, or with False to evaluation."""
        flag(mode, "train()")
        for module in self.modules():
            object.__setattr__(module, "training", mode)
        return self

    def eval(self) -> Self:
        """`train(False)`."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set `requires_grad` of all parameters."""
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or with `set_to_none=False` make them zeros."""
        for p in self.parameters():
            forget_gradient(p, set_to_none)

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Call `fn` on every module inside, then on this one."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def to(self, *targets: Any, device: Any = None, dtype: Any = None) -> Self:
        """Floating parameters and buffers as another dtype, on a device ("cpu"), or both."""
        for target in targets:
            try:
                dtype = as_dtype(target)
            except WeftError:
                device = target
        if device is not None:
            for cell in (*self.parameters(), *self.buffers()):
                cell.to(device)
        if dtype is not None:
            wanted = as_dtype(dtype)
            if not wanted.is_float:
                raise DTypeError("Module.to", expected="a floating dtype", got=wanted.name)
            for cell in (*self.parameters(), *self.buffers()):
                _retype(cell, wanted)
        return self

    def float(self) -> Self:
        """As float32."""
        return self.to(dtype=float32)

    def double(self) -> Self:
        """As float64."""
        return self.to(dtype=float64)

    def half(self) -> Self:
        """As float16."""
        return self.to(dtype=float16)

    def bfloat16(self) -> Self:
        """As bfloat16."""
        return self.to(dtype=bfloat16)

    # display

    def extra_repr(self) -> str:
        """What the module says of itself between the parentheses."""
        return ""

    def __repr__(self) -> str:
        said, inside = self.extra_repr(), []
        for name, module in self._modules.items():
            inside.append(f"({name}): " + repr(module).replace("\n", "\n  "))
        if not inside:
            return f"{type(self).__name__}({said})"
        lines = "".join(f"\n  {line}" for line in ([said] if said else []) + inside)
        return f"{type(self).__name__}({lines}\n)"


put_elsewhere(Module, MODULE_ADVICE)


def _joined(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name


def forget_gradient(p: Tensor, set_to_none: bool) -> None:
    """The gradient made None, or zeros."""
    if set_to_none:
        p.grad = None
    elif p.grad is not None:
        p.grad = (p.grad * 0.0).detach()


def _retype(cell: Tensor, dtype: DType) -> None:
    if cell.dtype.is_float and cell.dtype is not dtype:
        grad = cell.grad
        with no_grad():
            cell._rebind(astype(cell.detach(), dtype))
            if grad is not None:
                cell.grad = astype(grad, dtype)
