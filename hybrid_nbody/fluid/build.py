"""Builds the fluid model of a configuration."""

from collections.abc import Callable
from functools import partial

from hybrid_nbody.backends.base import Backend
from hybrid_nbody.errors import InputError
from hybrid_nbody.files.events import read_events
from hybrid_nbody.files.state import StoredState
from hybrid_nbody.fluid import config as asked
from hybrid_nbody.fluid.calibrate import compile_kernels, measured_weights
from hybrid_nbody.fluid.frames import Frames
from hybrid_nbody.fluid.grid import Boundary, Slab
from hybrid_nbody.fluid.kernels import make_kernels, relaxes_in_order
from hybrid_nbody.fluid.kernels.contract import Kernels
from hybrid_nbody.fluid.model import FluidModel
from hybrid_nbody.fluid.solvers.base import Accuracy, Solver
from hybrid_nbody.fluid.solvers.halos import Halo
from hybrid_nbody.fluid.solvers.multigrid import Multigrid
from hybrid_nbody.fluid.solvers.relaxation import Lexicographic, RedBlack, Sor
from hybrid_nbody.fluid.sources import Box, Event, Sources, Sphere
from hybrid_nbody.fluid.step import Physics
from hybrid_nbody.fluid.step_memory import rank_bytes
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.exchange.halo import HaloExchange
from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.parallel.placement import Placement
from hybrid_nbody.parallel.shares import (
    Devices,
    RunSetup,
    check_lists,
    is_mixed,
    placement_lines,
    planned_counts,
    plural,
    shares,
)
from hybrid_nbody.parallel.transport.base import Transport
from hybrid_nbody.simulation.model import SavedState
from hybrid_nbody.simulation.plan import PREPARING


class FluidBuilder:
    """From a configuration to a grid on all ranks; see `hybrid_nbody.running.contract.Builder`.

    Parameters
    ----------
    config : FluidConfig
    communicator : Communicator
        Every rank calls together.
    devices : Devices, optional
        How ranks get their devices.

    Attributes
    ----------
    least : int
        Planes that a rank has at least where shares follow the speed.
    """

    least = 1
    doing = PREPARING

    def __init__(
        self, config: asked.FluidConfig, communicator: Communicator, devices: Devices | None = None
    ) -> None:
        self.config = config
        self.communicator = communicator
        self.devices = devices or Devices()

    def pace(self, backend: Backend) -> float:
        """Return 1: no speed is known for a fluid."""
        return 1.0

    def check(self) -> None:
        """Check that the grid can be shared out.

        Raises
        ------
        InputError
            On every rank, if there are fewer planes than ranks, or a solver needs a single rank.
        """
        check_lists(self.config.compute, self.communicator.size)
        self._check_number_of_planes()
        self._check_lexicographic_ranks()

    def _check_number_of_planes(self) -> None:
        size = self.communicator.size
        planes = self.config.grid.cells[2]
        if planes < size:
            raise InputError(
                f"grid.cells: {planes} planes along z for {size} ranks; a rank needs one plane at "
                f"least: start at most {planes} ranks, or let z be the longer axis"
            ).on_all_ranks()

    def _check_lexicographic_ranks(self) -> None:
        size = self.communicator.size
        if self.config.solver.method == "lexicographic" and size > 1:
            raise InputError(
                "solver.method: lexicographic goes from cell to cell and runs on one rank "
                f"({size} were started); use red-black"
            ).on_all_ranks()

    def initial(self) -> list[Event]:
        """Return the events of the run."""
        centre = self.config.grid.centre
        return [event_of(event, centre) for event in self.config.sources.events]

    def fresh(self, events: list[Event] | None) -> RunSetup[FluidModel]:
        """Return a model at rest; the root passes the events, the other ranks None."""
        return self._build(self.communicator.broadcast(events or []))

    def restored(self, saved: SavedState) -> RunSetup[FluidModel]:
        """Return a model at the state of a checkpoint; every rank reads its own planes."""
        return _at_state(saved, self._build(self.initial()))

    def branched(self, start: StoredState) -> RunSetup[FluidModel]:
        """Return a model at a state of another run."""
        return self.restored(start)

    def busy_seconds(self, setup: RunSetup[FluidModel]) -> float:
        """Return the seconds of the steps on this rank."""
        return setup.model.timings["fluid"]

    def speeds(self, setup: RunSetup[FluidModel], seconds: list[float]) -> list[float]:
        """Return the speed of each rank, calibrated again.

        The seconds of steps do not tell it: neighbours wait for each other in each.
        """
        return self._calibrate(setup.placement)

    def rearranged(
        self, setup: RunSetup[None], partition: Partition, saved: SavedState
    ) -> RunSetup[FluidModel]:
        """Return a model with other shares on the devices of `setup`, at a saved state."""
        transport = setup.exchange.transport
        moved = self._connect(setup.placement, transport, partition, self.initial())
        return _at_state(saved, moved)

    def lines(self, setup: RunSetup[FluidModel]) -> list[str]:
        """Say what runs where."""
        config = self.config
        solver = config.solver
        title = config.title or "hybrid_nbody"
        cells = " x ".join(map(str, config.grid.cells))
        accuracy = f"at most {solver.max_iterations} iterations, tolerance {solver.tolerance:g}"
        planes = partial(plural, one="plane", many="planes")
        return [
            f"{title}: {cells} cells, {config.time.total_steps} steps of {config.time.dt:g}",
            f"stable fluids, {config.fluid.dtype}, {solver.method} ({accuracy})",
            *placement_lines(config.compute, setup, planes),
        ]

    def _build(self, events: list[Event]) -> RunSetup[FluidModel]:
        """Choose devices, compile kernels, share the planes out and connect the ranks."""
        compute = self.config.compute
        communicator = self.communicator
        placement = self.devices.assign(compute.backend, compute.threads, communicator)
        self._check_lexicographic_backend(placement.backend)
        communicator.first_on_node(
            partial(self._compile, mixed=is_mixed(placement)),
            placement.backend.compiled_beforehand,
        )
        planes = self.config.grid.cells[2]
        partition = shares(
            compute, planes, placement, lambda: self._calibrate(placement), self.least
        )
        _check_every_rank_has_a_plane(partition)
        transport = self.devices.connect(
            compute.transport, placement.backend, communicator, placement.shared_gpus
        )
        return self._connect(placement, transport, partition, events)

    def _compile(self, device: Backend, mixed: bool) -> None:
        """Compile the kernels that a run needs on a device."""
        config = self.config
        compile_kernels(
            device,
            Boundary.of_axes(config.fluid.boundary),
            DTYPES[config.fluid.dtype],
            physics_of(config),
            partial(solver_of, config.solver),
            mixed,
        )

    def _calibrate(self, placement: Placement) -> list[float]:
        """Return the speed of each rank, measured briefly."""
        fluid = self.config.fluid
        speeds: list[float] = measured_weights(
            placement.backend,
            Boundary.of_axes(fluid.boundary),
            DTYPES[fluid.dtype],
            self.communicator,
            is_mixed(placement),
        )
        return speeds

    def _connect(
        self, placement: Placement, transport: Transport, partition: Partition, events: list[Event]
    ) -> RunSetup[FluidModel]:
        """Return the model with these shares, at rest."""
        periodic = self.config.fluid.boundary[2] == "periodic"
        halo = HaloExchange(transport, partition, self.communicator, periodic)
        self._check_memory(placement.backend)
        try:
            return RunSetup(self._model(placement, halo, events), placement, halo)
        except MemoryError as error:
            raise self._too_many_cells(str(error).rstrip(". ")) from error

    def _check_memory(self, backend: Backend) -> None:
        """Refuse a grid that a host has no memory for: the system would end it without a word."""
        cells = self.config.grid.cells
        counts = planned_counts(self.config.compute.balance, cells[2], self.communicator.size)
        of_a_rank = rank_bytes(cells, max(counts), self.config.fluid.dtype)
        needed = self.communicator.local_size * of_a_rank
        free = int(backend.free_memory()) if backend.shares_host_memory else needed
        if needed > free:
            what = f"about {needed / 1e9:.3g} GB on this node, and {free / 1e9:.3g} GB are free"
            raise self._too_many_cells(what)

    def _too_many_cells(self, reason: str) -> InputError:
        cells = " x ".join(map(str, self.config.grid.cells))
        return InputError(
            f"grid.cells: not enough memory for {cells} cells ({reason}); take fewer cells, or "
            "more nodes or GPUs"
        )

    def _check_lexicographic_backend(self, backend: Backend) -> None:
        if self.config.solver.method == "lexicographic" and not relaxes_in_order(backend):
            raise InputError(
                "solver.method: lexicographic runs on a CPU alone, and this run is on "
                f"{backend.description}; use compute.backend: cpu, or solver.method: red-black"
            ).on_all_ranks()

    def _model(self, placement: Placement, halo: HaloExchange, events: list[Event]) -> FluidModel:
        config = self.config
        own = halo.own
        mixed = is_mixed(placement)
        slab = Slab(
            config.grid.cells,
            Boundary.of_axes(config.fluid.boundary),
            own.start,
            own.stop - own.start,
            mixed,
        )
        kernels = make_kernels(placement.backend, slab, DTYPES[config.fluid.dtype])
        output = config.output
        solver = config.solver
        planes = None if output.planes is None else tuple(sorted(output.planes))
        return FluidModel(
            kernels,
            halo,
            self.communicator,
            solver_of(solver, kernels, halo),
            physics_of(config),
            Sources(events),
            Frames(output.fields, output.stride, planes),
            solver.max_iterations,
        )


def _at_state(saved: SavedState, setup: RunSetup[FluidModel]) -> RunSetup[FluidModel]:
    """Return a setup whose model is at a saved state."""
    own = setup.exchange.own
    setup.model.restore(lambda name: saved.rows(name, own), saved.scalars)
    return setup


def _check_every_rank_has_a_plane(partition: Partition) -> None:
    if 0 in partition.counts:
        rank = partition.counts.index(0)
        raise InputError(
            f"compute.balance: rank {rank} would have no plane of {partition.total}; give it more "
            "weight"
        ).on_all_ranks()


def with_events_of_file(config: asked.FluidConfig) -> asked.FluidConfig:
    """Return the configuration with the events of its file beside the others.

    Raises
    ------
    InputError
        If the file is missing or wrong.
    """
    sources = config.sources
    if sources.file is None:
        return config
    read = read_events(sources.file, config.time.total_steps)
    events = [
        asked.Event(step=event.step, density=event.density, velocity=event.velocity)
        for event in read
    ]
    sources = sources.model_copy(update={"events": (*sources.events, *events), "file": None})
    return config.model_copy(update={"sources": sources})


DTYPES = {"float32": "f4", "float64": "f8"}
"""For each value of ``fluid.dtype`` the type of NumPy."""

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


def event_of(event: asked.Event, centre: tuple[int, int, int]) -> Event:
    """Return an event as the model takes it."""
    region = _region(event, centre)
    if event.density is not None:
        density = (event.density,)
        return Event(event.first, event.last, "density", density, region, event.mode)
    assert event.velocity is not None  # exactly one of the two is given
    return Event(event.first, event.last, "velocity", event.velocity, region, event.mode)


def _region(event: asked.Event, centre: tuple[int, int, int]) -> Box | Sphere:
    if event.box is not None:
        x, y, z = event.box
        return Box((*x, *y, *z))
    if event.sphere is not None:
        return Sphere(event.sphere.centre, event.sphere.radius)
    return Box.cell(*(event.cell or centre))
