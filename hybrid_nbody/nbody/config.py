"""The configuration of `model: nbody`, gravity between bodies."""

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal, Self

from annotated_types import Ge, Le, Lt
from pydantic import Field, Strict, ValidationError, model_validator
from pydantic_core import InitErrorDetails

from hybrid_nbody.config.sections import Compute, ModelConfig, Section, Time, fault
from hybrid_nbody.config.values import (
    Allowed,
    AtLeastOne,
    InOneMessage,
    InputFile,
    Line,
    NonNegative,
    Positive,
    Registered,
    WholeNumber,
)
from hybrid_nbody.nbody.config_output import NBodyOutput, frame_faults
from hybrid_nbody.nbody.forces.choice import SOLVERS, candidates
from hybrid_nbody.nbody.integrators.registry import INTEGRATORS
from hybrid_nbody.nbody.kernels.expansions import LARGEST, SMALLEST

MOST_BODIES = 10**9
MOST_MAP_CELLS = 4096

ACCURACY = 0.01
"""Default of ``time.accuracy``."""

ACCURACY_OF_FORCES = 1e-4
"""Default of ``gravity.accuracy``."""

LEAST_ACCURACY = {"single": 1e-3, "mixed": 1e-3, "double": 1e-9}
"""Least ``time.accuracy`` of each precision: below, rounding would decide on the substeps."""

Share = Annotated[
    Literal["auto"] | Annotated[NonNegative, Le(1)],
    InOneMessage,
    Allowed("choice or number", "auto or a number from 0 to 1"),
]
Precision = Literal["single", "mixed", "double"]
Solver = Annotated[str, Strict(), Registered(SOLVERS)]
IntegratorName = Annotated[str, Strict(), Registered(INTEGRATORS)]
BodyCount = Annotated[AtLeastOne, Le(MOST_BODIES)]
Dimensions = Annotated[Literal[2, 3], InOneMessage, Allowed("choice", "2 or 3")]
TwoMasses = Annotated[
    tuple[Positive, Positive], Allowed("list", "a list of two numbers, each greater than 0")
]


class PlummerBodies(Section):
    """A Plummer sphere in virial equilibrium, in standard units: total mass 1, total energy -1/4,
    scale length 3 pi / 16 (G = 1), centred and at rest as a whole."""

    kind: Literal["plummer"] = Field(
        description="A Plummer sphere, the standard model of a star cluster."
    )
    n: BodyCount = Field(description="Number of bodies.")


class UniformSphereBodies(Section):
    """A sphere of constant density with random velocities that fit a given virial ratio."""

    kind: Literal["uniform-sphere"] = Field(description="A uniform sphere with random velocities.")
    n: BodyCount = Field(description="Number of bodies.")
    mass: Positive = Field(
        1.0, description="Total mass of the sphere; each body has the same share."
    )
    radius: Positive = Field(1.0, description="Radius of the sphere, in units of length.")
    virial_ratio: NonNegative = Field(
        1.0,
        description="Twice the kinetic over the absolute potential energy, 2K/|W|: 1 is virial "
        "equilibrium, less than 1 contracts at first, more than 1 expands.",
    )


class ColdSphereBodies(Section):
    """A sphere of constant density at rest.

    It collapses within one free-fall time, 1.1107 sqrt(R^3 / (G M)).
    """

    kind: Literal["cold-sphere"] = Field(description="A uniform sphere at rest, for cold collapse.")
    n: BodyCount = Field(description="Number of bodies.")
    mass: Positive = Field(
        1.0, description="Total mass of the sphere; each body has the same share."
    )
    radius: Positive = Field(1.0, description="Radius of the sphere, in units of length.")


class RandomBoxBodies(Section):
    """Bodies scattered evenly in a cube around the origin, the usual set for measuring speed."""

    kind: Literal["random-box"] = Field(description="Bodies scattered evenly in a cube.")
    n: BodyCount = Field(description="Number of bodies.")
    half_width: Positive = Field(
        1.0, description="Half the edge of the cube: coordinates lie within plus and minus this."
    )
    mass: Positive = Field(1.0, description="Mass of each body (not of all together).")


class RandomSquareBodies(Section):
    """Bodies at rest, scattered evenly in the unit square [0, 1]^2 of the plane z = 0.

    Their total mass is 1.
    """

    kind: Literal["random-square"] = Field(
        description="Bodies scattered evenly in the unit square, at rest."
    )
    n: BodyCount = Field(description="Number of bodies; each has the mass 1/n.")
    dimensions: Annotated[Literal[2], InOneMessage, Allowed("choice", "2")] = Field(
        2, description="2: these bodies stay in the plane z = 0."
    )


class TwoBodies(Section):
    """Two bodies on a Kepler orbit around their common centre of mass.

    For comparison with the exact solution.
    """

    kind: Literal["two-body"] = Field(description="Two bodies on a Kepler orbit.")
    masses: TwoMasses = Field((1.0, 1.0), description="The two masses.")
    semi_major_axis: Positive = Field(
        1.0, description="Semi-major axis of the relative orbit, in units of length."
    )
    eccentricity: Annotated[NonNegative, Lt(1)] = Field(
        0.0,
        description="0 is a circle; towards 1 the ellipse grows longer and needs a smaller "
        "time.dt.",
    )


class FigureEightBodies(Section):
    """Three equal masses that chase one another along a figure eight.

    Each is back after 6.3259 units of time (G = 1).
    """

    kind: Literal["figure-eight"] = Field(description="Three bodies on the figure-eight orbit.")


class LagrangeTriangleBodies(Section):
    """Three equal masses at the corners of an equilateral triangle that turns as a rigid body."""

    kind: Literal["lagrange-triangle"] = Field(
        description="Three bodies on a turning equilateral triangle."
    )
    side: Positive = Field(1.0, description="Side of the triangle, in units of length.")
    mass: Positive = Field(1.0, description="Mass of each of the three bodies.")


class FileBodies(Section):
    """Bodies read from a file: CSV with the header row `x,y,z,vx,vy,vz,m`, CSV of bodies in a
    plane, `x,y,vx,vy,m`, a trajectory or checkpoint of this program (HDF5), or NumPy npz."""

    kind: Literal["file"] = Field(description="Bodies read from a file.")
    path: InputFile = Field(
        description="The file. In a YAML file, a relative path starts at the folder of that YAML "
        "file; with --set, at the folder in which the command runs."
    )
    dimensions: Dimensions = Field(
        3,
        description="2: every body must lie in the plane z = 0 and move within it, where it then "
        "stays exactly; a file with others is refused.",
    )


Bodies = (
    PlummerBodies
    | UniformSphereBodies
    | ColdSphereBodies
    | RandomBoxBodies
    | RandomSquareBodies
    | TwoBodies
    | FigureEightBodies
    | LagrangeTriangleBodies
    | FileBodies
)


class Gravity(Section):
    """The force between bodies."""

    G: Positive = Field(
        1.0, description="Gravitational constant. Leave it at 1 in standard N-body units."
    )
    softening: NonNegative = Field(
        0.0,
        description="Plummer softening length, in units of length: two bodies at distance r "
        "attract as if they were sqrt(r^2 + softening^2) apart. 0 is exact gravity, as for orbits "
        "of a few bodies; a cluster needs some, 0.01 for the Plummer sphere of the examples, or "
        "close pairs spoil the energy.",
    )
    solver: Solver = Field(
        "direct",
        description="Algorithm of the forces. direct: sums over all pairs; fmm: a fast multipole "
        "method, whose time grows with the number of bodies rather than with its square, on CPUs "
        "or GPUs; auto: fmm from the number of bodies on where it is faster.",
    )
    precision: Precision = Field(
        "mixed",
        description="Precision of the force between a pair; positions and velocities are always "
        "float64. single is the fastest and right for softened clusters, mixed is far more "
        "accurate at a moderate cost and gets close pairs right, double is for a few bodies and "
        "for comparison.",
        json_schema_extra={"default": "single with softening, else mixed"},
    )

    accuracy: Annotated[Positive, Ge(SMALLEST), Le(LARGEST)] = Field(
        ACCURACY_OF_FORCES,
        description="Only for fmm and auto: the rms error of all accelerations over their rms is "
        "at most this, and the error of 99.9 % of the bodies at most ten times this.",
    )

    @model_validator(mode="before")
    @classmethod
    def _fit_precision(cls, data: Any) -> Any:
        """Choose the precision where none is given: close pairs without softening need more."""
        if not isinstance(data, Mapping) or "precision" in data:
            return data
        softening = data.get("softening", 0.0)
        softened = isinstance(softening, int | float) and softening > 0
        return {**data, "precision": "single" if softened else "mixed"}


class ActivityMap(Section):
    """A map of the number of bodies in the unit square [0, 1]^2.

    It is written with each frame as `activity/map`.
    """

    cells: Annotated[AtLeastOne, Le(MOST_MAP_CELLS)] = Field(
        description="Cells D along each side. A cell of the map holds D / N times the number of "
        "bodies in it, N being the number of all; bodies outside the square count nowhere."
    )


class NBodyTime(Time):
    """Time step, integrator and end of the run."""

    dt: Positive = Field(
        description="Time step, in units of time. A good start is 1e-3; halve it until the energy "
        "error no longer matters."
    )
    integrator: IntegratorName = Field(
        "leapfrog",
        description="leapfrog (kick-drift-kick, second order) for most runs; yoshida4 (fourth "
        "order, three forces a step) where the error must be small and must not drift; hermite4 "
        "(fourth order, steps of time.dt covered by adaptive substeps that all bodies share) for "
        "close encounters and eccentric orbits; euler (semi-implicit, first order) for comparison.",
    )
    accuracy: Annotated[Positive, Le(1)] = Field(
        ACCURACY,
        description="Only for hermite4: eta of Aarseth's criterion, to whose square root the "
        "substeps are proportional. The energy error falls with its square; at most 0.02 is usual. "
        "Below 1e-3, gravity.precision must be double, at least 1e-9.",
    )
    max_energy_error: Positive | None = Field(
        10.0,
        description="The run stops as a runaway when the absolute relative energy error exceeds "
        "this. null switches the check off.",
    )

    @property
    def energy_limit(self) -> float | None:
        """Return `max_energy_error`."""
        return self.max_energy_error

    @model_validator(mode="wrap")
    @classmethod
    def _check_accuracy(cls, data: Any, handler: Callable[[Any], Self]) -> Self:
        """Refuse an accuracy that no step would heed."""
        time = handler(data)
        if time.accuracy != ACCURACY and time.integrator != "hermite4":
            text = (
                f"is for integrator hermite4; leave it at {ACCURACY:g}, or take time.integrator: "
                "hermite4"
            )
            raise ValidationError.from_exception_data(
                cls.__name__, [fault(("accuracy",), time.accuracy, text)]
            )
        return time


class NBodyCompute(Compute):
    """Devices of the ranks, and the exchange of their bodies."""

    cpu_share: Share = Field(
        "auto",
        description="With backend hybrid, the share of a rank's bodies whose forces its CPU "
        "threads compute while its GPU computes the others. auto: measured at the start and "
        "adapted slowly; 0 or 1 where one device alone is faster. The last digits depend on it, so "
        "give a number for a run that can be repeated to the bit.",
    )
    exchange: Literal["auto", "allgather", "ring"] = Field(
        "auto",
        description="Exchange of bodies between ranks. allgather: every rank holds all positions, "
        "and the last digits do not depend on the number of ranks; ring: blocks of bodies go "
        "around the ranks while they compute, so that all devices together need to hold them only "
        "once; auto: allgather, unless the bodies fill much of a device.",
    )

    @model_validator(mode="wrap")
    @classmethod
    def _check_share(cls, data: Any, handler: Callable[[Any], Self]) -> Self:
        """Refuse a share that no rank would heed."""
        compute = handler(data)
        backends = (compute.backend,) if isinstance(compute.backend, str) else compute.backend
        if compute.cpu_share != "auto" and "hybrid" not in backends:
            text = "is for backend hybrid; leave it at auto, or take compute.backend: hybrid"
            raise ValidationError.from_exception_data(
                cls.__name__, [fault(("cpu_share",), compute.cpu_share, text)]
            )
        return compute


class NBodyConfig(ModelConfig):
    """Gravity between bodies."""

    model: Literal["nbody"] = Field(
        description="Physics of the run. nbody: gravity between bodies."
    )
    title: Line = Field("", description="A name for pictures and summaries.")
    seed: Annotated[WholeNumber, Ge(0)] = Field(
        1,
        description="Seed of the random numbers: the same seed makes the same bodies on any number "
        "of ranks.",
    )
    bodies: Bodies = Field(discriminator="kind", description="The bodies at time 0.")
    gravity: Gravity = Field(Gravity(), description="The force between bodies.")
    time: NBodyTime = Field(description="Time step, integrator and end of the run.")
    activity_map: ActivityMap | None = Field(
        None,
        description="A map of the bodies in the unit square, written with each frame. null: none.",
    )
    compute: NBodyCompute = Field(NBodyCompute(), description="Devices of the ranks.")
    output: NBodyOutput = Field(NBodyOutput(), description="Files of the run.")

    @model_validator(mode="wrap")
    @classmethod
    def _check_integrator(cls, data: Any, handler: Callable[[Any], Self]) -> Self:
        """Refuse what the integrator or the force cannot do, and ids that no body has."""
        config = handler(data)
        if faults := [*_integrator_faults(config), *frame_faults(config)]:
            raise ValidationError.from_exception_data(cls.__name__, faults)
        return config


def _integrator_faults(config: NBodyConfig) -> Iterator[InitErrorDetails]:
    name = config.time.integrator
    yield from _force_faults(config)
    if name == "hermite4":
        yield from _accuracy_faults(config)
    if not INTEGRATORS[name].jerks:
        return
    if config.compute.exchange == "ring":
        text = (
            f"does not carry the velocities that time.integrator: {name} needs; "
            "use allgather or auto"
        )
        yield fault(("compute", "exchange"), "ring", text)
    if not any(kind.jerks for kind in candidates(config.gravity.solver)):
        text = (
            "needs the time derivatives of accelerations, which gravity.solver: "
            f"{config.gravity.solver} does not compute; use another integrator"
        )
        yield fault(("time", "integrator"), name, text)


def _force_faults(config: NBodyConfig) -> Iterator[InitErrorDetails]:
    solver = config.gravity.solver
    kinds = candidates(solver)
    if config.compute.exchange == "ring" and not any(kind.rings for kind in kinds):
        text = f"is not for gravity.solver: {solver}; use allgather or auto"
        yield fault(("compute", "exchange"), "ring", text)
    accuracy = config.gravity.accuracy
    if accuracy != ACCURACY_OF_FORCES and all(kind.all_pairs for kind in kinds):
        text = (
            f"is for a solver that is not exact; leave it at {ACCURACY_OF_FORCES:g}, or take "
            "gravity.solver: fmm"
        )
        yield fault(("gravity", "accuracy"), accuracy, text)


def _accuracy_faults(config: NBodyConfig) -> Iterator[InitErrorDetails]:
    accuracy = config.time.accuracy
    precision = config.gravity.precision
    least = LEAST_ACCURACY[precision]
    if accuracy < least:
        advice = "" if precision == "double" else ", or take gravity.precision: double"
        text = f"must be at least {least:g} where forces are of {precision} precision{advice}"
        yield fault(("time", "accuracy"), accuracy, text)
