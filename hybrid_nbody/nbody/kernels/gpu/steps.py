"""Whole steps of bodies, as captured graphs of kernels."""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.nbody.copies import Motion, Motions, StateCopies
from hybrid_nbody.nbody.kernels.actions import KernelActions
from hybrid_nbody.nbody.stages import StepPlan
from hybrid_nbody.nbody.state import State

if TYPE_CHECKING:
    from hybrid_nbody.nbody.kernels.gpu.kernels import Kernels

STEPS_OF_GRAPHS = (64, 16, 8, 4, 2, 1)
"""Steps of captured graphs: a GPU pauses for some microseconds between two graphs. As many steps as
last time, up to the most of these, are one graph: those between two frames are always as many."""

COPIES_OF_GRAPHS = (8, 1)
"""Copies of the state that are taken within one graph. Capturing a step takes the host as long as
ten steps of a few bodies take the GPU."""

SHORT_INTERVAL = 32
"""Steps between two copies, at most, of which any part is one graph."""

MOST_STEPS_OF_A_GRAPH = 320
"""Steps of a graph with several copies, at most: each is some nodes to capture."""

NEVER = np.iinfo(np.int32).max
"""Steps between two copies of the state where there are none."""

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
"""``Moves`` of ``motion.cuh``."""


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
            Motion(state.own_position, state.velocity).copy_to(self.copy, kernels.backend)
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


class StepForces(Protocol):
    """The forces of whole steps, with the moves between them."""

    def prepare_force(self, state: State, number: int) -> None:
        """Get ready for a `step_force` of that number."""

    def step_force(self, state: State, moves: Moves, number: int) -> None:
        """Fill ``state.acceleration``, kick and drift, and get ready for the next force."""


class Group(NamedTuple):
    """Steps that are queued together.

    Attributes
    ----------
    steps : int
    times : int, optional
        How often these steps are taken.
    copied : bool, optional
        Whether the state is copied each time after them.
    """

    steps: int
    times: int = 1
    copied: bool = False

    @property
    def all_steps(self) -> int:
        """Return the steps in all."""
        return self.steps * self.times


class Steps:
    """Steps from force to force: the end of one is done with the start of the next.

    Parameters
    ----------
    kernels : Kernels
        Move the bodies.
    forces : StepForces
        Queue forces and what lies between them.
    state : State
        Moved.
    plan : StepPlan
        The stages of a step.
    """

    def __init__(
        self, kernels: "Kernels", forces: StepForces, state: State, plan: StepPlan
    ) -> None:
        self.kernels = kernels
        self.forces = forces
        self.state = state
        self.plan = plan
        self.start, *between, self.end = plan.around_forces()
        self.between = [Moves(moves, NOTHING) for moves in between]
        self.seam = Moves(self.end, self.start)

    def begin(self) -> None:
        """Queue what comes before the first force."""
        self.start.perform(KernelActions(self.kernels, self.state))
        self.forces.prepare_force(self.state, 0)

    def queue(self, group: Group, first: int, copies: Motions | None = None) -> None:
        """Queue steps that others follow, whose forces are numbered from `first` on.

        `copies` is the memory for those of the state.
        """
        number = first
        for k in range(group.times):
            last = replace(self.seam, copy=copies.at(k)) if copies else self.seam
            self._queue(group.steps, number, last)
            number += group.steps * self.plan.forces

    def finish(self, first: int, copy: Motion | None = None) -> None:
        """Queue the last step."""
        self._queue(1, first, Moves(self.end, NOTHING, copy))

    def _queue(self, steps: int, first: int, last: Moves) -> None:
        """Queue some steps; the moves `last` follow the last force."""
        step = [*self.between, self.seam]
        all_moves = [*step * (steps - 1), *self.between, last]
        for number, moves in enumerate(all_moves, first):
            self.forces.step_force(self.state, moves, number)


class StepGraphs:
    """Takes steps from force to force, in captured graphs.

    Parameters
    ----------
    kernels : Kernels
        Move the bodies.
    forces : StepForces, optional
        Queue forces and what lies between them; by default the kernels.
    """

    def __init__(self, kernels: "Kernels", forces: StepForces | None = None) -> None:
        self.kernels = kernels
        self.forces = forces or kernels
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
            self._queue(self._steps(state, plan), number, never_copied(state))

    def run_with_copies(
        self, state: State, plan: StepPlan, number: int, copies: StateCopies
    ) -> None:
        """Queue whole steps, and the copies of the state that are due among them."""
        self._queue(self._steps(state, plan), number, copies)

    def _steps(self, state: State, plan: StepPlan) -> Steps:
        return Steps(self.kernels, self.forces, state, plan)

    def _queue_one_by_one(self, state: State, plan: StepPlan, number: int) -> None:
        """Queue steps kernel by kernel: they are a part of a graph."""
        steps = self._steps(state, plan)
        steps.begin()
        if number > 1:
            steps.queue(Group(number - 1), 0)
        steps.finish((number - 1) * plan.forces)

    def _queue(self, steps: Steps, number: int, copies: StateCopies) -> None:
        """Queue all steps but the last as graphs."""
        steps.begin()
        first = 0
        for group in _groups_with_copies(number - 1, copies):
            self._queue_group(steps, group, first, copies)
            first += group.all_steps * steps.plan.forces
        last = copies.note_steps(1)
        steps.finish(first, last.at(0) if last else None)

    def _queue_group(self, steps: Steps, group: Group, first: int, copies: StateCopies) -> None:
        """Queue a group as a graph, which leaves its copies in memory that stays the same."""
        kept = self._kept(steps.state).between(0, group.times) if group.copied else None
        often = group.copied and group.steps == copies.interval
        key = (steps.plan, group, first % 2)
        self._replay(steps.state, key, lambda: steps.queue(group, first % 2, kept), often)
        memory = copies.note_steps(group.all_steps)
        if kept and memory:
            kept.copy_to(memory, self.kernels.backend)

    def _kept(self, state: State) -> Motions:
        """Return the memory for the copies that a graph takes."""
        shape = (max(COPIES_OF_GRAPHS), *state.velocity.shape)
        position = self.kernels.workspace.array("copies of positions", shape, "f8")
        velocity = self.kernels.workspace.array("copies of velocities", shape, "f8")
        return Motions(position, velocity)

    def _replay(
        self, state: State, key: Hashable, queue: Callable[[], None], often: bool = False
    ) -> None:
        """Do the work of `queue` as a graph; the first time kernel by kernel, to load them all.

        What comes `often` is captured at once if steps have been taken before. A graph holds the
        addresses of the state kept with it.
        """
        captured, replay = self.graphs.get(key, (None, None))
        if replay is None or captured is not state:
            backend = self.kernels.backend
            make = backend.capture if often and self.graphs else backend.recorded
            replay = make(queue)
            self.graphs[key] = state, replay
        replay()


def never_copied(state: State) -> StateCopies:
    """Return that a state is not copied; the memory is not written to."""
    return StateCopies(NEVER, Motions(state.position, state.velocity))


def _groups(steps: int) -> Iterator[Group]:
    """Yield the graphs that make up some steps."""
    for length in STEPS_OF_GRAPHS:
        yield from repeat(Group(length), steps // length)
        steps %= length


def _groups_with_copies(steps: int, copies: StateCopies) -> Iterator[Group]:
    """Yield the graphs that make up some steps with the copies that are due among them."""
    interval = copies.interval
    due = interval - copies.since
    if copies.since and steps < due:
        yield from _part(steps, interval)
        return
    if copies.since:
        yield from _part(due, interval, copied=True)
        steps -= due
    intervals, rest = divmod(steps, interval)
    for times in COPIES_OF_GRAPHS:
        if times == 1 or times * interval <= MOST_STEPS_OF_A_GRAPH:
            yield from repeat(Group(interval, times, copied=True), intervals // times)
            intervals %= times
    yield from _part(rest, interval)


def _part(steps: int, interval: int, copied: bool = False) -> Iterator[Group]:
    """Yield the graphs of a part of an interval, whose last step may end with a copy.

    Parts of long intervals have many lengths: they share the graphs of all steps.
    """
    if steps and interval <= SHORT_INTERVAL:
        yield Group(steps, copied=copied)
    elif copied:
        yield from _groups(steps - 1)
        yield Group(1, copied=True)
    else:
        yield from _groups(steps)
