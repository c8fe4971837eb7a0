"""How a model takes steps: by kicks and drifts, or by Hermite's scheme."""

from hybrid_nbody.nbody.integrators.hermite import Hermite
from hybrid_nbody.nbody.integrators.stages import FORCE, INTEGRATORS

HERMITE = "hermite4"

OPERATIONS_PER_INTERACTION = 20
"""The count that the field has agreed on for rates in GFLOP/s (Nyland, Harris & Prins, GPU Gems 3,
2007)."""


class Composed:
    """Steps of kicks and drifts.

    Parameters
    ----------
    gravity : Gravity
        The bodies of all ranks.
    stages : sequence of Stage
        One step.
    dt : float
        Length of a step.

    Attributes
    ----------
    forces_per_step : float
        Evaluations of all forces a step.
    operations : float
        Of an interaction, for rates.
    """

    operations = OPERATIONS_PER_INTERACTION

    def __init__(self, gravity, stages, dt):
        self.gravity = gravity
        self.stages = stages
        self.dt = dt
        self.forces_per_step = float(stages.count(FORCE))

    def begin(self) -> None:
        """Prepare for the first step: nothing is to be done."""

    def scalars(self) -> dict[str, float]:
        """Return what a checkpoint keeps: nothing."""
        return {}

    def restore(self, scalars) -> None:
        """Take back what a checkpoint kept."""

    def advance(self, first_step: int, steps: int) -> None:
        """Do `steps` steps from step number `first_step` on."""
        self.gravity.advance(self.stages, self.dt, first_step, steps)


def make_stepping(integrator, gravity, communicator, ids, dt, accuracy, precision):
    """Return what takes the steps of an integrator; parameters as in `Composed` and `Hermite`."""
    if integrator == HERMITE:
        return Hermite(gravity, communicator, ids, dt, accuracy, precision)
    return Composed(gravity, INTEGRATORS[integrator], dt)
