"""Checks that the grid can hold the numbers of a fluid's configuration, each by itself.

Scalars may have any unit, and buoyancies with them. What several numbers make together is seen in
the run, which ends where one is not finite.
"""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pydantic_core import InitErrorDetails

from hybrid_nbody.config.sections import fault

if TYPE_CHECKING:  # the schema calls these checks
    from hybrid_nbody.fluid.config import FluidConfig

FARTHEST = 1e6
"""Largest distance of an obstacle from the box, which it may turn about."""

Path = tuple[str | int, ...]


class Limited(NamedTuple):
    """Numbers at a key, and the largest magnitude that they may have."""

    path: Path
    values: Sequence[float]
    most: float


def faults(config: "FluidConfig", most: float) -> Iterator[InitErrorDetails]:
    """Yield a fault for each key with a number that is too large.

    Parameters
    ----------
    config : FluidConfig
    most : float
        The largest number whose square the working type holds.
    """
    kind = config.fluid.dtype
    remedy = "" if kind == "float64" else "; or write fluid.dtype: float64"
    for path, values, limit in (*_given(config, most), *_rates(config, most)):
        if max(map(abs, values)) > limit:
            text = (
                f"must be at most {_rounded_down(limit)} in magnitude, for {kind} to hold squares"
            )
            value = values[0] if len(values) == 1 else list(values)
            yield fault(path, value, text + remedy)


def _rounded_down(limit: float) -> str:
    """Return a number in words with one digit, that is no larger."""
    exponent = math.floor(math.log10(limit))
    digit = math.floor(limit / 10.0**exponent)
    return f"{digit}e{exponent:+03d}"


def _given(config: "FluidConfig", most: float) -> Iterator[Limited]:
    """Yield the speeds that cells are given, and those of obstacles."""
    for index, event in enumerate(config.sources.events):
        if event.velocity is not None:
            yield Limited(("sources", "events", index, "velocity"), event.velocity, most)
    for index, section in enumerate(config.obstacles):
        yield Limited(("obstacles", index, "velocity"), section.velocity, most)
        yield Limited(("obstacles", index, "rotation"), section.rotation, most / FARTHEST)


def _rates(config: "FluidConfig", most: float) -> Iterator[Limited]:
    """Yield how fast things spread, and how strongly eddies are confined."""
    fluid = config.fluid
    dt = config.time.longest_part
    spread = most / max(dt * max(config.grid.cells) ** 2, 1.0)
    confinement = (fluid.vorticity_confinement,)
    yield Limited(("fluid", "viscosity"), (fluid.viscosity,), spread)
    yield Limited(("fluid", "diffusion"), (fluid.diffusion,), spread)
    yield Limited(("fluid", "vorticity_confinement"), confinement, most / max(dt, 1.0))
    for index, scalar in enumerate(fluid.scalars):
        yield Limited(("fluid", "scalars", index, "diffusion"), (scalar.diffusion,), spread)
