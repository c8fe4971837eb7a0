"""The N-body model: bodies under a force, advanced step by step by an integrator."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Array
from hybrid_nbody.backends.timing import begin
from hybrid_nbody.nbody import diagnostics
from hybrid_nbody.nbody.bodies import Bodies, LocalBodies
from hybrid_nbody.nbody.copies import Motions, StateCopies
from hybrid_nbody.nbody.diagnostics import Values
from hybrid_nbody.nbody.forces.base import Force, ForceSetup
from hybrid_nbody.nbody.frames import EVERYTHING, Shown
from hybrid_nbody.nbody.gathering import Gathering
from hybrid_nbody.nbody.integrators.base import Integrator
from hybrid_nbody.nbody.kernels import make_measuring
from hybrid_nbody.nbody.kernels.measured import MANY, MeasuredBodies, Measuring
from hybrid_nbody.simulation.model import Field, Model, Quantity, Role, Work

MOVING = {"bodies/position", "bodies/velocity"}
"""The fields of frames that change from step to step."""


class NBodyModel:
    """Bodies under a force; see `hybrid_nbody.simulation.model.Model` for the contract.

    Parameters
    ----------
    setup : ForceSetup
        Device, ranks, exchange and masses; the partition of the exchange says which rank owns which
        bodies.
    ids : (n,) array of int64
        The identity of each of this rank's bodies.
    force : Force
        What `setup` was used for.
    integrator : Integrator
        Takes the steps.
    dt : float
        Length of a step, in units of time.
    shown : Shown, optional
        What is written with the frames, and not in checkpoints.

    Attributes
    ----------
    initial_energy : float or None
        The total energy of the first diagnostics, or Jacobi's integral; None before them.
    """

    quantities: Mapping[str, Quantity]
    row_name = "body"

    def __init__(
        self,
        setup: ForceSetup,
        ids: NDArray[np.int64],
        force: Force,
        integrator: Integrator[Any],
        dt: float,
        shown: Shown = EVERYTHING,
    ) -> None:
        self.backend = setup.backend
        self.communicator = setup.communicator
        self.exchange = setup.exchange
        self.pair_force = setup.pair_force
        self.timings = setup.timings
        self.number = setup.number
        self.own_mass = setup.own_mass
        self.ids = ids
        self.force = force
        self.integrator = integrator
        if integrator.only_kicks_and_drifts:
            force.let_bodies_stay()
        self.dt = dt
        self.shown = shown
        self.quantities = diagnostics.quantities_of(force, shown.units, shown.advise)
        self.advice = advice_for(setup.pair_force.precision)
        self.step = 0
        self.initial_energy: float | None = None

    @property
    def bodies(self) -> LocalBodies:
        """Return the bodies whose rows this rank owns; steps may have left them elsewhere."""
        self.force.bring_home()
        return self.force.bodies

    @property
    def time(self) -> float:
        """Simulated time."""
        return self.step * self.dt

    def times_at(self, steps: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the times of steps: multiples of dt, so that rounding does not add up."""
        times: NDArray[np.float64] = steps * np.float64(self.dt)
        return times

    @property
    def work(self) -> Work:
        """Cost of a step; with adaptive substeps, on average so far."""
        once = self.force.work(self.integrator.uses_jerks)
        per_step = self.integrator.forces_per_step * once.per_step
        return Work(once.unit, per_step, once.operations)

    def begin(self, own: Bodies) -> None:
        """Start from this rank's share of the initial bodies."""
        self._set_bodies(own.position, own.velocity)
        self.force.at(self.time)
        self.force.start()
        self.integrator.begin(self.force, self.bodies)

    def restore(self, rows: Callable[[str], NDArray[Any]], scalars: Mapping[str, float]) -> None:
        """See `Model.restore`."""
        self.step = int(scalars["step"])
        self.initial_energy = scalars.get("initial_energy")
        self._set_bodies(rows("bodies/position"), rows("bodies/velocity"))
        self.force.at(self.time)
        self.force.restore(rows, scalars)
        self.integrator.restore(lambda name: rows(f"bodies/{name}"), scalars)

    def _set_bodies(self, position: NDArray[Any], velocity: NDArray[Any]) -> None:
        self.bodies.position[:] = self.backend.upload(position)
        self.bodies.velocity[:] = self.backend.upload(velocity)
        self._update_shown()

    def _update_shown(self) -> None:
        """Update what is shown of the positions, here where all ranks call together."""
        for shown in self.shown.maps:
            shown.update(self.bodies.position)

    def advance(self, steps: int) -> None:
        """See `Model.advance`."""
        self.queue(steps)()

    @property
    def runs_ahead(self) -> bool:
        """See `RunsAhead`."""
        return self.backend.runs_ahead

    def queue(self, steps: int) -> Callable[[], float]:
        """See `RunsAhead.queue`."""
        return begin(self.backend, lambda: self._advance(steps))

    def queue_with_copies(
        self, interval: int, copies: Mapping[str, Array]
    ) -> Callable[[], float] | None:
        """See `CopiesState.queue_with_copies`; None where more than the motion is to be copied."""
        advance = self.integrator.advance_with_copies(self.force)
        if advance is None or copies.keys() != MOVING:
            return None
        memory = Motions(copies["bodies/position"], copies["bodies/velocity"])
        wanted = StateCopies(interval, memory)
        try:
            return begin(self.backend, lambda: advance(self.step, wanted))
        finally:
            self.step += interval * wanted.taken

    def _advance(self, steps: int) -> None:
        self.integrator.advance(self.force, self.force.bodies, self.step, steps)
        self.step += steps
        self._update_shown()

    def diagnostics(self) -> dict[str, float | tuple[float, ...]]:
        """See `Model.diagnostics`."""
        self.force.at(self.time)
        # before the copies of the bodies: a tree takes memory of its own for a while
        potential = self.force.potential()
        measured = self._many_measured if self.number >= MANY else self._measured
        values = measured(potential)
        values, self.initial_energy = diagnostics.with_error(
            values, self.force, self.initial_energy
        )
        return values

    def _measured(self, potential: Array) -> Values:
        """Return the global quantities, measured on the host."""
        download = self.backend.download
        own = Bodies(
            download(self.bodies.position), download(self.bodies.velocity), self.own_mass, self.ids
        )
        return diagnostics.measure(own, download(potential), self.number, self.communicator)

    def _many_measured(self, potential: Array) -> Values:
        """Return the same, measured on the device."""
        mass = self.backend.upload(self.own_mass)
        own = MeasuredBodies(self.bodies.position, self.bodies.velocity, mass, potential)
        measures = self._measuring.of(own)
        return diagnostics.measure_many(measures, self.number, self.communicator)

    @cached_property
    def _measuring(self) -> Measuring:
        return make_measuring(self.backend)

    def fields(self) -> dict[str, Field]:
        """See `Model.fields`."""
        self.force.bring_home()
        extra = [
            *self.force.fields(),
            *(
                self._vector(name, "", array, Role.INTERNAL)
                for name, array in self.integrator.arrays().items()
            ),
        ]
        return self._own_fields | {field.name: field for field in extra}

    @cached_property
    def _own_fields(self) -> dict[str, Field]:
        """Return the fields of the bodies, whose arrays stay the same, and what is shown of them.

        They are made once: a run with many frames asks for them at each.
        """
        fields = (
            self._vector("position", "length", self.bodies.position, Role.FRAME),
            self._vector("velocity", "length / time", self.bodies.velocity, Role.FRAME),
            self._constant("mass", "mass of each body", "mass", self.own_mass),
            self._constant("id", "identity of each body", "1", self.ids),
            self._vector("acceleration", "", self.bodies.acceleration, Role.WATCHED),
            *(shown.field() for shown in self.shown.maps),
        )
        return self._with_frames({field.name: field for field in fields})

    def _with_frames(self, fields: dict[str, Field]) -> dict[str, Field]:
        """Return fields where frames hold some bodies: those of the state are not in frames then.

        Those of the frames have the same names, and come by keys of their own.
        """
        frames = self.shown.frames
        if frames is None:
            return fields
        moving = {"position": self.bodies.position, "velocity": self.bodies.velocity}
        constant = {"mass": self.own_mass, "id": self.ids}
        state = {name: fields[f"bodies/{name}"] for name in (*moving, *constant)}
        inner = {field.name: replace(field, role=Role.INTERNAL) for field in state.values()}
        whole = [state[name] for name in moving]
        shown = {
            f"frame/{name}": frames.shown(state[name], moving[name], whole) for name in frames.names
        }
        once = {
            f"frame/{name}": frames.shown_once(state[name], constant[name]) for name in constant
        }
        return fields | inner | shown | once

    def _vector(self, name: str, units: str, array: Array, role: Role) -> Field:
        """Return a field of three components on the device."""
        gathering = self._gathering
        return Field(
            name=f"bodies/{name}",
            shape=(self.number, 3),
            dtype=np.dtype("f8"),
            units=self.shown.units.of(units),
            description=f"{name} of each body",
            index=self.exchange.own,
            host=lambda start, stop: self.backend.download(array[start:stop]),
            role=role,
            start=lambda: self.backend.start_download(array),
            gather=partial(gathering.begin, array) if gathering.is_fast else None,
            array=array,
        )

    @cached_property
    def _gathering(self) -> Gathering:
        return Gathering(self.backend, self.exchange)

    def _constant(self, name: str, description: str, units: str, array: NDArray[Any]) -> Field:
        """Return a field of one number a body, kept on the host."""
        return Field(
            name=f"bodies/{name}",
            shape=(self.number,),
            dtype=array.dtype,
            units=self.shown.units.of(units),
            description=description,
            index=self.exchange.own,
            host=lambda start, stop: array[start:stop].copy(),
            role=Role.STATIC,
            array=None if array.dtype.kind in "iu" else array,
        )

    def scalars(self) -> dict[str, float]:
        """See `Model.scalars`; the initial energy is left out before the first diagnostics."""
        known = {} if self.initial_energy is None else {"initial_energy": self.initial_energy}
        clock = {"step": self.step, "time": self.time}
        return clock | known | self.force.scalars() | self.integrator.scalars()

    def suspect(self) -> str:
        """Describe the fastest body: a missed close encounter flings its bodies out."""
        speed = np.linalg.norm(self.backend.download(self.bodies.velocity), axis=1)
        own = (-1.0, -1)
        if len(speed):
            fastest = int(np.argmax(speed))
            own = (float(speed[fastest]), int(self.ids[fastest]))
        found, body = max(self.communicator.gather(own))
        return f"body {body}, the fastest, moves at {found:.6g}"


def advice_for(precision: str) -> dict[str, str]:
    """Return what to do when the state of bodies has gone wrong, by when."""
    start = (
        "The initial state cannot be run: look for bodies at the same position, or for huge values"
    )
    run = "Take a smaller time.dt or a larger softening"
    wider = "" if precision == "double" else "; gravity.precision: double holds a wider range"
    return {"start": start + wider, "run": run + wider}


if TYPE_CHECKING:  # mypy checks that the class satisfies the contract
    MODEL: type[Model] = NBodyModel
