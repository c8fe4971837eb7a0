"""``bench scaling``: both models on 1, 2, 4, … ranks, and what that lets one expect of many more."""

from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from itertools import product

from hybrid_nbody.backends.cpu import CpuBackend
from hybrid_nbody.benchmarks.harness import options, results
from hybrid_nbody.benchmarks.harness.machine import Devices, check_memory, host_memory
from hybrid_nbody.benchmarks.harness.pictures import write
from hybrid_nbody.benchmarks.harness.record import Plan, Task, carry_out, follow
from hybrid_nbody.benchmarks.scaling.forecast import Conclusion
from hybrid_nbody.benchmarks.scaling.model import Network
from hybrid_nbody.benchmarks.scaling.pictures import scaling_figure
from hybrid_nbody.benchmarks.scaling.problems import STRONG, WEAK, Fluid, Gravity
from hybrid_nbody.benchmarks.scaling.rows import COLUMNS, measured
from hybrid_nbody.benchmarks.scaling.runs import Run, Team
from hybrid_nbody.errors import InputError
from hybrid_nbody.parallel.communicator import library_name
from hybrid_nbody.parallel.placement import free_cores

MODELS = ("gravity", "fluid")
KINDS = (STRONG, WEAK)
EXCHANGES = ("allgather", "ring")
ONLY_FOR = {"bodies": "gravity", "exchange": "gravity", "cells": "fluid", "sweeps": "fluid"}
SIZES = {"gpu": {"bodies": [131072], "cells": [256]}, "cpu": {"bodies": [8192], "cells": [64]}}
"""What is computed unless other sizes are asked for, by the device of a rank."""

SMALLEST = 4
MOST_CELLS = 4096
"""Cells along an axis, as ``grid.cells`` allows."""

BYTES_OF_A_CELL = 64
"""Upper bound on what a cell of a float32 grid needs: ten arrays, windows and padding."""

REHEARSED = {"bodies": [64], "cells": [8]}
"""Sizes of the short runs that find out, before anything is written, whether all ranks can do what
is asked for."""


@dataclass(frozen=True)
class Settings:
    """What was asked for; sizes that were not are None.

    Attributes
    ----------
    models, kinds, exchanges : list of str
    counts : list of int
        Numbers of ranks, in ascending order.
    bodies, cells : list of int or None
    sweeps, repeats : int
    compute : dict
        Section of the configurations.
    network : Network
    """

    models: list[str]
    kinds: list[str]
    exchanges: list[str]
    counts: list[int]
    bodies: list[int] | None
    cells: list[int] | None
    sweeps: int
    repeats: int
    compute: dict
    network: Network

    def series(self, default: dict) -> list:
        """Return all problems; `default` has the sizes that were not asked for."""
        found = []
        for model, kind in product(self.models, self.kinds):
            if model == "gravity":
                sizes = product(self.exchanges, self.bodies or default["bodies"])
                found += [Gravity(kind, size, exchange) for exchange, size in sizes]
            else:
                found += [Fluid(kind, size, self.sweeps) for size in self.cells or default["cells"]]
        return found

    def values(self, series, ranks: int) -> dict:
        """Return the configuration of a problem on some ranks."""
        return series.config(ranks) | {"compute": self.compute | {"exchange": series.exchange}}


def read(arguments, size: int) -> Settings:
    """Return what was asked for of `size` ranks.

    Raises
    ------
    InputError
        If an option is wrong, or of no use for the models that were chosen.
    """
    return Settings(
        _models(arguments),
        options.words("--kinds", arguments.kinds, KINDS),
        options.words("--exchange", arguments.exchange or EXCHANGES[0], EXCHANGES),
        _counts(arguments.ranks, size),
        _sizes("--bodies", arguments.bodies, 2),
        _sizes("--cells", arguments.cells, SMALLEST, MOST_CELLS),
        options.number("--sweeps", arguments.sweeps or "20"),
        options.number("--repeats", arguments.repeats),
        _compute(arguments),
        _network(arguments),
    )


def _models(arguments):
    """Return the models, all of which or one of which the other options are for."""
    models = options.words("--models", arguments.models, MODELS)
    for name, model in ONLY_FOR.items():
        if getattr(arguments, name) is not None and model not in models:
            raise InputError(f"--{name}: is for {model} alone (got --models {arguments.models})")
    return models


def _compute(arguments):
    """Return the section of the configurations; without threads if none were asked for."""
    threads = (
        {}
        if arguments.threads is None
        else {"threads": options.number("--threads", arguments.threads)}
    )
    return {"backend": arguments.backend, "transport": arguments.transport} | threads


def _network(arguments):
    return Network(
        options.quantity("--latency", arguments.latency, options.SECONDS),
        options.quantity("--bandwidth", arguments.bandwidth, options.BYTES_PER_SECOND),
    )


def _counts(asked, size):
    """Return the numbers of ranks: 1, 2, 4, … and all unless others are asked for."""
    if asked is None:
        return [*(2**k for k in range(size.bit_length()) if 2**k < size), size]
    return sorted(options.numbers("--ranks", asked, 1, size))


def _sizes(option, text, least, most=None):
    return None if text is None else options.numbers(option, text, least, most)


def run(arguments, communicator) -> int:
    """Carry out ``bench scaling`` on all ranks and return the exit code."""
    settings = communicator.on_root(lambda: read(arguments, communicator.size))
    settings.compute.setdefault("threads", free_cores(communicator))
    everyone = Team(communicator, communicator.size)
    devices = rehearse(settings, everyone)
    communicator.only_on_root(lambda: check_threads(arguments.threads, devices.kind))
    series = settings.series(SIZES["gpu" if devices.gpu else "cpu"])
    communicator.only_on_root(lambda: check(settings, series, devices, communicator.local_size))
    communicator.only_on_root(
        lambda: results.check(arguments.output, "scaling", arguments.overwrite)
    )
    plan = _plan(settings, series, everyone)
    if communicator.is_root:
        return carry_out(plan, devices, arguments, communicator.any)
    return follow(plan, communicator.any)


def _plan(settings, series, everyone):
    communicator = everyone.world
    teams = [
        everyone if count == everyone.ranks else Team(communicator, count)
        for count in settings.counts
    ]
    tasks = [
        Task(
            one.title,
            f"{team.ranks} rank{'s' if team.ranks > 1 else ''}",
            partial(measured, settings, one, team),
        )
        for one in series
        for team in teams
        if team.ranks <= one.most_ranks()
    ]
    conclusion = Conclusion(settings.network)

    def conclude(rows):
        alone = ["one rank alone; for more: mpirun -n 4 hybrid-nbody bench scaling"]
        return [*conclusion.lines(rows), *(alone if communicator.size == 1 else [])]

    return Plan(
        "scaling",
        COLUMNS,
        tasks,
        partial(write, scaling_figure),
        conclude,
        summarise=conclusion.summary,
    )


@dataclass(frozen=True)
class RankDevices(Devices):
    """The devices of the root, and what else the figures of several ranks depend on.

    Attributes
    ----------
    kind : str
        That of the backends.
    ranks : dict
        How many, where each computes, what carries their messages, and the network that is
        predicted for.
    """

    kind: str = "cpu"
    ranks: dict = field(default_factory=dict)

    @cached_property
    def facts(self) -> dict:
        """Hardware and versions."""
        return super().facts | self.ranks

    @property
    def description(self) -> str:
        """The machine in one line."""
        number = self.ranks["ranks"]
        how = (
            f"{self.ranks['transport']}{', which share GPUs' if self.ranks['shared_gpus'] else ''}"
        )
        return f"{number} rank{'s' if number > 1 else ''}, {how}; {super().description}"


def rehearse(settings: Settings, everyone: Team) -> RankDevices:
    """Do a step of every model with every exchange on all ranks; return the devices that they run on.

    Raises
    ------
    InputError
        On every rank, if the ranks cannot do what is asked for.
    """
    transport, placement = _rehearsed(
        replace(settings, bodies=None, cells=None, kinds=[WEAK]), everyone
    )
    _check_alike(placement.backends)
    backend = placement.backend
    gpu = next((device for device in backend.devices if device.kind == "gpu"), None)
    ranks = {
        "ranks": everyone.ranks,
        "placement": [list(line) for line in placement.table],
        "shared_gpus": placement.shared_gpus,
        "transport": transport,
        "mpi": library_name(),
        "network": asdict(settings.network),
    }
    return RankDevices(
        CpuBackend(settings.compute["threads"]), gpu, "no rank asked for one", backend.kind, ranks
    )


def _rehearsed(small, everyone):
    """Do the steps; return the name of the transport and the placement, which are those of every run."""
    for series in small.series(REHEARSED):
        run = Run(small.values(series, everyone.ranks), everyone)
        transport = run.transport
        placement = run.built.placement
        run.close()
    return transport, placement


def _check_alike(kinds):
    if len(set(kinds)) > 1:
        raise InputError(
            f"ranks that differ ({', '.join(kinds)}) do not show how a step scales; start as many ranks as there are "
            "GPUs, or give --backend cpu"
        ).on_all_ranks()


def check_threads(asked: str | None, kind: str) -> None:
    """Check that threads are of use to backends of a kind, if they were asked for.

    Raises
    ------
    InputError
        If they are not.
    """
    if asked is not None and kind == "gpu":
        raise InputError(
            "--threads: these ranks compute on GPUs alone; leave it out, or give --backend hybrid or cpu"
        )


def check(settings: Settings, series, devices: Devices, local_size: int) -> None:
    """Check that problems can be shared among the ranks, and that they fit in memory.

    Raises
    ------
    InputError
        If they do not, naming the option.
    """
    for one in series:
        if one.model == "fluid":
            _check_grid(one, settings.counts)
            _check_room(one, settings.counts, devices, local_size)
    bodies = [
        one.bodies(count) for one in series if one.model == "gravity" for count in settings.counts
    ]
    if bodies:
        check_memory(devices, bodies, "--bodies", local_size)


def _check_grid(series, counts):
    """Check that a grid has enough planes for the fewest ranks, and not too many on the most."""
    if series.most_ranks() < counts[0]:
        raise InputError(
            f"--cells: {series.size} cannot be shared among {counts[0]} ranks ({series.kind} scaling): at most "
            f"{series.most_ranks()}"
        )
    ranks = _most(series, counts)
    if max(series.cells(ranks)) > MOST_CELLS:
        raise InputError(
            f"--cells: {series.size} a rank are {max(series.cells(ranks))} along z on {ranks} ranks ({series.kind} "
            f"scaling), more than {MOST_CELLS}"
        )


def _check_room(series, counts, devices, local_size):
    """Check that a grid fits in memory: on the most ranks of a node, or on the GPU of one of the fewest."""
    ranks = _most(series, counts)
    places = [("in memory", min(ranks, local_size) * series.share(ranks), host_memory())]
    if devices.gpu:
        places = [("on a GPU", series.share(counts[0]), devices.gpu.free_memory())]
    for where, cells, free in places:
        if cells * BYTES_OF_A_CELL > free:
            raise InputError(
                f"--cells: {series.size} needs {cells * BYTES_OF_A_CELL / 2**30:.3g} GiB {where} ({series.kind} "
                f"scaling), and {free / 2**30:.3g} GiB are free"
            )


def _most(series, counts):
    """Return the largest number of ranks that can share a problem."""
    return max(count for count in counts if count <= series.most_ranks())
