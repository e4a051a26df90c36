"""Weft beside its peers: the same work, the same numbers, one process each."""
