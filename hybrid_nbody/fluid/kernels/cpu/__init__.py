"""The fluid's kernels on CPU threads (Numba)."""
