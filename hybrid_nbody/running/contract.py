"""The contract of a kind of model: everything that the program asks of one.

The table of models does not import this module: it must load at once.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

from hybrid_nbody.analysis.presentation import PresentedModel
from hybrid_nbody.backends.base import Backend
from hybrid_nbody.config.sections import ModelConfig
from hybrid_nbody.files.state import Source, StoredState
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.parallel.shares import Devices, RunSetup
from hybrid_nbody.simulation.model import Model, Quantity, SavedState
from hybrid_nbody.simulation.plan import Plan

Config = TypeVar("Config", bound=ModelConfig)
Config_co = TypeVar("Config_co", bound=ModelConfig, covariant=True)

Initial = TypeVar("Initial")
"""What the initial state is made of: bodies, or the events of a fluid."""

Made = TypeVar("Made", bound=Model)
"""The model that is built."""


class Builder(Protocol[Config_co, Initial, Made]):
    """Builds a model on all ranks from a configuration; every method is collective.

    Attributes
    ----------
    config : ModelConfig
    communicator : Communicator
    least : int
        Rows that a rank has at least where shares follow the speed.
    doing : str
        What takes long now, for a person who waits for a model.
    warnings : sequence of str
        What a person is to be warned of, once there is a model; on the root.
    """

    @property
    def config(self) -> Config_co:
        """See the class."""

    @property
    def communicator(self) -> Communicator:
        """See the class."""

    @property
    def least(self) -> int:
        """See the class."""

    @property
    def doing(self) -> str:
        """See the class."""

    @property
    def warnings(self) -> Sequence[str]:
        """See the class."""

    def check(self) -> None:
        """Check what can be checked before anything is made.

        Raises
        ------
        InputError
            On every rank.
        """

    def initial(self) -> Initial:
        """Return what the initial state is made of; called on the root alone.

        Raises
        ------
        InputError
            If a file that the configuration names is missing or wrong.
        """

    def pace(self, backend: Backend) -> float:
        """Return the speed of a rank's device, measured briefly, as the plan of the model takes it.

        Bodies: beside that of others of its kind, 1 where none is known. Fluids: cells a second.
        """

    def fresh(self, initial: Initial | None) -> RunSetup[Made]:
        """Return a model at its initial state; the root passes `initial`, the other ranks None."""

    def restored(self, saved: SavedState) -> RunSetup[Made]:
        """Return a model at a saved state; every rank reads its own rows."""

    def branched(self, start: StoredState) -> RunSetup[Made]:
        """Return a model at a state of another run, at the step that `start` says."""

    def rearranged(
        self, setup: RunSetup[None], partition: Partition, saved: SavedState
    ) -> RunSetup[Made]:
        """Return a model at a saved state on the same devices with other shares."""

    def busy_seconds(self, setup: RunSetup[Made]) -> float:
        """Return the seconds that this rank has computed, without waiting for others."""

    def speeds(self, setup: RunSetup[Made], seconds: list[float]) -> list[float] | None:
        """Return the rows a second of each rank that was busy for `seconds`; None if unknown."""

    def lines(self, setup: RunSetup[Made]) -> list[str]:
        """Say what runs where."""


AnyBuilder = Builder[ModelConfig, Any, Model]
"""The builder of a run, whatever its model is."""


class ModelKind(PresentedModel, Protocol[Config, Initial, Made]):
    """A kind of model: everything that the program asks of it.

    Whatever needs a heavy library is imported within a method or a property: ``--help`` must answer
    at once.

    Attributes
    ----------
    name : str
        The value of ``model:`` in a configuration.
    summary : str
        What it simulates, in a few words.
    schema : type of ModelConfig
        The root of its configuration.
    example, notes : str
        What the page on the configuration shows and says.
    quantities : mapping of str to Quantity
        Its diagnostics.
    timings : sequence of str
        The parts of `Model.advance` that have a line in the table of times.
    changeable : sequence of str
        Keys that a resumed run may change: not the physics that the part already done was computed
        with.
    fixed : sequence of str
        Keys that a run which starts from a state of another one must leave as they are.
    """

    @property
    def name(self) -> str:
        """See the class."""

    @property
    def summary(self) -> str:
        """See the class."""

    @property
    def schema(self) -> type[Config]:
        """See the class."""

    @property
    def example(self) -> str:
        """See the class."""

    @property
    def notes(self) -> str:
        """See the class."""

    @property
    def quantities(self) -> Mapping[str, Quantity]:
        """See the class."""

    @property
    def timings(self) -> Sequence[str]:
        """See the class."""

    @property
    def changeable(self) -> Sequence[str]:
        """See the class."""

    @property
    def fixed(self) -> Sequence[str]:
        """See the class."""

    def sources(self, config: Config) -> tuple[Mapping[str, Source], str]:
        """Return where the fields of a state stand in the frames of a run, and a warning.

        The warning is empty where frames hold the state as it was computed.

        Raises
        ------
        InputError
            Its frames do not hold the whole state; the message ends with what they hold.
        """

    def branched(self, before: Config, config: Config, step: int) -> Config:
        """Return the configuration of a run that goes on from one of another.

        Parameters
        ----------
        before, config : ModelConfig
            Of the earlier run, and of the new one.
        step : int
            Of the earlier run.

        Raises
        ------
        InputError
            It cannot.
        """

    def resolved(self, config: Config) -> Config:
        """Return the configuration with all that a restart needs; called on the root alone.

        Raises
        ------
        InputError
            If a file that it names is missing or wrong.
        """

    def builder(
        self, config: Config, communicator: Communicator, devices: Devices | None = None
    ) -> Builder[Config, Initial, Made]:
        """Return what builds the model of a configuration."""

    def plan(self, config: Config, initial: Initial, ranks: int) -> Plan:
        """Return what a run would compute, hold and write; `initial` is that of its builder."""


AnyKind = ModelKind[Any, Any, Any]
"""A kind of model that is found by its name: which one is known when the program runs."""
