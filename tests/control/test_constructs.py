"""Every construct, every path: plain Python, converted, captured, native; values and gradients."""

import pytest
from control_lab import agree, compiled, outcome, ran
from control_programs import CASES

import weft as wf


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_same_bits_in_every_way_to_run(case):
    for args in case.arguments:
        agree(case.function, *args, gradient=case.gradient)


@pytest.mark.parametrize("case", [c for c in CASES if not c.lengths], ids=lambda c: c.name)
def test_one_program_serves_every_path(case):
    program = compiled(case.function, *case.arguments[0])
    for args in case.arguments:
        if all(isinstance(a, wf.Tensor) for a in args):
            assert outcome(lambda args=args: ran(program, *args)) == outcome(case.function, *args)
