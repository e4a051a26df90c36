"""From a Python function to a graph: traces, signatures, guards."""
