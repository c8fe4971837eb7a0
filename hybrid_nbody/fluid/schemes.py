"""The grids of a fluid, by name."""

from collections.abc import Callable

from hybrid_nbody.fluid import config as asked
from hybrid_nbody.fluid.on_centres import Collocated
from hybrid_nbody.fluid.on_faces import Staggered
from hybrid_nbody.fluid.scheme import Scheme

SCHEMES: dict[str, Callable[[asked.FluidConfig], Scheme]] = {
    "collocated": Collocated,
    "staggered": Staggered,
}
"""For each value of ``fluid.grid`` what makes the model on it."""


def scheme_of(config: asked.FluidConfig) -> Scheme:
    """Return the grid that a configuration asks for."""
    return SCHEMES[config.fluid.grid](config)
