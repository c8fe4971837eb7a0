"""Whole steps of a rank that owns every body, as captured graphs of kernels."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.nbody.kernels.actions import KernelActions
from hybrid_nbody.nbody.stages import StepPlan
from hybrid_nbody.nbody.state import State

if TYPE_CHECKING:
    from hybrid_nbody.nbody.kernels.gpu.kernels import Kernels

STEPS_OF_GRAPHS = (64, 8, 1)
"""Steps of captured graphs: a GPU pauses for some microseconds between two graphs. As many steps as
last time, up to the most of these, are one graph: those between two frames are always as many."""


MOST_MOVES = 8
"""Most kicks and drifts that a kernel takes as an argument."""

MOVES = np.dtype(
    [("number", "i4"), ("actions", "i4", MOST_MOVES), ("lengths", "f8", MOST_MOVES)], align=True
)
"""``Moves`` of ``moves.cuh``."""


def argument_of(moves: StepPlan) -> NDArray[Any]:
    """Return kicks and drifts as an argument of a kernel."""
    result = np.zeros(1, MOVES)
    count = len(moves.stages)
    result["number"] = count
    result["actions"][0, :count], result["lengths"][0, :count] = moves.encoded()
    return result


Take = Callable[[State, Hashable, Callable[[], None]], None]
"""``take(state, key, queue)`` does the work of ``queue``, which the key tells from other work."""


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

    def queue(self, times: int = 1, first: int = 0) -> None:
        """Queue the kernels of some steps, whose forces are numbered from `first` on."""
        for number, moves in enumerate(times * self.moves, first):
            self.kernels.step_force(self.state, moves, number)


class StepGraphs:
    """Takes steps from force to force: the end of a step is done with the start of the next.

    Parameters
    ----------
    kernels : Kernels
        Queue the work.
    """

    def __init__(self, kernels: "Kernels") -> None:
        self.kernels = kernels
        self.graphs: dict[Hashable, tuple[State, Callable[[], None]]] = {}
        self.last: tuple[StepPlan, int] | None = None

    def run(self, state: State, plan: StepPlan, steps: int) -> None:
        """Queue whole steps."""
        batch = (plan, steps)
        again = batch == self.last
        self.last = batch
        if again and steps <= max(STEPS_OF_GRAPHS):
            self._replay(state, batch, lambda: self._queue(state, plan, [steps - 1], _take))
        else:
            self._queue(state, plan, _lengths(steps - 1), self._replay)

    def _queue(self, state: State, plan: StepPlan, lengths: Iterable[int], take: Take) -> None:
        """Queue steps: all but the last in groups of these lengths."""
        start, *between, end = plan.around_forces()
        start.perform(KernelActions(self.kernels, state))
        self.kernels.prepare_force(state, 0)
        step = Forces(self.kernels, state, (*between, end.then(start)))
        number = 0
        for length in lengths:
            take(state, (step.moves, length, number % 2), partial(step.queue, length, number % 2))
            number += length * len(step.moves)
        Forces(self.kernels, state, (*between, end)).queue(first=number)

    def _replay(self, state: State, key: Hashable, queue: Callable[[], None]) -> None:
        """Do the work of `queue` as a graph; the first time kernel by kernel, to load them all.

        A graph holds the addresses of the state kept with it.
        """
        captured, replay = self.graphs.get(key, (None, None))
        if replay is None or captured is not state:
            replay = self.kernels.backend.recorded(queue)
            self.graphs[key] = state, replay
        replay()


def _take(state: State, key: Hashable, queue: Callable[[], None]) -> None:
    """Do the work of `queue` kernel by kernel: it is a part of a graph."""
    queue()


def _lengths(steps: int) -> Iterator[int]:
    """Yield the steps of the graphs that make up some steps."""
    for length in STEPS_OF_GRAPHS:
        yield from repeat(length, steps // length)
        steps %= length
