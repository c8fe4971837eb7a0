"""What a configuration wants of the force between its bodies."""

from hybrid_nbody.nbody.config import NBodyConfig
from hybrid_nbody.nbody.forces.choice import Wanted
from hybrid_nbody.nbody.integrators.registry import INTEGRATORS


def wanted_of(config: NBodyConfig, number: int) -> Wanted:
    """Return what a run of a configuration wants."""
    return Wanted(
        solver=config.gravity.solver,
        number=number,
        accuracy=config.gravity.accuracy,
        precision=config.gravity.precision,
        jerks=INTEGRATORS[config.time.integrator].jerks,
        ring=config.compute.exchange == "ring",
    )
