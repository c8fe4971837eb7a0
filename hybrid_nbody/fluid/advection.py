"""Advection on the planes of all ranks: semi-Lagrangian, or with MacCormack's correction."""

import math
from collections.abc import Callable

from hybrid_nbody.errors import NumericalError
from hybrid_nbody.fluid.grid import Ghosts
from hybrid_nbody.fluid.kernels.contract import Array, Flow, Kernels, Source, Velocity
from hybrid_nbody.fluid.solvers.halos import Halo
from hybrid_nbody.fluid.step_memory import State
from hybrid_nbody.parallel.exchange.halo import FullGrid

ROUNDING = 1e-6
"""Relative, of a displacement in the working type: a trace may go this much further than its length
in float64."""

MAX_TURNS = 16
"""Times that fluid may go round a periodic axis in a step, on several ranks."""


class Advection:
    """The advection of a step.

    Parameters
    ----------
    kernels : Kernels
        Those of this rank's device.
    halo : HaloExchange or FullGrid
        How ranks see each other's planes.
    state : State
        Changed in place.
    dt : float
        Length of a step.
    scheme : {"semi-lagrangian", "maccormack"}
        See `hybrid_nbody.fluid.kernels.reference`.
    """

    def __init__(self, kernels: Kernels, halo: Halo, state: State, dt: float, scheme: str):
        self.kernels = kernels
        self.halo = halo
        self.state = state
        self.dt = dt
        self.spacing = kernels.slab.spacing
        self.scratch = state.memory.solver_scratch()
        self.windows: dict[str, Array] = {}
        self._advect = {"semi-lagrangian": self._semi_lagrangian, "maccormack": self._maccormack}[
            scheme
        ]
        self.at_once = scheme == "semi-lagrangian"

    def advect_velocity(self, depth: int) -> None:
        """Fill the velocity with what the next velocity carries of itself.

        Fluid comes from `depth` planes beyond the slab at most.
        """
        if self.at_once and depth == 1:
            flow = self._flow(self.state.next_velocity)
            self.kernels.advect_velocity(self.state.velocity, flow, self.scratch)
        else:
            self._advect_components(depth)

    def _advect_components(self, depth: int) -> None:
        state = self.state
        forward = state.next_density
        all_ghosts = self.kernels.slab.velocity_ghosts
        fields = zip(state.next_velocity, state.velocity, all_ghosts, strict=True)
        for source, target, ghosts in fields:
            self._advect(source, target, state.next_velocity, ghosts, depth, forward)

    def advect_density(self, depth: int) -> None:
        """Fill the density with what the velocity carries of the next density."""
        state = self.state
        ghosts = self.kernels.slab.boundary.scalar_ghosts
        forward = state.next_velocity.u
        self._advect(state.next_density, state.density, state.velocity, ghosts, depth, forward)

    def _flow(self, velocity: Velocity) -> Flow:
        return Flow(velocity, self.dt / self.spacing)

    def _semi_lagrangian(
        self,
        cells: Array,
        target: Array,
        velocity: Velocity,
        ghosts: Ghosts,
        depth: int,
        forward: Array,
    ) -> None:
        """Fill `target` with what a velocity carries of a field whose halo planes are valid."""
        source = Source(self._window("source", cells, depth), depth, ghosts)
        self.kernels.advect(source, target, self._flow(velocity), self.scratch)

    def _maccormack(
        self,
        cells: Array,
        target: Array,
        velocity: Velocity,
        ghosts: Ghosts,
        depth: int,
        forward: Array,
    ) -> None:
        """Do the same with MacCormack's correction; `forward` is scratch for what is corrected."""
        self._semi_lagrangian(cells, forward, velocity, ghosts, depth, forward)
        self.halo.fill(forward)
        source = Source(self._window("source", cells, depth), depth, ghosts)
        uncorrected = self._window("forward", forward, depth)
        self.kernels.correct(source, uncorrected, target, self._flow(velocity), self.scratch)

    def _window(self, name: str, cells: Array, depth: int) -> Array:
        """Return a field and the planes within `depth` of the slab, in memory kept by name."""
        if depth == 1 or isinstance(self.halo, FullGrid):
            return cells
        size = len(cells) + 2 * depth - 2
        if name not in self.windows or len(self.windows[name]) < size:
            shape = (size, *cells.shape[1:])
            self.windows[name] = self.kernels.backend.zeros(shape, cells.dtype)
        window = self.windows[name][:size]
        self.halo.window(cells, depth, window)
        return window

    # --- how far fluid comes from -----------------------------------------------------------------

    def find_depth(self, velocity: Velocity) -> Callable[[], int]:
        """Return a function that returns from how many planes beyond the slab fluid comes.

        That is 1 at least.

        The device begins to look for the fastest fluid here, and goes on with what is queued after.
        The function raises `NumericalError`, on every rank, if the fluid goes round the grid many
        times in a step: a window would not fit in memory.
        """
        if self.halo.alone:
            return lambda: 1
        wait_for_largest = self.kernels.largest_later(velocity.w)

        def depth() -> int:
            largest = self.halo.largest(wait_for_largest())
            return self._depth(largest * self.dt / self.spacing)

        return depth

    def _depth(self, cells: float) -> int:
        """Return from how many planes beyond the slab fluid comes that moves by `cells` along z."""
        planes = self.kernels.slab.cells[2]
        if not math.isfinite(cells):
            return 1  # the guard ends the run
        depth = math.floor(cells * (1 + ROUNDING)) + 1
        if not self.halo.periodic:
            return min(depth, planes)
        if depth > MAX_TURNS * planes:
            raise NumericalError(
                f"the fluid crosses {cells:.3g} cells along z in a step, more than {MAX_TURNS} "
                "times round the grid, which several ranks cannot follow; take a smaller time.dt"
            ).on_all_ranks()
        return depth
