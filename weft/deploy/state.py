"""Saving and loading state: nested dicts and lists of tensors and plain values in one safetensors
file.

A flat dict of tensors is a plain safetensors file. Anything else keeps its shape in the metadata,
as JSON in which a tensor is its name: other programs still find every tensor.
"""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from weft.deploy.safetensors import METADATA, read, write
from weft.errors import ArtifactError, DTypeError
from weft.ops.define import Value, installed

#: the name of the metadata that says how values nest
SHAPE = "weft.state"
VERSION = 1


def save(state: Any, path: str | os.PathLike[str]) -> None:
    """Write state to a file: tensors, numbers, strings, None, in dicts, lists and tuples.

    The file is there whole or not at all: being killed in the middle leaves the one that was there
    before.

    >>> import weft as wf, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> wf.save(wf.nn.Linear(3, 2).state_dict(), path)
    >>> sorted(wf.load(path))
    ['bias', 'weight']
    """
    target = _path(path, "save")
    tensors: dict[str, Value] = {}
    shape = _take_apart(state, "", tensors, 0)
    flat = isinstance(state, dict) and {**state}.keys() == tensors.keys()
    said = {} if flat else {SHAPE: json.dumps({"version": VERSION, "state": shape})}
    write(target, tensors, said)


def load(path: str | os.PathLike[str]) -> Any:
    """What `save` wrote, or the tensors by name of any safetensors file.

    A file that is damaged is an `ArtifactError`; nothing in a file is ever run.

    >>> import weft as wf
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as d:
    ...     wf.save({"w": wf.ones(2), "epoch": 3}, f"{d}/state.wf")
    ...     wf.load(f"{d}/state.wf")["epoch"]
    3
    """
    source = _path(path, "load")
    tensors, metadata = read(source)
    if SHAPE not in metadata:
        return tensors
    try:
        said = json.loads(metadata[SHAPE])
        version = said["version"]
        if version == VERSION:
            return _put_together(said["state"], tensors)
    except (ValueError, TypeError, KeyError, RecursionError) as e:
        expected, hint = "a state that its file holds", "the file is damaged"
        raise ArtifactError(source.name, expected=expected, got=repr(e), hint=hint) from None
    hint = "read it with the version of Weft that wrote it, or a later one"
    raise ArtifactError(source.name, expected=f"version {VERSION}", got=str(version), hint=hint)


def _path(path: Any, place: str) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise DTypeError(place, expected="a path", got=type(path).__name__)
    return Path(path)


def _take_apart(x: Any, name: str, tensors: dict[str, Value], depth: int) -> Any:
    """The shape of nested values, with the tensors put aside by name."""
    if depth > 200:
        raise DTypeError("save", expected="values nested at most 200 deep", got="deeper ones")
    if isinstance(x, np.ndarray | np.generic):
        x = installed.lift(x)
    if isinstance(x, Value):
        key = _free(name or "tensor", tensors)
        tensors[key] = x
        return {"tensor": key}
    if x is None or type(x) in (bool, int, str):
        return x
    if type(x) is float:
        return x if math.isfinite(x) else {"float": repr(x)}
    if isinstance(x, dict):
        if not all(type(k) in (str, int) for k in x):
            raise DTypeError(
                "save", expected="dicts with names or integers as keys", got=repr(x)[:60]
            )
        return {
            "dict": [
                [k, _take_apart(v, f"{name}.{k}" if name else str(k), tensors, depth + 1)]
                for k, v in x.items()
            ]
        }
    if isinstance(x, list | tuple):
        items = [
            _take_apart(v, f"{name}.{i}" if name else str(i), tensors, depth + 1)
            for i, v in enumerate(x)
        ]
        return {"tuple" if isinstance(x, tuple) else "list": items}
    raise DTypeError(
        f"save{f' of {name}' * bool(name)}",
        expected="tensors, numbers, strings and None, in dicts, lists and tuples",
        got=type(x).__name__,
        hint="of a module or an optimizer, save its state_dict()",
    )


def _free(name: str, tensors: dict[str, Value]) -> str:
    """The name, or one like it that no other tensor has."""
    key, n = name, 0
    while key in tensors or key == METADATA:
        n += 1
        key = f"{name}#{n}"
    return key


def _put_together(said: Any, tensors: dict[str, Value]) -> Any:
    if not isinstance(said, dict):
        if said is None or type(said) in (bool, int, float, str):
            return said
        raise ValueError(f"{said!r} is no value")
    ((kind, held),) = said.items()
    if kind == "tensor":
        return tensors[held]
    if kind == "float":
        return {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}[held]
    if kind == "dict":
        return {_key(k): _put_together(v, tensors) for k, v in held}
    if kind in ("list", "tuple"):
        items = [_put_together(v, tensors) for v in held]
        return tuple(items) if kind == "tuple" else items
    raise ValueError(f"{kind!r} is no kind of value")


def _key(k: Any) -> Any:
    if type(k) not in (str, int):
        raise ValueError(f"{k!r} is no key")
    return k
