"""The part of the configuration of bodies that says what frames hold."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal, Protocol, get_args

from annotated_types import Ge, Le
from pydantic import Field
from pydantic_core import InitErrorDetails

from hybrid_nbody.config.sections import Every, Output, fault
from hybrid_nbody.config.values import Allowed, AtLeastOne, InOneMessage, SomeOnce, WholeNumber
from hybrid_nbody.nbody.components import NUMBER_OF_KIND

FieldName = Literal["position", "velocity"]
"""A field that a frame can hold."""

MOST_ID = 2**63 - 1


FieldNames = Annotated[
    tuple[FieldName, ...],
    SomeOnce,
    InOneMessage,
    Allowed("list", "a list of position and velocity, or of one of them"),
]
Identities = Annotated[
    tuple[Annotated[WholeNumber, Ge(-MOST_ID - 1), Le(MOST_ID)], ...],
    SomeOnce,
    InOneMessage,
    Allowed("list", "a list of different whole numbers"),
]


class BodyFrames(Every):
    """Interval of the frames, and what of the bodies they hold."""

    at_most_one = (("every_body", "ids"),)

    fields: FieldNames = Field(("position", "velocity"), description="Fields that a frame holds.")
    precision: Literal["float32", "float64"] = Field(
        "float64",
        description="Precision of these fields in the frames. float32 halves the files and keeps "
        "seven digits; checkpoints are always float64.",
    )
    every_body: AtLeastOne | None = Field(
        None,
        description="Frames hold the first body and every n-th after it, in the order of the "
        "bodies at the start. Give either this or ids; by default they hold all bodies.",
    )
    ids: Identities | None = Field(
        None, description="Frames hold the bodies of these ids, in the order of the bodies."
    )

    @property
    def is_whole(self) -> bool:
        """Return whether frames hold every field of every body, as it is computed."""
        some_bodies = self.every_body not in (None, 1) or self.ids is not None
        every_field = len(self.fields) == len(get_args(FieldName))
        return not some_bodies and every_field and self.precision == "float64"

    def number_of(self, bodies: int) -> int:
        """Return how many of some bodies a frame holds."""
        if self.ids is not None:
            return len(self.ids)
        return -(-bodies // (self.every_body or 1))


class NBodyOutput(Output):
    """Files of the run: trajectory, diagnostics and checkpoints."""

    trajectory: BodyFrames | None = Field(
        BodyFrames(every_steps=100),
        description="Interval of the frames, and what of the bodies they hold. null: no frames.",
    )


class _Configured(Protocol):
    """The part of the configuration on which ids depend."""

    @property
    def components(self) -> tuple[Any, ...]: ...

    @property
    def output(self) -> NBodyOutput: ...


def frame_faults(config: _Configured) -> Iterator[InitErrorDetails]:
    """Yield a fault for an id that no body has, where the ids are known beforehand."""
    frames = config.output.trajectory
    numbers = [getattr(part, "n", NUMBER_OF_KIND.get(part.kind)) for part in config.components]
    if frames is None or frames.ids is None or None in numbers:
        return
    number = sum(known for known in numbers if known is not None)
    for place, body in enumerate(frames.ids):
        if not 0 <= body < number:
            text = f"no body has this id; the {number} bodies have the ids 0 to {number - 1}"
            yield fault(("output", "trajectory", "ids", place), body, text)
            return
