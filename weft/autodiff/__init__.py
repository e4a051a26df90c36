"""Derivatives: the tape (reverse mode), forward mode by two reverse sweeps, and the numeric
checker.

Reads `op.vjp` and names no op but those it needs to add and start cotangents.
"""

from weft.autodiff.backward import backward as backward
from weft.autodiff.check import gradcheck as gradcheck
from weft.autodiff.custom import checkpoint as checkpoint, custom_vjp as custom_vjp
from weft.autodiff.mode import enable_grad as enable_grad, no_grad as no_grad
from weft.autodiff.transforms import (
    grad as grad,
    hessian as hessian,
    jacobian as jacobian,
    jvp as jvp,
    value_and_grad as value_and_grad,
    vjp as vjp,
)
