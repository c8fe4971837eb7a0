"""The grids of a fluid, by name."""

from importlib import import_module

from hybrid_nbody.fluid import config as asked
from hybrid_nbody.fluid.scheme import Scheme

SCHEMES = {"collocated": ("on_centres", "Collocated"), "staggered": ("on_faces", "Staggered")}
"""For each value of ``fluid.grid`` the module and class of what makes the model on it. A run
imports only its own: each takes a tenth of a second."""


def scheme_of(config: asked.FluidConfig) -> Scheme:
    """Return the grid that a configuration asks for."""
    module, name = SCHEMES[config.fluid.grid]
    scheme: Scheme = getattr(import_module(f"hybrid_nbody.fluid.{module}"), name)(config)
    return scheme
