"""The choice between the direct sum and the fast multipole method: ``gravity.solver: auto``."""

from collections import ChainMap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from hybrid_nbody.nbody.forces.registry import FORCES, ForceKind
from hybrid_nbody.nbody.forces.speed import SPEEDS

AUTO = "auto"
DIRECT = "direct"
FMM = "fmm"

SOLVERS: Mapping[str, Any] = ChainMap({AUTO: None}, FORCES)
"""The values of ``gravity.solver``."""


class Choice(NamedTuple):
    """A force, and why it was chosen; the reason is empty if it was asked for."""

    name: str
    reason: str = ""

    @property
    def line(self) -> str:
        """Return the choice in words."""
        return f"solver auto chose {self.name}: {self.reason}" if self.reason else self.name


class Wanted(NamedTuple):
    """What a run wants of its force.

    Attributes
    ----------
    solver : str
        As it is in the configuration.
    number : int
        Bodies.
    accuracy : float
        Of the fast multipole method.
    precision : str
    jerks : bool
        Whether the integrator needs the time derivatives of accelerations.
    ring : bool
        Whether bodies go around a ring of ranks.
    divided : bool
        Whether ranks with GPUs divide the cells of a tree among them, rather than that each has
        all: on several nodes, or with a transport of messages.
    """

    solver: str
    number: int
    accuracy: float
    precision: str
    jerks: bool
    ring: bool
    divided: bool = False


def candidates(solver: str) -> list[ForceKind]:
    """Return the forces that a value of ``gravity.solver`` may lead to."""
    return [FORCES[name] for name in ((DIRECT, FMM) if solver == AUTO else (solver,))]


def chosen(wanted: Wanted, backends: Sequence[str]) -> Choice:
    """Return the force of a run.

    Parameters
    ----------
    wanted : Wanted
    backends : sequence of str
        Those of all ranks.
    """
    if wanted.solver != AUTO:
        return Choice(wanted.solver)
    obstacle = _obstacle(wanted, backends)
    if obstacle:
        return Choice(DIRECT, obstacle)
    speed = SPEEDS[backends[0]]
    least = speed.crossover(wanted.accuracy, wanted.precision, len(backends), wanted.divided)
    name = FMM if wanted.number >= least else DIRECT
    size = f"{least} bodies at accuracy {wanted.accuracy:g}"
    return Choice(name, f"on such devices fmm is faster from about {size} on")


def _obstacle(wanted: Wanted, backends: Sequence[str]) -> str:
    """Return what speaks against the fast multipole method, whatever the number of bodies."""
    fmm = FORCES[FMM]
    if wanted.jerks:
        return "the integrator needs time derivatives of accelerations"
    if wanted.ring:
        return "bodies go around a ring of ranks"
    others = sorted(set(backends) - set(fmm.backends))
    if others:
        return f"fmm does not run on backend {others[0]}"
    if len(set(backends)) > 1 and not fmm.mixed:
        return "fmm takes one backend on all ranks"
    return ""
