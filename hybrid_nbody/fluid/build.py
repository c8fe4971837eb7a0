"""Builds the fluid model of a configuration."""

from functools import partial

from hybrid_nbody.errors import InputError
from hybrid_nbody.files.events import read_events
from hybrid_nbody.fluid import config as asked
from hybrid_nbody.fluid.calibrate import compile_kernels, measured_weights
from hybrid_nbody.fluid.frames import Frames
from hybrid_nbody.fluid.grid import Boundary, Slab
from hybrid_nbody.fluid.kernels import make_kernels
from hybrid_nbody.fluid.model import FluidModel
from hybrid_nbody.fluid.solvers.base import Accuracy
from hybrid_nbody.fluid.solvers.lexicographic import Lexicographic
from hybrid_nbody.fluid.solvers.multigrid import Multigrid
from hybrid_nbody.fluid.solvers.relaxation import RedBlack, Sor
from hybrid_nbody.fluid.sources import Box, Event, Sources, Sphere
from hybrid_nbody.fluid.step import Physics
from hybrid_nbody.parallel.exchange.halo import HaloExchange
from hybrid_nbody.parallel.shares import (
    Devices,
    RunSetup,
    check_lists,
    is_mixed,
    placement_lines,
    plural,
    shares,
)


class FluidBuilder:
    """From a configuration to a grid shared out over all ranks; `NBodyBuilder` has the same methods.

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

    def __init__(self, config, communicator, devices=None):
        self.config = config
        self.communicator = communicator
        self.devices = devices or Devices()

    def check(self) -> None:
        """Check that the grid can be shared out.

        Raises
        ------
        InputError
            On every rank, if there are fewer planes than ranks, or a solver needs a single rank.
        """
        config = self.config
        size = self.communicator.size
        check_lists(config.compute, size)
        planes = config.grid.cells[2]
        if planes < size:
            raise InputError(
                f"grid.cells: {planes} planes along z for {size} ranks; a rank needs one plane at least: start at "
                f"most {planes} ranks, or let z be the longer axis"
            ).on_all_ranks()
        if config.solver.method == "lexicographic" and size > 1:
            raise InputError(
                f"solver.method: lexicographic goes from cell to cell and runs on one rank ({size} were started); "
                "use red-black"
            ).on_all_ranks()

    def initial(self) -> list[Event]:
        """Return the events of the run."""
        centre = self.config.grid.centre
        return [event_of(event, centre) for event in self.config.sources.events]

    def fresh(self, events) -> RunSetup:
        """Return a model at rest; the root passes the events, the other ranks None."""
        return self._build(self.communicator.broadcast(events))

    def restored(self, saved) -> RunSetup:
        """Return a model at the state of a checkpoint; every rank reads its own planes."""
        return self._restored(saved, self._build(self.initial()))

    def busy_seconds(self, setup: RunSetup) -> float:
        """Return the seconds of the steps on this rank."""
        return setup.model.timings["fluid"]

    def speeds(self, setup: RunSetup, seconds: list[float]) -> list[float]:
        """Return the speed of each rank, measured anew: in a step neighbours wait for each other."""
        return self._speeds(setup.placement)

    def rearranged(self, setup: RunSetup, partition, saved) -> RunSetup:
        """Return a model on the devices of `setup` with other shares, at a state that each rank reads its planes of."""
        transport = setup.exchange.transport
        return self._restored(
            saved, self._connect(setup.placement, transport, partition, self.initial())
        )

    def _restored(self, saved, setup):
        own = setup.exchange.own
        setup.model.restore(lambda name: saved.rows(name, own), saved.scalars)
        return setup

    def lines(self, setup: RunSetup) -> list[str]:
        """Say what runs where."""
        config = self.config
        solver = config.solver
        title = config.title or "hybrid_nbody"
        cells = " x ".join(map(str, config.grid.cells))
        accuracy = f"at most {solver.max_iterations} iterations, tolerance {solver.tolerance:g}"
        return [
            f"{title}: {cells} cells, {config.time.total_steps} steps of {config.time.dt:g}",
            f"stable fluids, {config.fluid.dtype}, {solver.method} ({accuracy})",
            *placement_lines(config.compute, setup, partial(plural, one="plane", many="planes")),
        ]

    def _build(self, events):
        """Choose devices, compile kernels, share the planes out and connect the ranks."""
        config = self.config
        communicator = self.communicator
        placement = self.devices.assign(
            config.compute.backend, config.compute.threads, communicator
        )
        self._check_backend(placement.backend)
        kind = (
            Boundary.of_axes(config.fluid.boundary),
            DTYPES[config.fluid.dtype],
            physics_of(config),
            partial(solver_of, config.solver),
        )
        communicator.first_on_node(
            lambda device: compile_kernels(device, *kind), placement.backend.devices
        )
        partition = shares(
            config.compute,
            config.grid.cells[2],
            placement,
            lambda: self._speeds(placement),
            self.least,
        )
        self._check_planes(partition)
        transport = self.devices.connect(
            config.compute.transport, placement.backend, communicator, placement.shared_gpus
        )
        return self._connect(placement, transport, partition, events)

    def _speeds(self, placement):
        fluid = self.config.fluid
        mixed = is_mixed(placement)
        return measured_weights(
            placement.backend,
            Boundary.of_axes(fluid.boundary),
            DTYPES[fluid.dtype],
            self.communicator,
            mixed,
        )

    def _connect(self, placement, transport, partition, events):
        """Return the model with these shares, at rest."""
        halo = HaloExchange(
            transport, partition, self.communicator, self.config.fluid.boundary[2] == "periodic"
        )
        return RunSetup(self._model(placement, halo, events), placement, halo)

    def _check_backend(self, backend):
        if self.config.solver.method == "lexicographic" and backend.kind != "cpu":
            raise InputError(
                f"solver.method: lexicographic runs on a CPU alone, and this run is on {backend.description}; "
                "use compute.backend: cpu, or solver.method: red-black"
            ).on_all_ranks()

    def _check_planes(self, partition):
        if 0 in partition.counts:
            raise InputError(
                f"compute.balance: rank {partition.counts.index(0)} would have no plane of {partition.total}; give it "
                "more weight"
            ).on_all_ranks()

    def _model(self, placement, halo, events):
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


def with_events_of_file(config):
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
SOLVERS = {
    "red-black": RedBlack,
    "lexicographic": Lexicographic,
    "multigrid": Multigrid,
}


def solver_of(config, kernels, halo):
    """Return the solver that a configuration asks for."""
    accuracy = Accuracy(config.max_iterations, config.tolerance, config.criterion)
    if config.method == "sor":
        return Sor(kernels, halo, accuracy, None if config.omega == "auto" else config.omega)
    return SOLVERS[config.method](kernels, halo, accuracy)


def physics_of(config) -> Physics:
    """Return what moves the fluid of a configuration."""
    fluid = config.fluid
    return Physics(
        dt=config.time.dt,
        viscosity=fluid.viscosity,
        diffusivity=fluid.diffusion,
        projection=fluid.projection,
        advection=fluid.advection,
        lift=tuple(-fluid.buoyancy * component for component in fluid.gravity),
        confinement=fluid.vorticity_confinement,
        carry_over=config.sources.carry_over,
    )


def event_of(event, centre) -> Event:
    """Return an event as the model takes it."""
    field, values = (
        ("velocity", event.velocity) if event.density is None else ("density", (event.density,))
    )
    return Event(event.first, event.last, field, values, _region(event, centre), event.mode)


def _region(event, centre):
    if event.box is not None:
        return Box(tuple(edge for edges in event.box for edge in edges))
    if event.sphere is not None:
        return Sphere(event.sphere.centre, event.sphere.radius)
    return Box.cell(*(event.cell or centre))
