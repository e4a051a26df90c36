"""A graph that is no program is shown among its neighbours, with the user's line."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from tests.ir.toy import OPS as TOYS, TOY, ToyOp
from weft.errors import ProgramError
from weft.ir import Function, Location, Module, Node
from weft.ir.verify import verify as verify_with
from weft.ops.define import OPS
from weft.ops.language import verify
from weft.types import Dim, TensorType
from weft.types.dtype import float32, int64

HERE = Path(__file__).parent
A, B, C = (TensorType((n,), float32) for n in (2, 3, 4))
AT = Location("model.py", 7, 5, 14, "bad", "twist(x)")

pytestmark = pytest.mark.tiny


def param(i, type_=A, name=""):
    attrs = (("position", i), ("type", type_))
    return Node(OPS["parameter"], (), attrs, type_, Location(name=name) if name else None)


def op(name, *inputs, type_=A, loc=None, **attrs):
    return Node(OPS[name], inputs, tuple(attrs.items()), type_, loc)


def pick(node, position, type_):
    return Node(OPS["result"], (node,), (("position", position), ("type", type_)), type_)


X, Y = param(0, name="x"), param(1, B, name="y")
TOP = op("topk", X, k=1, largest=True, type_=TensorType((1,), float32))


def among(bad, *params, results=None):
    """A function with good statements around a bad one."""
    before = op("exp", op("relu", X), loc=Location("model.py", 5, 5, 9, "y"))
    after = op("tanh", op("sqrt", op("relu", before)))
    return Function("f", (X, *params), results or (before, bad, after))


def twice():
    return Function("g", (X, X), (X,))


LONE = TensorType((1,), float32)
BAD = {
    "op": among(Node(ToyOp("rellu"), (X,), (), A, AT)),
    "another op of that name": among(Node(ToyOp("relu"), (X,), (), A, AT)),
    "type": among(op("relu", X, type_=B, loc=AT)),
    "operands": among(op("add", X, type_=A, loc=AT)),
    "shapes": among(op("add", X, Y, loc=AT), Y),
    "attribute": among(op("sum", X, axes=3, keepdims=False, loc=AT)),
    "attribute twice": among(Node(OPS["sum"], (X,), (("axes", ()), ("axes", ())), A, AT)),
    "attribute without text": among(op("sum", X, axes=object, keepdims=False, loc=AT)),
    "not closed": among(op("relu", param(3), loc=AT)),
    "all of several": among(op("relu", TOP, type_=LONE, loc=AT)),
    "all returned": among(pick(TOP, 0, LONE), results=(TOP, pick(TOP, 0, LONE))),
    "pick of one": among(pick(op("relu", X), 0, A)),
    "pick too far": among(pick(TOP, 2, A)),
    "pick of another type": among(pick(TOP, 1, TensorType((1,), float32))),
    "constant": among(op("constant", value=1, type=float, type_=float, loc=AT)),
    "parameter twice": twice(),
    "parameter of another type": Function(
        "f", (Node(OPS["parameter"], (), (("position", 0), ("type", B)), A),), ()
    ),
    "parameter that is none": Function("f", (op("relu", X),), ()),
}


def said(f):
    with pytest.raises(ProgramError) as e:
        verify(f)
    return e.value


@pytest.mark.parametrize("name", BAD)
def test_every_fault_is_found(name):
    e = said(BAD[name])
    assert e.expected and e.got and "\n> " in f"\n{e.excerpt}"
    assert isinstance(e, ValueError)


def test_messages(golden):
    text = "\n".join(f"{name}\n{said(f)}\n" for name, f in BAD.items())
    golden(HERE / "verify.txt", text.replace(repr(object), "an object"))


def test_the_message_names_the_line_and_shows_its_neighbours():
    e = said(BAD["type"])
    assert e.place == 'relu in fn f at "model.py":7:5'
    assert (e.expected, e.got) == ("f32[2]", "f32[3]")
    marked = [line for line in e.excerpt.splitlines() if line.startswith(">")]
    assert len(marked) == 1 and "%bad = relu %x : f32[3]" in marked[0]
    assert 3 <= len(e.excerpt.splitlines()) <= 7


def test_errors_can_be_sent_to_another_process():
    e = said(BAD["type"])
    again = pickle.loads(pickle.dumps(e))
    assert str(again) == str(e) and again.place == e.place and again.excerpt == e.excerpt


def test_regions_are_checked_and_closed():
    t = TensorType((), int64)
    outer = Node(TOYS["parameter"], (), (("position", 0), ("type", t)), t)
    inner = Node(TOYS["twist"], (outer,), (("gives", t),), t)
    node = Node(TOYS["twist"], (outer,), (("gives", t),), t, None, (Function("r", (), (inner,)),))
    with pytest.raises(ProgramError, match="values of this function only"):
        verify_with(Function("f", (outer,), (node,)), TOY)


def test_a_size_has_one_meaning():
    f = Function("f", (param(0, TensorType((Dim("B"),), float32)),), ())
    g = Function("g", (param(0, TensorType((Dim("B", 1, 2),), float32)),), ())
    verify(Module((f,)))
    with pytest.raises(ProgramError, match="one meaning"):
        verify(Module((f, g)))


def test_a_module_has_functions_of_different_names():
    f = Function("f", (), ())
    for functions in ((), (f, f)):
        with pytest.raises(ProgramError):
            Module(functions)
    assert Module((f,))["f"] is Module((f,)).entry is f
