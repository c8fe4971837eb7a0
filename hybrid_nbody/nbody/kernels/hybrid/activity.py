"""Counting where a device and its helper share the work: the main device holds the positions, and counts alone."""


def Counter(backend, cells):
    """Return the counter of the main device; parameters as in `hybrid_nbody.nbody.kernels.cpu.activity.Counter`."""
    return backend.main.kernels("hybrid_nbody.nbody.kernels", "activity").Counter(
        backend.main, cells
    )
