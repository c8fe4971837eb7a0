"""The fluid's kernels on a GPU (CUDA through CuPy)."""
