"""Plan -> machine code. The only room that imports llvmlite; it knows scalars, indices and
loops, and no tensor op.
"""
