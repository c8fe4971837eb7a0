"""The section `sources` of a fluid's configuration: what is put into it during a run."""

from typing import Annotated, Literal

from pydantic import Field

from hybrid_nbody.config.sections import ExclusiveSection, Section
from hybrid_nbody.config.values import Allowed, InputFile, Number, Positive, Switch
from hybrid_nbody.fluid.config_values import Box, Cell, Count, ScalarName, Steps, Vector


class Sphere(Section):
    """The cells whose centres lie within a sphere."""

    centre: Vector = Field(
        description="Centre, in cells counted from 0: [i, j, k] is the centre of that cell."
    )
    radius: Positive = Field(description="Radius, in cells.")


class Given(Section):
    """The value of a scalar."""

    name: ScalarName = Field(description="The scalar, one of fluid.scalars.")
    value: Number = Field(description="What the cells are given of it.")


class Event(ExclusiveSection):
    """Density or velocity given to some cells at the beginning of a step."""

    exactly_one = (("step", "steps"), ("density", "velocity", "scalar"))
    at_most_one = (("cell", "box", "sphere"),)

    step: Count | None = Field(
        None,
        description="The step at whose beginning it happens; the first step is 0. Give either this "
        "or steps.",
    )
    steps: Steps | None = Field(
        None,
        description="The first and the last of the steps at which it happens. Give either this or "
        "step.",
    )
    density: Number | None = Field(
        None, description="Density given to the cells. Give either this, velocity or scalar."
    )
    velocity: Vector | None = Field(
        None, description="Velocity given to the cells. Give either this, density or scalar."
    )
    scalar: Given | None = Field(
        None,
        description="Another scalar given to the cells, such as {name: temperature, value: 1}. "
        "Give either this, density or velocity.",
    )
    cell: Cell | None = Field(
        None,
        description="The cell, counted from 0. Where neither cell nor box nor sphere is given, it "
        "is the one at the centre, n // 2 - 1 along each axis.",
    )
    box: Box | None = Field(
        None, description="All cells of a box: [[x0, x1], [y0, y1], [z0, z1]], the ends excluded."
    )
    sphere: Sphere | None = Field(None, description="All cells whose centres lie within a sphere.")
    mode: Literal["set", "add"] = Field(
        "set",
        description="set: replaces the values of the cells; add: is added to them at each step.",
    )

    @property
    def first(self) -> int:
        """First step at which it happens."""
        return self._range[0]

    @property
    def last(self) -> int:
        """Last step at which it happens."""
        return self._range[1]

    @property
    def _range(self) -> tuple[int, int]:
        """First and last step."""
        if self.steps is not None:
            return self.steps
        assert self.step is not None  # exactly one of the two is given
        return self.step, self.step


Events = Annotated[
    tuple[Event, ...],
    Allowed(
        "list", f"a list of events, each a mapping of the keys {', '.join(Event.model_fields)}"
    ),
]


class Sources(Section):
    """Density and velocity given to cells during a run; all is at rest and empty at first."""

    carry_over: Switch = Field(
        False,
        description="Start each step as the program of the course does, which never cleared its "
        "scratch arrays: what the step before left there is added to velocity and density, times "
        "dt, and solves start from it. Only for its published totals.",
    )
    events: Events = Field(
        (), description="Events; those of one step happen in this order, before those of file."
    )
    file: InputFile | None = Field(
        None,
        description="A file of events in the format of the course: the number of steps, then lines "
        "`source d t` and `force x y z t`. A relative path starts at the folder of the YAML file; "
        "with --set, at the folder in which the command runs.",
    )
