"""The N-body model: bodies under their own gravity, advanced step by step."""

import numpy as np

from hybrid_nbody.nbody import diagnostics
from hybrid_nbody.nbody.bodies import Bodies
from hybrid_nbody.nbody.gravity import Gravity
from hybrid_nbody.nbody.integrators import INTEGRATORS
from hybrid_nbody.nbody.ordering import Order
from hybrid_nbody.nbody.state import make_state
from hybrid_nbody.simulation.model import Field, Role, Work
from hybrid_nbody.simulation.timings import Timings

OPERATIONS_PER_INTERACTION = 20
"""The count that the field has agreed on for rates in GFLOP/s (Nyland, Harris & Prins, GPU Gems 3, 2007)."""


class NBodyModel:
    """Gravity between bodies; see `hybrid_nbody.simulation.model.Model` for the contract.

    Parameters
    ----------
    backend : Backend
        This rank's device.
    communicator : Communicator
        All ranks; every method is collective.
    exchange : AllgatherExchange
        How ranks see each other's positions; its partition says who owns which bodies.
    mass : (N,) array of float64
        Every body's mass.
    ids : (n,) array of int64
        The identity of each of this rank's bodies.
    integrator : {"leapfrog", "euler"}
        See `INTEGRATORS`.
    dt : float
        Length of a step.
    precision, softening, G
        See `Gravity`.
    """

    quantities = diagnostics.QUANTITIES
    advice = {
        "start": "The initial state cannot be run: look for bodies at one place, or of huge numbers",
        "run": "Take a smaller time.dt or a larger softening",
    }

    def __init__(self, backend, communicator, exchange, mass, ids, integrator, dt, precision, softening, G):
        self.backend, self.communicator, self.exchange = backend, communicator, exchange
        self.stages, self.dt = INTEGRATORS[integrator], dt
        self.step = 0
        self.initial_energy = None
        self.timings = Timings()
        self.work = Work("interactions", float(len(mass)) ** 2, OPERATIONS_PER_INTERACTION)
        self.own_mass, self.ids = mass[exchange.own].copy(), ids
        self.state = make_state(backend, exchange.own, mass)
        self.gravity = Gravity(backend, exchange, self.state, precision, softening, G, self.timings)

    @property
    def time(self) -> float:
        """Simulated time; a multiple of dt, so that rounding does not add up."""
        return self.step * self.dt

    def begin(self, own: Bodies) -> None:
        """Start from this rank's share of the initial bodies."""
        self._place(own.position, own.velocity)
        self.gravity.start()

    def restore(self, rows, scalars) -> None:
        """See `Model.restore`."""
        self.step = int(scalars["step"])
        self.initial_energy = scalars["initial_energy"]
        self._place(rows("bodies/position"), rows("bodies/velocity"))
        collect = self.communicator.concatenate
        self.gravity.start(Order.from_heads(collect(rows("gravity/order")), collect(rows("gravity/chunk_head"))))

    def _place(self, position, velocity):
        self.state.own_position[:] = self.backend.upload(position)
        self.state.velocity[:] = self.backend.upload(velocity)

    def advance(self, steps: int) -> None:
        """See `Model.advance`."""
        self.gravity.advance(self.stages, self.dt, self.step, steps)
        self.step += steps

    def diagnostics(self):
        """See `Model.diagnostics`."""
        download = self.backend.download
        values = diagnostics.measure(
            download(self.state.own_position),
            download(self.state.velocity),
            self.own_mass,
            download(self.gravity.potential()),
            len(self.state.mass),
            self.communicator,
        )
        if self.initial_energy is None:
            self.initial_energy = values["total_energy"]
        change = values["total_energy"] - self.initial_energy
        values["relative_energy_error"] = change / abs(self.initial_energy) if self.initial_energy else change
        return values

    def fields(self):
        """See `Model.fields`."""
        number, state = len(self.state.mass), self.state
        fields = (
            self._field("bodies/position", (number, 3), "f8", "length", "position of each body", state.own_position),
            self._field("bodies/velocity", (number, 3), "f8", "length / time", "velocity of each body", state.velocity),
            self._field("bodies/mass", (number,), "f8", "mass", "mass of each body", self.own_mass, Role.STATIC),
            self._field("bodies/id", (number,), "i8", "1", "identity of each body", self.ids, Role.STATIC),
            self._field("bodies/acceleration", (number, 3), "f8", "", "", state.acceleration, Role.WATCHED),
            self._internal("gravity/order", "bodies in summing order", self.gravity.order.bodies),
            self._internal("gravity/chunk_head", "whether a chunk of sources starts here", self.gravity.order.heads),
        )
        return {field.name: field for field in fields}

    def _field(self, name, shape, dtype, units, description, array, role=Role.FRAME):
        return Field(
            name=name,
            shape=shape,
            dtype=np.dtype(dtype),
            units=units,
            description=description,
            start=self.exchange.own.start,
            rows=len(array),
            host=lambda start, stop: self.backend.download(array[start:stop]),
            role=role,
        )

    def _internal(self, name, description, array):
        """Return the field of an array that every rank holds in full; each gives its own rows."""
        return self._field(name, array.shape, array.dtype, "1", description, array[self.exchange.own], Role.INTERNAL)

    def scalars(self):
        """See `Model.scalars`."""
        return {"step": self.step, "time": self.time, "initial_energy": self.initial_energy}

    def suspect(self) -> str:
        """Name the fastest body: a close encounter that was stepped over flings its bodies out."""
        speed = np.linalg.norm(self.backend.download(self.state.velocity), axis=1)
        fastest = int(np.argmax(speed)) if len(speed) else -1
        mine = (float(speed[fastest]), int(self.ids[fastest])) if len(speed) else (-1.0, -1)
        found = max(self.communicator.gather(mine))
        return f"body {found[1]}, the fastest, moves at {found[0]:.6g}"
