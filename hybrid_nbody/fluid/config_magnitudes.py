"""Checks that numbers of a fluid's configuration are none that its grid cannot hold."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pydantic_core import InitErrorDetails

from hybrid_nbody.config.sections import fault

if TYPE_CHECKING:  # the schema calls these checks
    from hybrid_nbody.fluid.config import FluidConfig

Path = tuple[str | int, ...]


class Given(NamedTuple):
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
    for path, values, limit in (*_speeds(config, most), *_rates(config, most)):
        if max(map(abs, values)) > limit:
            kind = config.fluid.dtype
            text = (
                f"must be at most {limit:.1g} in magnitude on this grid, for {kind} to hold squares"
            )
            value = values[0] if len(values) == 1 else list(values)
            yield fault(path, value, text)


def _speeds(config: "FluidConfig", most: float) -> Iterator[Given]:
    """Yield speeds; those of points of the box that turn are about as large as a rotation."""
    for index, event in enumerate(config.sources.events):
        if event.velocity is not None:
            yield Given(("sources", "events", index, "velocity"), event.velocity, most)
        if event.density is not None:
            yield Given(("sources", "events", index, "density"), (event.density,), most)
        if event.scalar is not None:
            path = ("sources", "events", index, "scalar", "value")
            yield Given(path, (event.scalar.value,), most)
    for index, section in enumerate(config.obstacles):
        yield Given(("obstacles", index, "velocity"), section.velocity, most)
        yield Given(("obstacles", index, "rotation"), section.rotation, most)


def _rates(config: "FluidConfig", most: float) -> Iterator[Given]:
    """Yield what acts in a step."""
    fluid = config.fluid
    dt = config.time.longest_part
    in_a_step = most / max(dt, 1.0)
    spread = most / max(dt * max(config.grid.cells) ** 2, 1.0)
    yield Given(("fluid", "viscosity"), (fluid.viscosity,), spread)
    yield Given(("fluid", "diffusion"), (fluid.diffusion,), spread)
    yield Given(("fluid", "vorticity_confinement"), (fluid.vorticity_confinement,), in_a_step)
    yield Given(("fluid", "gravity"), fluid.gravity, in_a_step)
    yield Given(("fluid", "buoyancy"), (fluid.buoyancy,), in_a_step)
    for index, scalar in enumerate(fluid.scalars):
        path = ("fluid", "scalars", index)
        yield Given((*path, "diffusion"), (scalar.diffusion,), spread)
        yield Given((*path, "buoyancy"), (scalar.buoyancy,), in_a_step)
