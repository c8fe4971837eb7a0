"""What makes the bodies of each kind: one function for each value of ``bodies.kind``."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a module is loaded for the kinds that it makes: SciPy takes its time
    from hybrid_nbody.nbody.bodies import Bodies
    from hybrid_nbody.nbody.drawn import DrawnBodies

Keys = dict[str, Any]

PACKAGE = "hybrid_nbody.nbody"

DRAWN_IN_MOTION = {
    "plummer": "initial_conditions:drawn_plummer",
    "uniform-sphere": "initial_conditions:drawn_uniform_sphere",
    "hernquist": "initial.models:drawn_hernquist",
    "nfw": "initial.models:drawn_nfw",
    "king": "initial.models:drawn_king",
    "galaxy": "initial.galaxy:drawn_galaxy",
    "binaries": "initial.orbits:drawn_binaries",
}
"""Bodies drawn at random, whose velocities depend on the gravitational constant."""

DRAWN_AT_REST = {
    "cold-sphere": "initial_conditions:drawn_cold_sphere",
    "random-box": "initial_conditions:drawn_random_box",
    "random-square": "initial_conditions:drawn_random_square",
}
"""Bodies drawn at random, at rest."""

ORBITS = {
    "two-body": "initial_conditions:two_body",
    "figure-eight": "initial_conditions:figure_eight",
    "lagrange-triangle": "initial_conditions:lagrange_triangle",
    "solar-system": "initial.orbits:solar_system",
}
"""A few bodies, given by formulas."""


def made(
    kind: str, keys: Keys, seed: int, G: float
) -> "dict[str, Bodies] | dict[str, DrawnBodies]":
    """Return the bodies of a kind, around the origin, in one or several parts.

    Parameters
    ----------
    kind : str
    keys : dict
        Those of the kind, with their values.
    seed : int
        Of the random numbers.
    G : float
        Gravitational constant.

    Returns
    -------
    dict
        The parts by their names; the name of one that is the whole is empty.
    """
    arguments = dict(keys)
    if kind not in ORBITS:
        arguments["seed"] = seed
    if kind not in DRAWN_AT_REST:
        arguments["G"] = G
    module, function = (DRAWN_IN_MOTION | DRAWN_AT_REST | ORBITS)[kind].split(":")
    found = getattr(import_module(f"{PACKAGE}.{module}"), function)(**arguments)
    return found if isinstance(found, dict) else {"": found}
