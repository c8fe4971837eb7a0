"""The key `obstacles` of a fluid's configuration: solids in it, their motion and their walls.

Lengths are in units of the box, whose longest edge has length 1. What needs no file is checked with
the configuration (`faults`), files when the obstacles are made (`obstacles_of`).
"""

import os.path
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, field_validator
from pydantic_core import InitErrorDetails

from hybrid_nbody.config.sections import ExclusiveSection, Section, fault
from hybrid_nbody.config.values import Allowed, InputFile, InputFileMark, Line
from hybrid_nbody.errors import InputError, in_one_message
from hybrid_nbody.files.functions import BadFunctionError, load_function
from hybrid_nbody.fluid import obstacles as solids
from hybrid_nbody.fluid.config_values import BoundedPositive, BoundedVector, Vector
from hybrid_nbody.fluid.obstacles.base import REST, Obstacle, Points, name_in_tables
from hybrid_nbody.fluid.obstacles.function import Shape, obstacle_of
from hybrid_nbody.fluid.obstacles.images import CLOSED, Periodic, images_of
from hybrid_nbody.fluid.obstacles.mask import read_mask, triangles_of
from hybrid_nbody.fluid.obstacles.stl import read_stl

__all__ = ["ObstacleSection", "Obstacles", "faults", "obstacles_of"]

Cells = tuple[int, int, int]
PARTS = np.stack(np.meshgrid(*[[-0.5, 0.5]] * 3, indexing="ij"), axis=-1).reshape(8, 3)
"""The middles of the eight parts of a block, in halves of its edges."""

MESH = "the name of an STL file, or a mapping of the keys file, scale, orientation, offset"
MOTION = ("velocity", "rotation", "wall", "name")
"""Keys that every obstacle has."""

DEGREES = "the direction is the axis, the length the angle in degrees."


class Sphere(Section):
    """A ball."""

    centre: BoundedVector = Field(description="Its centre.")
    radius: BoundedPositive = Field(description="Its radius.")


class Box(ExclusiveSection):
    """A box, turned or not."""

    exactly_one = (("low", "centre"), ("high", "size"))
    at_most_one = (("low", "size"), ("high", "centre"), ("low", "orientation"))

    low: BoundedVector | None = Field(
        None, description="Its lowest corner. Give either low and high, or centre and size."
    )
    high: BoundedVector | None = Field(None, description="Its highest corner.")
    centre: BoundedVector | None = Field(None, description="Its centre.")
    size: BoundedVector | None = Field(None, description="Its edges, each greater than 0.")
    orientation: BoundedVector | None = Field(
        None, description=f"How it is turned about its centre: {DEGREES}"
    )

    @field_validator("high")
    @classmethod
    def _above_low(cls, high: Any, info: ValidationInfo) -> Any:
        """Refuse a box without volume."""
        low = info.data.get("low")
        if low is None or high is None:
            return high
        if any(top <= bottom for bottom, top in zip(low, high, strict=True)):
            raise ValueError("must be greater than low along each axis")
        return high

    @field_validator("size")
    @classmethod
    def _positive(cls, size: Any) -> Any:
        """Refuse a box without volume."""
        if size is not None and min(size) <= 0:
            raise ValueError("must be greater than 0 along each axis")
        return size


class Cylinder(ExclusiveSection):
    """A round cylinder, with flat ends or without end."""

    exactly_one = (("start", "centre"), ("end", "axis"))
    at_most_one = (("start", "axis"), ("end", "centre"))

    start: BoundedVector | None = Field(
        None,
        description="The middle of one end. Give either start and end, or centre and axis.",
    )
    end: BoundedVector | None = Field(None, description="The middle of the other end.")
    centre: BoundedVector | None = Field(
        None, description="A point of the axis of one without end."
    )
    axis: Vector | None = Field(None, description="Its direction, of any length but 0.")
    radius: BoundedPositive = Field(description="Its radius.")

    @field_validator("end")
    @classmethod
    def _elsewhere(cls, end: Any, info: ValidationInfo) -> Any:
        """Refuse a cylinder without length."""
        if end is not None and end == info.data.get("start"):
            raise ValueError("must differ from start")
        return end

    @field_validator("axis")
    @classmethod
    def _direction(cls, axis: Any) -> Any:
        """Refuse an axis without direction."""
        if axis is not None and not any(axis):
            raise ValueError("must not be 0 along all axes")
        return axis


class Mesh(Section):
    """A file of triangles."""

    file: InputFile = Field(
        description="An STL file, binary or text, whose surface is closed. A relative path starts "
        "at the folder of the YAML file."
    )
    scale: BoundedPositive = Field(1.0, description="What its lengths are multiplied by.")
    orientation: BoundedVector = Field(
        REST, description=f"How it is then turned about the origin: {DEGREES}"
    )
    offset: BoundedVector = Field(REST, description="How far it is then moved.")


def _in_file(value: Any) -> Any:
    """Take the name of a file for a mapping with that key."""
    return {"file": value} if isinstance(value, str) else value


def _named_function(value: str) -> str:
    """Refuse what is not a file of Python and a name in it."""
    if not value.isprintable() or not re.fullmatch(r".+\.py:[A-Za-z_]\w*", value):
        raise ValueError()
    return os.path.expanduser(value)


PythonFunction = Annotated[
    str,
    AfterValidator(_named_function),
    InputFileMark(),
    Allowed("text", "FILE.py:FUNCTION or module:function"),
]


class ObstacleSection(ExclusiveSection):
    """A solid in the fluid."""

    exactly_one = (("sphere", "box", "cylinder", "mesh", "mask", "python"),)

    sphere: Sphere | None = Field(None, description="A ball. Give one shape for each obstacle.")
    box: Box | None = Field(None, description="A box, turned or not.")
    cylinder: Cylinder | None = Field(None, description="A round cylinder.")
    mesh: Annotated[Mesh, BeforeValidator(_in_file), Allowed("text or section", MESH)] | None = (
        Field(None, description="A closed surface of triangles.")
    )
    mask: InputFile | None = Field(
        None,
        description="A file of NumPy (.npy) with an array of the shape (nz, ny, nx): true or 1 in "
        "solid cells, whose faces are closed. With shares between 0 and 1 the surface is smooth: "
        "there the share, interpolated between centres of cells, is one half.",
    )
    python: PythonFunction | None = Field(
        None,
        description="A function of Python, FILE.py:FUNCTION; module:function is the same with the "
        "file module.py, or an installed module. Without parameters it returns an Obstacle; of "
        "points (n, 3), or of points and a time, it returns their signed distances (n), negative "
        "in the solid. The file is run: take none that you would not run.",
    )
    wall: Literal["no-slip", "free-slip"] = Field(
        "no-slip",
        description="no-slip: the fluid sticks to its surface; free-slip: it slides along it.",
    )
    velocity: Vector = Field(
        REST, description="Its velocity, in units of length in a unit of time."
    )
    rotation: Vector = Field(
        REST,
        description="Its angular velocity about its centre: the direction is the axis, the length "
        "the angle in radians in a unit of time. The centre of a mesh or a mask is that of the "
        "box along the axes that just holds it, that of a function the centre of the fluid's box.",
    )
    name: Line = Field("", description="A name for tables and messages; no two have the same.")

    @property
    def shape(self) -> str:
        """Return the key of its shape."""
        return next(key for key in self.exactly_one[0] if getattr(self, key) is not None)

    @property
    def moves(self) -> bool:
        """Return whether it is not at rest."""
        return self.velocity != REST or self.rotation != REST


Obstacles = Annotated[
    tuple[ObstacleSection, ...],
    Allowed(
        "list",
        "a list of obstacles, each a mapping of the keys "
        f"{', '.join(ObstacleSection.model_fields)}",
    ),
]
"""The value of the key: obstacles in the order of the file."""


# --- checks ---------------------------------------------------------------------------------------


def faults(
    sections: Sequence[ObstacleSection], cells: Cells, periodic: Periodic = CLOSED
) -> Iterator[InitErrorDetails]:
    """Yield a fault for each obstacle that cannot be in a grid; files are not read.

    Parameters
    ----------
    sections : sequence of ObstacleSection
    cells : tuple of int
        nx, ny, nz of the grid.
    periodic : tuple of bool
        Axes along which the box repeats.
    """
    names = [name_in_tables(section.name, index) for index, section in enumerate(sections)]
    for index, section in enumerate(sections):
        if names[index] in names[:index]:
            text = f"another obstacle is called {names[index]} in tables too; take another name"
            yield fault(("obstacles", index, "name"), section.name, text)
        is_plain = section.shape not in FROM_FILES
        if is_plain and _is_outside(_made(section, cells), cells, periodic):
            value = getattr(section, section.shape).model_dump(exclude_none=True)
            path = ("obstacles", index, section.shape)
            yield fault(path, value, _outside(cells))


def obstacles_of(
    sections: Sequence[ObstacleSection], cells: Cells, periodic: Periodic = CLOSED
) -> tuple[Obstacle, ...]:
    """Return the obstacles that a configuration describes.

    Parameters
    ----------
    sections : sequence of ObstacleSection
    cells : tuple of int
        nx, ny, nz of the grid.
    periodic : tuple of bool
        Axes along which the box repeats.

    Raises
    ------
    InputError
        With a line for each file that cannot be used.
    """
    made = []
    wrong = []
    for index, section in enumerate(sections):
        try:
            made.append(_made(section, cells))
            if section.shape in FROM_FILES and _is_outside(made[-1], cells, periodic):
                raise InputError(_outside(cells))
        except InputError as error:
            wrong.append(f"obstacles[{index}].{section.shape}: {error}")
    if wrong:
        raise InputError(in_one_message(wrong))
    return tuple(made)


def _is_outside(obstacle: Obstacle, cells: Cells, periodic: Periodic) -> bool:
    """Return whether an obstacle at rest is wholly outside the box.

    The box is divided into blocks, and these again, as long as the signed distance at their middles
    leaves open whether the surface is in them; down to half a cell.
    """
    if obstacle.moves:
        return False
    if isinstance(obstacle, solids.Mesh):
        return _is_apart(obstacle.bounds, cells, periodic)
    edges = np.array(cells) / max(cells)
    box = (float(edges[0]), float(edges[1]), float(edges[2]))
    images = images_of([obstacle], box, periodic, 0.0)
    return all(_is_beyond(image.distance, edges, 0.5 / max(cells)) for image in images)


def _is_apart(bounds: tuple[Points, Points], cells: Cells, periodic: Periodic) -> bool:
    """Return whether a box is beside that of the fluid along an axis that is not periodic."""
    edges = np.array(cells) / max(cells)
    beside = (bounds[0] > edges) | (bounds[1] < 0.0)
    return bool((beside & ~np.array(periodic)).any())


def _is_beyond(distance: Any, edges: Points, smallest: float) -> bool:
    """Return whether a signed distance is positive all over the box."""
    middles = 0.5 * edges[None]
    half = 0.5 * edges
    while len(middles):
        distances = distance(middles)
        if distances.min() < 0.0 or half.max() < smallest:
            return False
        near = middles[distances <= np.sqrt((half * half).sum())]
        middles = (near[:, None] + PARTS * half).reshape(-1, 3)
        half = 0.5 * half
    return True


def _outside(cells: Cells) -> str:
    """Return what is wrong with an obstacle outside the box."""
    box = ", ".join(f"{number / max(cells):.4g}" for number in cells)
    return f"is wholly outside the box, which reaches from 0 to [{box}]"


# --- obstacles of sections ------------------------------------------------------------------------


def _made(section: ObstacleSection, cells: Cells) -> Obstacle:
    """Return the obstacle of a section."""
    motion = {key: getattr(section, key) for key in MOTION}
    value = getattr(section, section.shape)
    if section.shape == "python":
        return _from_function(value, motion, cells)
    if section.shape in FROM_FILES:
        return _from_file(value, motion, cells)
    obstacle: Obstacle = MAKERS[section.shape](value, motion)
    return obstacle


def _sphere(section: Sphere, motion: dict[str, Any]) -> Obstacle:
    return solids.Sphere(section.centre, section.radius, **motion)


def _box(section: Box, motion: dict[str, Any]) -> Obstacle:
    orientation = section.orientation or REST
    if section.centre is not None and section.size is not None:
        return solids.Box(section.centre, section.size, orientation, **motion)
    assert section.low is not None and section.high is not None  # one of the two pairs is given
    plain = solids.Box.between(section.low, section.high)
    return solids.Box(plain.centre, plain.size, **motion)


def _cylinder(section: Cylinder, motion: dict[str, Any]) -> Obstacle:
    if section.centre is not None and section.axis is not None:
        return solids.Cylinder(section.centre, section.axis, section.radius, **motion)
    assert section.start is not None and section.end is not None  # one of the two pairs is given
    plain = solids.Cylinder.from_to(section.start, section.end, section.radius)
    return solids.Cylinder(plain.centre, plain.axis, plain.radius, plain.extent, **motion)


MAKERS: dict[str, Any] = {"sphere": _sphere, "box": _box, "cylinder": _cylinder}
"""What makes an obstacle of each shape that needs no file, from its section and its motion."""

DEFAULTS = {key: ObstacleSection.model_fields[key].default for key in MOTION}

FROM_FILES = ("mesh", "mask", "python")
"""Shapes that are read from files."""


def _from_file(value: Any, motion: dict[str, Any], cells: Cells) -> Obstacle:
    """Return the obstacle that a file holds."""
    file = value.file if isinstance(value, Mesh) else value
    try:
        if isinstance(value, Mesh):
            placed = (value.scale, value.orientation, value.offset)
            return solids.Mesh.placed(read_stl(file), *placed, **motion)
        return solids.Mesh(triangles_of(read_mask(file, cells)), **motion)
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{file} cannot be read: {reason}") from None
    except ValueError as error:
        raise InputError(f"{file} {error}") from None


def _from_function(value: str, motion: dict[str, Any], cells: Cells) -> Obstacle:
    """Return the obstacle that a function describes."""
    file, name = value.rsplit(":", 1)
    given = {key: item for key, item in motion.items() if item != DEFAULTS[key]}
    x, y, z = (0.5 * number / max(cells) for number in cells)
    try:
        made = obstacle_of(load_function(file, name), (x, y, z), **given)
        return replace(made, origin=value) if isinstance(made, Shape) else made
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{file} cannot be read: {reason}") from None
    except BadFunctionError as error:
        raise InputError(f"{value} {error}") from None
