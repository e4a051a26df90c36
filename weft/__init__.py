"""Weft: one program, both kinds of graph, the same bits."""
