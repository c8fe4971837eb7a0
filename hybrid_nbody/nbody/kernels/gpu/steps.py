"""Whole steps of a rank that owns every body, as captured graphs of kernels."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hybrid_nbody.nbody.kernels.actions import KernelActions
from hybrid_nbody.nbody.stages import StepPlan
from hybrid_nbody.nbody.state import State

if TYPE_CHECKING:
    from hybrid_nbody.nbody.kernels.gpu.kernels import Kernels

STEPS_OF_GRAPHS = (64, 8, 1)
"""Steps of captured graphs: a GPU pauses for some microseconds between two graphs."""


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

    def run(self, state: State, plan: StepPlan, steps: int) -> None:
        """Queue whole steps."""
        start, *between, end = plan.around_forces()
        start.perform(KernelActions(self.kernels, state))
        step = Forces(self.kernels, state, (*between, end.then(start)))
        left = steps - 1
        for length in STEPS_OF_GRAPHS:
            for _ in range(left // length):
                self._graph(step, length)()
            left %= length
        Forces(self.kernels, state, (*between, end)).queue()

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
