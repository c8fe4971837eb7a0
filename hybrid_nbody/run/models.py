"""The models: for each value of ``model:`` the root of its configuration, and what builds it."""

from hybrid_nbody.fluid.build import FluidBuilder
from hybrid_nbody.fluid.config import FluidConfig
from hybrid_nbody.nbody.build import NBodyBuilder
from hybrid_nbody.nbody.config import NBodyConfig

Config = NBodyConfig | FluidConfig

MODELS: dict[str, type[Config]] = {"nbody": NBodyConfig, "fluid": FluidConfig}
"""What may be written: checks and documentation are made from it."""

BUILDERS = {"nbody": NBodyBuilder, "fluid": FluidBuilder}
"""From a configuration to a model on all ranks."""
