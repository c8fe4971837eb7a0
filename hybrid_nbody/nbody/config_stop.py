"""The part of the configuration of bodies that says what stops a run."""

from pydantic import Field

from hybrid_nbody.conditions import Condition
from hybrid_nbody.config.sections import ExclusiveSection
from hybrid_nbody.config.values import AtLeastOne, Positive
from hybrid_nbody.nbody.conditions import closest, energy_error, escaped


class Stop(ExclusiveSection):
    """A condition that stops the run as soon as it begins to hold."""

    exactly_one = (("escape", "closest", "energy_error"),)

    escape: Positive | None = Field(
        None,
        description="A body is farther from the origin than this, in units of length.",
    )
    closest: Positive | None = Field(
        None,
        description="Two bodies are closer to each other than this, in units of length. A look "
        "is made on the host: some milliseconds at 10,000 bodies.",
    )
    energy_error: Positive | None = Field(
        None,
        description="The absolute relative energy error is larger than this. Looked at with the "
        "diagnostics, at the steps of output.diagnostics.",
    )

    every_steps: AtLeastOne = Field(
        1,
        description="Steps between two looks at escape or closest. A run of few bodies is far "
        "faster if it may take many steps at a time.",
    )

    @property
    def condition(self) -> Condition:
        """Return the condition of the key that is given."""
        if self.escape is not None:
            return escaped(self.escape)
        if self.closest is not None:
            return closest(self.closest)
        assert self.energy_error is not None  # exactly one of them is given
        return energy_error(self.energy_error)

    @property
    def in_words(self) -> str:
        """Return the key that is given, with its value."""
        given = self.model_dump(include=set(self.exclusive_keys()), exclude_none=True)
        return ", ".join(f"{key} {value:g}" for key, value in given.items())
