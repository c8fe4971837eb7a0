"""What a configuration wants of the force between its bodies."""

from hybrid_nbody.nbody.config import NBodyConfig
from hybrid_nbody.nbody.forces.choice import Wanted
from hybrid_nbody.nbody.integrators.registry import INTEGRATORS

BY_MESSAGES = ("host", "cuda-mpi")
"""Transports that give no GPU access to the memory of another one."""


def wanted_of(config: NBodyConfig, number: int, several_nodes: bool = False) -> Wanted:
    """Return what a run of a configuration with a number of bodies wants."""
    return Wanted(
        solver=config.gravity.solver,
        number=number,
        accuracy=config.gravity.accuracy,
        precision=config.gravity.precision,
        jerks=INTEGRATORS[config.time.integrator].jerks,
        ring=config.compute.exchange == "ring",
        divided=several_nodes or config.compute.transport in BY_MESSAGES,
    )
