"""One face of the box in a configuration: a word, an inflow, or a wall that moves."""

from collections.abc import Iterator
from typing import Any, Literal, TypeGuard

from pydantic import ConfigDict, Field, ValidationError

from hybrid_nbody.config.faults import did_you_mean
from hybrid_nbody.config.sections import Section
from hybrid_nbody.config.values import InputFile
from hybrid_nbody.fluid.staggered.formula import Formula

OLD_WORDS = ("free-slip", "no-slip", "periodic")
WORDS = (*OLD_WORDS, "outflow")
PROFILES = ("uniform", "parabolic")

FACE = f"one of {', '.join(WORDS)}, or a mapping with the key inflow or moving"
VELOCITY = "a list of three numbers or formulas in quotes, along x, y and z"
LARGEST = 1e300
"""Where numbers of a velocity end."""

Component = float | str
"""A number, or a formula of x, y, z and t."""

Velocity = tuple[Component, Component, Component]


class TableFile(Section):
    """A file with velocities at points of a face."""

    file: InputFile = Field(description="See `hybrid_nbody.fluid.staggered.table`.")


class Inflow(Section):
    """A face at which fluid flows in; any further key is the value of a scalar that it brings."""

    model_config = ConfigDict(extra="allow")

    inflow: Velocity | TableFile = Field(description="The velocity.")
    profile: Literal["uniform", "parabolic"] = Field("uniform", description="Over the face.")

    @property
    def kind(self) -> str:
        """Return the kind of the face."""
        return "inflow"

    @property
    def scalars(self) -> dict[str, float]:
        """Return the values of scalars that flow in."""
        return dict(self.model_extra or {})


class Moving(Section):
    """A no-slip wall that moves along itself."""

    moving: Velocity = Field(description="The velocity.")

    @property
    def kind(self) -> str:
        """Return the kind of the face."""
        return "no-slip"


Condition = str | Inflow | Moving
"""What a face is: a word, or a section of its own."""


class BadFace(Exception):
    """Faults of a condition.

    Attributes
    ----------
    faults : tuple
        Of each the keys within the condition, the value, and what is wrong.
    """

    def __init__(self, *faults: tuple[tuple[str | int, ...], Any, str]) -> None:
        super().__init__()
        self.faults = faults


def condition_of(value: Any) -> Condition:
    """Return the condition that a value describes.

    Parameters
    ----------
    value : any
        What a file holds.

    Raises
    ------
    BadFace
        With every fault of it.
    """
    if isinstance(value, Inflow | Moving):
        return value
    if isinstance(value, str) and value in WORDS:
        return value
    if isinstance(value, dict) and "inflow" in value:
        return _inflow(value)
    if isinstance(value, dict) and "moving" in value:
        return _moving(value)
    raise BadFace(((), value, f"must be {FACE}{did_you_mean(value, WORDS)}"))


def _moving(value: dict[str, Any]) -> Moving:
    others = [key for key in value if key != "moving"]
    if others:
        raise BadFace(*(((key,), value, "unknown key; allowed: moving") for key in others))
    return Moving(moving=_velocity(value["moving"], "moving"))


def _inflow(value: dict[str, Any]) -> Inflow:
    bad = [*_faults_of_scalars(value), *_faults_of_profile(value)]
    try:
        velocity = _velocity_or_table(value["inflow"])
    except BadFace as error:
        raise BadFace(*error.faults, *bad) from None
    if bad:
        raise BadFace(*bad)
    profile = value.get("profile", "uniform")
    return Inflow(inflow=velocity, profile=profile, **_scalars(value))


def _faults_of_scalars(value: dict[str, Any]) -> Iterator[tuple[tuple[str], Any, str]]:
    for key, number in value.items():
        if key in ("inflow", "profile") or _is_finite(number):
            continue
        hint = did_you_mean(key, ("profile",))
        text = f"must be a finite number, the value of a scalar that flows in{hint}"
        yield (key,), number, text


def _faults_of_profile(value: dict[str, Any]) -> Iterator[tuple[tuple[str], Any, str]]:
    profile = value.get("profile", "uniform")
    if profile not in PROFILES:
        text = f"must be one of {', '.join(PROFILES)}{did_you_mean(profile, PROFILES)}"
        yield ("profile",), profile, text
    elif profile == "parabolic" and not _are_numbers(value["inflow"]):
        yield ("profile",), profile, "is for three numbers; formulas and tables have their own"


def _scalars(value: dict[str, Any]) -> dict[str, Any]:
    """Return the values of scalars, by their names."""
    names = (key for key in value if key not in ("inflow", "profile"))
    return {name: float(value[name]) for name in names}


def _velocity_or_table(value: Any) -> Velocity | TableFile:
    """Return the velocity of an inflow, or the file that has it."""
    if isinstance(value, TableFile):
        return value
    if isinstance(value, list | tuple):
        return _velocity(value, "inflow")
    name = value.get("file") if isinstance(value, dict) and len(value) == 1 else value
    if not isinstance(name, str) or not name.lower().endswith((".csv", ".npz")):
        raise BadFace((("inflow",), value, f"must be {VELOCITY}, or the name of a CSV or NPZ file"))
    try:
        return TableFile(file=name)
    except ValidationError:
        raise BadFace((("inflow",), value, "must be the name of a file, in one line")) from None


def _velocity(value: Any, key: str) -> Velocity:
    """Return three components, of which any may be a formula."""
    if not isinstance(value, list | tuple) or len(value) != 3:
        raise BadFace(((key,), value, f"must be {VELOCITY}"))
    x, y, z = (_component(entry, (key, i)) for i, entry in enumerate(value))
    return x, y, z


def _component(value: Any, path: tuple[str | int, ...]) -> Component:
    if _is_finite(value):
        return float(value)
    if not isinstance(value, str):
        raise BadFace((path, value, "must be a finite number, or a formula in quotes"))
    try:
        return Formula(" ".join(value.split())).text
    except ValueError as error:
        raise BadFace((path, value, str(error))) from None


def _is_finite(value: Any) -> TypeGuard[float]:
    """Return whether a value is a number that float64 holds."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < LARGEST


def _are_numbers(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(_is_finite(entry) for entry in value)
