"""Sizes of the units of a run, for formats that say them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Units:
    """Sizes of the units of a run.

    Attributes
    ----------
    text : str
        What a person reads of them.
    length, mass, time : float
        In cm, g and s.
    """

    text: str
    length: float
    mass: float
    time: float

    @property
    def velocity(self) -> float:
        """Return the unit of velocity in cm/s."""
        return self.length / self.time


CGS = Units("cm, g, cm/s", 1.0, 1.0, 1.0)


def units_in(attributes: Mapping[str, Any]) -> Units | None:
    """Return the units that the attributes of a file tell; None where they tell none."""
    names = ("unit_length_in_m", "unit_mass_in_kg", "unit_time_in_s")
    if any(name not in attributes for name in names):
        return None
    length, mass, time = (float(attributes[name]) for name in names)
    return Units(str(attributes.get("units", "")), 100 * length, 1000 * mass, time)
