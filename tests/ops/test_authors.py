"""What somebody who adds an op gets wrong is said in the terms of the record."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import weft as wf
from weft.errors import DTypeError, GradError
from weft.ops.define import OPS, Op, register
from weft.ops.makers import composite, elementwise
from weft.ops.scalar import Scalar, input_
from weft.types.dtype import float32

pytestmark = pytest.mark.tiny


@pytest.fixture(autouse=True)
def ops_are_forgotten():
    before = set(OPS)
    yield
    for name in set(OPS) - before:
        del OPS[name]


def test_an_op_called_in_a_rule_for_one_element():
    op = elementwise("author_rule", lambda x: wf.exp(x))
    with pytest.raises(DTypeError, match=r"got weft.Scalar; a rule for one element"):
        op(wf.ones((2,)))


@pytest.mark.parametrize("given", [(), (None, None), [1, 2, 3]])
def test_a_vjp_with_too_few_or_too_many_cotangents(given):
    op = composite("author_vjp", vjp=lambda g, y, x: given)(lambda x: x + 1)
    x = wf.ones((2,), requires_grad=True)
    with pytest.raises(GradError, match=r"the vjp of author_vjp: expected a tuple of 1, a cotang"):
        op(x).sum().backward()


def test_a_vjp_that_gives_a_tensor():
    op = composite("author_tensor", vjp=lambda g, y, x: g)(lambda x: x + 1)
    with pytest.raises(GradError, match="a cotangent or None for each operand, got "):
        op(wf.ones((1,), requires_grad=True)).sum().backward()


@pytest.mark.parametrize("wrong", [lambda x: [x, x], lambda x: 1.0, lambda x: None, lambda x: ()])
def test_a_body_that_gives_no_tensors(wrong):
    op = composite("author_body")(wrong)
    with pytest.raises(DTypeError, match="author_body: expected a tensor, or a tuple of tensors"):
        op(wf.ones((2,)))


def test_an_op_of_no_kind_and_one_of_two():
    with pytest.raises(ValueError, match=r"'author_none': expected exactly one of .*, got none"):
        register(Op("author_none", infer=lambda x: x))
    two = Op("author_two", infer=lambda x: x, scalar=lambda x: x, body=lambda x: x)
    with pytest.raises(ValueError, match="got scalar and body"):
        register(two)
    assert not {"author_none", "author_two"} & set(OPS)


def test_a_verb_that_there_is_not():
    with pytest.raises(ValueError, match="'cosine' is no scalar verb"):
        Scalar("cosine", (input_(0, float32),), float32)


def test_every_file_of_ops_is_imported():
    """Or its ops would be there for nobody, and no law would miss them."""
    root = Path(wf.__file__).parent
    names = {
        ".".join(("weft", *p.relative_to(root).with_suffix("").parts))
        for p in (root / "ops").rglob("*.py")
        if p.name != "__init__.py"
    }
    code = "import sys, weft; print(*sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert names <= set(said.stdout.split())
