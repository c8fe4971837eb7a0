"""The order of the sources of a rank that owns every body, found without the host.

The kernels are in ``order.cu``; `hybrid_nbody.nbody.sources` says what they find.
"""

from pathlib import Path

import numpy as np

from hybrid_nbody.backends.gpu import GpuBackend
from hybrid_nbody.backends.launch import CudaModule
from hybrid_nbody.nbody.precision import CHUNK, chunk_capacity
from hybrid_nbody.nbody.sources import LEAP
from hybrid_nbody.nbody.state import State

SOURCE = Path(__file__).with_name("order.cu")
OPTIONS = ("-fmad=false",)

THREADS = 128
WIDE = 1024
STEPS = 2 * CHUNK
DEFINES: dict[str, int | str] = {
    "CHUNK": CHUNK,
    "LEAP": str(LEAP),
    "STEPS": STEPS,
    "THREADS": THREADS,
    "WIDE": WIDE,
}

MOST_BODIES = 1 << 15
"""Most bodies that are sorted by counting those before each. It takes less than a force, which
takes less than the host needs to queue a sort of many passes."""


class Sorter:
    """Sorts the sources of a state along the Morton curve.

    Parameters
    ----------
    backend : GpuBackend
    state : State
        Of a rank that owns every body; `MOST_BODIES` at most.
    """

    def __init__(self, backend: GpuBackend, state: State) -> None:
        number = len(state.mass)
        self.state = state
        self.number = np.int32(number)
        self.module = CudaModule(backend, SOURCE, DEFINES, OPTIONS)
        self.box = backend.zeros(4, "f8")
        self.keys = backend.zeros(number, "i8")
        self.ratio = backend.zeros(number, "f8")
        self.heads = backend.zeros(number, "u1")
        self.launch = backend.recorded(self._launch)

    def sort(self) -> None:
        """Sort the sources by their current positions, and cut them into chunks."""
        self.state.orders[:] += 1
        self.launch()

    def _launch(self) -> None:
        """Queue the kernels."""
        state = self.state
        orders = (state.order, state.source_index, state.own_order)
        self._on_block("find_box", self.number, state.position, self.box)
        self._on_all("find_keys", self.number, state.position, self.box, self.keys)
        self._on_all("sort", self.number, self.keys, *orders)
        self._find_leaps()
        self._on_all("find_heads", self.number, self.ratio, self.heads)
        capacity = np.int32(chunk_capacity(int(self.number)))
        self._on_block("cut", self.number, capacity, self.heads, state.starts, state.chunks)

    def _find_leaps(self) -> None:
        """Find where the path leaps, in stretches as those of `sources`."""
        steps = int(self.number) - 1
        stretches = max(1, steps // CHUNK)
        sizes = map(np.int32, divmod(steps, stretches))
        arguments = (*sizes, self.state.position, self.state.order, self.ratio)
        self.module.launch_grid("find_leaps", (stretches,), (STEPS,), arguments)

    def _on_all(self, name: str, *arguments: object) -> None:
        """Launch a thread for every body."""
        self.module.launch(name, int(self.number), THREADS, *arguments)

    def _on_block(self, name: str, *arguments: object) -> None:
        """Launch one block."""
        self.module.launch(name, WIDE, WIDE, *arguments)
