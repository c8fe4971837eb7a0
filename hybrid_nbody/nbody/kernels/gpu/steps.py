"""Whole steps of a rank that owns every body, as captured graphs of kernels."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING

from hybrid_nbody.nbody.kernels.actions import KernelActions
from hybrid_nbody.nbody.stages import StepPlan
from hybrid_nbody.nbody.state import State

if TYPE_CHECKING:
    from hybrid_nbody.nbody.kernels.gpu.kernels import Kernels

STEPS_OF_GRAPHS = (64, 8, 1)
"""Steps of captured graphs: a GPU pauses for some microseconds between two graphs. As many steps as
last time, up to the most of these, are one graph: those between two frames are always as many."""


@dataclass(frozen=True)
class Forces:
    """The forces of a step, each with the kicks and drifts that follow it.

    Attributes
    ----------
    kernels : Kernels
    state : State
        Of a rank that owns every body.
    moves : tuple of StepPlan
        Those after each force.
    """

    kernels: "Kernels"
    state: State
    moves: tuple[StepPlan, ...]

    def queue(self, times: int = 1) -> None:
        """Queue the kernels."""
        for moves in times * self.moves:
            self.kernels.pack(self.state)
            self.kernels.accelerate_and_move(self.state, moves)


class StepGraphs:
    """Takes steps from force to force: the end of a step is done with the start of the next.

    Parameters
    ----------
    kernels : Kernels
        Queue the work.
    """

    def __init__(self, kernels: "Kernels") -> None:
        self.kernels = kernels
        self.graphs: dict[tuple[tuple[StepPlan, ...], int], tuple[State, Callable[[], None]]] = {}
        self.last = 0

    def run(self, state: State, plan: StepPlan, steps: int) -> None:
        """Queue whole steps."""
        start, *between, end = plan.around_forces()
        start.perform(KernelActions(self.kernels, state))
        step = Forces(self.kernels, state, (*between, end.then(start)))
        for length in self._lengths(steps - 1):
            self._graph(step, length)()
        Forces(self.kernels, state, (*between, end)).queue()

    def _lengths(self, steps: int) -> Iterator[int]:
        """Yield the steps of the graphs that make up some steps."""
        again = 0 < steps == self.last
        self.last = steps
        lengths = (steps,) if again and steps < max(STEPS_OF_GRAPHS) else STEPS_OF_GRAPHS
        for length in lengths:
            yield from repeat(length, steps // length)
            steps %= length

    def _graph(self, step: Forces, steps: int) -> Callable[[], None]:
        """Return what takes some steps: the first time kernel by kernel, so that all are loaded.

        A graph holds the addresses of the state kept with it.
        """
        key = (step.moves, steps)
        captured, replay = self.graphs.get(key, (None, None))
        if replay is None or captured is not step.state:
            replay = self.kernels.backend.recorded(lambda: step.queue(steps))
            self.graphs[key] = step.state, replay
        return replay
