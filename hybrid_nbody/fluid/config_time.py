"""The section `time` of a fluid whose steps are taken in parts."""

import math
from typing import Any

from pydantic import Field, ValidationInfo, field_validator, model_validator

from hybrid_nbody.config.sections import Time
from hybrid_nbody.config.values import Positive

ANY_LENGTH = 1.0
"""Stands for a step that is to be as long as a bad dt_max, of which there is a fault already."""


class DividedTime(Time):
    """Time step, its parts, and end of the run."""

    dt: Positive = Field(
        description="Time step, in units of time: what happens during a run, such as frames, "
        "happens between steps. With cfl steps are taken in parts, and dt is dt_max if only that "
        "is given."
    )
    cfl: Positive | None = Field(
        None,
        description="Cells that the fastest fluid may cross at once: a step in which it would "
        "cross more is taken in parts, the same on any number of ranks; 2 is usual. null: steps "
        "are not divided.",
    )
    dt_max: Positive | None = Field(
        None,
        description="Length of a part, at most, however slow the fluid is; only with cfl. "
        "null: dt.",
    )

    @property
    def longest_part(self) -> float:
        """Return the length of a part, at most."""
        return self.dt if self.dt_max is None else self.dt_max

    @model_validator(mode="before")
    @classmethod
    def _one_of_two_lengths(cls, data: Any) -> Any:
        """Take the longest part for the step where no step is given."""
        if not isinstance(data, dict) or data.get("cfl") is None or data.get("dt") is not None:
            return data
        longest = data.get("dt_max")
        if longest is None:
            return data
        return {**data, "dt": longest if _is_length(longest) else ANY_LENGTH}

    @field_validator("dt_max")
    @classmethod
    def _only_with_cfl(cls, dt_max: float | None, info: ValidationInfo) -> float | None:
        """Refuse the length of parts where there are none."""
        if dt_max is not None and info.data.get("cfl", dt_max) is None:
            raise ValueError(
                "is the longest part of a step, and without cfl steps have none; leave it out"
            )
        return dt_max


def _is_length(value: Any) -> bool:
    """Return whether a value is good for the length of a step."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf
