"""The state of a simulation in memory, read and set."""

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hybrid_nbody.api.bodies import checked_bodies
from hybrid_nbody.api.checks import (
    AttributeInputError,
    Named,
    check_finite,
    check_masses,
    identities_of,
    in_cell,
    numbers_like,
    of_body,
)
from hybrid_nbody.api.device import DeviceArrays
from hybrid_nbody.api.models import builder_of, setup_of
from hybrid_nbody.config.sections import ModelConfig
from hybrid_nbody.errors import InputError
from hybrid_nbody.nbody.bodies import Bodies, joined
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.rows import row_numbers
from hybrid_nbody.parallel.transport.base import Transport
from hybrid_nbody.simulation.guard import Guard
from hybrid_nbody.simulation.loop import TimeLoop
from hybrid_nbody.simulation.model import Field, Model

T = TypeVar("T")

Rows = NDArray[np.float64]

SAME_SIZE = 1e4
"""Positions may grow or shrink by this factor before units of the sums are chosen anew."""

ENERGIES = ("total_energy", "kinetic_energy")
"""Diagnostics of which a model has one, the first that it has."""


class State:
    """What is known of a simulation; see `Simulation`."""

    config: ModelConfig
    communicator: Communicator
    _running: TimeLoop | None
    _guard: Guard
    _size: float
    _transport: Transport

    def _together(self, call: str) -> None:
        """Find out whether all ranks make a call: one alone would wait for ever.

        Without a name it is that of the class.
        """
        if self.communicator.agreement is not None:
            self.communicator.agreement.on(f"Simulation.{call}" if call else "Simulation(...)")

    def _agree(self, call: str, checked: Callable[[], tuple[str, T]]) -> T:
        """Return what the arguments of a call are, which all ranks make with the same ones.

        Parameters
        ----------
        call : str
        checked : callable
            Checks the arguments, and returns them in words and as they are used.

        Raises
        ------
        InputError
            On every rank, if a check fails on any, or the words are not the same.
        """
        fault: InputError | None = None
        try:
            words, found = checked()
        except InputError as error:
            fault, words = error, " with wrong arguments"
        try:
            self._together(f"{call}{words}")
        except InputError as error:
            raise (fault or error).on_all_ranks() from None
        if fault:
            raise fault.on_all_ranks()
        return found

    @property
    def _loop(self) -> TimeLoop:
        """Return what advances the model; raises `InputError` if the simulation is closed."""
        if self._running is None:
            raise InputError("this simulation is closed; make another one, or resume what it saved")
        return self._running

    @property
    def model(self) -> Model:
        """Return the model, as the command line steps it.

        Its device becomes the current one: another simulation may have made its own that.
        """
        model = self._loop.model
        model.backend.use()
        return model

    @property
    def dt(self) -> float:
        """Return the length of a step."""
        return float(self.config.time.dt)

    @property
    def time(self) -> float:
        """Return the simulated time."""
        return self.model.time

    @time.setter
    def time(self, value: float) -> NoReturn:
        raise _counted("time")

    @property
    def steps(self) -> int:
        """Return the number of steps done."""
        return self.model.step

    @steps.setter
    def steps(self, value: int) -> NoReturn:
        raise _counted("steps")

    @property
    def diagnostics(self) -> dict[str, Any]:
        """Return the global quantities of the present state; all ranks ask together."""
        self._together("diagnostics")
        return dict(self.model.diagnostics())

    @property
    def energy(self) -> float:
        """Return the total energy of bodies, or the kinetic energy of a fluid.

        All ranks ask together.
        """
        self._together("energy")
        found = dict[str, Any](self.model.diagnostics())
        name = next((name for name in ENERGIES if name in found), None)
        if name is None:
            raise AttributeInputError(f"energy: this model has none; it has {', '.join(found)}")
        return float(found[name])

    @property
    def positions(self) -> Rows:
        """Return a copy of the positions of this rank's bodies, (n, 3)."""
        return self.rows("bodies/position")

    @positions.setter
    def positions(self, values: ArrayLike) -> None:
        self._together("positions = ...")
        self._go_on(self._own_rows("positions", "bodies/position", values), self.velocities)

    @property
    def velocities(self) -> Rows:
        """Return a copy of the velocities of this rank's bodies, (n, 3)."""
        return self.rows("bodies/velocity")

    @velocities.setter
    def velocities(self, values: ArrayLike) -> None:
        self._together("velocities = ...")
        self._go_on(self.positions, self._own_rows("velocities", "bodies/velocity", values))

    @property
    def masses(self) -> Rows:
        """Return a copy of the masses of this rank's bodies, (n,)."""
        return self.rows("bodies/mass")

    @masses.setter
    def masses(self, values: ArrayLike) -> None:
        self._together("masses = ...")
        masses = self._own_rows("masses", "bodies/mass", values)
        bodies = self._all_bodies()
        mass = self._whole("bodies/mass", masses)
        self._replace(checked_bodies(bodies.position, bodies.velocity, mass, bodies.id))

    @property
    def ids(self) -> NDArray[np.int64]:
        """Return a copy of the identities of this rank's bodies, (n,)."""
        return self.rows("bodies/id").astype(np.int64)

    @property
    def density(self) -> Rows:
        """Return a copy of this rank's planes of the density of a fluid, (planes, ny, nx)."""
        return self.rows("fluid/density")

    @density.setter
    def density(self, values: ArrayLike) -> None:
        self._set_planes("density", values)

    @property
    def velocity(self) -> Rows:
        """Return a copy of this rank's planes of the velocity of a fluid, (planes, ny, nx, 3)."""
        return self.rows("fluid/velocity")

    @velocity.setter
    def velocity(self, values: ArrayLike) -> None:
        self._set_planes("velocity", values)

    def _set_planes(self, name: str, values: ArrayLike) -> None:
        """Go on from other values of this rank's planes; all ranks call together."""
        self._together(f"{name} = ...")
        planes = self._own_rows(name, f"fluid/{name}", values)
        model: Any = self.model
        model.begin({name: planes})
        self._guard.check_numbers()

    def rows(self, name: str) -> NDArray[Any]:
        """Return a copy of this rank's rows of a field, by its name in the files.

        Raises
        ------
        InputError
            If the model has no such field.
        """
        field = self._field(name)
        return np.array(field.host(0, field.rows))

    def _field(self, name: str) -> Field:
        """Return a field; raises as `rows`."""
        fields = self.model.fields()
        if name not in fields:
            known = ", ".join(sorted(fields))
            raise AttributeInputError(f"no field '{name}'; there are {known}")
        return fields[name]

    def _own_rows(self, name: str, path: str, values: ArrayLike) -> Rows:
        """Return values for this rank's rows of a field, once they do on all ranks.

        Raises
        ------
        InputError
            On every rank, if a shape or a number is wrong on any; nothing has changed then.
        """
        field = self._field(path)

        def checked() -> Rows:
            rows = numbers_like(name, values, (field.rows, *field.shape[1:]))
            named = self._named(path)
            check_finite(name, rows, named, field.dtype)
            if name == "masses":
                check_masses(rows, named)
            return rows

        return self.communicator.together(checked)

    def _named(self, path: str) -> Named:
        """Return what says where in a field a number stands."""
        return of_body(self.ids) if path.startswith("bodies/") else in_cell

    def gathered(self, name: str) -> NDArray[Any]:
        """Return all rows of a field on every rank; all ranks ask together."""
        self._together("gathered")
        return self._whole(name, self.rows(name))

    def _whole(self, name: str, rows: NDArray[Any]) -> NDArray[Any]:
        """Return all rows of a field, of which each rank has its own."""
        found = self.communicator.concatenate(rows)
        places = row_numbers(self.model.fields()[name].index)
        result = np.empty_like(found)
        result[self.communicator.concatenate(places)] = found
        return result

    @property
    def device(self) -> DeviceArrays:
        """Return this rank's arrays in place, on the device where they are computed."""
        return DeviceArrays(self)

    def begin(self, positions: ArrayLike, velocities: ArrayLike, call: str = "begin") -> None:
        """Go on from other positions and velocities of this rank's bodies.

        The energy error counts from there; all ranks call together.

        Parameters
        ----------
        positions, velocities : (n, 3) array
        call : str, optional
            What the ranks call, for the message if one of them does not.

        Raises
        ------
        InputError
            On every rank, if a shape does not fit, or a number is not finite.
        """
        self._together(call)
        position = self._own_rows("positions", "bodies/position", positions)
        self._go_on(position, self._own_rows("velocities", "bodies/velocity", velocities))

    def _go_on(self, positions: Rows, velocities: Rows) -> None:
        """Go on from other positions and velocities of this rank's bodies, which are checked."""
        size = self._largest(positions)
        same = self._size / SAME_SIZE <= size <= self._size * SAME_SIZE
        if np.isfinite(size) and not same:
            self._rebuild(positions, velocities)
        else:
            model: Any = self.model
            model.begin(Bodies(positions, velocities, self.masses, self.ids))
            model.initial_energy = None
        self._guard.check_numbers()

    def _note_size(self) -> None:
        """Note the size of the bodies, for which the units of single precision are chosen."""
        bodies = "bodies/position" in self.model.fields()
        self._size = self._largest(self.positions) if bodies else 0.0

    def _largest(self, rows: Rows) -> float:
        """Return the largest absolute value of all ranks; they call together."""
        own = np.array([np.abs(rows).max(initial=0.0)])
        return float(self.communicator.maximum(own)[0])

    def _rebuild(self, positions: Rows, velocities: Rows) -> None:
        """Make the model anew, as for bodies that start there."""
        bodies = self._all_bodies()
        position = self._whole("bodies/position", positions)
        velocity = self._whole("bodies/velocity", velocities)
        self._replace(checked_bodies(position, velocity, bodies.mass, bodies.id))

    # ---- Other bodies ----------------------------------------------------------------------------

    def add(
        self, positions: ArrayLike, velocities: ArrayLike, masses: ArrayLike
    ) -> NDArray[np.int64]:
        """Add bodies, which the root passes, and return their identities on every rank.

        All ranks call together. The simulation goes on at its time with the sums in a new order,
        as one that starts from all these bodies; the energy error counts from there.

        Parameters
        ----------
        positions, velocities : (N, 3) array
        masses : (N,) array

        Raises
        ------
        InputError
            On every rank, if shapes do not fit, a number is not finite, or a mass is negative.
        """
        self._together("add")
        new = self.communicator.on_root(lambda: checked_bodies(positions, velocities, masses))
        present = self._all_bodies()
        new = Bodies(new.position, new.velocity, new.mass, new.id + present.id.max() + 1)
        self._replace(joined([present, new]))
        return new.id

    def remove(self, ids: ArrayLike) -> None:
        """Remove the bodies of some identities; all ranks call together, as `add`.

        Raises
        ------
        InputError
            On every rank, if there is no such body, none would be left, or they are no identities.
        """
        self._together("remove")
        gone = self.communicator.on_root(lambda: identities_of("remove: ids", ids))
        present = self._all_bodies()
        unknown = np.setdiff1d(gone, present.id)
        if len(unknown):
            raise InputError(f"remove: there is no body {unknown[0]}").on_all_ranks()
        left = np.flatnonzero(~np.isin(present.id, gone))
        if not len(left):
            raise InputError("remove: one body must be left").on_all_ranks()
        self._replace(present.some(left))

    def _all_bodies(self) -> Bodies:
        """Return the bodies of all ranks, on every rank."""
        names = [f"bodies/{name}" for name in ("position", "velocity", "mass", "id")]
        return Bodies(*(self._whole(name, self.rows(name)) for name in names))

    def _replace(self, bodies: Bodies) -> None:
        """Go on at the same time with other bodies."""
        before = self.model
        setup = setup_of(builder_of(self.config, self.communicator), bodies)
        model = setup.model
        model.step = before.step
        self._transport.release()
        self._transport = setup.exchange.transport
        self._loop.model = model
        self._note_size()
        if model.step:  # what changes with time was computed for the first step
            self._go_on(self.positions, self.velocities)


def _counted(name: str) -> AttributeInputError:
    """Return what is wrong with setting what the steps count."""
    return AttributeInputError(
        f"{name} cannot be set: it counts from the start; make a new simulation of these arrays, "
        "which starts at step 0, t = 0"
    )
