"""Functions whose path depends on tensors: one per construct, with arguments that take every path.

The table in docs/control_flow.md is made of these, in the order of the files imported here.
"""

from control_programs import branches, loops, objects, numbers, recursion, by_hand, effects, blocks  # isort: skip
from control_programs.case import CASES, Case, X, Y
