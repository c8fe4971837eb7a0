"""The N-body model: bodies under their own gravity, advanced step by step."""

import numpy as np

from hybrid_nbody.nbody import diagnostics
from hybrid_nbody.nbody.bodies import Bodies
from hybrid_nbody.nbody.forces.direct import Gravity
from hybrid_nbody.nbody.forces.sources import Order
from hybrid_nbody.nbody.integrators.composed import make_stepping
from hybrid_nbody.simulation.model import Field, Role, Work
from hybrid_nbody.simulation.timings import Timings


class NBodyModel:
    """Gravity between bodies; see `hybrid_nbody.simulation.model.Model` for the contract.

    Parameters
    ----------
    backend : Backend
        This rank's device.
    communicator : Communicator
        All ranks; every method is collective.
    exchange : AllgatherExchange or RingExchange
        How ranks see each other's positions; its partition says who owns which bodies.
    mass : (N,) array of float64
        Every body's mass.
    ids : (n,) array of int64
        The identity of each of this rank's bodies.
    integrator : {"leapfrog", "yoshida4", "hermite4", "euler"}
        See `make_stepping`.
    dt : float
        Length of a step.
    precision, softening, G
        See `Gravity`.
    gravity : type, optional
        `Gravity`, or `RingGravity` for the other exchange.
    shown : sequence of ActivityMap, optional
        What follows from the positions and is written with the frames.
    accuracy : float, optional
        Of the substeps of ``hermite4``; see `hybrid_nbody.nbody.integrators.hermite.Hermite`.
    """

    quantities = diagnostics.QUANTITIES
    row_name = "body"
    advice = {
        "start": "The initial state cannot be run: look for bodies at one place, or of huge numbers",
        "run": "Take a smaller time.dt or a larger softening",
    }

    def __init__(
        self,
        backend,
        communicator,
        exchange,
        mass,
        ids,
        integrator,
        dt,
        precision,
        softening,
        G,
        gravity=Gravity,
        shown=(),
        accuracy=None,
    ):
        self.backend = backend
        self.communicator = communicator
        self.exchange = exchange
        self.step = 0
        self.dt = dt
        self.initial_energy = None
        self.timings = Timings()
        self.number = len(mass)
        self.own_mass = mass[exchange.own].copy()
        self.ids = ids
        self.shown = tuple(shown)
        self.state = gravity.make_state(backend, exchange.own, mass)
        physics = (precision, softening, G)
        self.gravity = gravity(
            backend, exchange, self.state, *physics, self.timings, self._agreement()
        )
        self.stepping = make_stepping(
            integrator, self.gravity, communicator, ids, dt, accuracy, precision
        )

    @property
    def time(self) -> float:
        """Simulated time; a multiple of dt, so that rounding does not add up."""
        return self.step * self.dt

    @property
    def work(self) -> Work:
        """Cost of a step; of adaptive substeps, on average so far."""
        stepping = self.stepping
        return Work(
            "interactions", stepping.forces_per_step * float(self.number) ** 2, stepping.operations
        )

    def _agreement(self):
        """Return what makes all ranks use the root's order of the sources where their devices are of several kinds."""
        if len(set(self.communicator.gather(self.backend.kind))) == 1:
            return None
        return lambda order: self.communicator.broadcast(
            Order(self.backend.download(order.bodies), order.starts)
            if self.communicator.is_root
            else None
        )

    def begin(self, own: Bodies) -> None:
        """Start from this rank's share of the initial bodies."""
        self._place(own.position, own.velocity)
        self.gravity.start()
        self.stepping.begin()

    def restore(self, rows, scalars) -> None:
        """See `Model.restore`."""
        self.step = int(scalars["step"])
        self.initial_energy = scalars["initial_energy"]
        self._place(rows("bodies/position"), rows("bodies/velocity"))
        collect = self.communicator.concatenate
        self.gravity.restart(rows("gravity/order"), rows("gravity/chunk_head"), collect)
        self.stepping.restore(scalars)

    def _place(self, position, velocity):
        self.state.own_position[:] = self.backend.upload(position)
        self.state.velocity[:] = self.backend.upload(velocity)
        self._update_shown()

    def _update_shown(self):
        """Let what is shown follow the positions: here, where all ranks are together, and not when a field is read."""
        for shown in self.shown:
            shown.update(self.state.own_position)

    def advance(self, steps: int) -> None:
        """See `Model.advance`."""
        self.stepping.advance(self.step, steps)
        self.step += steps
        self._update_shown()

    def diagnostics(self):
        """See `Model.diagnostics`."""
        download = self.backend.download
        values = diagnostics.measure(
            download(self.state.own_position),
            download(self.state.velocity),
            self.own_mass,
            download(self.gravity.potential()),
            self.number,
            self.communicator,
        )
        if self.initial_energy is None:
            self.initial_energy = values["total_energy"]
        change = values["total_energy"] - self.initial_energy
        values["relative_energy_error"] = (
            change / abs(self.initial_energy) if self.initial_energy else change
        )
        return values

    def fields(self):
        """See `Model.fields`."""
        number = self.number
        state = self.state
        gravity = self.gravity
        fields = (
            self._field(
                "bodies/position",
                (number, 3),
                "f8",
                "length",
                "position of each body",
                state.own_position,
            ),
            self._field(
                "bodies/velocity",
                (number, 3),
                "f8",
                "length / time",
                "velocity of each body",
                state.velocity,
            ),
            self._field(
                "bodies/mass",
                (number,),
                "f8",
                "mass",
                "mass of each body",
                self.own_mass,
                Role.STATIC,
            ),
            self._field(
                "bodies/id", (number,), "i8", "1", "identity of each body", self.ids, Role.STATIC
            ),
            self._field(
                "bodies/acceleration", (number, 3), "f8", "", "", state.acceleration, Role.WATCHED
            ),
            self._internal("gravity/order", "i4", "bodies in summing order", gravity.order_rows),
            self._internal(
                "gravity/chunk_head",
                "u1",
                "whether a chunk of sources starts here",
                gravity.head_rows,
            ),
            *(shown.field() for shown in self.shown),
        )
        return {field.name: field for field in fields}

    def _field(self, name, shape, dtype, units, description, array, role=Role.FRAME):
        def host(start, stop):
            return self.backend.download(array[start:stop])

        return self._rows(name, shape, dtype, units, description, host, role)

    def _internal(self, name, dtype, description, host):
        """Return a field of one number a body that ``host(start, stop)`` gives."""
        return self._rows(name, (self.number,), dtype, "1", description, host, Role.INTERNAL)

    def _rows(self, name, shape, dtype, units, description, host, role):
        return Field(
            name=name,
            shape=shape,
            dtype=np.dtype(dtype),
            units=units,
            description=description,
            index=self.exchange.own,
            host=host,
            role=role,
        )

    def scalars(self):
        """See `Model.scalars`."""
        scalars = {"step": self.step, "time": self.time, "initial_energy": self.initial_energy}
        return scalars | self.stepping.scalars()

    def suspect(self) -> str:
        """Name the fastest body: a close encounter that was stepped over flings its bodies out."""
        speed = np.linalg.norm(self.backend.download(self.state.velocity), axis=1)
        fastest = int(np.argmax(speed)) if len(speed) else -1
        mine = (float(speed[fastest]), int(self.ids[fastest])) if len(speed) else (-1.0, -1)
        found = max(self.communicator.gather(mine))
        return f"body {found[1]}, the fastest, moves at {found[0]:.6g}"
