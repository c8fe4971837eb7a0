"""How fast forces are on a device, for the choice between them and for the plan of a run.

Measured on a core of an AMD EPYC (Zen 5) and on one H200, crossovers of CPUs on two cores of an
Intel Xeon: whole forces on Plummer spheres with a softening of 0.01; rates with 131072 bodies and
more (`docs/many-bodies.md`). Trees in mixed precision have become faster on CPUs since: on two
cores of Zen 2 their crossovers are 0.5 to 0.8 of those before, and taken to be no smaller than in
double here. The growth of crossovers with the number of devices follows from those measured on two
H200s of one host with earlier kernels, whose trees were slower. Other devices are slower or faster,
but hardly in other proportions.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

Rows = tuple[tuple[float, float], ...]
"""Least accuracies, the largest first, and a number for each."""

NONE: Rows = ((0.0, 0.0),)
"""Nothing, at any accuracy."""


@dataclass(frozen=True)
class Speed:
    """The speed of a device.

    Attributes
    ----------
    pairs : mapping of str to float
        Interactions a second of the direct sum, by its precision.
    bodies : rows
        Bodies a second of the fast multipole method in single precision, where they are many.
    shares : mapping of str to rows
        What is left of these, by precision.
    fixed : float
        Seconds that a tree takes however few bodies there are.
    crossovers : mapping of str to rows
        Bodies from which the fast multipole method is faster, by precision.
    growth : mapping of str to rows
        Exponents p, by precision: crossovers grow as devices**p. Each device repeats a part of the
        work of a tree, which is the larger the less exact the tree is.
    growth_divided : float
        The same exponent where devices divide the cells of a tree among them: messages take most of
        the time then.
    of_a_thread : bool
        Whether the speed is that of one thread of a device.
    overhead : float
        Seconds that a force takes however few bodies there are.
    """

    pairs: Mapping[str, float]
    bodies: Rows
    shares: Mapping[str, Rows]
    fixed: float
    crossovers: Mapping[str, Rows]
    growth: Mapping[str, Rows]
    growth_divided: float
    of_a_thread: bool
    overhead: float

    def seconds_of_pairs(self, number: int, precision: str, devices: float = 1) -> float:
        """Return the seconds of a direct sum on some devices."""
        return number**2 / (self.pairs[precision] * devices)

    def seconds_of_tree(
        self, number: int, accuracy: float, precision: str, devices: float = 1
    ) -> float:
        """Return the seconds of a force by the fast multipole method on some devices."""
        rate = _row(self.shares[precision], accuracy) * _row(self.bodies, accuracy)
        return self.fixed + number / (rate * devices)

    def crossover(
        self, accuracy: float, precision: str, devices: int = 1, divided: bool = False
    ) -> int:
        """Return the number of bodies from which the fast multipole method is faster.

        Parameters
        ----------
        accuracy : float
        precision : str
        devices : int, optional
        divided : bool, optional
            Whether devices divide the cells among them, as those of several nodes do.
        """
        growth = self.growth[precision]

        def grown(least: float, number: float) -> float:
            power = self.growth_divided if divided else _row(growth, least)
            return float(number * devices**power)

        # one that is more exact is never faster
        return int(max(grown(*row) for row in _down_to(self.crossovers[precision], accuracy)))


def _row(rows: Rows, accuracy: float) -> float:
    return next(number for least, number in rows if accuracy >= least)


def _down_to(rows: Rows, accuracy: float) -> Iterator[tuple[float, float]]:
    """Yield the rows from the least exact one to that of an accuracy."""
    for row in rows:
        yield row
        if accuracy >= row[0]:
            return


CORE = Speed(
    pairs={"single": 11.5e9, "mixed": 6.2e9, "double": 3.8e9},
    bodies=(
        (3e-3, 2.3e6),
        (3e-4, 1.8e6),
        (3e-5, 0.9e6),
        (3e-6, 0.5e6),
        (3e-7, 0.23e6),
        (0.0, 0.12e6),
    ),
    shares={
        "single": ((0.0, 1.0),),
        "mixed": ((3e-7, 0.93), (0.0, 1.0)),
        "double": ((0.0, 0.7),),
    },
    fixed=1e-3,
    crossovers={
        "single": (
            (3e-3, 13_000),
            (3e-4, 16_000),
            (3e-5, 25_000),
            (3e-6, 32_000),
            (3e-7, 57_000),
            (0.0, 93_000),
        ),
        "mixed": (
            (3e-3, 5_700),
            (3e-4, 7_300),
            (3e-5, 14_000),
            (3e-6, 20_000),
            (3e-7, 31_000),
            (0.0, 72_000),
        ),
        "double": (
            (3e-3, 5_700),
            (3e-4, 7_300),
            (3e-5, 14_000),
            (3e-6, 16_000),
            (3e-7, 22_000),
            (0.0, 42_000),
        ),
    },
    growth=dict.fromkeys(("single", "mixed", "double"), NONE),
    growth_divided=0.0,
    of_a_thread=True,
    overhead=1e-6,
)
"""Of one core of a CPU: several share the work of both forces."""

GPU = Speed(
    pairs={"single": 3.4e12, "mixed": 1.5e12, "double": 0.95e12},
    bodies=(
        (3e-3, 4.5e8),
        (3e-4, 3.7e8),
        (3e-5, 1.9e8),
        (3e-6, 9.7e7),
        (3e-7, 4.9e7),
        (0.0, 1.18e7),
    ),
    shares={
        "single": ((0.0, 1.0),),
        "mixed": ((3e-7, 0.8), (0.0, 1.0)),
        "double": ((3e-7, 0.62), (0.0, 1.0)),
    },
    fixed=5e-4,
    crossovers={
        "single": (
            (3e-3, 39_000),
            (3e-4, 45_000),
            (3e-5, 57_000),
            (3e-6, 87_000),
            (3e-7, 128_000),
            (0.0, 350_000),
        ),
        "mixed": (
            (3e-3, 26_000),
            (3e-4, 30_000),
            (3e-5, 38_000),
            (3e-6, 51_000),
            (3e-7, 75_000),
            (0.0, 176_000),
        ),
        "double": (
            (3e-3, 20_000),
            (3e-4, 23_000),
            (3e-5, 30_000),
            (3e-6, 39_000),
            (3e-7, 57_000),
            (0.0, 122_000),
        ),
    },
    growth={
        "single": ((3e-4, 0.79), (3e-5, 0.74), (0.0, 0.54)),
        "mixed": ((0.0, 0.86),),
        "double": ((3e-3, 0.96), (0.0, 0.78)),
    },
    growth_divided=1.0,
    of_a_thread=False,
    overhead=1e-5,
)

SPEEDS = {"cpu": CORE, "gpu": GPU}
"""By the name of a backend."""
