"""What every kind of bodies has in a configuration: a name, random numbers, a place and a speed."""

from typing import Annotated

from annotated_types import Ge, Le
from pydantic import Field

from hybrid_nbody.config.sections import Section
from hybrid_nbody.config.values import Allowed, AtLeastOne, Line, Number, WholeNumber

MOST_BODIES = 10**9

BodyCount = Annotated[AtLeastOne, Le(MOST_BODIES)]
Seed = Annotated[WholeNumber, Ge(0)]
Vector = Annotated[tuple[Number, Number, Number], Allowed("list", "a list of three numbers")]

NOWHERE = (0.0, 0.0, 0.0)


class PlacedBodies(Section):
    """Bodies that are made around the origin, then turned, moved and set in motion."""

    kind: str
    name: Line = Field("", description="A name that tells these bodies from the others of a list.")
    seed: Seed | None = Field(
        None,
        description="Seed of their random numbers. null: the seed of the run, plus the place in "
        "the list, counted from 0.",
    )
    rotation: Vector = Field(
        NOWHERE,
        description="Turns positions and velocities about the origin: the direction is the axis, "
        "the length the angle in degrees. [60, 0, 0] turns by 60 degrees about the x axis.",
    )
    offset: Vector = Field(
        NOWHERE, description="Added to the positions after the rotation, in units of length."
    )
    velocity: Vector = Field(
        NOWHERE, description="Added to the velocities after the rotation, in units of velocity."
    )
