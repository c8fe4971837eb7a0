"""The problems of ``bench scaling``, which stay or grow with the ranks, and its options."""

import math
from argparse import Namespace
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar, NamedTuple

from hybrid_nbody.benchmarks.harness import options
from hybrid_nbody.benchmarks.harness.measure import Row, doubling

ENDLESS = 10**9
"""Steps of a run that is stepped by a benchmark."""

COURANT = 0.5
"""Cells that the fluid crosses in a step where it is fastest: the next plane is all it needs."""

STRONG = "strong"
WEAK = "weak"
MODELS = ("gravity", "fmm", "fluid", "staggered", "ball")
KINDS = (STRONG, WEAK)
EXCHANGES = ("allgather", "ring")
ONLY_FOR = {
    "bodies": ("gravity", "fmm"),
    "exchange": ("gravity",),
    "cells": ("fluid", "staggered", "ball"),
    "sweeps": ("fluid", "staggered"),
}
"""The models that an option is for."""

ACCURACY = 1e-4
"""Of the fast multipole method."""

VISCOSITY = 1e-4
"""Of the fluid on one rank, and the diffusion of its smoke."""

CYCLES = 4
"""Iterations of a solve around balls, each with a cycle of multigrid."""

SMALLEST = 4
MOST_CELLS = 4096
"""Cells along an axis, as ``grid.cells`` allows."""


@dataclass(frozen=True)
class Gravity:
    """A Plummer sphere in single precision, of `size` bodies on one rank.

    Weak: bodies grow with the root of the ranks, so that the interactions of a rank stay the same.
    """

    kind: str
    size: int
    exchange: str

    model: ClassVar[str] = "gravity"

    def bodies(self, ranks: int) -> int:
        return self.size if self.kind == STRONG else round(self.size * math.sqrt(ranks))

    def work(self, ranks: int) -> float:
        """Return the interactions of a step."""
        return float(self.bodies(ranks)) ** 2

    def share(self, ranks: int) -> float:
        """Return the interactions of the rank that has most to do."""
        number = self.bodies(ranks)
        return float(-(-number // ranks)) * number

    def most_ranks(self) -> float:
        """Return how many ranks can share the problem."""
        return math.inf

    def columns(self, ranks: int) -> dict[str, Any]:
        """Return how a row calls the size."""
        return {"bodies": self.bodies(ranks)}

    @property
    def title(self) -> str:
        start = "" if self.kind == STRONG else " on one rank, times the root of their number"
        return f"gravity, {self.kind} scaling, {self.exchange}: {self.size} bodies{start}"

    def config(self, ranks: int) -> dict[str, Any]:
        """Return the configuration without its section ``compute``."""
        return {
            "model": "nbody",
            "bodies": {"kind": "plummer", "n": self.bodies(ranks)},
            "gravity": {"softening": 0.01, "precision": "single"},
            "time": {"dt": 1e-4, "steps": ENDLESS},
        }


@dataclass(frozen=True)
class Fluid:
    """A ball of smoke that is set in motion, in a cube of `size` cells along an edge on one rank.

    A solve does a fixed number of red-black sweeps in float32, on the collocated grid. Weak: the
    box grows along z. `bytes_of_a_cell` is an upper bound on what a cell needs.
    """

    kind: str
    size: int
    sweeps: int

    model: ClassVar[str] = "fluid"
    exchange: ClassVar[str] = "halo"
    unit: ClassVar[str] = "sweeps"
    bytes_of_a_cell: ClassVar[int] = 64

    def cells(self, ranks: int) -> tuple[int, int, int]:
        return self.size, self.size, self.size * (1 if self.kind == STRONG else ranks)

    def work(self, ranks: int) -> float:
        return float(math.prod(self.cells(ranks)))

    def share(self, ranks: int) -> float:
        nx, ny, nz = self.cells(ranks)
        return float(nx * ny * -(-nz // ranks))

    def most_ranks(self) -> float:
        return self.size if self.kind == STRONG else math.inf

    def columns(self, ranks: int) -> dict[str, Any]:
        return {"cells": " x ".join(map(str, self.cells(ranks))), "sweeps": self.sweeps}

    @property
    def title(self) -> str:
        planes = "" if self.kind == STRONG else " a rank"
        each = f"{self.size}^3 cells{planes}, {self.sweeps} {self.unit} a solve"
        return f"{self.model}, {self.kind} scaling, halo: {each}"

    def fluid(self, ranks: int) -> dict[str, Any]:
        return {"grid": "collocated", "projection": "course"}

    def config(self, ranks: int) -> dict[str, Any]:
        cells = self.cells(ranks)
        ball = {"centre": [number / 2 for number in cells], "radius": self.size / 4}
        events = [
            {"step": 0, "density": 1.0, "sphere": ball},
            {"step": 0, "velocity": [0.0, 0.0, 1.0], "sphere": ball},
        ]
        return {
            "model": "fluid",
            "grid": {"cells": list(cells)},
            "fluid": self.fluid(ranks),
            "solver": {"method": "red-black", "max_iterations": self.sweeps, "tolerance": 0},
            "sources": {"events": events},
            "time": {"dt": COURANT / max(cells), "steps": ENDLESS},
        }


@dataclass(frozen=True)
class Staggered(Fluid):
    """The same smoke on the staggered grid, with viscosity and diffusion: five solves a step."""

    model: ClassVar[str] = "staggered"
    bytes_of_a_cell: ClassVar[int] = 72

    def fluid(self, ranks: int) -> dict[str, Any]:
        """Return coefficients that are the same in units of cells and steps on any ranks."""
        coefficient = VISCOSITY * self.size / max(self.cells(ranks))
        return {"grid": "staggered", "viscosity": coefficient, "diffusion": coefficient}


@dataclass(frozen=True)
class Ball(Staggered):
    """A wind that carries the smoke around balls, a ball a rank where the box grows.

    Solves do a fixed number of conjugate gradients, each with a cycle of multigrid.
    """

    model: ClassVar[str] = "ball"
    unit: ClassVar[str] = "iterations"
    bytes_of_a_cell: ClassVar[int] = 128

    def fluid(self, ranks: int) -> dict[str, Any]:
        boundary = {"z-": {"inflow": [0, 0, 1]}, "z+": "outflow"}
        return super().fluid(ranks) | {"boundary": boundary}

    def config(self, ranks: int) -> dict[str, Any]:
        edge = self.size / max(self.cells(ranks))
        centres = [[edge / 2, edge / 2, edge * (rank + 0.4)] for rank in range(round(1 / edge))]
        balls = [{"sphere": {"centre": centre, "radius": 0.15 * edge}} for centre in centres]
        values = super().config(ranks) | {"obstacles": balls}
        values["solver"]["method"] = "conjugate-gradients"
        return values


@dataclass(frozen=True)
class Tree(Gravity):
    """The same by the fast multipole method. Weak: bodies grow with the ranks."""

    exchange: str = "tree"

    model: ClassVar[str] = "fmm"

    def bodies(self, ranks: int) -> int:
        return self.size if self.kind == STRONG else self.size * ranks

    def work(self, ranks: int) -> float:
        """Return the bodies."""
        return float(self.bodies(ranks))

    def share(self, ranks: int) -> float:
        """Return an equal share of them: trees share out the work that they take."""
        return self.work(ranks) / ranks

    @property
    def title(self) -> str:
        each = "" if self.kind == STRONG else " a rank"
        return f"fmm, {self.kind} scaling, accuracy {ACCURACY:g}: {self.size} bodies{each}"

    def config(self, ranks: int) -> dict[str, Any]:
        config = super().config(ranks)
        config["gravity"] |= {"solver": "fmm", "accuracy": ACCURACY}
        return config


Series = Gravity | Tree | Fluid

FLUIDS = {one.model: one for one in (Fluid, Staggered, Ball)}


def problem_of(row: Row) -> Series:
    """Return the problem that a row is about."""
    if row["model"] == "gravity":
        return Gravity(row["kind"], row["size"], row["exchange"])
    if row["model"] == "fmm":
        return Tree(row["kind"], row["size"])
    return FLUIDS[row["model"]](row["kind"], row["size"], row["sweeps"])


class Network(NamedTuple):
    """A network between ranks: seconds of the shortest message, and bytes a second into a rank."""

    latency: float
    bandwidth: float

    def seconds(self, messages: float, size: float) -> float:
        """Return the time of `messages` one after another that bring `size` bytes in all."""
        return messages * self.latency + size / self.bandwidth


class Settings(NamedTuple):
    """The options of the benchmark; sizes that were not given are None.

    `counts` are the numbers of ranks, ascending; `compute` is the section of the configurations.
    """

    models: list[str]
    kinds: list[str]
    exchanges: list[str]
    counts: list[int]
    bodies: list[int] | None
    cells: list[int] | None
    sweeps: int
    repeats: int
    compute: dict[str, Any]
    network: Network

    def series(self, default: dict[str, list[int]]) -> list[Series]:
        """Return all problems; `default` has the sizes that were not asked for."""
        found: list[Series] = []
        for model, kind in product(self.models, self.kinds):
            if model == "gravity":
                sizes = product(self.exchanges, self.bodies or default["bodies"])
                found += [Gravity(kind, size, exchange) for exchange, size in sizes]
            elif model == "fmm":
                found += [Tree(kind, size) for size in self.bodies or default["bodies of a tree"]]
            else:
                sweeps = CYCLES if model == Ball.model else self.sweeps
                cells = self.cells or default["cells"]
                found += [FLUIDS[model](kind, size, sweeps) for size in cells]
        return found

    def values(self, series: Series, ranks: int) -> dict[str, Any]:
        """Return the configuration of a problem on some ranks."""
        exchange = {} if series.model == "fmm" else {"exchange": series.exchange}
        return series.config(ranks) | {"compute": self.compute | exchange}


def read(arguments: Namespace, size: int) -> Settings:
    """Return what was asked for of `size` ranks; raise `InputError` if an option is of no use."""
    latency = options.quantity("--latency", arguments.latency, options.SECONDS)
    bandwidth = options.quantity("--bandwidth", arguments.bandwidth, options.BYTES_PER_SECOND)
    models = options.words("--models", arguments.models, MODELS)
    options.check_used(arguments, "models", ONLY_FOR)
    asked = arguments.ranks
    compute: dict[str, Any] = {"backend": arguments.backend, "transport": arguments.transport}
    if arguments.threads is not None:
        compute["threads"] = options.number("--threads", arguments.threads)
    return Settings(
        models=models,
        kinds=options.words("--kinds", arguments.kinds, KINDS),
        exchanges=options.words("--exchange", arguments.exchange or EXCHANGES[0], EXCHANGES),
        counts=sorted(options.numbers("--ranks", asked, 1, size)) if asked else doubling(size),
        bodies=arguments.bodies and options.numbers("--bodies", arguments.bodies, 2),
        cells=arguments.cells and options.numbers("--cells", arguments.cells, SMALLEST, MOST_CELLS),
        sweeps=options.number("--sweeps", arguments.sweeps or "20"),
        repeats=options.number("--repeats", arguments.repeats),
        compute=compute,
        network=Network(latency, bandwidth),
    )
