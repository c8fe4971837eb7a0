"""The table of integrators: for each value of ``time.integrator`` what makes it.

An integrator from outside is added by one call before the configuration is read::

    register("rk4", IntegratorKind(RungeKutta4, forces_per_step=4))
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hybrid_nbody.nbody.integrators.base import Integrator, IntegratorSetup
from hybrid_nbody.nbody.integrators.hermite import Hermite
from hybrid_nbody.nbody.integrators.kick_drift import KickDrift
from hybrid_nbody.nbody.stages import EULER, FORCE, LEAPFROG, YOSHIDA4, Stage


@dataclass(frozen=True)
class IntegratorKind:
    """An entry of the table.

    Attributes
    ----------
    make : callable
        Returns the integrator of an `IntegratorSetup`.
    forces_per_step : int
        Evaluations of all forces a step; at least, where substeps are adaptive.
    adaptive : bool
        Whether the number of substeps of a step follows from the state of the bodies.
    jerks : bool
        Whether the force must be a `JerkForce`.
    order : int
        Power of ``time.dt``, or of ``time.accuracy`` where substeps are adaptive, to which the
        energy error is proportional; 0 if that is not known.
    """

    make: Callable[[IntegratorSetup], Integrator[Any]]  # `jerks` says what force it needs
    forces_per_step: int
    adaptive: bool = False
    jerks: bool = False
    order: int = 0


def kick_drift(stages: tuple[Stage, ...], order: int = 0) -> IntegratorKind:
    """Return the entry of an integrator of kicks and drifts."""
    return IntegratorKind(lambda setup: KickDrift(stages, setup), stages.count(FORCE), order=order)


INTEGRATORS: dict[str, IntegratorKind] = {}
"""The integrators by their names."""


def register(name: str, kind: IntegratorKind) -> None:
    """Add an integrator, from this package or from outside of it.

    Parameters
    ----------
    name : str
        The value of ``time.integrator`` that chooses it.
    kind : IntegratorKind

    Raises
    ------
    ValueError
        If there is an integrator of this name already.
    """
    if name in INTEGRATORS:
        raise ValueError(f"there is an integrator of the name '{name}' already")
    INTEGRATORS[name] = kind


register("leapfrog", kick_drift(LEAPFROG, order=2))
register("yoshida4", kick_drift(YOSHIDA4, order=4))
register("hermite4", IntegratorKind(Hermite, forces_per_step=2, adaptive=True, jerks=True, order=2))
register("euler", kick_drift(EULER, order=1))
