"""Graph to graph, one pass per file, each keeping every bit."""
