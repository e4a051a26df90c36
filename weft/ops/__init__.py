"""What can be said: the op record, the one door, and every op, one place each."""
