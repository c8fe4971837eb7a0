"""Gravity on a GPU and CPU threads at the same time."""
