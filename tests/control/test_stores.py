"""What holds of a program as a whole: stores are stores, and values of their own; functions that
are called are there; the reverse of a loop fits it.
"""

from __future__ import annotations

import pytest

import weft as wf
from weft.capture.evaluate import evaluate
from weft.errors import ProgramError
from weft.ir import Function, Node, rewrite
from weft.ops.language import parse, verify

pytestmark = pytest.mark.tiny
X = wf.tensor([1.0, 2.0])
EMPTY = "%s = constant [0, 0, 0] : i64[3]"


def compiled(f, *xs):
    return wf.compile(lambda *ys: evaluate(f, *ys), fallback=False)(*xs)


REFUSED = {
    "a parameter": (
        "fn f(%s: i64[3], %i: i64[], %o: f32[2]) -> f32[2] { %y = get %s, %i, %o return %y }",
        "a store",
    ),
    "words": (
        """fn f(%i: i64[], %o: f32[2]) -> f32[2] {
          %s = constant [4096, 0, 1] : i64[3] %y = get %s, %i, %o return %y
        }""",
        "a store",
    ),
    "a result of an op": (
        f"""fn f(%i: i64[], %o: f32[2]) -> f32[2] {{
          {EMPTY} %t = put %s, %o %u = add %t, 8 %y = get %u, %i, %o return %y
        }}""",
        "a store",
    ),
    "a parameter, carried by a loop": (
        """fn f(%s: i64[3], %i: i64[], %o: f32[2]) -> f32[2] {
          %n, %t = while %i, %s
            fn test(%i: i64[], %s: i64[3]) -> bool[] { %b = less %i, 3 return %b }
            fn body(%i: i64[], %s: i64[3]) -> (i64[], i64[3]) { %j = add %i, 1 return %j, %s }
          %y = get %t, %n, %o
          return %y
        }""",
        "a store",
    ),
    "a parameter, out of a store": (
        f"""fn f(%p: i64[3], %i: i64[], %o: f32[2]) -> f32[2] {{
          {EMPTY} %t = put %s, %p %z = constant [0, 0, 0] : i64[3]
          %q = get %t, %i, %z %y = get %q, %i, %o return %y
        }}""",
        "a store",
    ),
    "an entry of another type": (
        f"""fn f(%i: i64[], %x: f32[2], %o: f32[4096]) -> f32[4096] {{
          {EMPTY} %t = put %s, %x %y = get %t, %i, %o return %y
        }}""",
        "entries of",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_store_is_refused(case):
    """By the verifier and by the compiler: a store holds addresses."""
    text, expected = REFUSED[case]
    f = parse(text).entry
    with pytest.raises(ProgramError, match=expected):
        verify(f)
    xs = [wf.zeros(p.type.shape, dtype=p.type.dtype) for p in f.params]
    with pytest.raises(ProgramError, match=expected):
        compiled(f, *xs)


@pytest.mark.parametrize("number", [-(1 << 62), -1, 2, 1 << 62])
def test_an_entry_that_is_not_there_is_the_other_value(number):
    f = parse(f"""fn f(%x: f32[2], %i: i64[], %o: f32[2]) -> f32[2] {{
      {EMPTY} %t = put %s, %x %u = put %t, %x %y = get %u, %i, %o return %y
    }}""").entry
    verify(f)
    xs = X, wf.tensor(number), wf.full((2,), 7.0)
    assert evaluate(f, *xs)[0].tolist() == compiled(f, *xs)[0].tolist() == [7.0, 7.0]


BRANCHED = f"""
  %z = multiply %x, 2.0
  {EMPTY}
  %a = put %s, %x
  %b = put %a, %z
  %c = put %a, %x
  %d = put %c, %z
  %e = put %d, %x
  %f = put %b, %x
  %p = get %b, %i, %o
  %q = get %e, %i, %o
  %r = get %f, %i, %o
"""
CALLED = """
  %p, %q, %r = recursion %x, %i, %o {captured = 0}
    fn g(%x: f32[2], %i: i64[], %o: f32[2]) -> (f32[2], f32[2], f32[2]) {
      BODY
      %t = less %i, 100
      %u, %v, %w = cond %t, %p, %q, %r, %x, %i, %o
        fn yes(%p: f32[2], %q: f32[2], %r: f32[2], %x: f32[2], %i: i64[], %o: f32[2])
          -> (f32[2], f32[2], f32[2]) { return %p, %q, %r }
        fn no(%p: f32[2], %q: f32[2], %r: f32[2], %x: f32[2], %i: i64[], %o: f32[2])
          -> (f32[2], f32[2], f32[2]) {
          %j = subtract %i, 100
          %p1, %q1, %r1 = call %x, %j, %o {
            name = "g", gives = (f32[2], f32[2], f32[2]), site = 0
          }
          return %p1, %q1, %r1
        }
      return %u, %v, %w
    }
""".replace("BODY", BRANCHED)


@pytest.mark.parametrize("body", [BRANCHED, CALLED], ids=["once", "in a recursion"])
@pytest.mark.parametrize("number", range(4))
def test_two_stores_of_one_beginning_are_two_values(body, number):
    head = "fn f(%x: f32[2], %i: i64[], %o: f32[2]) -> (f32[2], f32[2], f32[2])"
    f = parse(f"{head} {{ {body} return %p, %q, %r }}").entry
    verify(f)
    xs = X, wf.tensor(number + 100 * (body is CALLED)), wf.full((2,), 7.0)
    want = [y.tolist() for y in evaluate(f, *xs)]
    assert [y.tolist() for y in compiled(f, *xs)] == want


def test_a_call_of_a_function_that_is_not_there_is_refused():
    text = """fn f(%x: f32[2]) -> f32[2] {
      %y = call %x {name = "half", gives = (f32[2],), site = 0} return %y
    }"""
    with pytest.raises(ProgramError, match="a function half in a recursion around it"):
        verify(parse(text).entry)


def reverse():
    """A program with the reverse of a loop."""

    def f(x, n):
        return wf.while_loop(lambda s: s[1] < n, lambda s: (s[0] * s[0], s[1] + 1), (x, 0))[0].sum()

    graph = wf.trace(wf.grad(f), X, wf.tensor(3)).graph
    verify(graph)
    return graph


@pytest.mark.parametrize("change", ["region", "kept"])
def test_a_reverse_that_does_not_fit_its_loop_is_refused(change):
    def rule(n, inputs):
        if n.op.name != "while_grad":
            return None
        test, body, step, last, none = n.regions
        kept = n.attr("kept")
        if change == "region":
            body = Function(body.name, body.params, body.results[:-1])
            attrs = n.attrs
        else:
            attrs = tuple((k, tuple(i + 1 for i in kept) if k == "kept" else v) for k, v in n.attrs)
        return Node(n.op, inputs, attrs, n.type, n.loc, (test, body, step, last, none))

    with pytest.raises(ProgramError, match=r"the loop's state|the first operands, its state"):
        verify(rewrite(reverse(), rule))
