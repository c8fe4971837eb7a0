"""The kernels of the fluid: contract, reference in NumPy, and an implementation a device."""

from typing import TYPE_CHECKING

from hybrid_nbody.backends.base import Backend
from hybrid_nbody.fluid.grid import Slab
from hybrid_nbody.fluid.kernels.contract import Kernels

if TYPE_CHECKING:  # mypy checks that each implementation satisfies its contract
    from hybrid_nbody.fluid.kernels.cpu.kernels import Kernels as CpuKernels
    from hybrid_nbody.fluid.kernels.cpu.multigrid import MultigridKernels as CpuMultigrid
    from hybrid_nbody.fluid.kernels.gpu.kernels import Kernels as GpuKernels
    from hybrid_nbody.fluid.kernels.gpu.multigrid import MultigridKernels as GpuMultigrid
    from hybrid_nbody.fluid.kernels.multigrid_contract import MultigridKernels

    KERNELS: tuple[type[Kernels], ...] = (CpuKernels, GpuKernels)
    MULTIGRID: tuple[type[MultigridKernels], ...] = (CpuMultigrid, GpuMultigrid)


def make_kernels(backend: Backend, slab: Slab, dtype: str) -> Kernels:
    """Return the kernels of a device for a slab, in the working type "f4" or "f8"."""
    kernels: Kernels = backend.kernels(__name__).Kernels(backend, slab, dtype)
    return kernels


def relaxes_in_order(backend: Backend) -> bool:
    """Return whether the kernels of a device relax cells in lexicographic order."""
    return bool(backend.kernels(__name__).Kernels.relaxes_in_order)
