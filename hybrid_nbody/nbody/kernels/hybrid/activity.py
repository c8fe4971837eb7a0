"""Counting bodies where a device and its helper share the work: the main device counts alone."""

from hybrid_nbody.backends.hybrid import HybridBackend
from hybrid_nbody.nbody.kernels import make_counter
from hybrid_nbody.nbody.kernels.contract import ActivityCounter


def Counter(backend: HybridBackend, cells: int) -> ActivityCounter:
    """Return the counter of the main device, which holds the positions."""
    return make_counter(backend.main, cells)
