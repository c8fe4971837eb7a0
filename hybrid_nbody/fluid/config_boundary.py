"""The key `fluid.boundary`: words for the axes, or a mapping of the six faces of the box."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import ConfigDict, PlainValidator, ValidationError
from pydantic_core import InitErrorDetails

from hybrid_nbody.config.faults import did_you_mean
from hybrid_nbody.config.sections import Section, fault
from hybrid_nbody.config.values import Allowed
from hybrid_nbody.errors import InputError
from hybrid_nbody.fluid.config_face import (
    OLD_WORDS,
    WORDS,
    BadFace,
    Condition,
    Inflow,
    Moving,
    TableFile,
    Velocity,
    condition_of,
)
from hybrid_nbody.fluid.staggered.faces import NAMES, Face, Faces, half_periodic, without_outlet
from hybrid_nbody.fluid.staggered.profiles import (
    Expression,
    Parabolic,
    Profile,
    Table,
    Uniform,
    Vector,
)

KEYS = ("x-", "x+", "x", "y-", "y+", "y", "z-", "z+", "z", "all")
"""The keys of the mapping: a face, both faces of an axis, all others; a special one wins."""

DEFAULT = "free-slip"

POINTS_ALONG_AN_EDGE = 33
"""Where formulas are tried before a run."""

Word = Literal["free-slip", "no-slip", "periodic"]
Faults = Iterator[InitErrorDetails]


class FaceTable(Section):
    """The conditions at the six faces, each under its name, ``x-`` to ``z+``."""

    model_config = ConfigDict(extra="allow")

    @property
    def conditions(self) -> dict[str, Condition]:
        """Return the condition of each face, in the order of `NAMES`."""
        return dict(self.model_extra or {})


Boundary = tuple[Word, Word, Word] | FaceTable


# --- from what a file holds -----------------------------------------------------------------------


def validated(value: Any) -> tuple[str, ...] | FaceTable:
    """Return the boundary that a file describes, as three words where those can say it.

    Parameters
    ----------
    value : any
        A word, a list of three, or a mapping of faces.

    Raises
    ------
    ValueError
        Without words, if it is none of these; a ValidationError with every fault of a mapping.
    """
    if isinstance(value, FaceTable):
        return value
    if isinstance(value, dict):
        return _of_mapping(value)
    words = value if isinstance(value, list | tuple) else (value,) * 3
    if len(words) != 3 or any(word not in WORDS for word in words):
        raise ValueError()
    return _of_mapping(dict(zip("xyz", words, strict=True)))


Boundaries = Annotated[
    tuple[Word, Word, Word] | FaceTable,
    PlainValidator(validated),
    Allowed(
        "choice, list or mapping",
        f"one of {', '.join(WORDS)}, a list of three of them, for the axes x, y and z, or a "
        f"mapping of the faces {', '.join(KEYS)}",
    ),
]


def _of_mapping(data: Mapping[str, Any]) -> tuple[str, ...] | FaceTable:
    faults = [*_unknown_faces(data)]
    conditions: dict[str, Condition] = {}
    for key in (key for key in KEYS if key in data):
        try:
            conditions[key] = condition_of(data[key])
        except BadFace as bad:
            faults += [fault((key, *path), found, text) for path, found, text in bad.faults]
    if not faults:
        faults += _faults_together(data, conditions)
    if faults:
        raise ValidationError.from_exception_data("boundary", faults)
    return _shortest([conditions.get(_key(name, conditions), DEFAULT) for name in NAMES])


def _key(name: str, given: Mapping[str, Any]) -> str:
    """Return the key that says what a face is: the most special one that is given."""
    return next((key for key in (name, name[0]) if key in given), "all")


def _shortest(six: Sequence[Condition]) -> tuple[str, ...] | FaceTable:
    """Return three words if the faces of each axis are the same old word, else all six."""
    pairs = list(zip(six[0::2], six[1::2], strict=True))
    words = tuple(low for low, high in pairs if low == high and low in OLD_WORDS)
    if len(words) == len(pairs):
        return tuple(str(word) for word in words)
    return FaceTable(**dict(zip(NAMES, six, strict=True)))


def _unknown_faces(data: Mapping[str, Any]) -> Faults:
    for key in data:
        if key not in KEYS:
            hint = did_you_mean(key, KEYS) or ";"
            yield fault((key,), data, f"unknown face{hint} allowed: {', '.join(KEYS)}")


# --- faces together -------------------------------------------------------------------------------


def _faults_together(data: Mapping[str, Any], given: Mapping[str, Condition]) -> Faults:
    """Yield what is wrong with faces that are right by themselves, once a key."""
    faults: dict[str, str] = {}
    conditions = {name: given.get(_key(name, given), DEFAULT) for name in NAMES}
    for name, condition in conditions.items():
        text = _fault_across(name, condition)
        if text:
            faults.setdefault(_key(name, given), text)
    kinds = [_kind(condition) for condition in conditions.values()]
    for kind, text in ("periodic", half_periodic(kinds)), ("inflow", without_outlet(kinds)):
        if text:
            faults.setdefault(_first_key(conditions, kind, given), text)
    for key, text in faults.items():
        yield fault((key,), data, text)


def _first_key(conditions: Mapping[str, Condition], kind: str, given: Mapping[str, Any]) -> str:
    """Return the key of the first face of a kind, of a pair that is not alike if it is periodic."""
    named = [name for name, condition in conditions.items() if _kind(condition) == kind]
    alone = [name for name in named if sum(other[0] == name[0] for other in named) == 1]
    return _key((alone or named)[0] if kind == "periodic" else named[0], given)


def _kind(condition: Condition) -> str:
    return condition if isinstance(condition, str) else condition.kind


def _fault_across(name: str, condition: Condition) -> str:
    """Return what is wrong with the component of a velocity across the face that has it."""
    axis = NAMES.index(name) // 2
    if isinstance(condition, Moving) and _number(condition.moving[axis]) != 0.0:
        return (
            f"the wall {name} can move along itself only: its component along {name[0]} must be 0"
        )
    if isinstance(condition, Inflow) and isinstance(condition.inflow, tuple):
        across = _number(condition.inflow[axis])
        inwards = 1.0 if name.endswith("-") else -1.0
        if across is not None and across * inwards <= 0:
            sign = "greater" if inwards > 0 else "less"
            return (
                f"nothing flows in at {name}: the component along {name[0]} must be {sign} than 0"
            )
    return ""


# --- faces of a grid ------------------------------------------------------------------------------


def kinds_of(boundary: Boundary) -> tuple[str, ...]:
    """Return the kinds of the six faces, see `Face`, in the order of `NAMES`.

    Parameters
    ----------
    boundary : tuple of str or FaceTable
        The value of `fluid.boundary`.
    """
    if isinstance(boundary, tuple):
        return tuple(word for word in boundary for _ in range(2))
    return tuple(_kind(condition) for condition in boundary.conditions.values())


def faces_of(boundary: Boundary, cells: tuple[int, int, int]) -> Faces:
    """Return the faces that a configuration describes.

    Parameters
    ----------
    boundary : tuple of str or FaceTable
        The value of `fluid.boundary`.
    cells : tuple of int
        Cells nx, ny, nz of the box.

    Raises
    ------
    InputError
        If the file of a table cannot be read; in one line, with its face.
    """
    if isinstance(boundary, tuple):
        return Faces.of_axes(boundary)
    faces = _faces(boundary, cells)
    for name, face in zip(NAMES, faces, strict=True):
        if isinstance(face.velocity, Table):
            _read(face.velocity, name)
    return faces


def faults_on_grid(boundary: Boundary, cells: tuple[int, int, int], most: float) -> Faults:
    """Yield a fault for each velocity that is too large somewhere at a face at time 0.

    Parameters
    ----------
    boundary : tuple of str or FaceTable
        The value of `fluid.boundary`.
    cells : tuple of int
        Cells nx, ny, nz of the box.
    most : float
        The largest speed whose square can be held.
    """
    faces = () if isinstance(boundary, tuple) else _faces(boundary, cells)
    for number, face in enumerate(faces):
        path = ("fluid", "boundary", NAMES[number])
        if isinstance(face.velocity, Expression | Uniform | Parabolic):
            points = _points(number, _box(cells))
            speeds = np.abs(face.velocity.values(points, 0.0)).max(axis=1)
            good = speeds <= most
            if not good.all():
                place = np.argmin(good)
                where = ", ".join(f"{x:.4g}" for x in points[place])
                what = "is not a finite number"
                if np.isfinite(speeds[place]):
                    what = f"is {speeds[place]:.3g}, more than {most:g}, whose square can be held,"
                text = f"{what} at x, y, z = {where} at time 0"
                yield fault(path, _components(face.velocity), text)
        for name, value in face.scalars.items():
            if abs(value) > most * most:
                text = f"{name}: must be at most {most * most:g}, for its number type to hold it"
                yield fault(path, value, text)


def _components(profile: Expression | Uniform | Parabolic) -> list[Any]:
    """Return what a profile was made of."""
    return list(profile.components if isinstance(profile, Expression) else profile.vector)


def _faces(table: FaceTable, cells: tuple[int, int, int]) -> Faces:
    conditions = table.conditions
    periodic = tuple(conditions[name] == "periodic" for name in NAMES[::2])
    made = [_face(i // 2, conditions[name], _box(cells), periodic) for i, name in enumerate(NAMES)]
    return Faces(*made)


def _face(axis: int, condition: Condition, box: Vector, periodic: Sequence[bool]) -> Face:
    if isinstance(condition, str):
        return Face(condition)
    if isinstance(condition, Moving):
        return Face("no-slip", _plain_profile(condition.moving))
    if isinstance(condition.inflow, TableFile):
        return Face("inflow", Table(condition.inflow.file, axis), condition.scalars)
    profile = _plain_profile(condition.inflow)
    if condition.profile == "parabolic" and isinstance(profile, Uniform):
        across = tuple(i for i in range(3) if i != axis and not periodic[i])
        profile = Parabolic(profile.vector, box, across)
    return Face("inflow", profile, condition.scalars)


def _plain_profile(velocity: Velocity) -> Profile:
    """Return the profile of three components."""
    numbers = [component for component in velocity if not isinstance(component, str)]
    if len(numbers) == 3:
        x, y, z = numbers
        return Uniform((x, y, z))
    x_text, y_text, z_text = (str(component) for component in velocity)
    return Expression((x_text, y_text, z_text))


def _box(cells: tuple[int, int, int]) -> Vector:
    """Return the edges of the box, of which the longest is 1."""
    x, y, z = (number / max(cells) for number in cells)
    return x, y, z


def _points(number: int, box: Vector) -> np.ndarray:
    """Return points (n, 3) of a face, its edges among them."""
    axis, high = divmod(number, 2)
    edges = [np.linspace(0.0, edge, POINTS_ALONG_AN_EDGE) for edge in box]
    edges[axis] = np.array([box[axis] if high else 0.0])
    return np.stack([x.ravel() for x in np.meshgrid(*edges, indexing="ij")], axis=1)


def _read(table: Table, name: str) -> None:
    """Read a table, so that what is wrong with it shows now."""
    try:
        table.values(np.zeros((1, 3)), 0.0)
    except OSError as error:
        reason = f"cannot be read: {error.strerror or error}"
        raise InputError(f"fluid.boundary.{name}.inflow: {table.path} {reason}") from None
    except ValueError as error:
        raise InputError(f"fluid.boundary.{name}.inflow: {table.path} {error}") from None


def _number(component: float | str) -> float | None:
    """Return a component of a velocity that is a number, also as a formula of that number alone."""
    try:
        return float(component)
    except ValueError:
        return None
