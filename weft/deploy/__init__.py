"""Programs that leave the process."""
