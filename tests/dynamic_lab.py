"""Sizes and numbers that change from call to call: what their tests share."""

import numpy as np

import weft as wf


def tensor(*shape, seed=0, dtype=np.float32):
    values = np.random.default_rng([seed, *shape]).standard_normal(shape)
    return wf.tensor(values.astype(dtype))


X = tensor(5, 3)


def outcome(f, args):
    """The bits that a call gives, or what it raises."""
    try:
        return bits(f(*args))
    except (ArithmeticError, ValueError, TypeError, LookupError) as e:
        return type(e), str(e)


def bits(y):
    if isinstance(y, (tuple, list)):
        return [bits(v) for v in y]
    if isinstance(y, wf.Tensor):
        return y.shape, y.dtype, y.numpy().tobytes()
    return type(y), repr(y)


def agree(f, *calls, captures=None, **options):
    """Compiled calls give what eager ones give, with so many captures."""
    compiled = wf.compile(f, fallback=False, **options)
    for args in calls:
        assert outcome(compiled, args) == outcome(f, args), args
    if captures is not None:
        assert compiled.captures == captures
    return compiled


def guards(compiled):
    """Every guard of sizes and numbers that a function's programs have."""
    found = [p for programs in compiled.programs.values() for p in programs]
    return [str(g) for p in found for g in p.captured.symbols.guards]
