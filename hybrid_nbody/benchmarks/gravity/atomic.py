"""The accelerations of a run with plain atomic adds: what a sum whose bits do not depend on its order costs.

Their last bits differ from call to call, so that no run uses them.
"""

import tempfile
from contextlib import contextmanager
from pathlib import Path

from hybrid_nbody.backends.launch import CudaModule
from hybrid_nbody.nbody.kernels.gpu import kernels as gpu
from hybrid_nbody.nbody.kernels.gpu import symmetric as pairs

KEPT = "partial[((size_t)part * Sum::components + c) * targets.number + first + k * RUN] = total[k][c];"
ADDED = "atomicAdd(partial + (size_t)targets.bodies[first + k * RUN] * Sum::components + c, total[k][c]);"

EXACT = (
    "add_exactly<Sum>(value, sums, sums.rows + (size_t)component * Sum::words * sums.slots + slot);"
)
ROUNDED = "atomicAdd(sums.rows + (size_t)component * Sum::words * sums.slots + slot, value);"


def replaced(source: Path, old: str, new: str) -> str:
    """Return a source with one statement replaced.

    Raises
    ------
    RuntimeError
        If the statement to be replaced does not stand there, once.
    """
    text = source.read_text()
    if text.count(old) != 1:
        raise RuntimeError(f"{source.name} does not hold, once, the statement that adds: {old}")
    return text.replace(old, new)


def atomic_text() -> str:
    """Return ``pair_force.cu`` with the parts of a target added up at once, in any order, where the result stands."""
    return replaced(gpu.SOURCE, KEPT, ADDED)


def atomic_pairs_text() -> str:
    """Return ``symmetric.cu`` with what tiles add to a body rounded as it comes, in any order."""
    return replaced(pairs.SOURCE, EXACT, ROUNDED)


@contextmanager
def file_of(text):
    """Lend a file that holds a text."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "atomic.cu"
        path.write_text(text)
        yield path


class AtomicKernels(gpu.Kernels):
    """Accelerations of softened bodies of unequal masses, with G = 1; parameters as in `gpu.Kernels`."""

    def __init__(self, backend, state, pair_force):
        super().__init__(backend, state, pair_force)
        number = len(state.mass)
        macros = gpu.defines(pair_force.precision, self.layout, self.tuning, number, number)
        with file_of(atomic_text()) as path:
            self.module = CudaModule(backend, path, macros)

    def accelerations(self, state):
        """Fill ``state.acceleration``, after `pack`."""
        self.result = state.acceleration
        self.result.fill(0)
        super().accelerations(state)

    def _partial(self, components):
        """Return what a part is added to."""
        return self.result

    def _combine(self, state, scale, partial, result):
        """Do nothing: the parts are added up already."""


class AtomicPairKernels(pairs.Kernels):
    """The same of each pair once; parameters as in `pairs.Kernels`."""

    def __init__(self, backend, state, pair_force):
        super().__init__(backend, state, pair_force)
        with file_of(atomic_pairs_text()) as path:
            self.symmetric = CudaModule(backend, path, pairs.defines())


ATOMIC_KERNELS = {gpu.Kernels: AtomicKernels, pairs.Kernels: AtomicPairKernels}
"""With plain atomic adds, by the kernels that they stand beside."""
