"""What ``bench scaling`` computes: a problem that stays as it is on more ranks, or grows with their number."""

import math
from dataclasses import dataclass

ENDLESS = 10**9
"""Steps of a run that is stepped by a benchmark."""

COURANT = 0.5
"""Cells that the fluid crosses in a step where it is fastest: no plane but the next one is needed
of another rank."""

STRONG = "strong"
WEAK = "weak"


@dataclass(frozen=True)
class Gravity:
    """A Plummer sphere in single precision.

    Attributes
    ----------
    kind : {"strong", "weak"}
        Weak: the interactions of a rank stay the same, so that bodies grow with the root of the
        number of ranks.
    size : int
        Bodies on one rank.
    exchange : str
        As in ``compute.exchange``.
    """

    kind: str
    size: int
    exchange: str

    model = "gravity"

    def bodies(self, ranks: int) -> int:
        """Return the number of bodies."""
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

    def columns(self, ranks: int) -> dict:
        """Return how a row calls the size."""
        return {"bodies": self.bodies(ranks)}

    @property
    def title(self) -> str:
        """The problem in words."""
        start = "" if self.kind == STRONG else " on one rank, times the root of their number"
        return f"gravity, {self.kind} scaling, {self.exchange}: {self.size} bodies{start}"

    def config(self, ranks: int) -> dict:
        """Return the configuration without its section ``compute``."""
        return {
            "model": "nbody",
            "bodies": {"kind": "plummer", "n": self.bodies(ranks)},
            "gravity": {"softening": 0.01, "precision": "single"},
            "time": {"dt": 1e-4, "steps": ENDLESS},
        }


@dataclass(frozen=True)
class Fluid:
    """A ball of smoke that is set in motion, red-black sweeps in float32, always as many a solve.

    Attributes
    ----------
    kind : {"strong", "weak"}
        Weak: the planes of a rank stay the same, so that the box grows along z.
    size : int
        Cells along an edge of the cube on one rank.
    sweeps : int
        Iterations of a solve.
    """

    kind: str
    size: int
    sweeps: int

    model = "fluid"
    exchange = "halo"

    def cells(self, ranks: int) -> tuple[int, int, int]:
        """Return the cells along x, y and z."""
        return self.size, self.size, self.size * (1 if self.kind == STRONG else ranks)

    def work(self, ranks: int) -> float:
        """Return the cells of a step."""
        return float(math.prod(self.cells(ranks)))

    def share(self, ranks: int) -> float:
        """Return the cells of the rank that has most to do."""
        nx, ny, nz = self.cells(ranks)
        return float(nx * ny * -(-nz // ranks))

    def most_ranks(self) -> float:
        """Return how many ranks can share the problem: each needs a plane."""
        return self.size if self.kind == STRONG else math.inf

    def columns(self, ranks: int) -> dict:
        """Return how a row calls the size."""
        return {"cells": " x ".join(map(str, self.cells(ranks))), "sweeps": self.sweeps}

    @property
    def title(self) -> str:
        """The problem in words."""
        planes = "" if self.kind == STRONG else " a rank"
        return f"fluid, {self.kind} scaling, halo: {self.size}^3 cells{planes}, {self.sweeps} sweeps a solve"

    def config(self, ranks: int) -> dict:
        """Return the configuration without its section ``compute``."""
        cells = self.cells(ranks)
        ball = {"centre": [number / 2 for number in cells], "radius": self.size / 4}
        return {
            "model": "fluid",
            "grid": {"cells": list(cells)},
            "solver": {"method": "red-black", "max_iterations": self.sweeps, "tolerance": 0},
            "sources": {
                "events": [
                    {"step": 0, "density": 1.0, "sphere": ball},
                    {"step": 0, "velocity": [0.0, 0.0, 1.0], "sphere": ball},
                ]
            },
            "time": {"dt": COURANT / max(cells), "steps": ENDLESS},
        }
