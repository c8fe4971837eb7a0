"""The pair force on a GPU (CUDA through CuPy); twin of ``cpu``. The kernels are in ``gravity.cu``."""

from pathlib import Path

import numpy as np

from hybrid_nbody.nbody.kernels.precision import CHUNK, PRECISIONS, chunk_capacity

SOURCE = Path(__file__).with_name("gravity.cu")

TINY_SOFTENING = 1e-8
"""Up to here, a body's weight on itself could overflow float32, so it is left out of its own sum."""

NUMBERS_PER_SOURCE = {"single": 4, "mixed": 8, "double": 4}


def defines(precision: str) -> dict[str, int]:
    """Return the macros that compile ``gravity.cu`` for a precision."""
    return {precision.upper(): 1, "CHUNK": CHUNK}


def blocks_for(items: int) -> int:
    """Return the blocks that give each of `items` items a thread."""
    return -(-items // CHUNK)


class Kernels:
    """Gravity on one GPU; parameters and methods as in the twin, `hybrid_nbody.nbody.kernels.cpu.Kernels`.

    Launches are queued on the backend's stream and return at once.
    """

    def __init__(self, backend, number, precision, softening, G):
        self.backend, self.chunks = backend, chunk_capacity(number)
        module = backend.compile(SOURCE, defines(precision))
        names = {name: name for name in ("pack", "potentials", "add_scaled")}
        names["accelerations"] = "accelerations_softened" if softening > TINY_SOFTENING else "accelerations_unsoftened"
        self.kernel = {name: module.get_function(function) for name, function in names.items()}
        working = PRECISIONS[precision].working
        self.origin = backend.zeros((self.chunks, 3), "f8")
        self.source = backend.zeros((number, NUMBERS_PER_SOURCE[precision]), working)
        self.constants = (np.float64(G), working(softening**2))
        self.graphs = {}

    def _launch(self, name, blocks, *arguments):
        """Launch `blocks` blocks of a kernel, if there are any."""
        if blocks:
            self.kernel[name]((blocks,), (CHUNK,), arguments)

    def pack(self, state):
        """Prepare the sources from the positions of all bodies."""
        sources = (state.starts, self.origin, self.source)
        self._launch("pack", self.chunks, state.position, state.mass, state.order, *sources)

    def accelerations(self, state):
        """Fill ``state.acceleration`` for this rank's bodies, after `pack`."""
        self._sum("accelerations", state, state.acceleration)

    def potential(self, state, result):
        """Fill `result` with the potential at this rank's bodies, after `pack`."""
        self._sum("potentials", state, result)

    def _sum(self, name, state, result):
        targets = len(state.place)
        counts = (np.int32(self.chunks), np.int32(targets))
        sources = (*self.constants, state.starts, self.origin, self.source)
        self._launch(name, blocks_for(targets), *counts, state.own_position, state.place, *sources, result)

    def kick(self, state, duration):
        """Add the acceleration over `duration` to the velocities."""
        self._add_scaled(state.velocity, duration, state.acceleration)

    def drift(self, state, duration):
        """Add the velocity over `duration` to the positions."""
        self._add_scaled(state.own_position, duration, state.velocity)

    def _add_scaled(self, result, factor, increment):
        self._launch(
            "add_scaled", blocks_for(result.size), np.int32(result.size), result, np.float64(factor), increment
        )

    def run(self, state, stages, dt, steps):
        """Do whole steps of a rank that owns every body: the first one timed, the rest as replays of a captured graph.

        Parameters and result as in the twin; the seconds in the force are those of the first step, times `steps`.
        """
        start = self.backend.mark()
        force = self._step(state, stages, dt)
        if steps > 1:
            replay = self._graph(state, stages, dt)
            for _ in range(steps - 1):
                replay()
        total = self.backend.elapsed(start, self.backend.mark())
        return min(total, steps * sum(self.backend.elapsed(*marks) for marks in force))

    def _graph(self, state, stages, dt):
        """Return a replay of one step; a graph holds the addresses of one state, which is kept with it."""
        captured, replay = self.graphs.get((stages, dt), (None, None))
        if captured is not state:
            replay = self.backend.capture(lambda: self._queue(state, stages, dt))
            self.graphs[stages, dt] = state, replay
        return replay

    def _step(self, state, stages, dt):
        """Queue one step; return a pair of marks around each force."""
        marks = []
        for stage in stages:
            start = self.backend.mark()
            self._queue(state, (stage,), dt)
            if stage.action == "force":
                marks.append((start, self.backend.mark()))
        return marks

    def _queue(self, state, stages, dt):
        """Queue the kernels of `stages`."""
        for stage in stages:
            if stage.action == "kick":
                self.kick(state, stage.fraction * dt)
            elif stage.action == "drift":
                self.drift(state, stage.fraction * dt)
            else:
                self.pack(state)
                self.accelerations(state)
