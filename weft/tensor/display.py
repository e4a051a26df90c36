"""How a tensor looks in a terminal and in a notebook."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from weft.autodiff.tape import Leaf, Pick
from weft.buffer import Buffer
from weft.buffer.interchange import to_numpy
from weft.ops.define import Value, standard_mode
from weft.types import DType
from weft.types.dtype import bool_, float32, int64

#: elements above which only the edges of every axis are shown
MOST = 1000
#: how many elements an edge has
EDGE = 3
#: digits behind the point
DIGITS = 4
#: rows and columns of a table in a notebook
TABLE = 12


def text(x: Value) -> str:
    """The `repr` of a tensor: values, then what the values do not show.

    >>> import weft as wf
    >>> wf.tensor([[1.0, 0.5], [2.0, 0.25]])
    tensor([[1.  , 0.5 ],
            [2.  , 0.25]])
    >>> wf.tensor([1, 2], dtype=wf.int8)
    tensor([1, 2], dtype=int8)
    >>> wf.zeros((0, 3))
    tensor([], shape=(0, 3))
    """
    facts = _facts(x)
    if not isinstance(x.data, Buffer):
        return f"tensor({', '.join([f'symbolic {x.type}', *facts])})"
    values = _values(x.data, "tensor(")
    last = len(values) - values.rfind("\n") - 1 + sum(len(f) + 2 for f in facts)
    gap = ",\n       " if facts and "\n" in values and last > 78 else ", "
    return f"tensor({values}{''.join([gap, ', '.join(facts)]) if facts else ''})"


def html(x: Value) -> str:
    """A small table with a line above it that says shape, dtype and where gradients go.

    >>> import weft as wf
    >>> html(wf.tensor([1.0, 2.0])).count("<td")
    2
    """
    state = _gradient(x)
    head = f"tensor · shape {_shape(x)} · {x.type.dtype.name}{f' · {state}' if state else ''}"
    body = f"<pre>{escape(text(x))}</pre>"
    if isinstance(x.data, Buffer) and 0 < x.type.ndim <= 2 and x.type.size:
        body = _table(x.data)
    return f'<div class="weft-tensor"><div><small>{escape(head)}</small></div>{body}</div>'


def _facts(x: Value) -> list[str]:
    """What is said behind the values."""
    dtype, known, facts = x.type.dtype, isinstance(x.data, Buffer), []
    if known and (x.type.size > MOST or x.type.size == 0):
        facts.append(f"shape={_shape(x)}")
    if known and dtype not in (float32, int64, bool_):
        facts.append(f"dtype={dtype.name}")
    if not isinstance(x.data, Buffer) and hasattr(x.data, "op"):
        facts.append(f"op=<{x.data.op.name}>")
    state = _gradient(x)
    return [*facts, state] if state else facts


def _gradient(x: Value) -> str:
    note = x.note
    if note is None:
        return ""
    if isinstance(note, Leaf):
        return "requires_grad=True"
    made = note.note if isinstance(note, Pick) else note
    return f"grad_fn=<{made.call.op.name}>"


def _shape(x: Value) -> str:
    return str(tuple(x.type.shape))


def _values(buffer: Buffer, prefix: str) -> str:
    size = buffer.layout.type.size
    if size == 0:
        return "[]"
    a = to_numpy(buffer)
    return _written(
        _plain(_corner(a) if size > MOST else a, buffer.layout.type.dtype),
        separator=", ",
        prefix=prefix,
        edgeitems=EDGE,
        threshold=0 if size > MOST else MOST,
        suppress_small=None,
    )


def _written(a: np.ndarray[Any, Any], **how: Any) -> str:
    """Numbers as NumPy shows them, denormal ones too."""
    with standard_mode():
        return np.array2string(a, precision=DIGITS, floatmode="maxprec", **how)


def _corner(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The elements that a summary shows, and one between the edges of every axis that is cut."""
    kept = [
        [*range(n)] if n <= 2 * EDGE + 1 else [*range(EDGE + 1), *range(n - EDGE, n)]
        for n in a.shape
    ]
    return a[np.ix_(*kept)]


def _plain(a: np.ndarray[Any, Any], dtype: DType) -> np.ndarray[Any, Any]:
    """In a dtype whose text form NumPy knows."""
    return a.astype(np.float32) if dtype.compute is not dtype else a


def _table(buffer: Buffer) -> str:
    a = to_numpy(buffer)
    a = a.reshape(1, -1) if a.ndim == 1 else a
    rows, columns = (_shown(n) for n in a.shape)
    cells = _plain(
        a[np.ix_([i or 0 for i in rows], [j or 0 for j in columns])], buffer.layout.type.dtype
    )
    said = _written(cells, separator=" ", threshold=cells.size + 1, max_line_width=10**9)
    words = [line.split() for line in said.replace("[", " ").replace("]", " ").splitlines()]
    lines = [
        [
            word if i is not None and j is not None else "…"
            for j, word in zip(columns, line, strict=True)
        ]
        for i, line in zip(rows, words, strict=True)
    ]
    body = "".join(f"<tr>{''.join(f'<td>{escape(w)}</td>' for w in line)}</tr>" for line in lines)
    return f'<table style="text-align: right">{body}</table>'


def _shown(n: int) -> list[int | None]:
    """Which of n rows a table shows; None stands for those left out."""
    half = TABLE // 2
    return [*range(n)] if n <= TABLE else [*range(half), None, *range(n - half, n)]


def wide(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The same numbers as float64, denormal ones too."""
    if a.dtype == np.float64:
        return a
    with standard_mode():
        return a.astype(np.float64)
