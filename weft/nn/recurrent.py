"""Recurrent layers: RNN, LSTM, GRU, over whole sequences and one step at a time.

The products with the input are made for all time steps at once; a step is then one product with the
state and one fused cell.
"""

from __future__ import annotations

import math
from typing import Any

from weft.errors import DTypeError, ShapeError
from weft.nn import functional as F, init
from weft.nn.linear import size
from weft.nn.module import Module
from weft.nn.parameter import Parameter
from weft.nn.utils.rnn import PackedSequence, valid_mask
from weft.ops.define import in_standard_mode
from weft.ops.elementwise import relu, tanh, where
from weft.ops.recurrent import gru_cell, lstm_cell, time_steps
from weft.tensor.arguments import flag, number, word
from weft.tensor.creation import empty, zeros
from weft.tensor.manipulation import concat, stack
from weft.tensor.shapes import expand_dims, moveaxis, squeeze
from weft.tensor.tensor import Tensor

State = tuple[Any, ...]  # the hidden state, and for an LSTM the cell state


def _lstm(x: Any, s: Any, state: State) -> State:
    return lstm_cell(x + s, state[1])


def _gru(x: Any, s: Any, state: State) -> State:
    return (gru_cell(x, s, state[0]),)


_CELLS: dict[str, tuple[int, int, Any]] = {
    # how many gates there are, how many states, and what a step does with the two products
    "tanh": (1, 1, lambda x, s, state: (tanh(x + s),)),
    "relu": (1, 1, lambda x, s, state: (relu(x + s),)),
    "lstm": (4, 2, _lstm),
    "gru": (3, 1, _gru),
}


class _Weights(Module):
    """The parameters of one cell under names that end alike, and one step."""

    input_size: int
    hidden_size: int

    def _add(self, ending: str, inputs: int, gates: int, bias: bool, dtype: Any) -> None:
        n = self.hidden_size
        shapes: list[tuple[str, tuple[int, ...]]] = [
            ("weight_ih", (gates * n, inputs)),
            ("weight_hh", (gates * n, n)),
            ("bias_ih", (gates * n,)),
            ("bias_hh", (gates * n,)),
        ]
        for name, shape in shapes:
            wanted = bias or name.startswith("weight")
            p = Parameter(empty(shape, dtype=dtype)) if wanted else None
            if wanted or not ending:
                self.register_parameter(name + ending, p)

    def _get(self, name: str, ending: str) -> Any:
        return self._parameters.get(name + ending)

    @in_standard_mode
    def reset_parameters(self) -> None:
        """Other first values: uniform within 1 / sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size)
        for p in self.parameters():
            init.uniform_(p, -bound, bound)


class _Recurrent(_Weights):
    kind: str

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        dtype: Any = None,
    ) -> None:
        name = type(self).__name__
        self.input_size = size(input_size, f"{name} input_size")
        self.hidden_size = size(hidden_size, f"{name} hidden_size")
        self.num_layers = size(num_layers, f"{name} num_layers")
        self.bias, self.batch_first = flag(bias, f"{name} bias"), flag(batch_first, name)
        self.dropout = number(dropout, name, "a dropout", 0, 1)
        self.bidirectional = flag(bidirectional, f"{name} bidirectional")
        ways = 2 if self.bidirectional else 1
        for layer in range(self.num_layers):
            inputs = self.input_size if layer == 0 else ways * self.hidden_size
            for way in range(ways):
                ending = f"_l{layer}" + "_reverse" * way
                self._add(ending, inputs, _CELLS[self.kind][0], self.bias, dtype)
        self.reset_parameters()

    def forward(self, x: Any, hx: Any = None) -> Any:
        """The outputs of the last layer at every time step, and the last states of all layers."""
        lengths: Any = None
        packed, batched, batch_first = isinstance(x, PackedSequence), True, self.batch_first
        if packed:
            x, lengths = x
            batch_first = False
        elif x.ndim == 2:
            batched = False
            x = expand_dims(x, 1)
            hx = _each(hx, lambda h: expand_dims(h, 1))
        elif batch_first:
            x = moveaxis(x, 0, 1)
        self._check(x)
        out, state = self._run(x, self._first(x, hx), lengths)
        if not batched:
            out, state = squeeze(out, 1), tuple(squeeze(s, 1) for s in state)
        elif batch_first and not packed:
            out = moveaxis(out, 0, 1)
        if packed:
            out = PackedSequence(out, lengths)
        return out, state if len(state) > 1 else state[0]

    def _check(self, x: Any) -> None:
        if x.ndim != 3 or x.shape[2] != self.input_size or not x.shape[0]:
            lead = "N, L" if self.batch_first else "L, N"
            raise ShapeError(
                type(self).__name__,
                expected=f"({lead}, {self.input_size}) with at least one time step",
                got=f"{x.type} (L, N, …)",
            )

    def _first(self, x: Any, hx: Any) -> State:
        """The states to begin with, one row for each layer and direction."""
        name, states = type(self).__name__, _CELLS[self.kind][1]
        shape = (self.num_layers * (1 + self.bidirectional), x.shape[1], self.hidden_size)
        if hx is None:
            return (zeros(shape, dtype=x.dtype),) * states
        given = hx if isinstance(hx, tuple | list) else (hx,)
        if len(given) != states or not all(isinstance(h, Tensor) for h in given):
            expected = "a pair (h, c) of states" if states > 1 else "one state"
            raise DTypeError(name, expected=expected, got=type(hx).__name__)
        for h in given:
            if h.shape != shape:
                raise ShapeError(name, expected=f"states of shape {shape}", got=str(h.type))
        return tuple(given)

    def _run(self, x: Any, first: State, lengths: Any) -> tuple[Any, State]:
        valid = None
        if lengths is not None:
            valid = time_steps(valid_mask(lengths, x.shape[0], 3))
        ways = 1 + self.bidirectional
        starts = [time_steps(s) for s in first]
        last = []
        for layer in range(self.num_layers):
            outs = []
            for way in range(ways):
                n = layer * ways + way
                out, state = self._layer(x, layer, way, tuple(s[n] for s in starts), valid)
                outs.append(out)
                last.append(state)
            x = outs[0] if ways == 1 else concat(outs, axis=2)
            if self.dropout and layer < self.num_layers - 1:
                x = F.dropout(x, self.dropout, self.training)
        return x, tuple(stack(list(s)) for s in zip(*last, strict=True))

    def _layer(self, x: Any, layer: int, way: int, state: State, valid: Any) -> tuple[Any, State]:
        ending = f"_l{layer}" + "_reverse" * way
        w, b = self._get("weight_hh", ending), self._get("bias_hh", ending)
        gates = F.linear(x, self._get("weight_ih", ending), self._get("bias_ih", ending))
        steps, cell = time_steps(gates), _CELLS[self.kind][2]
        outs: list[Any] = [None] * len(steps)
        order = range(len(steps))
        for t in reversed(order) if way else order:
            new = cell(steps[t], F.linear(state[0], w, b), state)
            if valid is None:
                state, outs[t] = new, new[0]
            else:
                state = tuple(where(valid[t], a, b) for a, b in zip(new, state, strict=True))
                outs[t] = where(valid[t], new[0], 0.0)
        return stack(outs), state

    def extra_repr(self) -> str:
        said = [f"{self.input_size}, {self.hidden_size}"]
        usual = {"num_layers": 1, "bias": True, "batch_first": False, "dropout": 0.0}
        for name, value in (usual | {"bidirectional": False}).items():
            if getattr(self, name) != value:
                said.append(f"{name}={getattr(self, name)}")
        return ", ".join(said)


class RNN(_Recurrent):
    """h' = tanh(W x + U h + b) over sequences (L, N, in), or (N, L, in) with `batch_first`.

    >>> import weft as wf
    >>> out, h = wf.nn.RNN(3, 4, batch_first=True)(wf.ones((2, 5, 3)))
    >>> out.shape, h.shape
    ((2, 5, 4), (1, 2, 4))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        dtype: Any = None,
    ) -> None:
        self.kind = self.nonlinearity = word(nonlinearity, "RNN", ("tanh", "relu"))
        super().__init__(
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            dtype=dtype,
        )


class LSTM(_Recurrent):
    """Long short-term memory over sequences (L, N, in), or (N, L, in) with `batch_first`.

    >>> import weft as wf
    >>> out, (h, c) = wf.nn.LSTM(3, 4, bidirectional=True)(wf.ones((5, 2, 3)))
    >>> out.shape, h.shape, c.shape
    ((5, 2, 8), (2, 2, 4), (2, 2, 4))
    """

    kind = "lstm"


class GRU(_Recurrent):
    """Gated recurrent units over sequences (L, N, in), or (N, L, in) with `batch_first`.

    >>> import weft as wf
    >>> out, h = wf.nn.GRU(3, 4, num_layers=2)(wf.ones((5, 2, 3)))
    >>> out.shape, h.shape
    ((5, 2, 4), (2, 2, 4))
    """

    kind = "gru"


class _Cell(_Weights):
    kind: str

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, *, dtype: Any = None
    ) -> None:
        name = type(self).__name__
        self.input_size = size(input_size, f"{name} input_size")
        self.hidden_size = size(hidden_size, f"{name} hidden_size")
        self.bias = flag(bias, f"{name} bias")
        self._add("", self.input_size, _CELLS[self.kind][0], self.bias, dtype)
        self.reset_parameters()

    def forward(self, x: Any, hx: Any = None) -> Any:
        """The state after one step from x (N, in) or (in,)."""
        _, states, cell = _CELLS[self.kind]
        if hx is None:
            hx = (zeros((*x.shape[:-1], self.hidden_size), dtype=x.dtype),) * states
        state = tuple(hx) if isinstance(hx, tuple | list) else (hx,)
        if len(state) != states:
            expected = "a pair (h, c) of states" if states > 1 else "one state"
            raise DTypeError(type(self).__name__, expected=expected, got=str(len(state)))
        from_x = F.linear(x, self._get("weight_ih", ""), self._get("bias_ih", ""))
        from_h = F.linear(state[0], self._get("weight_hh", ""), self._get("bias_hh", ""))
        new = cell(from_x, from_h, state)
        return new if states > 1 else new[0]

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + ", bias=False" * (not self.bias)


class RNNCell(_Cell):
    """One step of an RNN.

    >>> import weft as wf
    >>> wf.nn.RNNCell(3, 5)(wf.ones((2, 3))).shape
    (2, 5)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        *,
        dtype: Any = None,
    ) -> None:
        self.kind = self.nonlinearity = word(nonlinearity, "RNNCell", ("tanh", "relu"))
        super().__init__(input_size, hidden_size, bias, dtype=dtype)


class LSTMCell(_Cell):
    """One step of an LSTM: (h, c) from x and (h, c).

    >>> import weft as wf
    >>> h, c = wf.nn.LSTMCell(3, 4)(wf.ones((2, 3)))
    >>> h.shape, c.shape
    ((2, 4), (2, 4))
    """

    kind = "lstm"


class GRUCell(_Cell):
    """One step of a GRU: h from x and h.

    >>> import weft as wf
    >>> wf.nn.GRUCell(3, 5)(wf.ones((2, 3))).shape
    (2, 5)
    """

    kind = "gru"


def _each(hx: Any, f: Any) -> Any:
    if hx is None:
        return None
    return tuple(map(f, hx)) if isinstance(hx, tuple | list) else f(hx)
