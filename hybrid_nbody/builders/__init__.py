"""From a configuration to a model on all ranks: one module a model, and a line here."""

from hybrid_nbody.builders import fluid, nbody

BUILDERS = {"nbody": nbody.NBodyBuilder, "fluid": fluid.FluidBuilder}
"""For each value of ``model:``."""
