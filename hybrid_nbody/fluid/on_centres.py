"""The collocated grid of a run: velocity and pressure at the centres of cells."""

from collections.abc import Callable
from functools import partial

from hybrid_nbody.backends.base import Backend
from hybrid_nbody.fluid import config as asked
from hybrid_nbody.fluid.calibrate import compile_kernels, measured_weights
from hybrid_nbody.fluid.grid import Boundary, Slab
from hybrid_nbody.fluid.kernels import make_kernels
from hybrid_nbody.fluid.kernels.contract import Kernels
from hybrid_nbody.fluid.model import FluidModel
from hybrid_nbody.fluid.scheme import DTYPES, frames_of
from hybrid_nbody.fluid.solvers.base import Accuracy, Solver
from hybrid_nbody.fluid.solvers.halos import Halo
from hybrid_nbody.fluid.solvers.multigrid import Multigrid
from hybrid_nbody.fluid.solvers.relaxation import Lexicographic, RedBlack, Sor
from hybrid_nbody.fluid.sources import Event, Sources
from hybrid_nbody.fluid.step import Physics
from hybrid_nbody.fluid.step_memory import ARRAYS, complete_bytes, rank_bytes
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.exchange.halo import HaloExchange

SAVED_ARRAYS = 4
"""Arrays of the grid in a checkpoint."""

CARRIED_ARRAYS = 4
"""Arrays of the grid that `sources.carry_over` adds to a checkpoint."""


class Collocated:
    """A run on the collocated grid; see `hybrid_nbody.fluid.scheme.Scheme`.

    Parameters
    ----------
    config : FluidConfig
    """

    def __init__(self, config: asked.FluidConfig) -> None:
        assert isinstance(config.fluid.boundary, tuple)  # checked with the configuration
        self.config = config
        self.boundary = Boundary.of_axes(config.fluid.boundary)
        self.dtype = DTYPES[config.fluid.dtype]

    @property
    def periodic(self) -> bool:
        """See `Scheme`."""
        return self.boundary.periodic[2]

    @property
    def arrays(self) -> int:
        """See `Scheme`."""
        return ARRAYS

    @property
    def saved_arrays(self) -> int:
        """See `Scheme`."""
        return SAVED_ARRAYS + (CARRIED_ARRAYS if self.config.sources.carry_over else 0)

    def check(self) -> None:
        """See `Scheme`; there are no files."""

    def rank_bytes(self, planes: int) -> int:
        """See `Scheme`."""
        return rank_bytes(self.config.grid.cells, planes, self.dtype)

    def complete_bytes(self, message_cells: int) -> int:
        """See `Scheme`."""
        if self.config.solver.method != "multigrid":
            return 0
        return complete_bytes(self.config.grid.cells, message_cells, self.dtype)

    def compile(self, device: Backend, mixed: bool) -> None:
        """See `Scheme`."""
        make_solver = partial(solver_of, self.config.solver)
        physics = physics_of(self.config)
        compile_kernels(device, self.boundary, self.dtype, physics, make_solver, mixed)

    def speeds(self, device: Backend, communicator: Communicator, mixed: bool) -> list[float]:
        """See `Scheme`."""
        found: list[float] = measured_weights(
            device, self.boundary, self.dtype, communicator, mixed
        )
        return found

    def model(
        self, device: Backend, halo: HaloExchange, events: list[Event], mixed: bool
    ) -> FluidModel:
        """See `Scheme`."""
        config = self.config
        own = halo.own
        cells = config.grid.cells
        slab = Slab(cells, self.boundary, own.start, own.stop - own.start, mixed)
        kernels = make_kernels(device, slab, self.dtype)
        return FluidModel(
            kernels,
            halo,
            solver_of(config.solver, kernels, halo),
            physics_of(config),
            Sources(events),
            frames_of(config.output),
            config.solver.max_iterations,
        )


SOLVERS: dict[str, Callable[[Kernels, Halo, Accuracy], Solver]] = {
    "red-black": RedBlack,
    "lexicographic": Lexicographic,
    "multigrid": Multigrid,
}
"""For each value of ``solver.method`` what makes the solver, but for ``sor``."""


def solver_of(config: asked.Solver, kernels: Kernels, halo: Halo) -> Solver:
    """Return the solver that a configuration asks for."""
    accuracy = Accuracy(config.max_iterations, config.tolerance, config.criterion)
    if config.method == "sor":
        omega = None if config.omega == "auto" else config.omega
        return Sor(kernels, halo, accuracy, omega)
    return SOLVERS[config.method](kernels, halo, accuracy)


def physics_of(config: asked.FluidConfig) -> Physics:
    """Return what moves the fluid of a configuration."""
    fluid = config.fluid
    x, y, z = fluid.gravity
    return Physics(
        dt=config.time.dt,
        viscosity=fluid.viscosity,
        diffusivity=fluid.diffusion,
        projection=fluid.projection,
        advection=fluid.advection,
        lift=(-fluid.buoyancy * x, -fluid.buoyancy * y, -fluid.buoyancy * z),
        confinement=fluid.vorticity_confinement,
        carry_over=config.sources.carry_over,
        conserve=fluid.conserve,
    )
