"""What NumPy and PyTorch call things that Weft calls by another name: for errors, not for use."""

from __future__ import annotations

FUNCTIONS = {
    "absolute": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "amax": "max",
    "amin": "min",
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
    "expand": "broadcast_to",
    "fmod": "remainder",
    "from_numpy": "asarray",
    "gather": "take_along_axis",
    "ge": "greater_equal",
    "gt": "greater",
    "half": "float16",
    "hstack": "concat",
    "index_select": "take",
    "inference_mode": "no_grad",
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
    "scatter_add_": "scatter_add",
    "seed": "manual_seed",
    "sub": "subtract",
    "transpose": "permute_dims",
    "true_divide": "divide",
    "unsqueeze": "expand_dims",
    "utils": "nn.utils",
    "vstack": "concat",
    "view": "reshape",
}

FUNCTIONS |= {
    name: f"nn.functional.{name}"
    for name in (
        "cross_entropy", "dropout", "gelu", "layer_norm", "leaky_relu", "linear", "log_softmax",
        "mse_loss", "pad", "silu", "softmax",
    )
}  # fmt: skip

#: what is in another place in PyTorch
OPTIM = {"lr_scheduler": "optim.StepLR", "swa_utils": "optim.EMA"}
NN_UTILS = {name: f"optim.{name}" for name in ("clip_grad_norm_", "clip_grad_value_")}

METHODS = {
    **FUNCTIONS,
    "bool": "astype(wf.bool)",
    "contiguous": "clone",
    "copy": "clone",
    "copy_": "assign",
    "cuda": 'to("cpu")',
    "cpu": 'to("cpu")',
    "dim": "ndim",
    "double": "astype(wf.float64)",
    "fill_": "assign(wf.full_like(x, value))",
    "float": "astype(wf.float32)",
    "half": "astype(wf.float16)",
    "int": "astype(wf.int32)",
    "long": "astype(wf.int64)",
    "masked_fill": "where(mask, value, x)",
    "ndimension": "ndim",
    "numel": "size",
    "ravel": "reshape(-1)",
    "t": "T",
    "type_as": "astype",
    "view_as": "reshape",
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

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, x: object, kind: type) -> None:
        raise no_method(self.name, kind)


def put_elsewhere(kind: type) -> None:
    """Make a class say what its objects have under other names."""
    known = (*METHODS, *IN_PLACE, *dir(kind))
    in_place = {f"{n}_" for n in known if n[0] != "_" and n[-1] != "_"}
    for name in sorted({*METHODS, *in_place}):
        if not hasattr(kind, name):
            setattr(kind, name, Elsewhere(name))


def no_function(name: str) -> AttributeError:
    """The error for a name that the package doesn't have, with the one to use where it is known."""
    return no_name("weft", name, FUNCTIONS)


def no_name(module: str, name: str, known: dict[str, str]) -> AttributeError:
    """The error for a name that a module doesn't have, with the one to use where it is known."""
    said = f"module {module!r} has no attribute {name!r}"
    ours = known.get(name)
    return AttributeError(f"{said}; Weft says wf.{ours}" if ours else said, name=name)


def no_method(name: str, kind: type) -> AttributeError:
    """The error for a name that a tensor doesn't have, with the one to use where it is known."""
    ours = METHODS.get(name)
    if ours is not None:
        ours = f"{'x' if hasattr(kind, ours.split('(')[0]) else 'wf'}.{ours}"
    elif name.endswith("_") and not name.startswith("_"):
        ours = "x.assign(...), or x += y and the like"
    said = f"'Tensor' object has no attribute {name!r}"
    return AttributeError(f"{said}; Weft says {ours}" if ours else said, name=name, obj=kind)
