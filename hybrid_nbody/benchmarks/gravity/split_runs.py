"""A force that two devices share, timed with one share after another."""

import statistics

from hybrid_nbody.benchmarks.harness.measure import Times, calls_for, seconds_of, timings
from hybrid_nbody.benchmarks.ladder.production import ProductionRun
from hybrid_nbody.nbody.kernels.hybrid.kernels import FORCE_ALONE

ROW_SECONDS = 2.0
"""About as long as the timings of a row may take: slow ones are repeated less often."""

FEWEST = 3
"""Timings of a slow row."""


class SharedForce:
    """The force on all bodies of a problem, computed as runs do it.

    Parameters
    ----------
    backend : HybridBackend
    precision : {"single", "mixed", "double"}
    problem : Problem
    repeats : int
        Most timings.
    """

    def __init__(self, backend, precision, problem, repeats: int):
        self.backend = backend
        self.repeats = repeats
        run = ProductionRun(backend, precision, problem)
        self.state = run.state
        self.kernels = run.kernels

    def timed(self, share: float, stop) -> Times:
        """Return the times of a force with a share of the helper's; `stop` raises `Stopped` when it is time to."""
        batch, calls, repeats = self._prepared(share, stop)
        return timings(self.backend, batch, repeats, stop, calls)

    def in_turn(self, first: float, second: float, stop) -> tuple[Times, Times]:
        """Return the times of a force with two shares, measured one after the other, again and again.

        A clock that drifts is then the same for both.
        """
        _, calls, repeats = self._prepared(first, stop)
        found = [], []
        for _ in range(repeats):
            for share, seconds in zip((first, second), found, strict=True):
                stop()
                batch = self._batch(share, calls)
                batch()  # a share is prepared at its first force
                seconds.append(seconds_of(self.backend, batch) / calls)
        return Times(tuple(found[0]), calls), Times(tuple(found[1]), calls)

    def _prepared(self, share, stop):
        """Return a warm batch of forces, how many they are, and how often it can be timed."""
        stop()
        self._batch(share, 1)()  # compiles, and prepares the share
        stop()
        seconds = seconds_of(self.backend, self._batch(share, 1))
        calls = calls_for(seconds)
        batch = self._batch(share, calls)
        if calls > 1:
            batch()
        repeats = max(
            min(self.repeats, FEWEST), min(self.repeats, int(ROW_SECONDS / (seconds * calls)))
        )
        return batch, calls, repeats

    def _batch(self, share, calls):
        """Return a function that does so many forces, after which the bodies are where they were."""
        self.kernels.fix(share)
        return lambda: self.kernels.run(self.state, FORCE_ALONE, calls)


def ratio(first: Times, second: Times) -> float:
    """Return the speed of the second of two that were timed in turn, over that of the first: a median over turns."""
    return statistics.median(
        one / other for one, other in zip(first.seconds, second.seconds, strict=True)
    )
