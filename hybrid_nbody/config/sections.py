"""Sections that the configurations of all models share, and what a section is."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, cast

from annotated_types import Le
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import InitErrorDetails

from hybrid_nbody.conditions import Look
from hybrid_nbody.config.faults import nearest
from hybrid_nbody.config.values import (
    Allowed,
    AtLeastOne,
    Duration,
    FileName,
    InOneMessage,
    Positive,
    WeightsByEntry,
)

MOST_STEPS = 10**15
"""Up to here, step * dt is exact to the last bit of a float64."""

ALTERNATIVES = {
    "end": "steps",
    "steps": "end",
    "every_steps": "every_time",
    "every_time": "every_steps",
    "every_body": "ids",
    "ids": "every_body",
}
"""Mutually exclusive keys and their counterparts: an override of one replaces the other."""

MOST_THREADS = 1024
"""Upper limit on CPU threads per rank: with thousands of them a run crashes or never finishes."""

Threads = Annotated[
    Literal["auto"] | Annotated[AtLeastOne, Le(MOST_THREADS)],
    InOneMessage,
    Allowed(
        "choice or whole number", f"auto or a whole number, at least 1 and at most {MOST_THREADS}"
    ),
]
Balance = Annotated[
    Literal["auto", "equal", "measured"] | tuple[float, ...],
    InOneMessage,
    WeightsByEntry,
    Allowed(
        "choice or list",
        "auto, equal, measured or a list of numbers, each at least 0 and not all 0",
    ),
]
Backends = Annotated[
    Literal["auto", "cpu", "gpu", "hybrid"] | tuple[Literal["cpu", "gpu", "hybrid"], ...],
    InOneMessage,
    Allowed(
        "choice or list", "auto, cpu, gpu, hybrid or a list of cpu, gpu and hybrid, one per rank"
    ),
]


class Section(BaseModel):
    """A mapping of keys in the configuration, which cannot be changed once it is read.

    Keys that it does not know are faults.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)


class ModelConfig(Section):
    """The root of a model's configuration: what every model has beside keys of its own."""

    if TYPE_CHECKING:  # each model declares them, in an order and with words of its own
        model: str
        title: str
        time: "Time"
        compute: "Compute"
        output: "Output"

    @property
    def conditions(self) -> Sequence[Look]:
        """Return what stops the run as soon as it happens."""
        return ()

    @property
    def attributes(self) -> Mapping[str, object]:
        """Return the attributes that this model adds to those in the output files of every run."""
        return {}


class ExclusiveSection(Section):
    """A section with keys that exclude each other."""

    exactly_one: ClassVar[tuple[tuple[str, ...], ...]] = ()
    """Groups of keys, of each of which one is given."""

    at_most_one: ClassVar[tuple[tuple[str, ...], ...]] = ()
    """Groups of keys, of each of which one or none is given."""

    @classmethod
    def exclusive_keys(cls) -> frozenset[str]:
        """Return the keys whose null means that they are not given."""
        return frozenset(key for group in (*cls.exactly_one, *cls.at_most_one) for key in group)

    @model_validator(mode="wrap")
    @classmethod
    def _check_groups(cls, data: Any, handler: Callable[[Any], Self]) -> Self:
        """Report the faults of groups beside those of single keys.

        A check that runs after the single keys would not run where one of them is wrong.
        """
        faults = list(_group_faults(cls, data)) if isinstance(data, dict) else []
        try:
            section = handler(data)
        except ValidationError as error:
            faults += _collected(error)
        if faults:
            raise ValidationError.from_exception_data(cls.__name__, faults)
        return section


def fault(path: tuple[str | int, ...], value: Any, text: str) -> InitErrorDetails:
    """Return a fault of the value at a path in the form that pydantic collects."""
    return {"type": "value_error", "loc": path, "input": value, "ctx": {"error": ValueError(text)}}


def _collected(error: ValidationError) -> list[InitErrorDetails]:
    """Return the faults of an error in the form that pydantic collects."""
    return cast(list[InitErrorDetails], error.errors(include_url=False))


def exclusive_keys(section: type[BaseModel]) -> frozenset[str]:
    """Return the keys of a section whose null means that they are not given.

    They are left out where a configuration is written.
    """
    return section.exclusive_keys() if issubclass(section, ExclusiveSection) else frozenset()


def _group_faults(
    section: type[ExclusiveSection], data: dict[str, Any]
) -> Iterator[InitErrorDetails]:
    """Yield a fault for each group of which a mapping gives too many keys, or too few.

    A key that is misspelt counts as given.
    """
    misspelt = {
        nearest(key, tuple(section.model_fields)) for key in data if key not in section.model_fields
    }
    for group in (*section.exactly_one, *section.at_most_one):
        given = [key for key in data if key in group and data[key] is not None]
        how_many = "exactly" if group in section.exactly_one else "at most"
        rule = f"give {how_many} one of {', '.join(group[:-1])} and {group[-1]}"
        if len(given) > 1:
            yield fault((given[1],), data, f"cannot be given together with {given[0]}; {rule}")
        elif not given and group in section.exactly_one and misspelt.isdisjoint(group):
            yield fault((), data, f"a key is missing; {rule}")


class Time(ExclusiveSection):
    """Time step and end of a run."""

    exactly_one = (("end", "steps"),)

    dt: Positive = Field(description="Time step, in units of time.")
    end: Positive | None = Field(
        None,
        description="Simulated time at which the run ends, rounded up to whole steps. Give either "
        "end or steps.",
    )
    steps: Annotated[AtLeastOne, Le(MOST_STEPS)] | None = Field(
        None, description="Number of steps of the whole run. Give either end or steps."
    )
    wall_limit: Duration | None = Field(
        None,
        description="Wall-clock time after which the run writes a checkpoint and stops with exit "
        "code 75, to be resumed; choose a little less than the batch queue grants. null: no limit.",
    )

    @field_validator("end")
    @classmethod
    def _countable(cls, end: float | None, info: ValidationInfo) -> float | None:
        """Refuse an end that is more steps away than can be counted."""
        dt = info.data.get("dt")
        if end is not None and dt is not None and end > MOST_STEPS * dt:
            raise ValueError("must be at most 1e15 steps of time.dt away")
        return end

    @property
    def energy_limit(self) -> float | None:
        """Return the largest relative energy error allowed; None for any."""
        return None

    @property
    def total_steps(self) -> int:
        """Steps from the initial state to the end: ``steps``, or ``end / dt`` rounded up.

        A quotient within 1e-9 (relative) of a whole number is that number: 1.0 / 1e-3 is 1000
        steps.
        """
        if self.steps is not None:
            return self.steps
        assert self.end is not None  # exactly one of the two is given
        quotient = self.end / self.dt
        nearest = round(quotient)
        if abs(quotient - nearest) <= 1e-9 * nearest:
            return max(nearest, 1)
        return math.ceil(quotient)


class Compute(Section):
    """Devices of the ranks, and the shares of the work.

    They decide only on the speed (and, between CPU and GPU, on the last digits of the result).
    """

    backend: Backends = Field(
        "auto",
        description="cpu: Numba threads; gpu: CUDA through CuPy, an error where no GPU is usable; "
        "hybrid: both together, where the model can; or a list, one per rank, such as [gpu, cpu]. "
        "auto: the GPUs of a node go to its first ranks, one each, and the others compute on CPU "
        "threads; the run says which.",
    )
    threads: Threads = Field(
        "auto",
        description="CPU threads of each rank. auto: the cores of a node divided among its ranks, "
        "less one core to feed each GPU; a run on one rank and CPUs alone leaves other programs "
        "the cores that they take. A number: as many in any case.",
    )
    balance: Balance = Field(
        "auto",
        description="Distribution of the rows of the state (bodies, planes of a grid) over the "
        "ranks. equal: the same share for each; measured: in proportion to the measured speed of "
        "each rank, adapted when the speeds drift during the run; auto: measured where some ranks "
        "compute on GPUs and some on CPUs, else equal; or a list of weights, one per rank, such as "
        "[2, 1, 1].",
    )
    transport: Literal["auto", "host", "nccl", "cuda-mpi"] = Field(
        "auto",
        description="Transport of the exchanged data. host: MPI between host memories; nccl: "
        "directly between GPUs, which needs a GPU for each rank of a node; cuda-mpi: MPI on the "
        "memories of GPUs, where the MPI library is CUDA-aware; auto: the first available one of "
        "nccl, cuda-mpi and host.",
    )


class Every(ExclusiveSection):
    """Interval between two outputs, in steps or in simulated time."""

    exactly_one = (("every_steps", "every_time"),)

    every_steps: AtLeastOne | None = Field(
        None,
        description="Steps between two outputs. Give either this or every_time.",
    )
    every_time: Positive | None = Field(
        None,
        description="Simulated time between two outputs: each multiple of it is due at the first "
        "step that reaches it.",
    )


class Checkpoints(Every):
    """Interval between two checkpoints, and the number of checkpoints that are kept."""

    keep: AtLeastOne = Field(
        2, description="Checkpoints that stay on disk; older ones are deleted."
    )


class Output(Section):
    """Files of a run: trajectory, diagnostics and checkpoints."""

    directory: FileName = Field(
        "output/run",
        description="Folder of the run, made if missing. A relative path starts at the folder in "
        "which the command runs.",
    )
    trajectory: Every | None = Field(
        Every(every_steps=100),
        description="Interval of the frames, which hold the fields of the model. null: no frames.",
    )
    diagnostics: Every | None = Field(
        Every(every_steps=10),
        description="Interval of the diagnostics, such as energies. null: none, and the energy "
        "is not checked.",
    )
    checkpoint: Checkpoints | None = Field(
        Checkpoints(every_steps=500),
        description="Interval of the checkpoints, complete states for a restart. null: only one, "
        "at the end or when the run is stopped.",
    )
