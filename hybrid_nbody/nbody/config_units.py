"""The part of the configuration of bodies that names their units."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationError

from hybrid_nbody.config.sections import ExclusiveSection
from hybrid_nbody.config.values import Line
from hybrid_nbody.nbody.unit_names import (
    G_SI,
    UnitNames,
    length_in_m,
    mass_in_kg,
    readable_time,
    time_in_s,
    velocity_in_m_per_s,
)

CLOSE = 1e-3
"""Relative difference up to which a gravitational constant fits the units: books round it."""


def _known(size: Callable[[str], float]) -> AfterValidator:
    """Return what refuses a unit whose size is not known."""

    def check(text: str) -> str:
        size(text)
        return text

    return AfterValidator(check)


class Units(ExclusiveSection):
    """The units of all numbers of the run, in the configuration and in files of bodies.

    gravity.G follows from them. Names are those of astropy, with prefixes, and after a number if
    need be: 1e10 Msun.
    """

    exactly_one = (("velocity", "time"),)

    length: Annotated[Line, _known(length_in_m)] = Field(
        description="Unit of length, such as pc, kpc, AU, km or m."
    )
    mass: Annotated[Line, _known(mass_in_kg)] = Field(
        description="Unit of mass, such as Msun, 1e10 Msun, M_earth or kg."
    )
    velocity: Annotated[Line, _known(velocity_in_m_per_s)] | None = Field(
        None,
        description="Unit of velocity, such as km/s; that of time is then length over velocity.",
    )
    time: Annotated[Line, _known(time_in_s)] | None = Field(
        None, description="Unit of time, such as Myr; that of velocity is then length over time."
    )

    @property
    def seconds(self) -> float:
        """Return the unit of time in seconds."""
        if self.time is not None:
            return time_in_s(self.time)
        assert self.velocity is not None  # exactly one of the two is given
        return length_in_m(self.length) / velocity_in_m_per_s(self.velocity)

    @property
    def G(self) -> float:
        """Return the gravitational constant in these units."""
        mass = mass_in_kg(self.mass)
        return G_SI * mass * self.seconds**2 / length_in_m(self.length) ** 3

    @property
    def names(self) -> UnitNames:
        """Return the names of the units."""
        over_time = f"{self.length}/{self.time}"
        over_velocity = f"{self.length}/({self.velocity})"
        return UnitNames(
            self.length, self.mass, self.time or over_velocity, self.velocity or over_time
        )

    @property
    def in_words(self) -> str:
        """Return the units, and how long that of time is."""
        names = self.names
        known = f"{names.length}, {names.mass}, {names.velocity}"
        return f"{known}; of time {names.time} = {readable_time(self.seconds)}"

    @property
    def attributes(self) -> dict[str, object]:
        """Return what files of the run say of the units."""
        return {
            "units": self.in_words,
            "time_units": self.names.time,
            "unit_length_in_m": length_in_m(self.length),
            "unit_mass_in_kg": mass_in_kg(self.mass),
            "unit_time_in_s": self.seconds,
        }


def with_constant(data: Any) -> Any:
    """Return the data of a configuration with the `gravity.G` of its units, unless it has one."""
    units = _units_in(data)
    gravity = data.get("gravity", {}) if isinstance(data, Mapping) else None
    if units is None or not isinstance(gravity, Mapping) or "G" in gravity:
        return data
    return {**data, "gravity": {**gravity, "G": units.G}}


def _units_in(data: Any) -> Units | None:
    """Return the units of a configuration; None if it has none, or wrong ones."""
    found = data.get("units") if isinstance(data, Mapping) else None
    try:
        return None if found is None else Units.model_validate(found)
    except ValidationError:
        return None  # the key itself is reported
