"""Solvers of the fluid's linear equations."""
