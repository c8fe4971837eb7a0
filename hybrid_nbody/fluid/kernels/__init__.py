"""The kernels of the fluid: contract, reference in NumPy, and an implementation a device."""

from hybrid_nbody.backends.base import Backend
from hybrid_nbody.fluid.grid import Slab
from hybrid_nbody.fluid.kernels.contract import Kernels


def make_kernels(backend: Backend, slab: Slab, dtype: str) -> Kernels:
    """Return the kernels of a device for a slab, in the working type "f4" or "f8"."""
    kernels: Kernels = backend.kernels(__name__).Kernels(backend, slab, dtype)
    return kernels
