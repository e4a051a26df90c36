"""What a tensor looks like."""

import re

import numpy as np
import pytest

import weft as wf
from tests.laws.modes import MODES, host_mode
from weft.ops.define import placeholder
from weft.tensor import display
from weft.types import TensorType
from weft.types.dtype import DTYPES


def test_values_as_numpy_shows_them():
    assert repr(wf.tensor([[2.0, 4.0], [6.0, 8.0]])) == "tensor([[2., 4.],\n        [6., 8.]])"
    assert repr(wf.tensor([1, -20])) == "tensor([  1, -20])"
    assert repr(wf.tensor([True, False])) == "tensor([ True, False])"
    assert repr(wf.tensor(2.5)) == "tensor(2.5)" and repr(wf.tensor(7)) == "tensor(7)"
    assert repr(wf.tensor([1 / 3, 1e-9])) == "tensor([3.3333e-01, 1.0000e-09])"
    assert repr(wf.tensor([float("nan"), float("inf")])) == "tensor([nan, inf])"
    assert str(wf.tensor([1.0])) == "tensor([1.])" and f"{wf.tensor(1.5):.2f}" == "1.50"


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_dtype_other_than_the_default_is_said(dtype):
    said = repr(wf.ones(2, dtype=dtype))
    default = dtype in (wf.float32, wf.int64, wf.bool)
    assert (f"dtype={dtype.name}" in said) != default
    assert said.startswith("tensor([1") or dtype is wf.bool


@pytest.mark.parametrize("mode", MODES)
def test_the_hosts_mode_changes_nothing(mode):
    x = wf.tensor([1e-40, -3e-41, 1 / 3, 2.0])
    said, table = repr(x), x._repr_html_()
    assert "9.9999e-41" in said and "9.9999e-41" in table
    with host_mode(mode):
        then, shown = repr(x), x._repr_html_()
    assert (then, shown) == (said, table)


def test_half_types_show_their_values():
    assert (
        repr(wf.tensor([0.1, 3.0], dtype=wf.bfloat16)) == "tensor([0.1001, 3.    ], dtype=bfloat16)"
    )


def test_large_tensors_are_summarised():
    said = repr(wf.zeros((100, 100)))
    assert "..." in said and said.endswith("shape=(100, 100))") and said.count("\n") == 6
    assert (
        repr(wf.arange(5000)) == "tensor([   0,    1,    2, ..., 4997, 4998, 4999], shape=(5000,))"
    )
    assert "shape" not in repr(wf.zeros((10, 10)))
    wide = repr(wf.reshape(wf.arange(2000), (2, 1000)))
    assert "999]" in wide and "1999]" in wide and wide.count("\n") == 1


def test_a_summary_looks_at_the_edges_only():
    x = wf.broadcast_to(wf.tensor(1.0), (10**9, 10**6))
    assert repr(x).endswith("shape=(1000000000, 1000000))")
    assert "…" in display.html(x)


def test_empty_tensors_show_their_shape():
    assert repr(wf.zeros((0, 3))) == "tensor([], shape=(0, 3))"
    assert repr(wf.zeros(0, dtype=wf.int8)) == "tensor([], shape=(0,), dtype=int8)"


def test_gradient_state():
    x = wf.tensor([1.0, 2.0], requires_grad=True)
    assert repr(x) == "tensor([1., 2.], requires_grad=True)"
    assert repr(x * x) == "tensor([1., 4.], grad_fn=<multiply>)"
    assert repr((x * x).detach()) == "tensor([1., 4.])"
    (x * x).sum().backward()
    assert repr(x.grad) == "tensor([2., 4.])"


def test_long_facts_go_on_a_line_of_their_own():
    x = wf.tensor(np.full((2, 7), 0.1234), dtype=wf.float64, requires_grad=True)
    assert repr(x).endswith(",\n       dtype=float64, requires_grad=True)")


def test_symbols_show_type_and_op():
    x = placeholder(TensorType((2, 3), wf.float32))
    assert repr(x) == "tensor(symbolic f32[2, 3], op=<parameter>)"
    assert repr(x + 1.0) == "tensor(symbolic f32[2, 3], op=<add>)"
    assert "symbolic f32[2, 3]" in display.html(x)


def test_non_contiguous_tensors():
    x = wf.tensor([[1, 2], [3, 4]])
    assert repr(x.T) == "tensor([[1, 3],\n        [2, 4]])"


def test_html_is_a_table_and_escapes():
    x = wf.tensor([[1.0, 2.0], [3.0, 4.5]], requires_grad=True)
    said = display.html(x)
    assert said.count("<tr>") == 2 and said.count("<td>") == 4 and "4.5" in said
    assert "shape (2, 2)" in said and "float32" in said and "requires_grad=True" in said
    assert "grad_fn=&lt;add&gt;" in display.html(x + x) and "<add>" not in display.html(x + x)
    assert x._repr_html_() == said


@pytest.mark.parametrize("shape", [(100, 3), (3, 100), (100, 100), (50,)])
def test_html_of_a_large_table_is_short(shape):
    said = display.html(wf.zeros(shape))
    rows, columns = said.count("<tr>"), len(re.findall("<td>", said.split("</tr>")[0]))
    assert rows <= 13 and columns <= 13 and "…" in said


@pytest.mark.parametrize("shape", [(), (0,), (2, 2, 2)])
def test_html_of_what_is_no_table_is_text(shape):
    assert "<pre>" in display.html(wf.zeros(shape))
