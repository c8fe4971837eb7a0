"""Conditions of bodies at which a run stops: an escape, a close pair, a loss of energy."""

from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from hybrid_nbody.conditions import Found, Measured
from hybrid_nbody.errors import InputError
from hybrid_nbody.number_checks import positive_number

ENERGY_ERROR = "relative_energy_error"


@dataclass(frozen=True)
class Escaped:
    """A body is farther from the origin than a radius.

    A look costs one pass over the positions on the device.

    Attributes
    ----------
    radius : float
        In units of length.
    """

    radius: float
    name = "escaped"
    measured = False

    def found(self, model: Any, measured: Measured) -> Found:
        """See `Condition.found`; the numbers are distances from the origin."""
        position = _bodies(model, self.name).position
        xp = model.backend.xp
        squares = (position * position).sum(axis=1)
        with np.errstate(over="ignore"):
            limit = float(np.square(self.radius))  # infinite for a radius of 1e160
        rows = model.backend.download(xp.flatnonzero(squares > limit))
        if not model.communicator.any(len(rows) > 0):
            return {}
        distances = np.sqrt(model.backend.download(squares)[rows])
        bodies = [(body,) for body in model.ids[rows].tolist()]
        own = zip(bodies, distances.tolist(), strict=True)
        return dict(chain.from_iterable(model.communicator.gather(list(own))))

    def words(self, found: Found) -> str:
        """See `Condition.words`."""
        (body,) = max(found, key=lambda who: found[who])
        others = _others(len(found), "is", "are", "beyond")
        return f"body {body} is {found[body,]:.6g} from the origin, beyond {self.radius:g}{others}"


@dataclass(frozen=True)
class Closest:
    """Two bodies are closer to each other than a distance.

    A look takes the positions of all bodies to every rank and sorts them into a tree of cells on
    the host: a few milliseconds at 10,000 bodies, about a second at a million. It sees the states
    after steps, not what happens within one.

    Attributes
    ----------
    distance : float
        In units of length; far below the mean spacing, or the pairs are many.
    """

    distance: float
    name = "closest"
    measured = False

    def found(self, model: Any, measured: Measured) -> Found:
        """See `Condition.found`; the numbers are distances between two bodies."""
        from scipy.spatial import cKDTree

        own = model.backend.download(_bodies(model, self.name).position)
        position = model.communicator.concatenate(own)
        if not np.isfinite(position).all():
            return {}  # the guard says which body is lost
        # by the largest component first: squares of far distances overflow, and all distances twice
        tree = cKDTree(position / 2)
        near = tree.query_pairs(self.distance / 2, p=np.inf, output_type="ndarray")
        first, second = near.T
        apart = np.linalg.norm(position[first] - position[second], axis=1)
        close = apart <= self.distance
        if not close.any():
            return {}
        body = model.communicator.concatenate(model.ids)
        pairs = np.sort(body[near[close]], axis=1)
        return dict(zip(map(tuple, pairs.tolist()), apart[close].tolist(), strict=True))

    def words(self, found: Found) -> str:
        """See `Condition.words`."""
        one, other = min(found, key=lambda who: found[who])
        others = _others(len(found), "pair is", "pairs are", "closer, too")
        apart = f"{found[one, other]:.6g} apart, closer than {self.distance:g}"
        return f"bodies {one} and {other} are {apart}{others}"


@dataclass(frozen=True)
class EnergyError:
    """The relative error of the energy is larger than a limit, either way.

    A look costs a force: the potential of all bodies.

    Attributes
    ----------
    limit : float
    """

    limit: float
    name = "energy_error"
    measured = True

    def found(self, model: Any, measured: Measured) -> Found:
        """See `Condition.found`; the number is the error."""
        if ENERGY_ERROR not in model.quantities:
            raise InputError(
                "stop: energy_error: this model does not conserve its energy, and has no error of "
                "it; leave the condition out"
            ).on_all_ranks()
        error = float(measured()[ENERGY_ERROR])
        return {(): error} if abs(error) > self.limit else {}

    def words(self, found: Found) -> str:
        """See `Condition.words`."""
        return f"the relative energy error is {found[()]:.3g}, beyond {self.limit:g}"


def escaped(radius: float) -> Escaped:
    """Return the condition that a body is farther from the origin than a radius."""
    return Escaped(float(positive_number("escaped: radius:", radius)))


def closest(distance: float) -> Closest:
    """Return the condition that two bodies are closer to each other than a distance."""
    return Closest(float(positive_number("closest: distance:", distance)))


def energy_error(limit: float) -> EnergyError:
    """Return the condition that the relative energy error is larger than a limit, either way."""
    return EnergyError(float(positive_number("energy_error: limit:", limit)))


def _bodies(model: Any, name: str) -> Any:
    """Return the state of bodies, of a model that has some."""
    if not hasattr(type(model), "bodies"):
        raise InputError(f"stop: {name}: this model has no bodies").on_all_ranks()
    return model.bodies


def _others(number: int, one: str, several: str, what: str) -> str:
    """Say how many there are beside the first."""
    if number == 1:
        return ""
    return f" ({number - 1} more {one if number == 2 else several} {what})"
