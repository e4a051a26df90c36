"""The order kernels run in: what each needs is there, and memory is given back early."""

import pytest

from tests.compile.programs import functions
from weft.ops.language import parse
from weft.schedule.order import arrange
from weft.schedule.partition import partition


def test_every_order_is_topological():
    for seed in range(1000, 1040):
        for f in functions(seed):
            groups = partition(f)
            ordered = arrange(groups, f.results)
            assert len(ordered) == len(groups) and set(map(id, ordered)) == set(map(id, groups))
            known = set(f.params)
            for g in ordered:
                assert set(g.inputs) - known <= {i for i in g.inputs if i.op.name == "constant"}
                known |= set(g.nodes)


@pytest.mark.tiny
def test_what_gives_memory_back_comes_first():
    """Of two branches, the one whose result is small is finished before the other is begun."""
    f = parse("""
fn f(%x: f32[64, 64], %y: f32[64, 64]) -> (f32[], f32[]) {
  %a = matmul %x, %y
  %b = matmul %y, %x
  %s = sum %a {axes = (0, 1), keepdims = false}
  %t = sum %b {axes = (0, 1), keepdims = false}
  return %s, %t
}""").entry
    said = [g.nodes[-1].op.name for g in arrange(partition(f), f.results)]
    assert said == ["matmul", "sum", "matmul", "sum"]


@pytest.mark.tiny
def test_views_follow_what_they_are_of():
    f = parse("""
fn f(%x: f32[4, 4]) -> f32[4, 4] {
  %v = permute_dims %x {axes = (1, 0)}
  %w = reshape %v {shape = (16,)}
  %a = exp %w
  %b = reshape %a {shape = (4, 4)}
  %c = permute_dims %b {axes = (1, 0)}
  %d = matmul %c, %v
  return %d
}""").entry
    said = [g.nodes[-1].op.name for g in arrange(partition(f), f.results)]
    assert said == ["permute_dims", "reshape", "exp", "reshape", "permute_dims", "matmul"]
