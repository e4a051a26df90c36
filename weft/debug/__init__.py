"""Seeing inside programs: what was captured, fused, saved, and why."""
