"""Energies, momenta and the shape of the system, with bits that do not depend on the number of ranks."""

import numpy as np

from hybrid_nbody.parallel.sums import reproducible_median, reproducible_sum
from hybrid_nbody.simulation.model import Quantity

QUANTITIES = {
    "kinetic_energy": Quantity("mass length^2 / time^2", "sum of m v^2 / 2"),
    "potential_energy": Quantity(
        "mass length^2 / time^2", "sum of m phi / 2, softened, each pair once"
    ),
    "total_energy": Quantity("mass length^2 / time^2", "kinetic plus potential energy"),
    "relative_energy_error": Quantity("1", "(E - E0) / |E0|, E0 the energy of the initial state"),
    "momentum": Quantity("mass length / time", "sum of m v", 3),
    "angular_momentum": Quantity("mass length^2 / time", "sum of m x cross v", 3),
    "center_of_mass": Quantity("length", "sum of m x / sum of m", 3),
    "virial_ratio": Quantity("1", "2 K / |W|; 1 in equilibrium"),
    "half_mass_radius": Quantity(
        "length", "radius about the centre of mass that holds half the mass"
    ),
}


def measure(
    position, velocity, mass, potential, number, communicator
) -> dict[str, float | tuple[float, ...]]:
    """Return the global quantities, except the energy error, on every rank.

    Parameters
    ----------
    position, velocity : (n, 3) array of float64
        This rank's bodies; n may be 0.
    mass, potential : (n,) array of float64
        Their masses and the potential at them.
    number : int
        Bodies of all ranks.
    communicator : Communicator
        Every rank calls together.
    """
    terms = np.column_stack(
        [
            mass,
            0.5 * mass * np.sum(velocity**2, axis=1),
            0.5 * mass * potential,
            mass[:, None] * position,
            mass[:, None] * velocity,
            mass[:, None] * np.cross(position, velocity),
        ]
    )
    sums = reproducible_sum(terms, number, communicator)
    total, kinetic, potential_energy = sums[:3].tolist()
    center = sums[3:6] / total if total > 0 else sums[3:6]
    radius = np.sqrt(np.sum((position - center) ** 2, axis=1))
    return {
        "kinetic_energy": kinetic,
        "potential_energy": potential_energy,
        "total_energy": kinetic + potential_energy,
        "momentum": tuple(sums[6:9].tolist()),
        "angular_momentum": tuple(sums[9:12].tolist()),
        "center_of_mass": tuple(center.tolist()),
        "virial_ratio": 2 * kinetic / abs(potential_energy) if potential_energy else np.nan,
        "half_mass_radius": reproducible_median(radius, mass, number, communicator)
        if total > 0
        else np.nan,
    }
