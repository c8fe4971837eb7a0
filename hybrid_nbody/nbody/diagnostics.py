"""Energies, momenta and the shape of the system, with the same bits on any number of ranks."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.nbody.bodies import Bodies
from hybrid_nbody.nbody.few_bodies import MOST_FEW, radii_of_few, sums_of_few
from hybrid_nbody.nbody.kernels.fields.field import Rotation
from hybrid_nbody.nbody.kernels.measured import Measures
from hybrid_nbody.nbody.unit_names import PLAIN, UnitNames
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.sums import (
    BLOCK,
    MadeInPieces,
    quantiles_of,
    reproducible_quantiles,
    sum_of,
)
from hybrid_nbody.simulation.model import Quantity

Values = dict[str, float | tuple[float, ...]]

Radii = Callable[[Sequence[float], Sequence[int]], list[float]]
"""Given a centre and percentages, returns the radii that hold these shares of the mass."""


class Conserving(Protocol):
    """The part of a force that says what it conserves; see `hybrid_nbody.nbody.forces.base`."""

    @property
    def conserves_energy(self) -> bool: ...

    @property
    def rotation(self) -> Rotation | None: ...


RADII = {
    "half_mass_radius": 50,
    "lagrangian_radius_10": 10,
    "lagrangian_radius_25": 25,
    "lagrangian_radius_75": 75,
    "lagrangian_radius_90": 90,
}
"""The per cent of the mass that each radius holds."""

QUANTITIES = {
    "kinetic_energy": Quantity("mass length^2 / time^2", "sum of m v^2 / 2"),
    "potential_energy": Quantity(
        "mass length^2 / time^2", "sum of m phi / 2, softened, each pair once"
    ),
    "total_energy": Quantity("mass length^2 / time^2", "kinetic plus potential energy"),
    "relative_energy_error": Quantity(
        "1",
        "(E - E0) / |E0|, E0 the energy of the initial state",
        limit=1e-3,
        advice="do not trust its orbits; halve time.dt until it is smaller, or take a larger "
        "gravity.softening or time.integrator: hermite4",
    ),
    "momentum": Quantity("mass length / time", "sum of m v", 3),
    "angular_momentum": Quantity("mass length^2 / time", "sum of m x cross v", 3),
    "center_of_mass": Quantity("length", "sum of m x / sum of m", 3),
    "virial_ratio": Quantity("1", "2 K / |W|; 1 in equilibrium"),
} | {
    name: Quantity("length", f"radius about the centre of mass that holds {percent} % of the mass")
    for name, percent in RADII.items()
}


ENERGY_ERROR = "relative_energy_error"

JACOBI = "jacobi_integral"

OF_A_ROTATION = {
    JACOBI: Quantity(
        "mass length^2 / time^2",
        "total energy less the pattern speed times the angular momentum about the axis",
    ),
    ENERGY_ERROR: replace(
        QUANTITIES[ENERGY_ERROR],
        description="(E - E0) / |E0| of Jacobi's integral, as fields turn; E0: the initial state",
    ),
}
"""What takes the place of the energy where fields turn."""


def quantities_of(
    force: Conserving, units: UnitNames = PLAIN, advise: Callable[[float], str] | None = None
) -> dict[str, Quantity]:
    """Return the quantities of bodies under a force; an energy error only where it keeps one.

    Of an error that is too large, `advise` tells what to do.
    """
    found = QUANTITIES | (OF_A_ROTATION if force.rotation else {})
    watched = force.conserves_energy or force.rotation is not None
    return {
        name: replace(
            quantity,
            units=units.of(quantity.units),
            advise=advise if name == ENERGY_ERROR else None,
        )
        for name, quantity in found.items()
        if watched or name != ENERGY_ERROR
    }


def jacobi_integral(values: Values, rotation: Rotation) -> float:
    """Return the total energy less the speed of a rotation times the angular momentum about it."""
    momentum = np.asarray(values["momentum"])
    about_origin = np.asarray(values["angular_momentum"])[2]
    about_axis = about_origin - (rotation.x * momentum[1] - rotation.y * momentum[0])
    return float(values["total_energy"] - rotation.speed * about_axis)


def with_error(
    values: Values, force: Conserving, first: float | None
) -> tuple[Values, float | None]:
    """Return quantities with the change of the energy or Jacobi's integral, and its first value.

    Parameters
    ----------
    values : mapping of str to float or tuple
        As `measure` returns them.
    force : Conserving
    first : float or None
        The energy of the initial state; None if `values` are its.
    """
    if force.rotation is not None:
        energy = jacobi_integral(values, force.rotation)
        values = {**values, JACOBI: energy}
    elif force.conserves_energy:
        energy = float(np.asarray(values["total_energy"]))
    else:
        return values, first
    first = energy if first is None else first
    change = energy - first
    return {**values, ENERGY_ERROR: change / abs(first) if first else change}, first


def measure(
    own: Bodies, potential: NDArray[np.float64], number: int, communicator: Communicator
) -> Values:
    """Return the global quantities, except the energy error, on every rank.

    Parameters
    ----------
    own : Bodies
        This rank's n bodies; n may be 0.
    potential : (n,) array of float64
        The potential at them, in units of velocity squared.
    number : int
        Bodies of all ranks.
    communicator : Communicator
        Every rank calls together.
    """
    if communicator.size == 1 and number <= MOST_FEW:
        sums = sums_of_few(own, potential)
        if sums is not None:
            return _values(sums, partial(radii_of_few, own))

    def terms(first: int, last: int) -> NDArray[np.float64]:
        return terms_of(own.part(first, last), potential[first:last])

    def radii(centre: Sequence[float], percents: Sequence[int]) -> list[float]:
        distances = _distances(own.position, centre)
        return reproducible_quantiles(distances, own.mass, percents, number, communicator)

    sums = sum_of(MadeInPieces(terms, len(own)), number, communicator).tolist()
    return _values(sums, radii)


def measure_many(own: Measures, number: int, communicator: Communicator) -> Values:
    """Measure many bodies on their device, given their measures; returns what `measure` does."""

    def radii(centre: Sequence[float], percents: Sequence[int]) -> list[float]:
        return quantiles_of(own.about(centre), percents, number, communicator)

    return _values(sum_of(own, number, communicator).tolist(), radii)


def _values(sums: list[float], radii: Radii) -> Values:
    """Return the quantities from the sums, and from a function that finds radii."""
    total, kinetic, potential_energy = sums[:3]
    centre = [value / total for value in sums[3:6]] if total > 0 else sums[3:6]
    found = radii(centre, list(RADII.values())) if total > 0 else [math.nan] * len(RADII)
    return {
        "kinetic_energy": kinetic,
        "potential_energy": potential_energy,
        "total_energy": kinetic + potential_energy,
        "momentum": tuple(sums[6:9]),
        "angular_momentum": tuple(sums[9:12]),
        "center_of_mass": tuple(centre),
        "virial_ratio": 2 * kinetic / abs(potential_energy) if potential_energy else math.nan,
        **dict(zip(RADII, found, strict=True)),
    }


def terms_of(own: Bodies, potential: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what each body adds to the sums, an (n, 12) array.

    Few calls of NumPy: with few bodies they take longer than the numbers.
    """
    weight = own.mass[:, None]
    half = 0.5 * own.mass
    terms = np.empty((len(own), 12))
    terms[:, 0] = own.mass
    terms[:, 1] = half * _squares(own.velocity)
    terms[:, 2] = half * potential
    terms[:, 3:6] = weight * own.position
    terms[:, 6:9] = weight * own.velocity
    terms[:, 9:12] = weight * _cross(own.position, own.velocity)
    return terms


def _distances(position: NDArray[np.float64], centre: Sequence[float]) -> NDArray[np.float64]:
    """Return the distances of positions from a centre, piece by piece to save memory."""
    distances = np.empty(len(position))
    for first in range(0, len(position), BLOCK):
        part = slice(first, first + BLOCK)
        distances[part] = np.sqrt(_squares(position[part] - centre))
    return distances


def _squares(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the squares of the lengths of rows."""
    x, y, z = vectors.T
    squares: NDArray[np.float64] = x * x + y * y + z * z
    return squares


def _cross(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the cross products of rows; NumPy's own takes five times as long for few."""
    x, y, z = first.T
    u, v, w = second.T
    product = np.empty_like(first)
    product[:, 0] = y * w - z * v
    product[:, 1] = z * u - x * w
    product[:, 2] = x * v - y * u
    return product
