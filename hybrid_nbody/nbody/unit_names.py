"""Units that people name: their sizes in SI, and the units of other quantities that follow.

Sources: the astronomical unit of IAU 2012 resolution B2; solar, terrestrial and Jovian radii and
GM of IAU 2015 resolution B3, the parsec of B2; G of CODATA 2018; years of 365.25 days. Names are
those of astropy.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

G_SI = 6.67430e-11
"""Gravitational constant in m^3 / (kg s^2), CODATA 2018."""

AU = 149597870700.0
PARSEC = AU * 648000 / math.pi
DAY = 86400.0
YEAR = 365.25 * DAY
SUN = 1.3271244e20 / G_SI
EARTH = 3.986004e14 / G_SI
JUPITER = 1.2668653e17 / G_SI

PREFIXES = {
    **{"n": 1e-9, "u": 1e-6, "m": 1e-3, "c": 1e-2, "d": 0.1},
    **{"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15},
}


def _with_prefixes(units: Mapping[str, float], more: Mapping[str, float]) -> dict[str, float]:
    """Return units alone and after each prefix; `more` have none, and win."""
    scaled = {
        prefix + name: scale * size
        for name, size in units.items()
        for prefix, scale in PREFIXES.items()
    }
    return scaled | dict(units) | dict(more)


def _aliases(**sizes: float) -> dict[str, float]:
    """Return the three names that astropy has for a body's mass or radius: Msun, M_sun, solMass."""
    found: dict[str, float] = {}
    for name, size in sizes.items():
        kind, _, body = name.partition("_")
        found |= {name: size, f"{kind}{body}": size}
    return found


LENGTHS = _with_prefixes(
    {"m": 1.0, "pc": PARSEC, "lyr": 299792458.0 * YEAR},
    {"AU": AU, "au": AU, "solRad": 6.957e8}
    | _aliases(R_sun=6.957e8, R_earth=6.3781e6, R_jup=7.1492e7),
)
"""Metres of each unit of length."""

MASSES = _with_prefixes(
    {"g": 1e-3},
    {"t": 1000.0, "solMass": SUN} | _aliases(M_sun=SUN, M_earth=EARTH, M_jup=JUPITER),
)
"""Kilograms of each unit of mass."""

TIMES = _with_prefixes(
    {"s": 1.0, "yr": YEAR},
    {"min": 60.0, "h": 3600.0, "hr": 3600.0, "d": DAY, "day": DAY, "wk": 7 * DAY},
)
"""Seconds of each unit of time."""

READABLE_TIMES = ("Gyr", "Myr", "kyr", "yr", "d", "h", "s")
"""In which a unit of time is said, the longest first."""

NUMBER = re.compile(r"\s*(?:(\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)\s*\*?\s+)?(\S.*?)\s*")
PER = re.compile(r"(\w+)\s*(?:/\s*(\w+)|\s(\w+)(?:\^|\*\*)?-1)")


def length_in_m(text: str) -> float:
    """Return the metres of a length such as ``pc`` or ``10 kpc``; ValueError for others."""
    return _size(text, LENGTHS, "length", "pc, kpc, AU, lyr, km, m or R_sun")


def mass_in_kg(text: str) -> float:
    """Return the kilograms of a mass such as ``Msun`` or ``1e10 Msun``."""
    return _size(text, MASSES, "mass", "Msun, M_earth, M_jup, kg or g")


def time_in_s(text: str) -> float:
    """Return the seconds of a time such as ``Myr``."""
    return _size(text, TIMES, "time", "Myr, Gyr, yr, d, h or s")


def velocity_in_m_per_s(text: str) -> float:
    """Return the metres a second of a velocity such as ``km/s``, ``100 km/s`` or ``pc / Myr``."""
    number, name = _parts(text)
    parts = PER.fullmatch(name)
    length = parts[1] if parts else ""
    time = (parts[2] or parts[3]) if parts else ""
    if length not in LENGTHS or time not in TIMES:
        raise ValueError("must be a unit of velocity such as km/s, m/s, pc/Myr or AU/yr")
    return number * LENGTHS[length] / TIMES[time]


def _size(text: str, table: Mapping[str, float], what: str, examples: str) -> float:
    number, name = _parts(text)
    if name not in table:
        raise ValueError(
            f"must be a unit of {what} such as {examples}, with a prefix, or after a number"
        )
    return number * table[name]


def _parts(text: str) -> tuple[float, str]:
    """Return the number before a unit, 1 where there is none, and its name."""
    found = NUMBER.fullmatch(text)
    number = float(found[1]) if found and found[1] else 1.0
    if not 0 < number < math.inf:
        raise ValueError("must not begin with 0, nor with infinity")
    return number, found[2] if found else ""


@dataclass(frozen=True)
class UnitNames:
    """The names of the units of a run; by default what they measure.

    Attributes
    ----------
    length, mass, time, velocity : str
    """

    length: str = "length"
    mass: str = "mass"
    time: str = "time"
    velocity: str = "length / time"

    def of(self, dimension: str) -> str:
        """Return the unit of a quantity such as ``mass length / time``; others as they are."""
        if self == PLAIN:
            return dimension
        energy = f"{_held(self.mass)} ({self.velocity})^2"
        known = {
            "length": self.length,
            "mass": self.mass,
            "time": self.time,
            "length / time": self.velocity,
            "mass length / time": f"{_held(self.mass)} {_held(self.velocity)}",
            "mass length^2 / time": " ".join(map(_held, (self.mass, self.length, self.velocity))),
            "mass length^2 / time^2": energy,
        }
        return known.get(dimension, dimension)


PLAIN = UnitNames()


def _held(unit: str) -> str:
    """Return a unit in brackets where it is made of several."""
    return f"({unit})" if re.search(r"[ /]", unit) else unit


def readable_time(seconds: float) -> str:
    """Return a time in the longest unit of which it has at least a tenth: ``0.97779 Myr``."""
    fitting = (name for name in READABLE_TIMES if seconds >= 0.1 * TIMES[name])
    name = next(fitting, "s")
    return f"{seconds / TIMES[name]:.6g} {name}"
