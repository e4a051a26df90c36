"""Functions by their source: converters rewrite the syntax tree, operators run what they wrote.

Every converter is paired with an operator that does what Python does unless it has a symbolic
tensor in hand, so converted code still runs eagerly, and says the same.
"""
