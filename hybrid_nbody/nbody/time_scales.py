"""The shortest times found among the bodies at the start, beside the time step: warnings."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.nbody.bodies import Bodies
from hybrid_nbody.nbody.config import Gravity, NBodyConfig
from hybrid_nbody.nbody.forces.choice import DIRECT
from hybrid_nbody.nbody.integrators.registry import INTEGRATORS
from hybrid_nbody.nbody.sources import spatial_order
from hybrid_nbody.nbody.step_advice import rounded_down

FEW = 100
"""Most bodies that may do without softening, and whose pairs are all looked at."""

MOST_EXAMINED = 1 << 16
"""Bodies among which close pairs are looked for."""

LONG = 0.05
"""Time step from which on there is a warning, in the shortest time found."""

GOOD = 0.01
"""Time step that is advised: leapfrog keeps the energy of an eccentric orbit to 1e-3 then."""

FREE_FALL = math.pi / math.sqrt(8)
"""Time in which bodies at rest fall through their distance d to their centre of mass, in
sqrt(d^3 / (G M)), M their mass; a uniform sphere of radius d takes as long."""

SOFTENED = 0.2
"""Softening that is advised, in mean distances of bodies."""


class Shortest(NamedTuple):
    """The shortest time found.

    Attributes
    ----------
    time : float
        In units of time; infinite where nothing moves or attracts.
    kind : str
        What happens in it.
    whose : str
        The bodies.
    """

    time: float
    kind: str
    whose: str


class Pairs(NamedTuple):
    """Pairs of bodies, by their places among all."""

    first: NDArray[np.int64]
    second: NDArray[np.int64]


def warnings_of_steps(bodies: Bodies, number: int, config: NBodyConfig) -> list[str]:
    """Return what a person is warned of before bodies take steps of one length.

    Parameters
    ----------
    bodies : Bodies
        All bodies, or some that stand for all.
    number : int
        All of them.
    config : NBodyConfig
    """
    if INTEGRATORS[config.time.integrator].adaptive or len(bodies) < 2:
        return []
    found = []
    if config.gravity.softening == 0 and number > FEW:
        found.append(_unsoftened(bodies, number, config.gravity))
    shortest = shortest_time(bodies, number, config.gravity)
    if config.time.dt > LONG * shortest.time > 0:
        found.append(
            f"time.dt: {config.time.dt:g} is long beside the shortest {shortest.kind} time found, "
            f"{shortest.time:.2g} ({shortest.whose}); take {rounded_down(GOOD * shortest.time):g}"
        )
    return found


def _unsoftened(bodies: Bodies, number: int, gravity: Gravity) -> str:
    """Return the warning of bodies without softening."""
    mean = _radius(bodies.position) / number ** (1 / 3)
    close = f"a gravity.softening, such as {rounded_down(SOFTENED * mean):g}"
    adaptive = ", or time.integrator: hermite4" if gravity.solver == DIRECT else ""
    return (
        f"gravity.softening is 0 with {number} bodies and steps of one length: close pairs will "
        f"spoil the energy; take {close}{adaptive}"
    )


@np.errstate(all="ignore")  # the guard reports what is not finite
def shortest_time(bodies: Bodies, number: int, gravity: Gravity) -> Shortest:
    """Return the shortest free-fall or crossing time of all bodies together, or of close pairs.

    Many bodies without softening are taken together alone: some pair is always closer.

    Parameters
    ----------
    bodies : Bodies
        All bodies, or some that stand for all.
    number : int
        All of them.
    gravity : Gravity
    """
    found = []
    if number > FEW:
        found += _of_all(bodies, number, gravity)
    if number <= FEW or gravity.softening > 0:
        found += _of_pairs(bodies, gravity)
    positive = [shortest for shortest in found if shortest.time > 0]
    return min(positive, default=Shortest(math.inf, "", ""))


@np.errstate(all="ignore")
def _radius(position: NDArray[np.float64]) -> float:
    """Return the median distance from the middle of bodies."""
    middle = np.median(position, axis=0)
    return float(np.median(np.linalg.norm(position - middle, axis=1)))


def _of_all(bodies: Bodies, number: int, gravity: Gravity) -> list[Shortest]:
    """Return the times of half the bodies as a sphere."""
    radius = math.hypot(_radius(bodies.position), gravity.softening)
    half = 0.5 * float(bodies.mass.sum()) * number / len(bodies)
    velocity = bodies.velocity - bodies.velocity.mean(axis=0)
    speed = float(np.sqrt(np.mean(np.sum(velocity**2, axis=1))))
    fall = FREE_FALL * float(np.sqrt(np.float64(radius) ** 3 / (gravity.G * half)))
    whose = "all bodies together"
    return [
        Shortest(fall, "free-fall", whose),
        Shortest(float(np.float64(radius) / speed), "crossing", whose),
    ]


def _of_pairs(bodies: Bodies, gravity: Gravity) -> list[Shortest]:
    """Return the times of the pairs that are soonest together."""
    pairs = _close_pairs(bodies)
    apart = bodies.position[pairs.first] - bodies.position[pairs.second]
    distance = np.hypot(np.linalg.norm(apart, axis=1), gravity.softening)
    mass = bodies.mass[pairs.first] + bodies.mass[pairs.second]
    fall = FREE_FALL * np.sqrt(distance**3 / (gravity.G * mass))
    relative = bodies.velocity[pairs.first] - bodies.velocity[pairs.second]
    crossing = distance / np.linalg.norm(relative, axis=1)
    found = [_of_pair(fall, "free-fall", bodies, pairs)]
    if len(bodies) <= FEW:  # many light bodies pass each other without a trace
        found.append(_of_pair(crossing, "crossing", bodies, pairs))
    return found


def _of_pair(times: NDArray[np.float64], kind: str, bodies: Bodies, pairs: Pairs) -> Shortest:
    """Return the shortest positive time of pairs."""
    known = np.where(times > 0, times, np.inf)
    row = int(known.argmin())
    names = (int(bodies.id[pairs.first[row]]), int(bodies.id[pairs.second[row]]))
    return Shortest(float(known[row]), kind, f"bodies {min(names)} and {max(names)}")


def _close_pairs(bodies: Bodies) -> Pairs:
    """Return all pairs of few bodies; of many, neighbours and those with the heaviest body."""
    number = min(len(bodies), MOST_EXAMINED)
    if number <= FEW:
        return Pairs(*np.triu_indices(number, 1))
    curve = spatial_order(bodies.position[:number]).bodies
    heaviest = int(bodies.mass.argmax())
    others = np.delete(np.arange(len(bodies)), heaviest)
    return Pairs(
        np.concatenate([curve[:-1], np.full(len(others), heaviest)]),
        np.concatenate([curve[1:], others]),
    )
