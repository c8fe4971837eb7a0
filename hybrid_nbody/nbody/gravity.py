"""Gravity on the bodies of all ranks: exchange the positions, then sum over every source."""

from hybrid_nbody.nbody.integrators import FORCE
from hybrid_nbody.nbody.kernels.precision import PRECISIONS
from hybrid_nbody.nbody.ordering import Order, given_order, spatial_order
from hybrid_nbody.nbody.state import set_order

KERNELS = "hybrid_nbody.nbody.kernels"

STEPS_BETWEEN_SORTS = 512
"""Sources are sorted anew at every multiple of this step number: a rule that a restart can follow."""


class Gravity:
    """Direct summation over all pairs.

    Parameters
    ----------
    backend : Backend
        This rank's device.
    exchange : AllgatherExchange
        How this rank sees the other ranks' positions.
    state : State
        This rank's arrays; changed in place.
    precision : {"single", "mixed", "double"}
        Precision of the pair force.
    softening, G : float
        Plummer softening length and gravitational constant.
    timings : Timings
        Takes the seconds spent under ``force`` and ``exchange``.

    Attributes
    ----------
    order : Order
        The present order of the sources.
    """

    def __init__(self, backend, exchange, state, precision, softening, G, timings):
        self.backend = backend
        self.exchange = exchange
        self.state = state
        self.timings = timings
        self.sorted = PRECISIONS[precision].local
        self.kernels = backend.kernels(KERNELS).Kernels(backend, state, precision, softening, G)

    def start(self, order: Order | None = None) -> None:
        """Bring the positions of all ranks and the accelerations up to date, in a saved order or a new one."""
        self.exchange.collect(self.state.position)
        self._set_order(order or self._new_order())
        self.kernels.pack(self.state)
        self.kernels.accelerations(self.state)
        self.backend.synchronize()

    def _new_order(self) -> Order:
        """Return the order for the present positions, the same on every rank."""
        if self.sorted:
            return spatial_order(self.backend.download(self.state.position))
        return given_order(len(self.state.mass))

    def _set_order(self, order: Order) -> None:
        self.order = order
        set_order(self.backend, self.state, order)

    def advance(self, stages, dt: float, first_step: int, steps: int) -> None:
        """Do `steps` steps of `stages`, of length `dt`, from step number `first_step` on."""
        step, last = first_step, first_step + steps
        while step < last:
            until = last
            if self.sorted:
                until = min(last, step - step % STEPS_BETWEEN_SORTS + STEPS_BETWEEN_SORTS)
                if step % STEPS_BETWEEN_SORTS == 0:
                    self.exchange.collect(self.state.position)  # a step of some integrators ends in a drift
                    self._set_order(self._new_order())
            (self._run_alone if self.exchange.alone else self._run_together)(stages, dt, until - step)
            step = until

    def _run_alone(self, stages, dt, steps):
        """Step without coming back to Python: this rank owns every body."""
        self.timings.add("force", self.kernels.run(self.state, stages, dt, steps))

    def _run_together(self, stages, dt, steps):
        """Step with an exchange before every force."""
        act = {"kick": self.kernels.kick, "drift": self.kernels.drift}
        marks = []
        for _ in range(steps):
            for stage in stages:
                if stage is FORCE:
                    marks.append(self._force())
                else:
                    act[stage.action](self.state, stage.fraction * dt)
        self.backend.synchronize()
        for start, middle, end in marks:
            self.timings.add("exchange", self.backend.elapsed(start, middle))
            self.timings.add("force", self.backend.elapsed(middle, end))

    def _force(self):
        """Exchange positions and compute accelerations; return the marks before, between and after."""
        start = self.backend.mark()
        self.exchange.collect(self.state.position)
        middle = self.backend.mark()
        self.kernels.pack(self.state)
        self.kernels.accelerations(self.state)
        return start, middle, self.backend.mark()

    def potential(self):
        """Return the potential at this rank's bodies, an (n,) array on the device, for the present positions."""
        self.exchange.collect(self.state.position)
        self.kernels.pack(self.state)
        result = self.backend.zeros(len(self.state.velocity), "f8")
        self.kernels.potential(self.state, result)
        return result
