"""Branches and loops as ops: nodes whose regions are closed functions.

Run on real tensors they are Python's own; on symbols each becomes one node of the graph.
"""
