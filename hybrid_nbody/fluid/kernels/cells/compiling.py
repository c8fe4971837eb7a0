"""Compiling functions of cells in a process beside that of a run."""

from collections.abc import Sequence

from hybrid_nbody.backends.base import Backend
from hybrid_nbody.backends.cells import make_program
from hybrid_nbody.fluid.kernels.cells import LOOPS, MODULES


def compile_functions(device: Backend, names: Sequence[str], width: int, dtype: str) -> None:
    """Compile functions for a device, in this order; what is in its cache is passed over."""
    make_program(device, MODULES, dtype, LOOPS).compile(names, width)
