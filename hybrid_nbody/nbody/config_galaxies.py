"""Kinds of bodies in equilibrium, on orbits, and of one's own, in a configuration."""

from typing import Annotated, Literal

from annotated_types import Ge, Gt, Le, Lt
from pydantic import AfterValidator, Field

from hybrid_nbody.config.values import (
    Allowed,
    AtLeastOne,
    InputFile,
    Line,
    NonNegative,
    Number,
    Positive,
)
from hybrid_nbody.nbody.config_placement import MOST_BODIES, BodyCount, PlacedBodies


def _even(number: int) -> int:
    """Refuse a body without another to go around."""
    if number % 2:
        raise ValueError("must be even, two for each binary")
    return number


def _ascending(ends: tuple[float, float]) -> tuple[float, float]:
    """Refuse a range whose end is before its beginning."""
    if ends[0] > ends[1]:
        raise ValueError("must be the smaller one first, then the larger one")
    return ends


EvenCount = Annotated[BodyCount, AfterValidator(_even)]
TwoOrMore = Annotated[AtLeastOne, Ge(2), Le(MOST_BODIES)]
Share = Annotated[Number, Gt(0), Lt(1)]
Axes = Annotated[
    tuple[Positive, Positive],
    AfterValidator(_ascending),
    Allowed("list", "a list of two numbers, each greater than 0"),
]


class HernquistBodies(PlacedBodies):
    """A Hernquist sphere in equilibrium, with isotropic velocities, at rest as a whole.

    Its density is proportional to 1 / (r (r + scale)^3), which has no edge: bodies are drawn from
    the inner 99 % of the mass, within 198 scale lengths.
    """

    kind: Literal["hernquist"] = Field(
        description="A Hernquist sphere, a model of an elliptical galaxy or of a bulge."
    )
    n: BodyCount = Field(description="Number of bodies.")
    mass: Positive = Field(1.0, description="Total mass; each body has the same share.")
    scale: Positive = Field(
        1.0,
        description="Scale length, in units of length; half of the mass is within 2.4 times this.",
    )


class NFWBodies(PlacedBodies):
    """A sphere of Navarro, Frenk & White with isotropic velocities, in equilibrium, at rest.

    Its density is proportional to sech(r / (concentration scale)) / (r (r + scale)^2): the factor
    sech cuts the model off smoothly, whose mass would be infinite.
    """

    kind: Literal["nfw"] = Field(description="An NFW sphere with a cut, a model of a dark halo.")
    n: BodyCount = Field(description="Number of bodies.")
    mass: Positive = Field(1.0, description="Total mass; each body has the same share.")
    scale: Positive = Field(1.0, description="Scale length, in units of length.")
    concentration: Annotated[Number, Ge(1), Le(1000)] = Field(
        10.0, description="Radius of the cut over the scale length."
    )


class KingBodies(PlacedBodies):
    """A King model in equilibrium, a cluster with an edge, at rest as a whole."""

    kind: Literal["king"] = Field(
        description="A King model, a model of a globular cluster, which has an edge."
    )
    n: BodyCount = Field(description="Number of bodies.")
    mass: Positive = Field(1.0, description="Total mass; each body has the same share.")
    scale: Positive = Field(1.0, description="Core (King) radius, in units of length.")
    central_potential: Annotated[Number, Ge(0.1), Le(15)] = Field(
        6.0,
        description="W0, the depth of the potential at the centre below that at the edge, in "
        "squares of the dispersion: the more, the farther the edge, at 4.7 core radii for 3, 18 "
        "for 6, and 131 for 9.",
    )


class GalaxyBodies(PlacedBodies):
    """An exponential disc in a Hernquist halo, both in equilibrium and at rest.

    The disc turns counter-clockwise about the z axis; its velocities are normal about the mean of
    the orbits that stray from circles. Those of the halo fit the potential of both. With a name,
    the bodies of the disc are named NAME/disc, those of the halo NAME/halo; the disc comes first.
    """

    kind: Literal["galaxy"] = Field(description="A galaxy: an exponential disc in a halo.")
    n: TwoOrMore = Field(description="Number of bodies, disc and halo together.")
    mass: Positive = Field(1.0, description="Mass of disc and halo together.")
    scale: Positive = Field(1.0, description="Scale length of the disc, in units of length.")
    disc_mass: Share = Field(0.1, description="Share of the mass in the disc.")
    disc_bodies: Share = Field(
        0.5, description="Share of the bodies in the disc; within each, all have the same mass."
    )
    height: Annotated[Number, Gt(0), Le(1)] = Field(
        0.1,
        description="Scale height of the disc, whose density falls as sech^2(z / height), in scale "
        "lengths of the disc.",
    )
    halo_scale: Annotated[Number, Gt(0), Le(1000)] = Field(
        3.0, description="Scale length of the halo, in scale lengths of the disc."
    )
    toomre_q: NonNegative = Field(
        1.5,
        description="Toomre's parameter of the disc at 2.5 scale lengths: below 1 it breaks up.",
    )


class BinariesBodies(PlacedBodies):
    """A Plummer sphere of binaries in virial equilibrium, centred.

    The bodies 2 k and 2 k + 1 go around each other, in any direction and at any time of their
    orbits. The logarithms of the semi-major axes are uniform.
    """

    kind: Literal["binaries"] = Field(description="A cluster of binaries.")
    n: EvenCount = Field(description="Number of bodies, twice that of binaries.")
    mass: Positive = Field(1.0, description="Total mass; each body has the same share.")
    scale: Positive = Field(1.0, description="Scale length of the cluster, in units of length.")
    semi_major_axes: Axes = Field(
        description="The smallest and the largest semi-major axis, in units of length."
    )
    max_eccentricity: Annotated[NonNegative, Lt(1)] = Field(
        0.9,
        description="Largest eccentricity; squares of eccentricities are uniform up to that of "
        "this (thermal).",
    )


class SolarSystemBodies(PlacedBodies):
    """The Sun and its eight planets at J2000.0, the Earth with its Moon as one body.

    Lengths are in astronomical units, masses in solar masses, the plane z = 0 is the ecliptic.
    gravity.G decides on the unit of time: with 39.476926 (4 pi^2) it is a year. Elements: Standish,
    approximate positions of the planets (JPL); masses: IAU 2009.
    """

    kind: Literal["solar-system"] = Field(description="The Sun and the eight planets.")


class PythonBodies(PlacedBodies):
    """Bodies that a function of one's own makes.

    It is called as function(n, seed) on one rank, and returns positions (n, 3), velocities (n, 3)
    and masses (n). The file is run: take none that you would not run. kind: python:module:function
    is the same with the file module.py, or an installed module.
    """

    kind: Literal["python"] = Field(description="Bodies made by a function of one's own.")
    path: InputFile = Field(
        description="The Python file with the function. In a YAML file, a relative path starts at "
        "the folder of that YAML file; with --set, at the folder in which the command runs."
    )
    function: Line = Field("bodies", description="Name of the function in that file.")
    n: BodyCount = Field(description="Number of bodies.")
