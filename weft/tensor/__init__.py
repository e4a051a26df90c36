"""The user's Tensor: operators, creation, indexing, display."""
