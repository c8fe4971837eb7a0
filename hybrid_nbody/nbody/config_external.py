"""The kinds of external fields in a configuration."""

from typing import Annotated, Literal

from annotated_types import Gt
from pydantic import Field

from hybrid_nbody.config.sections import ExclusiveSection, Section
from hybrid_nbody.config.values import (
    Allowed,
    InputFile,
    Line,
    NonNegative,
    Number,
    Positive,
    Switch,
    Text,
)
from hybrid_nbody.errors import InputError
from hybrid_nbody.files.functions import BadFunctionError, function_of_text, load_function
from hybrid_nbody.nbody.config_placement import NOWHERE, Vector
from hybrid_nbody.nbody.kernels.fields import potentials
from hybrid_nbody.nbody.kernels.fields.field import ExternalField, FieldFunction


class UniformField(Section):
    """The same acceleration everywhere."""

    kind: Literal["uniform"] = Field(description="The same acceleration everywhere.")
    acceleration: Vector = Field(description="In units of length over time squared.")

    def made(self, G: float) -> ExternalField:
        """Return the field."""
        along_z = not any(self.acceleration[:2])
        return ExternalField(potentials.uniform, self.acceleration, is_round=along_z)


class CentredField(Section):
    """A field about a centre."""

    centre: Vector = Field(NOWHERE, description="Its centre, in units of length.")


class PointMassField(CentredField):
    """A fixed point mass, softened or not."""

    kind: Literal["point-mass"] = Field(description="A fixed point mass.")
    mass: Positive = Field(description="Its mass.")
    softening: NonNegative = Field(0.0, description="Its softening length.")

    def made(self, G: float) -> ExternalField:
        """Return the field."""
        numbers = (G * self.mass, self.softening)
        return ExternalField(potentials.plummer, numbers, self.centre, is_round=True)


class PlummerField(CentredField):
    """A fixed Plummer sphere."""

    kind: Literal["plummer"] = Field(description="A fixed Plummer sphere.")
    mass: Positive = Field(description="Its total mass.")
    scale: Positive = Field(description="Its scale length, in units of length.")

    def made(self, G: float) -> ExternalField:
        """Return the field."""
        numbers = (G * self.mass, self.scale)
        return ExternalField(potentials.plummer, numbers, self.centre, is_round=True)


class HernquistField(CentredField):
    """A fixed Hernquist sphere: a bulge, or an elliptical galaxy."""

    kind: Literal["hernquist"] = Field(description="A fixed Hernquist sphere.")
    mass: Positive = Field(description="Its total mass.")
    scale: Positive = Field(description="Its scale length, in units of length.")

    def made(self, G: float) -> ExternalField:
        """Return the field."""
        numbers = (G * self.mass, self.scale)
        return ExternalField(potentials.hernquist, numbers, self.centre, is_round=True)


class NFWField(CentredField):
    """A fixed dark halo of Navarro, Frenk and White."""

    kind: Literal["nfw"] = Field(description="A fixed halo of Navarro, Frenk and White.")
    mass: Positive = Field(
        description="4 pi rho a^3, of its density rho / (r/a (1 + r/a)^2), which is what is "
        "within 5.3 a. In all it is infinite."
    )
    scale: Positive = Field(description="Its scale length a, in units of length.")

    def made(self, G: float) -> ExternalField:
        """Return the field."""
        numbers = (G * self.mass, self.scale)
        return ExternalField(potentials.nfw, numbers, self.centre, is_round=True)


class LogarithmicField(CentredField):
    """A fixed halo with a flat rotation curve."""

    kind: Literal["logarithmic"] = Field(description="A halo with a flat rotation curve.")
    speed: Positive = Field(description="Circular speed far from the centre.")
    core: Positive = Field(description="Radius of its core, in units of length.")
    flattening: Positive = Field(1.0, description="Axis ratio q of the potential: z / q; 1: round.")

    def made(self, G: float) -> ExternalField:
        """Return the field."""
        numbers = (self.speed, self.core, self.flattening)
        return ExternalField(potentials.logarithmic, numbers, self.centre, is_round=True)


class MiyamotoNagaiField(CentredField):
    """A fixed disc of Miyamoto and Nagai in the plane z = 0 of its centre."""

    kind: Literal["miyamoto-nagai"] = Field(description="A fixed disc of Miyamoto and Nagai.")
    mass: Positive = Field(description="Its total mass.")
    scale: NonNegative = Field(description="Its scale length a, in units of length.")
    height: Positive = Field(description="Its scale height b, in units of length.")

    def made(self, G: float) -> ExternalField:
        """Return the field."""
        numbers = (G * self.mass, self.scale, self.height)
        return ExternalField(potentials.miyamoto_nagai, numbers, self.centre, is_round=True)


class BarField(CentredField):
    """A bar that turns about the z axis of its centre: a softened needle (Long & Murali 1992)."""

    kind: Literal["bar"] = Field(description="A bar that turns about z.")
    mass: Positive = Field(description="Its total mass.")
    half_length: Positive = Field(description="Half its length, a, in units of length.")
    width: NonNegative = Field(0.0, description="Softening b across it, in units of length.")
    height: Positive = Field(description="Softening c along z, in units of length.")
    pattern_speed: Number = Field(0.0, description="Angle by which it turns in a unit of time.")
    phase: Number = Field(0.0, description="Angle of its long axis from x at time 0, in radians.")

    def made(self, G: float) -> ExternalField:
        """Return the field."""
        sizes = (self.half_length, self.width, self.height)
        numbers = (G * self.mass, *sizes, self.pattern_speed, self.phase)
        return ExternalField(
            potentials.bar,
            numbers,
            self.centre,
            conservative=self.pattern_speed == 0,
            pattern_speed=self.pattern_speed,
        )


class PythonField(CentredField, ExclusiveSection):
    """A function of one's own, compiled for CPUs and GPUs.

    kind: python:module:function is the same with the file module.py, or an installed module.
    """

    exactly_one = (("path", "source"),)

    kind: Literal["python"] = Field(description="A function of one's own in Python.")
    path: InputFile | None = Field(
        None,
        description="Its file. In a YAML file, a relative path starts at the folder of that YAML "
        "file; with --set, at the folder in which the command runs. Give either path or source.",
    )
    source: Text | None = Field(
        None, description="The text of a file in its place. Give either path or source."
    )
    function: Annotated[Line, Gt("")] = Field(
        "field",
        description="Its name. f(position, velocity, mass, time, parameters) returns ax, ay, az "
        "and the potential, all numbers; position is counted from the centre.",
    )
    parameters: Annotated[tuple[Number, ...], Allowed("list", "a list of numbers")] = Field(
        (), description="The numbers that it gets as parameters."
    )
    conserves_energy: Switch = Field(
        True,
        description="Whether it is the gradient of its potential and does not change with time. If "
        "not, the energy error is neither computed nor watched.",
    )

    def made(self, G: float) -> ExternalField:
        """Return the field."""
        function = self._given()
        return ExternalField(function, self.parameters, self.centre, self.conserves_energy)

    def _given(self) -> FieldFunction:
        """Return the function of the file or of the text."""
        if self.path is not None:
            return loaded(self.path, self.function)
        try:
            return function_of_text(self.source or "", self.function)
        except BadFunctionError as error:
            raise InputError(f"gravity.external: source {error}") from error


def loaded(path: str, name: str) -> FieldFunction:
    """Return a function of a file of Python.

    Raises
    ------
    InputError
        If there is no such file or function, or the file cannot be run.
    """
    try:
        return load_function(path, name)
    except OSError as error:
        raise InputError(f"gravity.external: {path} cannot be read: {error.strerror}") from error
    except BadFunctionError as error:
        raise InputError(f"gravity.external: {path} {error}") from error


AnyField = Annotated[
    UniformField
    | PointMassField
    | PlummerField
    | HernquistField
    | NFWField
    | LogarithmicField
    | MiyamotoNagaiField
    | BarField
    | PythonField,
    Field(discriminator="kind"),
]
