"""The configuration of `model: nbody`, gravity between bodies."""

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal, Self

from annotated_types import Ge, Le
from pydantic import Field, Strict, ValidationError, model_validator
from pydantic_core import InitErrorDetails

from hybrid_nbody.conditions import Look
from hybrid_nbody.config.sections import Compute, ModelConfig, Section, Time, fault
from hybrid_nbody.config.values import (
    Allowed,
    AtLeastOne,
    InOneMessage,
    Line,
    NonNegative,
    Positive,
    Registered,
    Switch,
)
from hybrid_nbody.nbody.config_bodies import AllBodies, Kind
from hybrid_nbody.nbody.config_external import AnyField
from hybrid_nbody.nbody.config_output import NBodyOutput, frame_faults
from hybrid_nbody.nbody.config_placement import Seed
from hybrid_nbody.nbody.config_stop import Stop
from hybrid_nbody.nbody.config_units import CLOSE, Units, with_constant
from hybrid_nbody.nbody.forces.choice import SOLVERS, candidates
from hybrid_nbody.nbody.integrators.registry import INTEGRATORS
from hybrid_nbody.nbody.kernels.expansions import LARGEST, SMALLEST
from hybrid_nbody.nbody.step_advice import advice_on_error
from hybrid_nbody.nbody.unit_names import PLAIN, SUN, UnitNames, mass_in_kg

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


class Gravity(Section):
    """The force between bodies."""

    G: Positive = Field(
        1.0,
        description="Gravitational constant. Leave it at 1 in standard N-body units, and out where "
        "`units` are given, from which it follows.",
        json_schema_extra={"default": "1, or that of units"},
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

    external: Annotated[tuple[AnyField, ...], Allowed("list", "a list of fields")] | None = Field(
        None,
        description="Fields that act on each body for itself, beside the other bodies: potentials, "
        "or functions of one's own. null: none.",
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
        0.1,
        description="The run stops as a runaway when the absolute relative energy error exceeds "
        "this. null switches the check off.",
    )

    @property
    def energy_limit(self) -> float | None:
        """Return `max_energy_error`."""
        return self.max_energy_error

    def advise(self, error: float) -> str:
        """Return what a person is told of a relative energy error that is too large."""
        return advice_on_error(self.integrator, self.dt, self.accuracy, error)

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
    units: Units | None = Field(
        None,
        description="Units of all numbers, such as {length: pc, mass: Msun, velocity: km/s}; "
        "gravity.G follows, and files, figures and exports name them. null: whatever G says.",
    )
    seed: Seed = Field(
        1,
        description="Seed of the random numbers: the same seed makes the same bodies on any number "
        "of ranks.",
    )
    bodies: AllBodies = Field(
        description="The bodies at time 0: one kind of them, or a list of components, each of one "
        "kind."
    )
    centred: Switch = Field(
        False,
        description="Whether the centre of mass of all bodies together is put at rest at the "
        "origin. Spheres are centred each by itself before they are placed.",
    )
    gravity: Gravity = Field(Gravity(), description="The force between bodies.")
    time: NBodyTime = Field(description="Time step, integrator and end of the run.")
    stop: Annotated[tuple[Stop, ...], Allowed("list", "a list of conditions")] = Field(
        (),
        description="Conditions that stop the run, with exit code 0 and a checkpoint, as soon as "
        "one of them begins to hold of a body, of a pair, or of the energy.",
    )
    activity_map: ActivityMap | None = Field(
        None,
        description="A map of the bodies in the unit square, written with each frame. null: none.",
    )
    compute: NBodyCompute = Field(NBodyCompute(), description="Devices of the ranks.")
    output: NBodyOutput = Field(NBodyOutput(), description="Files of the run.")

    @property
    def components(self) -> tuple[Kind, ...]:
        """Return the kinds of bodies, one or several."""
        return self.bodies if isinstance(self.bodies, tuple) else (self.bodies,)

    @property
    def conditions(self) -> tuple[Look, ...]:
        """Return what stops the run as soon as it happens."""
        return tuple(Look(stop.condition, stop.every_steps) for stop in self.stop)

    @property
    def unit_names(self) -> UnitNames:
        """Return the names of the units; what they measure where none are given."""
        return self.units.names if self.units else PLAIN

    @property
    def unit_lines(self) -> list[str]:
        """Return a line on the units; none where none are given."""
        return [f"units: {self.units.in_words}"] if self.units else []

    @property
    def attributes(self) -> Mapping[str, object]:
        """Return what files say of the units."""
        return self.units.attributes if self.units else {}

    @model_validator(mode="before")
    @classmethod
    def _follow_units(cls, data: Any) -> Any:
        """Let the gravitational constant follow from the units."""
        return with_constant(data)

    @model_validator(mode="wrap")
    @classmethod
    def _check_integrator(cls, data: Any, handler: Callable[[Any], Self]) -> Self:
        """Refuse what the integrator or the force cannot do, and what no body could meet."""
        config = handler(data)
        faults = [
            *_unit_faults(config),
            *_integrator_faults(config),
            *frame_faults(config),
            *_stop_faults(config),
        ]
        if faults:
            raise ValidationError.from_exception_data(cls.__name__, faults)
        return config


def _unit_faults(config: NBodyConfig) -> Iterator[InitErrorDetails]:
    units = config.units
    if units is None:
        return
    G = config.gravity.G
    if abs(G / units.G - 1) > CLOSE:
        text = f"is {units.G:.8g} in the units of the run; leave it out"
        yield fault(("gravity", "G"), G, text)
    planets = any(bodies.kind == "solar-system" for bodies in config.components)
    if planets and (units.length not in ("AU", "au") or mass_in_kg(units.mass) != SUN):
        text = "has bodies of kind solar-system, which need length: AU and mass: Msun"
        yield fault(("units",), units.in_words, text)


def _integrator_faults(config: NBodyConfig) -> Iterator[InitErrorDetails]:
    name = config.time.integrator
    yield from _name_faults(config)
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
    if config.gravity.external:
        text = "does not take gravity.external, of which it needs time derivatives; use yoshida4"
        yield fault(("time", "integrator"), name, text)
    if not any(kind.jerks for kind in candidates(config.gravity.solver)):
        text = (
            "needs the time derivatives of accelerations, which gravity.solver: "
            f"{config.gravity.solver} does not compute; use another integrator"
        )
        yield fault(("time", "integrator"), name, text)


def _stop_faults(config: NBodyConfig) -> Iterator[InitErrorDetails]:
    runaway = config.time.energy_limit
    for place, stop in enumerate(config.stop):
        limit = stop.energy_error
        path = ("stop", place, "energy_error")
        if limit is not None and config.output.diagnostics is None:
            yield fault(path, limit, "is looked at with output.diagnostics, which must not be null")
        if limit is not None and stop.every_steps != 1:
            text = "is for escape and closest; energy_error is looked at with output.diagnostics"
            yield fault(("stop", place, "every_steps"), stop.every_steps, text)
        if limit is not None and runaway is not None and limit >= runaway:
            text = (
                f"must be less than time.max_energy_error = {runaway:g}, at which the run ends "
                "with an error"
            )
            yield fault(path, limit, text)


def _name_faults(config: NBodyConfig) -> Iterator[InitErrorDetails]:
    taken: dict[str, int] = {}
    for place, bodies in enumerate(config.components):
        first = taken.setdefault(bodies.name, place)
        if bodies.name and first != place:
            text = f"is the name of bodies[{first}] already; give each component its own"
            yield fault(("bodies", place, "name"), bodies.name, text)


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
