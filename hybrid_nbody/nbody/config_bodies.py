"""The kinds of bodies in a configuration, and lists of them."""

from typing import Annotated, Literal

from annotated_types import Lt
from pydantic import AfterValidator, Discriminator, Field, Tag

from hybrid_nbody.config.values import (
    LIST,
    ONE,
    Allowed,
    InOneMessage,
    InputFile,
    NonNegative,
    Positive,
    form,
)
from hybrid_nbody.nbody.config_galaxies import (
    BinariesBodies,
    GalaxyBodies,
    HernquistBodies,
    KingBodies,
    NFWBodies,
    PythonBodies,
    SolarSystemBodies,
)
from hybrid_nbody.nbody.config_placement import BodyCount, PlacedBodies

STANDARD_SCALE = 0.5890486225480862
"""Scale length of a Plummer sphere in standard units, 3 pi / 16."""

Dimensions = Annotated[Literal[2, 3], InOneMessage, Allowed("choice", "2 or 3")]
TwoMasses = Annotated[
    tuple[Positive, Positive], Allowed("list", "a list of two numbers, each greater than 0")
]


class PlummerBodies(PlacedBodies):
    """A Plummer sphere in virial equilibrium, centred and at rest as a whole.

    By default it is in standard units: total mass 1, total energy -1/4 (G = 1).
    """

    kind: Literal["plummer"] = Field(
        description="A Plummer sphere, the standard model of a star cluster."
    )
    n: BodyCount = Field(description="Number of bodies.")
    mass: Positive = Field(1.0, description="Total mass; each body has the same share.")
    scale: Positive = Field(
        STANDARD_SCALE,
        description="Scale length, in units of length; half of the mass is within 1.3 times this.",
        json_schema_extra={"default": "3 pi / 16"},
    )


class UniformSphereBodies(PlacedBodies):
    """A sphere of constant density with random velocities that fit a given virial ratio."""

    kind: Literal["uniform-sphere"] = Field(description="A uniform sphere with random velocities.")
    n: BodyCount = Field(description="Number of bodies.")
    mass: Positive = Field(
        1.0, description="Total mass of the sphere; each body has the same share."
    )
    radius: Positive = Field(1.0, description="Radius of the sphere, in units of length.")
    virial_ratio: NonNegative = Field(
        1.0,
        description="Twice the kinetic over the absolute potential energy, 2K/|W|: 1 is virial "
        "equilibrium, less than 1 contracts at first, more than 1 expands.",
    )


class ColdSphereBodies(PlacedBodies):
    """A sphere of constant density at rest.

    It collapses within one free-fall time, 1.1107 sqrt(R^3 / (G M)).
    """

    kind: Literal["cold-sphere"] = Field(description="A uniform sphere at rest, for cold collapse.")
    n: BodyCount = Field(description="Number of bodies.")
    mass: Positive = Field(
        1.0, description="Total mass of the sphere; each body has the same share."
    )
    radius: Positive = Field(1.0, description="Radius of the sphere, in units of length.")


class RandomBoxBodies(PlacedBodies):
    """Bodies scattered evenly in a cube around the origin, the usual set for measuring speed."""

    kind: Literal["random-box"] = Field(description="Bodies scattered evenly in a cube.")
    n: BodyCount = Field(description="Number of bodies.")
    half_width: Positive = Field(
        1.0, description="Half the edge of the cube: coordinates lie within plus and minus this."
    )
    mass: Positive = Field(1.0, description="Mass of each body (not of all together).")


class RandomSquareBodies(PlacedBodies):
    """Bodies at rest, scattered evenly in the unit square [0, 1]^2 of the plane z = 0.

    Their total mass is 1.
    """

    kind: Literal["random-square"] = Field(
        description="Bodies scattered evenly in the unit square, at rest."
    )
    n: BodyCount = Field(description="Number of bodies; each has the mass 1/n.")
    dimensions: Annotated[Literal[2], InOneMessage, Allowed("choice", "2")] = Field(
        2, description="2: these bodies stay in the plane z = 0."
    )


class TwoBodies(PlacedBodies):
    """Two bodies on a Kepler orbit around their common centre of mass.

    For comparison with the exact solution.
    """

    kind: Literal["two-body"] = Field(description="Two bodies on a Kepler orbit.")
    masses: TwoMasses = Field((1.0, 1.0), description="The two masses.")
    semi_major_axis: Positive = Field(
        1.0, description="Semi-major axis of the relative orbit, in units of length."
    )
    eccentricity: Annotated[NonNegative, Lt(1)] = Field(
        0.0,
        description="0 is a circle; towards 1 the ellipse grows longer and needs a smaller "
        "time.dt.",
    )


class FigureEightBodies(PlacedBodies):
    """Three equal masses that chase one another along a figure eight.

    Each is back after 6.3259 units of time (G = 1).
    """

    kind: Literal["figure-eight"] = Field(description="Three bodies on the figure-eight orbit.")


class LagrangeTriangleBodies(PlacedBodies):
    """Three equal masses at the corners of an equilateral triangle that turns as a rigid body."""

    kind: Literal["lagrange-triangle"] = Field(
        description="Three bodies on a turning equilateral triangle."
    )
    side: Positive = Field(1.0, description="Side of the triangle, in units of length.")
    mass: Positive = Field(1.0, description="Mass of each of the three bodies.")


class FileBodies(PlacedBodies):
    """Bodies read from a file: CSV with the header row `x,y,z,vx,vy,vz,m`, CSV of bodies in a
    plane, `x,y,vx,vy,m`, a trajectory or checkpoint of this program (HDF5), or NumPy npz."""

    kind: Literal["file"] = Field(description="Bodies read from a file.")
    path: InputFile = Field(
        description="The file. In a YAML file, a relative path starts at the folder of that YAML "
        "file; with --set, at the folder in which the command runs."
    )
    dimensions: Dimensions = Field(
        3,
        description="2: every body must lie in the plane z = 0 and move within it, where it then "
        "stays exactly; a file with others is refused.",
    )


Kind = Annotated[
    PlummerBodies
    | UniformSphereBodies
    | ColdSphereBodies
    | RandomBoxBodies
    | RandomSquareBodies
    | TwoBodies
    | FigureEightBodies
    | LagrangeTriangleBodies
    | HernquistBodies
    | NFWBodies
    | KingBodies
    | GalaxyBodies
    | BinariesBodies
    | SolarSystemBodies
    | FileBodies
    | PythonBodies,
    Field(discriminator="kind"),
]


def _not_empty(components: tuple[Kind, ...]) -> tuple[Kind, ...]:
    """Refuse a list of nothing."""
    if not components:
        raise ValueError()
    return components


Components = Annotated[tuple[Kind, ...], AfterValidator(_not_empty)]
AllBodies = Annotated[
    Annotated[Kind, Tag(ONE)] | Annotated[Components, Tag(LIST)], Discriminator(form)
]
"""One kind of bodies, or a list of them, which are together one set."""
