"""The numeric checker: what a vjp says against what central differences measure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.autodiff.backward import start
from weft.autodiff.transforms import sequence, vjp
from weft.errors import DTypeError, NumericsError
from weft.ops.define import Value, installed


def gradcheck(
    f: Callable[..., Any],
    xs: Sequence[Any],
    *,
    eps: float = 1e-6,
    rtol: float = 1e-5,
    atol: float = 1e-7,
) -> bool:
    """Compare the gradient of `f` at `xs` (float64 for the defaults to make sense) with central
    differences.

    True if they agree; `NumericsError` naming the argument and the worst element if not.

    >>> import weft as wf
    >>> wf.gradcheck(lambda x: x.exp() * x, [wf.tensor([0.1, 0.7], dtype=wf.float64)])
    True
    """
    for name, n in (("eps", eps), ("rtol", rtol), ("atol", atol)):
        if not isinstance(n, (int, float)):
            raise DTypeError("gradcheck", expected=f"{name}: a number", got=repr(n))
    xs = sequence(xs, "gradcheck")
    values = [x if isinstance(x, Value) else installed.lift(x) for x in xs]
    y, pullback = vjp(f, *values)
    rng = np.random.default_rng(0)
    outs = y if isinstance(y, tuple) else (y,)
    cts = [rng.standard_normal(o.type.shape).astype(o.type.dtype.np) for o in outs]
    got = pullback(
        *(
            start(o, installed.lift(np.asarray(c)), "gradcheck")
            for o, c in zip(outs, cts, strict=True)
        )
    )

    def measured(arrays: list[Any]) -> float:
        out = f(*(installed.lift(a) for a in arrays))
        parts = out if isinstance(out, tuple) else (out,)
        return float(
            sum(np.vdot(np.asarray(p, np.float64), c) for p, c in zip(parts, cts, strict=True))
        )

    base = [np.array(v.numpy()) for v in values]
    for n, (x, g) in enumerate(zip(base, got, strict=True)):
        found = np.array(g.numpy(), np.float64)
        for i in np.ndindex(x.shape):
            old = x[i]
            x[i] = old + eps
            up = measured(base)
            x[i] = old - eps
            down = measured(base)
            x[i] = old
            want = (up - down) / (2 * eps)
            if not abs(found[i] - want) <= atol + rtol * abs(want):
                raise NumericsError(
                    f"gradcheck, argument {n}, element {i}",
                    expected=f"{want:.10g} by central differences",
                    got=f"{found[i]:.10g} by the gradient",
                )
    return True
