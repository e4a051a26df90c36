"""The numerics contract: bits depend on the op and its shapes alone.

Not on the number of threads, on the other rows of a batch, on fusion, or on whether a kernel knows
its sizes. (Layout is in test_values, the target in test_targets, the split into tasks in
test_memory.)
"""

from __future__ import annotations

import pytest

import weft as wf
from tests.laws import batch, big, special, tails
from tests.laws.lab import (
    all_good,
    differences,
    each,
    everything,
    failed,
    forget_plans,
    forward,
    records,
    same_bits,
)
from tests.laws.watch import watching
from weft.schedule import single

THREADS = (1, 2, 3, 7)


# threads


@pytest.fixture
def threads():
    """Sets the number of threads, for one test."""
    before = wf.get_num_threads()
    yield wf.set_num_threads
    wf.set_num_threads(before)


def _by_threads(cases, run, set_threads):
    set_threads(THREADS[0])
    forget_plans()
    want = {c: run(c) for c in cases}
    for n in THREADS[1:]:
        set_threads(n)
        forget_plans()
        each(cases, lambda c, n=n: same_bits(run(c), want[c], f"{n} threads"))


def test_thread_count_changes_no_bit_of_a_sample(threads):
    _by_threads(all_good(), forward, threads)


def test_thread_count_changes_no_bit_of_large_results(threads):
    _by_threads(big.cases(), everything, threads)
    print(f"\n{len(big.cases())} large cases by {THREADS} threads")


def test_every_family_of_large_cases_is_shared_among_threads(threads):
    """Or the law above would say nothing."""
    threads(2)
    shared = set()
    for case in big.cases():

        def look(seen, name=case.op.name):
            if seen.launch.heavy and any(p.tasks > p.grain for p in seen.launch.phases):
                shared.add(name)

        with watching(look):
            forward(case)
    alone = {c.op.name for c in big.cases()} - shared
    assert not alone, alone


# batches

#: ops whose results must be found to have rows that depend on one row of an operand each
ROWWISE = {
    "add", "attention", "attention_weights", "batch_norm_apply", "contract", "convolution",
    "convolution_transpose", "cross_entropy", "cumulative_sum", "exp", "gelu", "group_norm",
    "layer_norm", "log_softmax", "logsumexp", "matmul", "max", "mean", "one_hot", "rms_norm",
    "searchsorted", "softmax", "sort", "std", "sum", "take", "take_along_axis", "topk", "var",
    "where", "window_max", "window_sum",
}  # fmt: skip


def test_a_row_does_not_depend_on_the_rest_of_the_batch():
    rowwise: dict[str, int] = {}

    def check(case):
        rows = batch.rows_of(case)
        if rows is not None:
            rowwise[case.op.name] = rowwise.get(case.op.name, 0) + 1
            batch.check(case, rows)

    each([*all_good(), *big.cases()], check)
    print(f"\n{len(rowwise)} ops, {sum(rowwise.values())} samples with rows of their own")
    assert rowwise.keys() >= ROWWISE, ROWWISE - rowwise.keys()


# tails


def test_an_element_does_not_depend_on_how_many_there_are():
    ops = tails.pointwise()
    failures = []
    for op in ops:
        longest = tails.elements(op, tails.LONGEST)
        for n in tails.LENGTHS:
            part = [a[:n] for a in longest]
            failures += differences(tails.elements(op, n), part, f"{op.name} of {n} elements")
    failed(failures, len(ops) * tails.LONGEST)
    print(f"\n{len(ops)} pointwise ops by {tails.LONGEST} lengths")


def test_a_folded_column_does_not_depend_on_how_many_there_are():
    failures = []
    for op in tails.FOLDS:
        longest = tails.columns(op, tails.LONGEST)
        for n in tails.LENGTHS[1:]:  # a single column is a last axis, which is folded by lanes
            part = [a[:n] for a in longest]
            failures += differences(tails.columns(op, n), part, f"{op} of {n} columns")
    failed(failures, len(tails.FOLDS) * (tails.LONGEST - 1))


def test_a_row_of_any_length_is_what_it_is_alone():
    failures = []
    for op in tails.ROWWISE:
        for n in tails.LENGTHS:
            alone = [a[:1] for a in tails.rows(op, n)]
            failures += differences(tails.rows(op, n, 1), alone, f"{op} of a row of {n}")
    failed(failures, len(tails.ROWWISE) * tails.LONGEST)


# sizes known to the kernel


def test_a_kernel_that_knows_its_sizes_gives_the_same_bits():
    """Pointwise ops by their largest sample, others by a float, a half and an integer dtype;
    each kernel once.
    """
    optimiser, known, compared = special.Optimiser(), set(), []

    def look(seen):
        kernels = tuple((p.spec, p.function) for p in seen.launch.phases)
        if kernels not in known:
            known.add(kernels)
            compared.append(seen.plan.call)
            same_bits(special.run(optimiser, seen), seen.results, f"{seen.plan.call} specialised")

    cases = [c for op in records() for c in special.representatives(op)]
    with watching(look):
        count = each(cases, everything)
    print(f"\n{count} samples, {len(compared)} launches specialised")


# fusion


def test_a_composite_gives_the_bits_of_its_body(monkeypatch):
    fuse = single.plan_composite
    fused: set[str] = set()

    def check(case):
        used = []

        def plan(*args):
            launch = fuse(*args)
            used.append(launch is not None)
            return launch

        monkeypatch.setattr(single, "plan_composite", plan)
        forget_plans()
        want = everything(case)
        if any(used):
            fused.add(case.op.name)
            monkeypatch.setattr(single, "plan_composite", lambda *args: None)
            forget_plans()
            same_bits(everything(case), want, "op by op")

    try:
        count = each([*all_good(), *big.cases()], check)
    finally:
        forget_plans()
    print(f"\n{count} samples, {len(fused)} ops with fused composites")
    assert len(fused) > 30
