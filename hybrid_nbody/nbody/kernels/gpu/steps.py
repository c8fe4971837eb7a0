"""Whole steps of a rank that owns every body, as captured graphs of kernels."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.nbody.copies import Motion, StateCopies
from hybrid_nbody.nbody.kernels.actions import KernelActions
from hybrid_nbody.nbody.stages import StepPlan
from hybrid_nbody.nbody.state import State

if TYPE_CHECKING:
    from hybrid_nbody.nbody.kernels.gpu.kernels import Kernels

STEPS_OF_GRAPHS = (64, 8, 1)
"""Steps of captured graphs: a GPU pauses for some microseconds between two graphs. As many steps as
last time, up to the most of these, are one graph: those between two frames are always as many."""

COPIES_OF_GRAPHS = (8, 1)
"""Copies of the state that are taken within one graph. To capture a step takes a host as long as a
GPU takes for ten of few bodies."""

MOST_STEPS = 320
"""Steps of a graph with several copies, at most: each is some nodes to capture."""

MOST_MOVES = 8
"""Most kicks and drifts that a kernel takes as an argument."""

MOVES = np.dtype(
    [
        ("number", "i4"),
        ("copied_after", "i4"),
        ("actions", "i4", MOST_MOVES),
        ("lengths", "f8", MOST_MOVES),
    ],
    align=True,
)
"""``Moves`` of ``moves.cuh``."""


@dataclass(frozen=True)
class Moves:
    """Kicks and drifts between two forces.

    Attributes
    ----------
    before, after : StepPlan
        Those before the end of a step, and those after it; one is empty where no step ends.
    copy : Motion or None
        Takes the state at the end of the step.
    """

    before: StepPlan
    after: StepPlan
    copy: Motion | None = None

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.before.stages) + len(self.after.stages)

    def perform(self, kernels: "Kernels", state: State) -> None:
        """Queue them one by one."""
        actions = KernelActions(kernels, state)
        self.before.perform(actions)
        if self.copy:
            kernels.backend.copy(state.own_position, self.copy.position)
            kernels.backend.copy(state.velocity, self.copy.velocity)
        self.after.perform(actions)

    @cached_property
    def argument(self) -> NDArray[Any]:
        """Return them as an argument of a kernel."""
        result = np.zeros(1, MOVES)
        count = len(self)
        result["number"] = count
        result["copied_after"] = len(self.before.stages) if self.copy else -1
        moves = self.before.then(self.after)
        result["actions"][0, :count], result["lengths"][0, :count] = moves.encoded()
        return result.view(f"V{MOVES.itemsize}")  # at each launch CuPy would spell its fields out


NOTHING = StepPlan((), 0.0)


class Group(NamedTuple):
    """Steps that are queued together.

    Attributes
    ----------
    steps : int
    copies : int, optional
        How often these are taken, with a copy of the state after them; 0 if once, without one.
    """

    steps: int
    copies: int = 0

    @property
    def all_steps(self) -> int:
        """Return the steps in all."""
        return self.steps * max(self.copies, 1)


class Steps:
    """Steps from force to force: the end of one is done with the start of the next.

    Parameters
    ----------
    kernels : Kernels
        Queue the work.
    state : State
        Of a rank that owns every body.
    plan : StepPlan
        The stages of a step.
    """

    def __init__(self, kernels: "Kernels", state: State, plan: StepPlan) -> None:
        self.kernels = kernels
        self.state = state
        self.plan = plan
        self.start, *between, self.end = plan.around_forces()
        self.between = [Moves(moves, NOTHING) for moves in between]
        self.seam = Moves(self.end, self.start)

    def begin(self) -> None:
        """Queue what comes before the first force."""
        self.start.perform(KernelActions(self.kernels, self.state))
        self.kernels.prepare_force(self.state, 0)

    def queue(self, group: Group, first: int, copies: Motion | None = None) -> None:
        """Queue steps that others follow, whose forces are numbered from `first` on."""
        if copies is None:
            self._queue(group.steps, first, self.seam)
            return
        for k in range(group.copies):
            seam = replace(self.seam, copy=copies.at(k))
            self._queue(group.steps, first + k * group.steps * self.plan.forces, seam)

    def finish(self, first: int, copy: Motion | None = None) -> None:
        """Queue the last step."""
        self._queue(1, first, Moves(self.end, NOTHING, copy))

    def _queue(self, steps: int, first: int, last: Moves) -> None:
        """Queue some steps; the moves `last` follow the last force."""
        ends = (*repeat(self.seam, steps - 1), last)
        moves = [moves for end in ends for moves in (*self.between, end)]
        for number, between in enumerate(moves, first):
            self.kernels.step_force(self.state, between, number)


class StepGraphs:
    """Takes steps from force to force, in captured graphs.

    Parameters
    ----------
    kernels : Kernels
        Queue the work.
    """

    def __init__(self, kernels: "Kernels") -> None:
        self.kernels = kernels
        self.graphs: dict[Hashable, tuple[State, Callable[[], None]]] = {}
        self.last: tuple[StepPlan, int] | None = None

    def run(self, state: State, plan: StepPlan, number: int) -> None:
        """Queue whole steps."""
        batch = (plan, number)
        again = batch == self.last
        self.last = batch
        if again and number <= max(STEPS_OF_GRAPHS):
            self._replay(state, batch, lambda: self._queue_one_by_one(state, plan, number))
        else:
            self._queue(Steps(self.kernels, state, plan), _groups(number - 1))

    def run_with_copies(
        self, state: State, plan: StepPlan, number: int, copies: StateCopies
    ) -> None:
        """Queue whole steps, and the copies of the state that are due among them."""
        groups = _groups_with_copies(number - 1, copies)
        self._queue(Steps(self.kernels, state, plan), groups, copies)

    def _queue_one_by_one(self, state: State, plan: StepPlan, number: int) -> None:
        """Queue steps kernel by kernel: they are a part of a graph."""
        steps = Steps(self.kernels, state, plan)
        steps.begin()
        if number > 1:
            steps.queue(Group(number - 1), 0)
        steps.finish((number - 1) * plan.forces)

    def _queue(
        self, steps: Steps, groups: Iterable[Group], copies: StateCopies | None = None
    ) -> None:
        """Queue groups of steps as graphs, and one step more."""
        steps.begin()
        first = 0
        for group in groups:
            self._queue_group(steps, group, first, copies)
            first += group.all_steps * steps.plan.forces
        last = copies.pass_by(1) if copies else None
        steps.finish(first, last.at(0) if last and last.times else None)

    def _queue_group(
        self, steps: Steps, group: Group, first: int, copies: StateCopies | None
    ) -> None:
        """Queue a group as a graph, which leaves its copies in memory that stays the same."""
        kept = self._kept(steps.state, group.copies) if group.copies else None
        key = (steps.plan, group, first % 2)
        often = copies is not None and group.steps == copies.interval
        self._replay(steps.state, key, lambda: steps.queue(group, first % 2, kept), often)
        memory = copies.pass_by(group.all_steps) if copies else None
        if kept and memory:
            self._copy(kept, memory)

    def _kept(self, state: State, copies: int) -> Motion:
        """Return memory for the copies that a graph takes."""
        shape = (max(COPIES_OF_GRAPHS), *state.velocity.shape)
        names = ("copies of positions", "copies of velocities")
        return Motion(*(self.kernels.workspace.array(name, shape, "f8") for name in names)).at(
            slice(copies)
        )

    def _copy(self, source: Motion, target: Motion) -> None:
        """Copy positions and velocities on the device."""
        self.kernels.backend.copy(source.position, target.position)
        self.kernels.backend.copy(source.velocity, target.velocity)

    def _replay(
        self, state: State, key: Hashable, queue: Callable[[], None], often: bool = False
    ) -> None:
        """Do the work of `queue` as a graph; the first time kernel by kernel, to load them all.

        What comes `often` is captured at once, if kernels have been loaded. A graph holds the
        addresses of the state kept with it.
        """
        captured, replay = self.graphs.get(key, (None, None))
        if replay is None or captured is not state:
            backend = self.kernels.backend
            make = backend.capture if often and self.graphs else backend.recorded
            replay = make(queue)
            self.graphs[key] = state, replay
        replay()


def _groups(steps: int) -> Iterator[Group]:
    """Yield the graphs that make up some steps."""
    for length in STEPS_OF_GRAPHS:
        yield from repeat(Group(length), steps // length)
        steps %= length


def _groups_with_copies(steps: int, copies: StateCopies) -> Iterator[Group]:
    """Yield the graphs that make up some steps with the copies that are due among them."""
    interval = copies.interval
    if copies.since and steps:
        first = min(steps, interval - copies.since)
        yield Group(first, int(copies.since + first == interval))
        steps -= first
    left, rest = divmod(steps, interval)
    for number in COPIES_OF_GRAPHS:
        if number == 1 or number * interval <= MOST_STEPS:
            yield from repeat(Group(interval, number), left // number)
            left %= number
    if rest:
        yield Group(rest)
