"""Gravity on a GPU (CUDA through CuPy)."""
