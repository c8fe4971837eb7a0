"""The root of a configuration for each model: what may be written, from which checks and documentation are made.

Only values that work are accepted. A further model of physics is a further root.
"""

from hybrid_nbody.config.fluid import FluidConfig
from hybrid_nbody.config.nbody import NBodyConfig

Config = NBodyConfig | FluidConfig

MODELS: dict[str, type[Config]] = {"nbody": NBodyConfig, "fluid": FluidConfig}
"""The root of a configuration for each value of ``model:``."""
