"""Builds the fluid model of a configuration."""

from collections.abc import Sequence
from functools import partial

from hybrid_nbody.backends.base import Backend
from hybrid_nbody.errors import InputError
from hybrid_nbody.files.events import read_events
from hybrid_nbody.files.state import StoredState
from hybrid_nbody.fluid import config as asked
from hybrid_nbody.fluid.kernels import relaxes_in_order
from hybrid_nbody.fluid.pace import cells_a_second, expected_lines, is_long
from hybrid_nbody.fluid.schemes import scheme_of
from hybrid_nbody.fluid.sources import Box, Event, Sphere
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
from hybrid_nbody.simulation.model import Model, Role, SavedState, fields_of
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
    warnings: Sequence[str] = ()

    def __init__(
        self, config: asked.FluidConfig, communicator: Communicator, devices: Devices | None = None
    ) -> None:
        self.config = config
        self.communicator = communicator
        self.devices = devices or Devices()
        self.scheme = scheme_of(config)

    def pace(self, backend: Backend) -> float:
        """Return the cells that the slowest rank steps in a second; 0 for a short run."""
        if not self.communicator.any(is_long(self.config, backend)):
            return 0.0
        rates: list[float] = self.communicator.gather(cells_a_second(self.config, backend))
        return min(rates)

    def check(self) -> None:
        """Check that the grid can be shared out.

        Raises
        ------
        InputError
            On every rank, if there are fewer planes than ranks, or a solver needs a single rank.
        """
        check_lists(self.config.compute, self.communicator.size)
        self.communicator.together(self.scheme.check)  # each rank reads files of its node
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

    def fresh(self, events: list[Event] | None) -> RunSetup[Model]:
        """Return a model at rest; the root passes the events, the other ranks None."""
        return self._build(self.communicator.broadcast(events or []))

    def restored(self, saved: SavedState) -> RunSetup[Model]:
        """Return a model at the state of a checkpoint; every rank reads its own planes."""
        return _at_state(saved, self._build(self.initial()))

    def branched(self, start: StoredState) -> RunSetup[Model]:
        """Return a model at a state of another run."""
        return self.restored(start)

    def busy_seconds(self, setup: RunSetup[Model]) -> float:
        """Return the seconds of the steps on this rank."""
        return setup.model.timings["fluid"]

    def speeds(self, setup: RunSetup[Model], seconds: list[float]) -> list[float]:
        """Return the speed of each rank, calibrated again.

        The seconds of steps do not tell it: neighbours wait for each other in each.
        """
        return self._calibrate(setup.placement)

    def rearranged(
        self, setup: RunSetup[None], partition: Partition, saved: SavedState
    ) -> RunSetup[Model]:
        """Return a model with other shares on the devices of `setup`, at a saved state."""
        transport = setup.exchange.transport
        moved = self._connect(setup.placement, transport, partition, self.initial())
        return _at_state(saved, moved)

    def lines(self, setup: RunSetup[Model]) -> list[str]:
        """Say what runs where."""
        config = self.config
        solver = config.solver
        title = config.title or "hybrid_nbody"
        cells = " x ".join(map(str, config.grid.cells))
        accuracy = f"at most {solver.max_iterations} iterations, tolerance {solver.tolerance:g}"
        planes = partial(plural, one="plane", many="planes")
        grid = f"{config.fluid.grid} grid, {config.fluid.dtype}"
        return [
            f"{title}: {cells} cells, {config.time.total_steps} steps of {config.time.dt:g}",
            f"stable fluids, {grid}, {solver.method} ({accuracy})",
            *placement_lines(config.compute, setup, planes),
            *self._expected(setup),
        ]

    def _expected(self, setup: RunSetup[Model]) -> list[str]:
        """Say how long the run takes, if that is long."""
        rate = self.pace(setup.placement.backend) * self.communicator.size
        steps = self.config.time.total_steps - setup.model.step
        return expected_lines(self.config, rate, steps) if rate else []

    def _build(self, events: list[Event]) -> RunSetup[Model]:
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
        self.scheme.compile(device, mixed)

    def _calibrate(self, placement: Placement) -> list[float]:
        """Return the speed of each rank, measured briefly."""
        return self.scheme.speeds(placement.backend, self.communicator, is_mixed(placement))

    def _connect(
        self, placement: Placement, transport: Transport, partition: Partition, events: list[Event]
    ) -> RunSetup[Model]:
        """Return the model with these shares, at rest."""
        halo = HaloExchange(transport, partition, self.communicator, self.scheme.periodic)
        self.communicator.together(lambda: self._check_memory(placement.backend))
        try:
            return RunSetup(self._model(placement, halo, events), placement, halo)
        except MemoryError as error:
            raise self._too_many_cells(str(error).rstrip(". ")) from error

    def _check_memory(self, backend: Backend) -> None:
        """Refuse a grid that a host has no memory for: the system would end it without a word."""
        cells = self.config.grid.cells
        ranks = self.communicator.size
        counts = planned_counts(self.config.compute.balance, cells[2], ranks)
        complete = self.scheme.complete_bytes(backend.message_cells) if ranks > 1 else 0
        of_ranks = [self.scheme.rank_bytes(planes) + complete for planes in counts]
        here = self.communicator.local_size
        needed = sum(of_ranks) if here == ranks else here * max(of_ranks)
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

    def _model(self, placement: Placement, halo: HaloExchange, events: list[Event]) -> Model:
        return self.scheme.model(placement.backend, halo, events, is_mixed(placement))


def _at_state(saved: SavedState, setup: RunSetup[Model]) -> RunSetup[Model]:
    """Return a setup whose model is at a saved state."""
    indices = {field.name: field.index for field in fields_of(setup.model, Role.INTERNAL)}
    setup.model.restore(lambda name: saved.rows(name, indices[name]), saved.scalars)
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


def event_of(event: asked.Event, centre: tuple[int, int, int]) -> Event:
    """Return an event as the model takes it."""
    region = _region(event, centre)
    name, values = _what(event)
    return Event(event.first, event.last, name, values, region, event.mode)


def _what(event: asked.Event) -> tuple[str, tuple[float, ...]]:
    """Return the field that an event changes, and its values."""
    if event.velocity is not None:
        return "velocity", event.velocity
    if event.scalar is not None:
        return event.scalar.name, (event.scalar.value,)
    assert event.density is not None  # exactly one of the three is given
    return "density", (event.density,)


def _region(event: asked.Event, centre: tuple[int, int, int]) -> Box | Sphere:
    if event.box is not None:
        x, y, z = event.box
        return Box((*x, *y, *z))
    if event.sphere is not None:
        return Sphere(event.sphere.centre, event.sphere.radius)
    return Box.cell(*(event.cell or centre))
