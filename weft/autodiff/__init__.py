"""Derivatives: the tape (reverse mode), forward mode by two reverse sweeps, and the numeric checker.

Reads `op.vjp` and names no op but those it needs to add and start cotangents.
"""

from weft.autodiff.backward import backward as backward
from weft.autodiff.check import gradcheck as gradcheck
from weft.autodiff.custom import checkpoint as checkpoint
from weft.autodiff.custom import custom_vjp as custom_vjp
from weft.autodiff.mode import enable_grad as enable_grad
from weft.autodiff.mode import no_grad as no_grad
from weft.autodiff.transforms import grad as grad
from weft.autodiff.transforms import hessian as hessian
from weft.autodiff.transforms import jacobian as jacobian
from weft.autodiff.transforms import jvp as jvp
from weft.autodiff.transforms import value_and_grad as value_and_grad
from weft.autodiff.transforms import vjp as vjp
