"""A force between bodies, and external fields beside it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from hybrid_nbody.backends.base import Array
from hybrid_nbody.errors import InputError
from hybrid_nbody.nbody.bodies import LocalBodies
from hybrid_nbody.nbody.forces.base import Force, ForceSetup
from hybrid_nbody.nbody.kernels import make_fields
from hybrid_nbody.nbody.kernels.fields.field import ExternalField, Fields, Moving, rotation_of
from hybrid_nbody.nbody.kernels.fields.translation import translated
from hybrid_nbody.nbody.step_timer import Timer
from hybrid_nbody.simulation.model import Field, Work


class AllAccelerations:
    """The bodies of a force with accelerations of their own; see `LocalBodies`.

    Those of the force stay as they are: it may compare the next ones with them.

    Parameters
    ----------
    bodies : LocalBodies
        Those of the force.
    acceleration : (n, 3) array of float64
        The sum of all forces.
    fields : Fields
        What it contains of fields.
    """

    def __init__(self, bodies: LocalBodies, acceleration: Array, fields: Fields) -> None:
        self.position = bodies.position
        self.velocity = bodies.velocity
        self.acceleration = acceleration
        self._bodies = bodies
        self._fields = fields

    def kick(self, duration: float) -> None:
        """Change velocities: v += a `duration`."""
        self._fields.kick(self.velocity, self.acceleration, duration)

    def drift(self, duration: float) -> None:
        """Change positions: x += v `duration`."""
        self._bodies.drift(duration)


class WithFields(Force):
    """The sum of a force between bodies and of external fields.

    Parameters
    ----------
    force : Force
        Between bodies.
    fields : sequence of ExternalField
        At least one.
    setup : ForceSetup
        That of the force.
    """

    def __init__(self, force: Force, fields: Sequence[ExternalField], setup: ForceSetup) -> None:
        self.force = force
        self.fields_of_space = make_fields(setup.backend, fields)
        self.names = [field.function.__name__ for field in fields]
        self.mass = setup.backend.upload(setup.own_mass)
        between = force.bodies
        acceleration = setup.backend.zeros(between.position.shape, "f8")
        self.bodies = AllAccelerations(between, acceleration, self.fields_of_space)
        self.time = 0.0
        between_bodies = force.conserves_energy
        self.conserves_energy = between_bodies and all(field.conservative for field in fields)
        self.rotation = rotation_of(fields)

    @property
    def remark(self) -> str:
        """Return what the log says of the force between bodies, and the fields."""
        beside = f"external: {', '.join(self.names)}"
        return "; ".join(text for text in (self.force.remark, beside) if text)

    def at(self, time: float) -> None:
        """Let the next forces be those of a time."""
        self.time = time
        self.force.at(time)

    def start(self) -> None:
        """Compute the accelerations of the initial positions."""
        self.force.start()
        self._add_fields()

    def restore(self, rows: Callable[[str], NDArray[Any]], scalars: Mapping[str, float]) -> None:
        """Start from a saved state."""
        self.force.restore(rows, scalars)
        self._add_fields()

    def accelerations(self, timer: Timer) -> None:
        """Compute the accelerations."""
        self.force.accelerations(timer)
        self._add_fields()
        timer.record("force")

    def _add_fields(self) -> None:
        """Set the accelerations to those between bodies and those of the fields."""
        between = self.force.bodies.acceleration
        self.fields_of_space.add(self._moving(), self.time, between, self.bodies.acceleration)

    def _moving(self) -> Moving:
        return Moving(self.bodies.position, self.bodies.velocity, self.mass)

    def potential(self) -> Array:
        """Return the potential between bodies, and twice that of the fields."""
        return self.force.potential() + 2 * self.fields_of_space.potential(
            self._moving(), self.time
        )

    def work(self, jerks: bool) -> Work:
        """Return the cost of the force between bodies."""
        return self.force.work(jerks)

    def fields(self) -> list[Field]:
        """Return what a restart of the force between bodies needs."""
        return self.force.fields()

    def scalars(self) -> dict[str, float]:
        """Return the numbers that a restart of the force between bodies needs."""
        return self.force.scalars()

    def batches(self, step: int, steps: int) -> Iterator[int]:
        """Yield how many steps to take next."""
        return self.force.batches(step, steps)


def with_fields(
    force: Force, makers: Sequence[Callable[[float], ExternalField]], G: float, setup: ForceSetup
) -> Force:
    """Return a force between bodies, with external fields if there are any.

    Parameters
    ----------
    force : Force
    makers : sequence of callable
        Each returns a field for a gravitational constant.
    G : float
    setup : ForceSetup
        That of the force.

    Raises
    ------
    InputError
        On every rank, if a field cannot be made or does not run on a device.
    """
    if not makers:
        return force
    if "hybrid" in setup.backends:
        text = "gravity.external: fields do not run on backend hybrid; take cpu or gpu"
        raise InputError(text).on_all_ranks()
    fields = setup.communicator.together(lambda: made_fields(makers, G))
    return WithFields(force, fields, setup)


def made_fields(
    makers: Sequence[Callable[[float], ExternalField]], G: float
) -> list[ExternalField]:
    """Return the fields for a gravitational constant.

    Raises
    ------
    InputError
        If a function cannot be loaded, or does what cannot be compiled for every device.
    """
    fields = [make(G) for make in makers]
    for field in fields:
        translated(field.function, "field", len(field.parameters))
    return fields
