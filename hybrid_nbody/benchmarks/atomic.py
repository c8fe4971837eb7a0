"""The accelerations of a run with atomic adds in place of partial sums: what a fixed order of summation costs.

Their last bits differ from call to call, so that no run uses them.
"""

import functools
import tempfile
from contextlib import contextmanager
from pathlib import Path

from hybrid_nbody.nbody.kernels import gpu

KEPT = "partial[((size_t)part * Sum::components + c) * targets.number + first + k * RUN] = total[k][c];"
ADDED = "atomicAdd(partial + (size_t)targets.bodies[first + k * RUN] * Sum::components + c, total[k][c]);"


def atomic_text() -> str:
    """Return ``gravity.cu`` with the parts of a target added up at once, in any order, where the result stands.

    Raises
    ------
    RuntimeError
        If the statement to be replaced does not stand there, once.
    """
    text = gpu.SOURCE.read_text()
    if text.count(KEPT) != 1:
        raise RuntimeError(f"{gpu.SOURCE.name} does not hold, once, the statement that keeps a part: {KEPT}")
    return text.replace(KEPT, ADDED)


@contextmanager
def atomic_source():
    """Lend a file of `atomic_text`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "gravity_atomic.cu"
        path.write_text(atomic_text())
        yield path


class AtomicKernels(gpu.Kernels):
    """Accelerations of softened bodies of unequal masses, with G = 1; parameters as in `gpu.Kernels`."""

    def __init__(self, backend, state, precision, softening, G):
        super().__init__(backend, state, precision, softening, G)
        number = len(state.mass)
        macros = gpu.defines(precision, self.layout, self.tuning, number, number)
        with atomic_source() as path:
            self.kernel = functools.cache(backend.compile(path, macros).get_function)

    def accelerations(self, state):
        """Fill ``state.acceleration``, after `pack`."""
        self.result = state.acceleration
        self.result.fill(0)
        super().accelerations(state)

    def _partial(self, components):
        """Return what a part is added to."""
        return self.result

    def _launch(self, name, threads, *arguments):
        if name != "combine":
            super()._launch(name, threads, *arguments)
