"""What is computed in every cell: the truth in NumPy, and its twins on CPU threads and on a GPU."""


def make_kernels(backend, slab, dtype):
    """Return the twin of a device for a slab, in the working type `dtype`: "f4" or "f8"."""
    return backend.kernels(__name__).Kernels(backend, slab, dtype)
