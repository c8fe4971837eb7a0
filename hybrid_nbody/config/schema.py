"""What a configuration may hold: one frozen model a section, from which checks and documentation are made.

Only values that work are accepted. A further model of physics is a further root in ``MODELS``, chosen by ``model:``.
"""

import math
from collections.abc import Callable, Iterator
from typing import Annotated, Any, ClassVar, Literal, Self

from annotated_types import Ge, Le, Lt
from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator, model_validator

from hybrid_nbody.config.values import (
    Allowed,
    AtLeastOne,
    Duration,
    FileName,
    InOneMessage,
    Line,
    NonNegative,
    Positive,
    WeightsByEntry,
    Whole,
)

MOST_BODIES = 10**9
MOST_STEPS = 10**15
"""Up to here, step * dt is exact to the last bit of a float64."""

ALTERNATIVES = {"end": "steps", "steps": "end", "every_steps": "every_time", "every_time": "every_steps"}
"""Keys of which exactly one is given, each with the other one."""

BodyCount = Annotated[AtLeastOne, Le(MOST_BODIES)]
TwoMasses = Annotated[tuple[Positive, Positive], Allowed("list", "a list of two numbers, each greater than 0")]
Threads = Annotated[
    Literal["auto"] | AtLeastOne,
    InOneMessage,
    Allowed("choice or whole number", "auto or a whole number, at least 1"),
]
Balance = Annotated[
    Literal["equal", "measured"] | tuple[float, ...],
    InOneMessage,
    WeightsByEntry,
    Allowed("choice or list", "equal, measured or a list of numbers, each at least 0 and not all 0"),
]


class Section(BaseModel):
    """A mapping of keys in the configuration: it cannot be changed once read, and knows all its keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ExclusiveSection(Section):
    """A section that takes exactly one of two keys."""

    exactly_one: ClassVar[tuple[str, str]]

    @model_validator(mode="wrap")
    @classmethod
    def _check_exactly_one(cls, data: Any, handler: Callable[[Any], Self]) -> Self:
        """Report the pair beside the faults of single keys, which would suppress a check that runs after them."""
        faults = list(_pair_faults(cls.exactly_one, data))
        try:
            section = handler(data)
        except ValidationError as error:
            faults += error.errors(include_url=False)
        if faults:
            raise ValidationError.from_exception_data(cls.__name__, faults)
        return section


def _pair_faults(pair: tuple[str, str], data: Any) -> Iterator[dict[str, Any]]:
    """Yield the fault of a mapping that gives both keys of a pair, or neither."""
    if not isinstance(data, dict):
        return
    given = [key for key in data if key in pair and data[key] is not None]
    if len(given) == 1:
        return
    both = f"cannot be given together with {given[0]}" if given else "a key is missing"
    error = ValueError(f"{both}; give exactly one of {pair[0]} and {pair[1]}")
    yield {"type": "value_error", "loc": tuple(given[1:]), "input": data, "ctx": {"error": error}}


class PlummerBodies(Section):
    """A Plummer sphere in virial equilibrium, in standard units: total mass 1, total energy -1/4, scale length
    3 pi / 16 (G = 1), centred and at rest as a whole."""

    kind: Literal["plummer"] = Field(description="A Plummer sphere, the standard model of a star cluster.")
    n: BodyCount = Field(description="Number of bodies.")


class UniformSphereBodies(Section):
    """A sphere of constant density with random velocities that fit a given virial ratio."""

    kind: Literal["uniform-sphere"] = Field(description="A uniform sphere with random velocities.")
    n: BodyCount = Field(description="Number of bodies.")
    mass: Positive = Field(1.0, description="Total mass of the sphere; each body has the same share.")
    radius: Positive = Field(1.0, description="Radius of the sphere, in units of length.")
    virial_ratio: NonNegative = Field(
        1.0,
        description="Twice the kinetic over the absolute potential energy, 2K/|W|: 1 is virial equilibrium, less than "
        "1 contracts at first, more than 1 expands.",
    )


class ColdSphereBodies(Section):
    """A sphere of constant density at rest: it collapses within one free-fall time, 1.1107 sqrt(R^3 / (G M))."""

    kind: Literal["cold-sphere"] = Field(description="A uniform sphere at rest, for cold collapse.")
    n: BodyCount = Field(description="Number of bodies.")
    mass: Positive = Field(1.0, description="Total mass of the sphere; each body has the same share.")
    radius: Positive = Field(1.0, description="Radius of the sphere, in units of length.")


class RandomBoxBodies(Section):
    """Bodies scattered evenly in a cube around the origin, the usual set for measuring speed."""

    kind: Literal["random-box"] = Field(description="Bodies scattered evenly in a cube.")
    n: BodyCount = Field(description="Number of bodies.")
    half_width: Positive = Field(
        1.0, description="Half the edge of the cube: coordinates lie within plus and minus this."
    )
    mass: Positive = Field(1.0, description="Mass of each body (not of all together).")


class TwoBodies(Section):
    """Two bodies on a Kepler orbit around their common centre of mass, for comparison with the exact solution."""

    kind: Literal["two-body"] = Field(description="Two bodies on a Kepler orbit.")
    masses: TwoMasses = Field((1.0, 1.0), description="The two masses.")
    semi_major_axis: Positive = Field(1.0, description="Semi-major axis of the relative orbit, in units of length.")
    eccentricity: Annotated[NonNegative, Lt(1)] = Field(
        0.0, description="0 is a circle; towards 1 the ellipse grows longer and needs a smaller time.dt."
    )


class FigureEightBodies(Section):
    """Three equal masses that chase one another along a figure eight; it returns after 6.3259 units of time (G = 1)."""

    kind: Literal["figure-eight"] = Field(description="Three bodies on the figure-eight orbit.")


class LagrangeTriangleBodies(Section):
    """Three equal masses at the corners of an equilateral triangle that turns as a rigid body."""

    kind: Literal["lagrange-triangle"] = Field(description="Three bodies on a turning equilateral triangle.")
    side: Positive = Field(1.0, description="Side of the triangle, in units of length.")
    mass: Positive = Field(1.0, description="Mass of each of the three bodies.")


class FileBodies(Section):
    """Bodies read from a file: CSV with the header row `x,y,z,vx,vy,vz,m`, a trajectory or checkpoint of this program
    (HDF5), or NumPy npz."""

    kind: Literal["file"] = Field(description="Bodies read from a file.")
    path: FileName = Field(
        description="The file. In a YAML file, a relative path starts at the folder of that YAML file; with --set, at "
        "the folder in which the command runs."
    )


Bodies = (
    PlummerBodies
    | UniformSphereBodies
    | ColdSphereBodies
    | RandomBoxBodies
    | TwoBodies
    | FigureEightBodies
    | LagrangeTriangleBodies
    | FileBodies
)


class Gravity(Section):
    """The force between bodies."""

    G: Positive = Field(1.0, description="Gravitational constant. Leave it at 1 in standard N-body units.")
    softening: NonNegative = Field(
        0.0,
        description="Plummer softening length, in units of length: two bodies at distance r attract as if they were "
        "sqrt(r^2 + softening^2) apart. 0 is exact gravity, as for orbits of a few bodies; a cluster needs some, 0.01 "
        "for the Plummer sphere of the examples, or close pairs spoil the energy.",
    )
    solver: Literal["direct"] = Field("direct", description="How forces are found: direct sums over all pairs.")
    precision: Literal["single", "mixed", "double"] = Field(
        "single",
        description="Precision of the force between a pair; positions and velocities are always float64. single is "
        "the fastest and right for clusters, mixed is far more accurate at a moderate price, double is for a few "
        "bodies and for comparison.",
    )


class Time(ExclusiveSection):
    """How time advances, and when the run stops."""

    exactly_one = ("end", "steps")

    integrator: Literal["leapfrog", "euler"] = Field(
        "leapfrog",
        description="leapfrog (kick-drift-kick, second order) unless you want to see how semi-implicit euler (first "
        "order) compares.",
    )
    dt: Positive = Field(
        description="Time step, in units of time. A good start is 1e-3; halve it until the energy error no longer "
        "matters."
    )
    end: Positive | None = Field(
        None, description="Simulated time at which the run ends, rounded up to whole steps. Give either end or steps."
    )
    steps: Annotated[AtLeastOne, Le(MOST_STEPS)] | None = Field(
        None, description="Number of steps of the whole run. Give either end or steps."
    )
    wall_limit: Duration | None = Field(
        None,
        description="Wall-clock time after which the run writes a checkpoint and stops with exit code 75, to be "
        "resumed; choose a little less than the batch queue grants. null: no limit.",
    )
    max_energy_error: Positive | None = Field(
        10.0,
        description="The run stops as a runaway when the absolute relative energy error exceeds this. null switches "
        "the check off.",
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
    def total_steps(self) -> int:
        """Steps from the initial state to the end: ``steps``, or ``end / dt`` rounded up.

        A quotient within 1e-9 (relative) of a whole number is that number: 1.0 / 1e-3 is 1000 steps.
        """
        if self.steps is not None:
            return self.steps
        quotient = self.end / self.dt
        nearest = round(quotient)
        if abs(quotient - nearest) <= 1e-9 * nearest:
            return max(nearest, 1)
        return math.ceil(quotient)


class Compute(Section):
    """Where the work is done. The result is the same; only the speed differs (and, between CPU and GPU, the last
    digits)."""

    backend: Literal["auto", "cpu", "gpu"] = Field(
        "auto",
        description="cpu: Numba threads; gpu: CUDA through CuPy, an error where no GPU is usable; auto: gpu if there "
        "is one, else cpu, and the run says which.",
    )
    threads: Threads = Field(
        "auto", description="CPU threads of each rank. auto shares the cores of a node out among its ranks."
    )
    balance: Balance = Field(
        "equal",
        description="How bodies are shared out among ranks: equal shares; measured: by the speed that each rank "
        "shows; or a list of weights, one a rank, such as [2, 1, 1].",
    )
    exchange: Literal["auto", "allgather"] = Field(
        "auto",
        description="How ranks see each other's bodies. allgather: every rank receives all positions each step; auto "
        "chooses.",
    )
    transport: Literal["auto", "host", "nccl"] = Field(
        "auto",
        description="What carries the exchange. host: MPI between host memories; nccl: directly between GPUs, which "
        "needs a GPU for each rank of a node; auto: nccl where that holds, else host.",
    )


class Every(ExclusiveSection):
    """How often something is written."""

    exactly_one = ("every_steps", "every_time")

    every_steps: AtLeastOne | None = Field(
        None, description="Write after each so many steps. Give either this or every_time."
    )
    every_time: Positive | None = Field(
        None, description="Write at the first step at or after each multiple of this simulated time."
    )


class Checkpoints(Every):
    """How often the complete state is saved, and how many of the saved states are kept."""

    keep: AtLeastOne = Field(2, description="Checkpoints that stay on disk; older ones are deleted.")


class Output(Section):
    """What is written, and where."""

    directory: FileName = Field(
        "output/run",
        description="Folder of the run, made if missing. A relative path starts at the folder in which the command "
        "runs.",
    )
    trajectory: Every | None = Field(
        Every(every_steps=100), description="When positions and velocities of all bodies are written. null: never."
    )
    diagnostics: Every | None = Field(
        Every(every_steps=10), description="When energies, momenta and the like are computed and written. null: never."
    )
    checkpoint: Checkpoints | None = Field(
        Checkpoints(every_steps=500),
        description="When the complete state is saved for a restart. null: only at the end and when the run is "
        "stopped.",
    )


class NBodyConfig(Section):
    """Gravity between bodies."""

    model: Literal["nbody"] = Field(description="What is simulated. nbody: gravity between bodies.")
    title: Line = Field("", description="A name for pictures and summaries.")
    seed: Annotated[Whole, Ge(0)] = Field(
        1, description="Seed of the random numbers: the same seed makes the same bodies on any number of ranks."
    )
    bodies: Bodies = Field(discriminator="kind", description="The bodies at time 0.")
    gravity: Gravity = Field(Gravity(), description="The force between bodies.")
    time: Time = Field(description="How time advances, and when the run stops.")
    compute: Compute = Field(Compute(), description="Where the work is done.")
    output: Output = Field(Output(), description="What is written, and where.")


MODELS: dict[str, type[Section]] = {"nbody": NBodyConfig}
"""The root of a configuration for each value of ``model:``."""
