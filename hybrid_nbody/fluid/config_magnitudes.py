"""Checks that the grid can hold the numbers of a fluid's configuration, each by itself.

What several of them make together is seen in the run, which ends at numbers that are not finite.
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
    """Yield what cells are given, and the motion of obstacles."""
    for index, event in enumerate(config.sources.events):
        path = ("sources", "events", index)
        if event.velocity is not None:
            yield Limited((*path, "velocity"), event.velocity, most)
        if event.density is not None:
            yield Limited((*path, "density"), (event.density,), most)
        if event.scalar is not None:
            yield Limited((*path, "scalar", "value"), (event.scalar.value,), most)
    for index, section in enumerate(config.obstacles):
        yield Limited(("obstacles", index, "velocity"), section.velocity, most)
        yield Limited(("obstacles", index, "rotation"), section.rotation, most / FARTHEST)


def _rates(config: "FluidConfig", most: float) -> Iterator[Limited]:
    """Yield what acts in a step."""
    fluid = config.fluid
    dt = config.time.longest_part
    in_a_step = most / max(dt, 1.0)
    spread = most / max(dt * max(config.grid.cells) ** 2, 1.0)
    yield Limited(("fluid", "viscosity"), (fluid.viscosity,), spread)
    yield Limited(("fluid", "diffusion"), (fluid.diffusion,), spread)
    yield Limited(("fluid", "vorticity_confinement"), (fluid.vorticity_confinement,), in_a_step)
    yield Limited(("fluid", "gravity"), fluid.gravity, in_a_step)
    yield Limited(("fluid", "buoyancy"), (fluid.buoyancy,), in_a_step)
    for index, scalar in enumerate(fluid.scalars):
        path = ("fluid", "scalars", index)
        yield Limited((*path, "diffusion"), (scalar.diffusion,), spread)
        yield Limited((*path, "buoyancy"), (scalar.buoyancy,), in_a_step)
