"""Gravity on the bodies of all ranks: exchange the positions, then sum over every source."""

from hybrid_nbody.nbody.integrators import FORCE
from hybrid_nbody.nbody.kernels.precision import PRECISIONS
from hybrid_nbody.nbody.ordering import find_places, sort_along_curve

KERNELS = "hybrid_nbody.nbody.kernels"

STEPS_BETWEEN_SORTS = 256
"""Sources are sorted anew at every multiple of this step number: a rule of the step alone, so that a restart follows it."""


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
    """

    def __init__(self, backend, exchange, state, precision, softening, G, timings):
        self.backend = backend
        self.exchange = exchange
        self.state = state
        self.timings = timings
        self.sorted = PRECISIONS[precision].sorted
        self.kernels = backend.kernels(KERNELS).Kernels(backend, len(state.mass), precision, softening, G)

    def start(self, sort: bool) -> None:
        """Bring positions and accelerations of all ranks up to date; sort the sources, or keep their order."""
        self.exchange.collect(self.state.position)
        if sort:
            self.sort()
        find_places(self.backend.xp, self.state)
        self.kernels.pack(self.state)
        self.kernels.accelerations(self.state)
        self.backend.synchronize()

    def sort(self) -> None:
        """Sort the sources in space, if this precision gains from it."""
        if self.sorted:
            sort_along_curve(self.backend.xp, self.state)

    def advance(self, stages, dt: float, first_step: int, steps: int) -> None:
        """Do `steps` steps of `stages`, of length `dt`, from step number `first_step` on."""
        step, last = first_step, first_step + steps
        while step < last:
            until = last
            if self.sorted:
                until = min(last, step - step % STEPS_BETWEEN_SORTS + STEPS_BETWEEN_SORTS)
                if step % STEPS_BETWEEN_SORTS == 0:
                    self.sort()
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
