"""Gravity on CPU threads (Numba)."""
