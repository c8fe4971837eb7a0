"""Simulations for scripts and notebooks: the engine of the command line as an object.

>>> from hybrid_nbody import Simulation
>>> simulation = Simulation.from_bodies(x, v, m, softening=0.01, dt=1e-3)
>>> simulation.run(until=2.0)
>>> simulation.energy, simulation.positions

Nothing is written. On several ranks each makes the same calls and has rows of its own; see
`Simulation.gathered`.
"""

from hybrid_nbody.api.runs import run
from hybrid_nbody.api.simulation import Simulation
from hybrid_nbody.api.systems import Systems
from hybrid_nbody.nbody.conditions import closest, energy_error, escaped

__all__ = ["Simulation", "Systems", "closest", "energy_error", "escaped", "run"]
