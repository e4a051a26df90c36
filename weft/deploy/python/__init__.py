"""A program as Python source again: captured once more it is the same graph."""
