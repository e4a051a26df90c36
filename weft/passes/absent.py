"""A gradient of which not all is asked: some cotangents, or sums to go on from, are not there.

What is computed from those alone is left out, as backward() would not have come by it: a value that
nobody differentiates must not send zeros on their way, which times infinity are no zeros.
"""

from __future__ import annotations

from collections.abc import Collection

from weft.autodiff.backward import constant as filled
from weft.ir import Function, Node
from weft.ir.rewrite import with_inputs
from weft.ops.define import as_node
from weft.ops.elementwise import add


def without(
    f: Function, cotangents: Collection[Node], sums: Collection[Node], gone: Collection[Node]
) -> tuple[Function, tuple[int, ...]]:
    """`f` without the params `gone`, some of `cotangents` and `sums`; and the numbers of the
    results that are left.

    Of two that are added the other one stays. An op that needs some cotangent, and has another one,
    takes zeros; a sum starts from -0.0, which changes no bit of what is added to it.
    """
    later = {*cotangents, *sums}  # what depends on a cotangent or a sum
    absent = set(gone)
    known = {p: p for p in f.params if p not in absent}
    for n in f.order:
        depends = [i for i in n.inputs if i in later]
        if depends:
            later.add(n)
        there = [i for i in depends if i not in absent]
        if depends and not there:
            absent.add(n)
        elif n.op is add and len(depends) == 2 and len(there) == 1 and there[0].type is n.type:
            known[n] = known[there[0]]
        else:
            known[n] = with_inputs(n, tuple([known.get(i) or _nothing(i, sums) for i in n.inputs]))
    left = tuple(i for i, r in enumerate(f.results) if r not in absent)
    params = tuple([p for p in f.params if p in known])
    return Function(f.name, params, tuple([known[f.results[i]] for i in left])), left


def _nothing(n: Node, sums: Collection[Node]) -> Node:
    return as_node(filled(-0.0 if n in sums else 0.0, n.type))
