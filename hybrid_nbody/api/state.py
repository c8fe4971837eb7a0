"""The state of a simulation in memory, read and set."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hybrid_nbody.api.bodies import checked_bodies
from hybrid_nbody.api.device import DeviceArrays
from hybrid_nbody.api.models import builder_of, setup_of
from hybrid_nbody.config.sections import ModelConfig
from hybrid_nbody.errors import InputError
from hybrid_nbody.nbody.bodies import Bodies, joined
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.transport.base import Transport
from hybrid_nbody.simulation.guard import Guard
from hybrid_nbody.simulation.loop import TimeLoop
from hybrid_nbody.simulation.model import Model

Rows = NDArray[np.float64]

SAME_SIZE = 1e4
"""Positions up to so many times larger or smaller leave the units of the sums as they are."""

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
        """Find out whether all ranks make a call: one alone would wait for ever."""
        if self.communicator.agreement is not None:
            self.communicator.agreement.on(f"Simulation.{call}")

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

    @property
    def steps(self) -> int:
        """Return the number of steps done."""
        return self.model.step

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
        found = self.diagnostics
        name = next((name for name in ENERGIES if name in found), None)
        if name is None:
            raise InputError(f"energy: this model has none; it has {', '.join(found)}")
        return float(found[name])

    @property
    def positions(self) -> Rows:
        """Return a copy of the positions of this rank's bodies, (n, 3)."""
        return self.rows("bodies/position")

    @positions.setter
    def positions(self, values: ArrayLike) -> None:
        self.begin(np.asarray(values, float), self.velocities)

    @property
    def velocities(self) -> Rows:
        """Return a copy of the velocities of this rank's bodies, (n, 3)."""
        return self.rows("bodies/velocity")

    @velocities.setter
    def velocities(self, values: ArrayLike) -> None:
        self.begin(self.positions, np.asarray(values, float))

    @property
    def masses(self) -> Rows:
        """Return a copy of the masses of this rank's bodies, (n,)."""
        return self.rows("bodies/mass")

    @masses.setter
    def masses(self, values: ArrayLike) -> None:
        self._together("masses")
        masses = np.asarray(values, float)
        wanted = self.masses.shape
        self._check_on_all(masses.shape == wanted, f"an array of shape {wanted}")
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
        self._set_planes("density", values, self.density.shape)

    @property
    def velocity(self) -> Rows:
        """Return a copy of this rank's planes of the velocity of a fluid, (planes, ny, nx, 3)."""
        return self.rows("fluid/velocity")

    @velocity.setter
    def velocity(self, values: ArrayLike) -> None:
        self._set_planes("velocity", values, self.velocity.shape)

    def _set_planes(self, name: str, values: ArrayLike, wanted: tuple[int, ...]) -> None:
        """Go on from other values of this rank's planes; all ranks call together."""
        self._together(name)
        planes = np.asarray(values, float)
        if planes.shape != wanted:
            raise InputError(f"{name}: this rank needs an array of shape {wanted}")
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
        fields = self.model.fields()
        if name not in fields:
            raise InputError(f"no field '{name}'; there are {', '.join(sorted(fields))}")
        field = fields[name]
        return np.array(field.host(0, field.rows))

    def gathered(self, name: str) -> NDArray[Any]:
        """Return all rows of a field on every rank; all ranks ask together."""
        self._together("gathered")
        return self._whole(name, self.rows(name))

    def _whole(self, name: str, rows: NDArray[Any]) -> NDArray[Any]:
        """Return all rows of a field, of which each rank has its own."""
        found = np.concatenate(self.communicator.gather(rows))
        index = self.model.fields()[name].index
        places = np.arange(index.start, index.stop) if isinstance(index, slice) else index
        result = np.empty_like(found)
        result[np.concatenate(self.communicator.gather(places))] = found
        return result

    @property
    def device(self) -> DeviceArrays:
        """Return this rank's arrays in place, on the device where they are computed."""
        return DeviceArrays(self)

    def begin(self, positions: Rows, velocities: Rows) -> None:
        """Go on from other positions and velocities of this rank's bodies.

        The energy error counts from there; all ranks call together.
        """
        self._together("begin")
        wanted = self.positions.shape
        fits = positions.shape == wanted and velocities.shape == wanted
        self._check_on_all(fits, f"arrays of shape {wanted}")
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

    def _check_on_all(self, fits: bool, wanted: str) -> None:
        """Raise an error on every rank if what one of them was given does not fit its bodies."""

        def check() -> None:
            if not fits:
                raise InputError(f"the bodies of this rank need {wanted}")

        self.communicator.together(check)

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
            On every rank, if shapes do not fit, or a number is not finite.
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
            On every rank, if there is no such body, or none would be left.
        """
        self._together("remove")
        gone = np.unique(np.asarray(ids, np.int64))
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
        names = ("position", "velocity", "mass", "id")
        return Bodies(*(self.gathered(f"bodies/{name}") for name in names))

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
            self.begin(self.positions, self.velocities)
