"""The budget of the density: what a step makes or loses of it, and how the total is kept.

Neither an iterative solve nor semi-Lagrangian advection conserves. The cells that gained in a step
must have gained what the others have lost. If they gained more, all their gains are scaled down; if
they gained less, all losses are. Each cell then lies between what it held before and what the step
made of it: there are no new extremes, and where nothing changes, nothing is corrected.

Between walls and around periodic axes nothing flows out: the total is that of the sources.
"""

import numpy as np

from hybrid_nbody.fluid.kernels.contract import BUDGET, CHANGES, Array, Kernels
from hybrid_nbody.fluid.solvers.halos import Halo


class Budget:
    """The sum of the changes of a field in each step, and their correction.

    Sums run plane by plane, and over planes in their order: bits do not depend on the ranks.

    Parameters
    ----------
    kernels : Kernels
        Those of this rank's device.
    halo : HaloExchange or FullGrid
        How ranks see each other's planes.
    before : array
        A field that nothing else uses from `begin` to `finish`.
    conserves : bool
        Whether changes are corrected, and not only summed.
    """

    def __init__(self, kernels: Kernels, halo: Halo, before: Array, conserves: bool):
        self.kernels = kernels
        self.halo = halo
        self.before = before
        self.conserves = conserves
        self.sums = kernels.backend.zeros((kernels.slab.cells[2], len(CHANGES)), "f8")
        self.own = self.sums[halo.own]
        self.record = kernels.backend.zeros(len(BUDGET), "f8")

    def begin(self, field: Array) -> None:
        """Note what a field holds before it changes."""
        self.before[...] = field

    def finish(self, field: Array) -> None:
        """Sum the changes of a field since `begin`, and correct them; collective."""
        self.kernels.sum_changes(self.before, field, self.own)
        self.halo.collect(self.sums)
        self.kernels.update_budget(self.sums, self.record)
        if self.conserves:
            self.kernels.scale_changes(self.before, field, self.record, self.own)
            self.halo.collect(self.sums)

    def scalars(self) -> dict[str, float]:
        """Return what a restart needs: what was made, and what is still to be corrected."""
        backend = self.kernels.backend
        record = dict(zip(BUDGET, backend.download(self.record).tolist(), strict=True))
        remaining = backend.download(self.sums)[:, CHANGES.index("rest")]
        left = record["left"] + float(np.cumsum(remaining)[-1])  # from the first plane to the last
        return {"advection_error": record["made"], "density_left": left}

    def restore(self, made: float, left: float) -> None:
        """Take back the values of `scalars`."""
        values = {"left": left, "made": made}
        record = np.array([values.get(name, 0.0) for name in BUDGET])
        self.record[...] = self.kernels.backend.upload(record)
        self.sums[...] = 0.0
