"""What to compute -> which kernels, over which loops, in which memory. Pure Python; writes no
code.
"""
