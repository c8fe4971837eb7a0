"""Stand-ins for the devices of a hybrid backend: the CPU, with the clocks of any devices."""

from functools import cache, partial
from types import SimpleNamespace

from hybrid_nbody.backends.cpu import CpuBackend
from hybrid_nbody.backends.hybrid import HybridBackend


class Clock:
    """The time of the host, in seconds."""

    now = 0.0


class Helper(CpuBackend):
    """A device that the host waits for.

    It computes `rate` interactions a second and needs `fixed` seconds for every force.
    """

    def __init__(self, clock, rate, fixed=0.0):
        super().__init__(1)
        self.clock, self.rate, self.fixed = clock, rate, fixed

    def charge(self, interactions):
        """Let the time of a force pass."""
        self.clock.now += self.fixed + interactions / self.rate

    def kernels(self, package):
        return SimpleNamespace(Kernels=partial(charging(), self))

    def mark(self):
        return self.clock.now


class Main(Helper):
    """A device with a queue: the host goes on while it works."""

    free = 0.0  # when the queue will be empty

    def charge(self, interactions):
        self.free = self.mark() + self.fixed + interactions / self.rate

    def mark(self):
        return max(self.free, self.clock.now)

    def wait(self, mark):
        self.clock.now = max(self.clock.now, mark)

    def elapsed(self, start, end):
        self.wait(end)
        return end - start

    def synchronize(self):
        self.wait(self.mark())


@cache
def charging():
    """Return the CPU's kernels with the times of a stand-in; imported after a backend is made."""
    from hybrid_nbody.nbody.kernels.cpu import kernels as cpu

    class Charging(cpu.Kernels):
        def __init__(self, device, backend, *arguments):
            super().__init__(backend, *arguments)
            self.device = device

        def accelerations(self, state):
            super().accelerations(state)
            self.device.charge(len(state.source_index) * len(state.mass))

        def run(self, state, plan, steps):
            for _ in range(steps * plan.forces):
                self.device.charge(len(state.source_index) * len(state.mass))
            return super().run(state, plan, steps)

    return Charging


def hybrid(cpu_share="auto", main=1e9, helper=1e8, main_fixed=0.0, helper_fixed=0.0):
    """Return a hybrid backend of two stand-ins."""
    clock = Clock()
    return HybridBackend(
        Main(clock, main, main_fixed), Helper(clock, helper, helper_fixed), cpu_share
    )
