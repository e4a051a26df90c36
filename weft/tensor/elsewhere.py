"""What NumPy and PyTorch call things that Weft calls by another name: for errors, not for use."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from weft.errors import DTypeError

P = ParamSpec("P")
R = TypeVar("R")

FUNCTIONS = {
    "absolute": "abs",
    "amax": "max",
    "amin": "min",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "array": "tensor",
    "as_tensor": "asarray",
    "bmm": "matmul",
    "cat": "concat",
    "clamp": "clip",
    "concatenate": "concat",
    "cummax": "cumulative_max",
    "cumprod": "cumulative_prod",
    "cumsum": "cumulative_sum",
    "dot": "vecdot",
    "double": "float64",
    "eq": "equal",
    "expand": "broadcast_to",
    "fliplr": "flip",
    "flipud": "flip",
    "float": "float32",
    "from_numpy": "asarray",
    "gather": "take_along_axis",
    "ge": "greater_equal",
    "gt": "greater",
    "half": "float16",
    "hstack": "concat",
    "identity": "eye",
    "index_select": "take",
    "inference_mode": "no_grad",
    "inner": "vecdot",
    "int": "int32",
    "invert": "bitwise_invert",
    "le": "less_equal",
    "long": "int64",
    "lt": "less",
    "mm": "matmul",
    "movedim": "moveaxis",
    "mul": "multiply",
    "ne": "not_equal",
    "neg": "negative",
    "permute": "permute_dims",
    "power": "pow",
    "randperm": "permutation",
    "ravel": "flatten",
    "repeat_interleave": "repeat",
    "scatter_add_": "scatter_add",
    "seed": "manual_seed",
    "short": "int16",
    "sub": "subtract",
    "swapaxes": "moveaxis",
    "transpose": "permute_dims",
    "true_divide": "divide",
    "unbind": "unstack",
    "unique": "unique_values",
    "unsqueeze": "expand_dims",
    "view": "reshape",
    "vstack": "concat",
}

FUNCTIONS |= {
    name: f"nn.functional.{name}"
    for name in (
        "cross_entropy", "dropout", "gelu", "layer_norm", "leaky_relu", "linear", "log_softmax",
        "mse_loss", "pad", "silu", "softmax",
    )
}  # fmt: skip

#: what is written in another way: for each name the rest of the sentence
ADVICE = {
    "allclose": "compare with ==, bits are the same every time, or wf.all(wf.abs(x - y) <= eps)",
    "autocast": "there is none; cast a model with model.to(wf.bfloat16)",
    "autograd": "Weft says wf.grad, wf.vjp, wf.custom_vjp; to find a NaN, see docs/training.md",
    "backends": "there is nothing to set; fast_math= of wf.compile is about speed for bits",
    "cuda": 'Weft runs on the CPU: leave it out, or write "cpu" where a device is asked for',
    "device": 'a device is a string: "cpu"',
    "fmod": "Weft says x - y * wf.trunc(x / y); wf.remainder has the sign of the divisor",
    "func": "Weft says wf.grad, wf.vjp, wf.jvp, wf.jacobian, wf.hessian",
    "Generator": "there is one generator: wf.manual_seed, wf.get_rng_state, wf.set_rng_state",
    "isclose": "Weft says wf.abs(x - y) <= eps",
    "is_tensor": "Weft says isinstance(x, wf.Tensor)",
    "logsumexp": "Weft says m + wf.log(wf.sum(wf.exp(x - m), ...)) with m = wf.max(x, ...)",
    "masked_select": "Weft says x[mask]",
    "mps": 'Weft runs on the CPU: leave it out, or write "cpu" where a device is asked for',
    "nan_to_num": "Weft says wf.where(wf.isnan(x), 0.0, x)",
    "norm": "Weft says wf.sqrt(wf.sum(wf.square(x), axis=...))",
    "normal": "Weft says mean + std * wf.randn(...)",
    "rand_like": "Weft says wf.rand(*x.shape)",
    "randn_like": "Weft says wf.randn(*x.shape)",
    "set_grad_enabled": "Weft says wf.no_grad() and wf.enable_grad()",
    "utils": "Weft says wf.data for utils.data, wf.checkpoint for utils.checkpoint, wf.nn.utils",
    "vmap": "functions take batches: write it with a leading axis",
}
#: and of tensors
METHOD_ADVICE = {
    **{name: said for name, said in ADVICE.items() if name != "device"},
    "expand_as": "Weft says wf.broadcast_to(x, y.shape)",
    "index_copy": "Weft says x[i] = v",
    "index_fill": "Weft says x[i] = v",
    "is_cuda": 'Weft runs on the CPU: x.device is "cpu"',
    "layout": "only memory has one; its .data was set to a tensor, where x.assign(v) was meant",
    "masked_scatter": "Weft says x[mask] = v",
    "median": "Weft says wf.sort(x)[x.size // 2]",
    "narrow": "Weft says x[start : start + length]",
    "new_full": "Weft says wf.full(shape, value, dtype=x.dtype)",
    "new_ones": "Weft says wf.ones(shape, dtype=x.dtype)",
    "new_tensor": "Weft says wf.tensor(v, dtype=x.dtype)",
    "new_zeros": "Weft says wf.zeros(shape, dtype=x.dtype)",
    "norm": "Weft says x.square().sum().sqrt()",
    "pin_memory": "there is nothing to pin: leave it out",
    "register_hook": "there are no hooks of tensors; of modules, register_full_backward_hook",
    "repeat": "Weft says wf.tile(x, (2, 3)); wf.repeat is PyTorch's repeat_interleave",
    "retain_grad": "Weft says wf.grad, of a function of this tensor",
    "select": "Weft says x[i]",
    "stride": "a tensor is a value, without strides",
}
#: and of modules
MODULE_ADVICE = {
    "compile": "Weft says wf.compile(model)",
    "cpu": "Weft runs on the CPU: leave it out",
    "cuda": "Weft runs on the CPU: leave it out",
}
#: and of the memory that is a tensor's .data
DATA = "it is memory; use the tensor itself in wf.no_grad(), and p.assign(v) to give it a value"
#: what is in another place in PyTorch
OPTIM_ADVICE = {
    "lr_scheduler": "Weft has its schedules in wf.optim: wf.optim.OneCycleLR, StepLR, …"
}
OPTIM = {"swa_utils": "optim.EMA"}
NN_UTILS = {name: f"optim.{name}" for name in ("clip_grad_norm_", "clip_grad_value_")}

#: arguments of functions that are called otherwise: for each the rest of the sentence
KEYWORDS = {
    "backend": "there is one backend: leave it out",
    "dim": "Weft says axis=",
    "dims": "Weft says axis=",
    "fullgraph": "Weft says fallback=False",
    "generator": "wf.manual_seed decides about everything that is random: leave it out",
    "keepdim": "Weft says keepdims=",
    "mode": "there is one mode: leave it out",
    "num_workers": "Weft says workers=",
    "options": "there are none: leave it out, or see fast_math=",
    "persistent_workers": "workers live as long as an iteration: leave it out",
    "pin_memory": "there is nothing to pin: leave it out",
    "shifts": "Weft says shift=",
    "timeout": "a worker that died is an error: leave it out",
    "unbiased": "Weft says correction=1",
}

METHODS = {
    **FUNCTIONS,
    "argsort": "argsort",
    "bool": "astype(wf.bool)",
    "chunk": "chunk",
    "contiguous": "clone",
    "copy": "clone",
    "copy_": "assign",
    "cuda": 'to("cpu")',
    "cpu": 'to("cpu")',
    "dim": "ndim",
    "double": "astype(wf.float64)",
    "diagonal": "diagonal",
    "fill_": "assign(wf.full_like(x, value))",
    "flip": "flip",
    "float": "astype(wf.float32)",
    "half": "astype(wf.float16)",
    "int": "astype(wf.int32)",
    "long": "astype(wf.int64)",
    "masked_fill": "where(mask, value, x)",
    "ndimension": "ndim",
    "numel": "size",
    "outer": "outer",
    "ravel": "reshape(-1)",
    "roll": "roll",
    "short": "astype(wf.int16)",
    "sort": "sort",
    "split": "split",
    "t": "T",
    "take_along_axis": "take_along_axis",
    "tile": "tile",
    "topk": "topk",
    "tril": "tril",
    "triu": "triu",
    "type_as": "astype",
    "view_as": "reshape",
    "where": "where(mask, x, y)",
    "zero_": "assign(wf.zeros_like(x))",
}


#: further names that end with _ where a tensor is changed in place
IN_PLACE = [
    "add",
    "addcdiv",
    "addcmul",
    "addmm",
    "bernoulli",
    "cauchy",
    "div",
    "exponential",
    "floor_divide",
    "geometric",
    "index_add",
    "index_copy",
    "index_fill",
    "index_put",
    "masked_scatter",
    "multiply",
    "normal",
    "random",
    "resize",
    "scatter",
    "set",
    "subtract",
    "uniform",
]


class Elsewhere:
    """In the place of a method that is called otherwise here: it is not there, and says so.

    One for each name, and no `__getattr__`, which would make every attribute slow to read.
    """

    def __init__(self, name: str, advice: str) -> None:
        self.name, self.advice = name, advice

    def __get__(self, x: object, kind: type) -> None:
        said = f"{kind.__name__!r} object has no attribute {self.name!r}; {self.advice}"
        raise AttributeError(said, name=self.name, obj=kind)


def put_elsewhere(kind: type, advice: dict[str, str]) -> None:
    """Make a class say what its objects have under other names."""
    for name in sorted(advice):
        if not hasattr(kind, name):
            setattr(kind, name, Elsewhere(name, advice[name]))


def put_all(tensor: type, memory: type) -> None:
    """What tensors, and their `.data`, are called otherwise."""
    put_elsewhere(tensor, _of_tensors(tensor))
    methods = [n for n in dir(tensor) if n[0] != "_"]
    of_numbers = [f"__{r}{n}__" for n in ("add", "sub", "mul", "truediv") for r in ("", "r")]
    put_elsewhere(
        memory, dict.fromkeys([*methods, *of_numbers, "__getitem__", "__setitem__"], DATA)
    )


def _of_tensors(kind: type) -> dict[str, str]:
    """What to use for each name that tensors don't have."""
    known = (*METHODS, *IN_PLACE, *dir(kind))
    in_place = (f"{n}_" for n in known if n[0] != "_" and n[-1] != "_")
    said = dict.fromkeys(in_place, "Weft says x.assign(...), or x += y and the like")
    for name, ours in METHODS.items():
        on = "x" if hasattr(kind, ours.split("(")[0]) else "wf"
        said[name] = f"Weft says {on}.{ours}"
    return said | METHOD_ADVICE


def no_function(name: str) -> AttributeError:
    """The error for a name that the package doesn't have, with the one to use where it is known."""
    return no_name("weft", name, FUNCTIONS, ADVICE)


def no_name(
    module: str, name: str, known: dict[str, str], advice: dict[str, str] | None = None
) -> AttributeError:
    """The error for a name that a module doesn't have, with the one to use where it is known."""
    said = f"module {module!r} has no attribute {name!r}"
    if name in known:
        said = f"{said}; Weft says wf.{known[name]}"
    elif advice is not None and name in advice:
        said = f"{said}; {advice[name]}"
    return AttributeError(said, name=name)


def no_keyword(place: str, **given: object) -> DTypeError:
    """The error for arguments that are called otherwise, of which those that are None were not
    given.

    >>> print(no_keyword("sum", dim=1, keepdim=None))
    sum(): got an unexpected keyword argument 'dim'; Weft says axis=
    """
    name = next(k for k, v in given.items() if v is not None)
    got = f"an unexpected keyword argument {name!r}"
    return DTypeError(f"{place}()", got=got, hint=KEYWORDS[name])


def says_keywords(f: Callable[P, R]) -> Callable[P, R]:
    """A function that says how arguments are called here. Not for those whose call is fast: they
    take `dim` and refuse it.
    """

    @functools.wraps(f)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return f(*args, **kwargs)
        except TypeError as e:
            if e.__traceback__ is None or e.__traceback__.tb_next is not None:
                raise  # the function's own
            said = [KEYWORDS[k] for k in kwargs if k in KEYWORDS and repr(k) in str(e)]
            if said:
                e.args = (f"{e}; {said[0]}",)
            e.__traceback__ = None  # on the caller's line, as without this function
            raise

    return call
