"""Functions whose path depends on tensors: one per construct, with arguments that take every path.

The table in docs/control_flow.md is made of these, in the order of the files imported here.
"""

# isort: off
from control_programs import branches, names, loops, lists, stacks, objects, keys, things, numbers
from control_programs import recursion, by_hand, effects, blocks

# isort: on
from control_programs.case import CASES, Case, X, Y
