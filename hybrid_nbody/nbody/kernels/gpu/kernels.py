"""The pair force on a GPU (CUDA through CuPy); twin of ``cpu``.

The kernels are in ``pair_force.cu``.
"""

import functools
from pathlib import Path

import numpy as np

from hybrid_nbody.nbody.kernels.actions import KernelActions
from hybrid_nbody.nbody.kernels.gpu.hermite import Formulas
from hybrid_nbody.nbody.kernels.gpu.layout import RUN, Layout, Tuning, tuning_for
from hybrid_nbody.nbody.kernels.precision import PRECISIONS, chunk_capacity, excludes_self

SOURCE = Path(__file__).with_name("pair_force.cu")

THREADS = 128
"""Threads of a block."""

STEPS_OF_A_LAUNCH = 8192
"""Most steps of a few bodies in one launch: signals are looked for between launches."""

NUMBERS_PER_SOURCE = {"single": 4, "mixed": 8, "double": 4}


def defines(
    precision: str,
    layout: Layout,
    tuning: Tuning,
    number: int,
    owned: int,
    unsoftened: bool = False,
) -> dict[str, int | str]:
    """Return the macros that compile ``pair_force.cu`` for a rank that owns `owned` of `number` bodies."""
    targets = tuning.targets_for(owned)
    few = number <= tuning.few
    return {
        precision.upper(): 1,
        "UNSOFTENED": str(unsoftened).lower(),
        "PIECE": layout.piece,
        "PIECES": layout.pieces,
        "PARTS": layout.parts,
        "TARGETS": targets,
        "JERK_TARGETS": min(targets, tuning.jerk_targets),
        "THREADS": THREADS,
        "FEW_THREADS": few_threads(number, layout) if few else 0,
        "FEW_BODIES": number if few else 0,
        "FEW_SLOTS": layout.slots(number) if few else 0,
    }


def few_threads(number: int, layout: Layout) -> int:
    """Return the threads of the block that steps a few bodies: one a coordinate, a warp for 32 bodies and a part."""
    groups = -(-number // RUN)
    return RUN * max(3 * groups, layout.parts * groups)


class Kernels:
    """Gravity on one GPU; parameters and methods as in the twin, `hybrid_nbody.nbody.kernels.cpu.kernels.Kernels`.

    Launches are queued on the backend's stream and return at once.

    Parameters
    ----------
    tuning : Tuning, optional
        By default what was measured for this model of GPU.

    Attributes
    ----------
    times_a_pair : int
        How often a pair of bodies is computed: twice, once at either.
    """

    remark = ""
    times_a_pair = 2
    run_hermite = None  # substeps are queued from outside: each asks for the length of the next

    def __init__(self, backend, state, pair_force, tuning=None):
        precision = pair_force.precision
        number = len(state.mass)
        owned = len(state.velocity)
        self.backend = backend
        self.precision = precision
        self.G = float(pair_force.G)
        self.owned = owned
        self.layout = Layout.of(number)
        self.tuning = tuning or tuning_for(backend.model, precision)
        self.working = PRECISIONS[precision].working
        self.eps2 = self.working(pair_force.softening**2)
        leave_out = excludes_self(state.heaviest, self.eps2)
        macros = defines(precision, self.layout, self.tuning, number, owned, leave_out)
        self.targets = macros["TARGETS"]
        self.jerk_targets = macros["JERK_TARGETS"]
        self.few_threads = macros["FEW_THREADS"]
        self.kernel = functools.cache(backend.compile(SOURCE, macros).get_function)
        self.slots = self.layout.slots(number)
        self.origin = backend.zeros((chunk_capacity(number), 3), "f8")
        self.packed = backend.zeros((self.slots, NUMBERS_PER_SOURCE[precision]), self.working)
        self.room = {}
        self.graphs = {}
        self.stages = {}

    @functools.cached_property
    def hermite(self):
        """The formulas of Hermite's scheme."""
        return Formulas(self.backend)

    def _launch(self, name, threads, *arguments):
        """Launch a kernel with `threads` threads, if there are any, in blocks of THREADS."""
        if threads:
            self.kernel(name)((-(-threads // THREADS),), (THREADS,), arguments)

    def pack(self, state):
        """Prepare the sources from the positions of all bodies."""
        self._launch("pack", self.slots, *self._bodies(state), self.packed)

    def _bodies(self, state):
        """Return the arguments of `pack` that say which bodies fill the slots."""
        return (
            np.int32(self.slots),
            state.position,
            state.mass,
            state.order,
            state.starts,
            self.origin,
        )

    def accelerations(self, state):
        """Fill ``state.acceleration`` for this rank's bodies, after `pack`."""
        self._sum(
            self._accelerations(state),
            self.targets,
            state,
            self._scale(state),
            state.acceleration,
            self.packed,
        )

    def _accelerations(self, state):
        return "accelerations" if state.common_mass is None else "accelerations_of_equal_masses"

    def _scale(self, state):
        """Return what a sum of accelerations is multiplied with: G, and the mass where the sum does without."""
        return np.float64(self.G if state.common_mass is None else self.G * state.common_mass)

    def accelerations_and_jerks(self, state, velocity, jerk):
        """Fill ``state.acceleration`` and `jerk` for this rank's bodies."""
        moving, relative = self._pack_moving(state, velocity)
        both = self._room((len(jerk), 6), "f8")
        self._sum(
            "accelerations_and_jerks",
            self.jerk_targets,
            state,
            np.float64(self.G),
            both,
            moving,
            relative,
        )
        state.acceleration[:] = both[:, :3]
        jerk[:] = both[:, 3:]

    def _pack_moving(self, state, velocity):
        """Return the sources with their velocities, and these relative to one body's."""
        relative = self._room(velocity.shape, "f8")  # a common velocity must not cost accuracy
        self.backend.xp.subtract(velocity, velocity[:1], out=relative)
        moving = self._room((self.slots, NUMBERS_PER_SOURCE[self.precision] + 4), self.working)
        self._launch("pack_moving", self.slots, *self._bodies(state), relative, moving)
        return moving, relative

    def potential(self, state, result):
        """Fill `result` with the potential at this rank's bodies, after `pack`."""
        self._sum("potentials", self.targets, state, np.float64(self.G), result, self.packed)

    def _sum(self, name, targets_of_a_lane, state, scale, result, packed, velocity=None):
        """Sum over the packed sources at this rank's bodies: all parts, then their total."""
        targets = len(state.source_index)
        components = result.size // max(targets, 1)
        warps = -(-targets // (RUN * targets_of_a_lane)) * self.layout.parts
        partial = self._partial(components)
        own_velocity = state.velocity if velocity is None else velocity[state.own]
        bodies = (
            np.int32(targets),
            state.own_position,
            own_velocity,
            state.source_index,
            state.own_order,
        )
        self._launch(
            name,
            warps * RUN,
            *bodies,
            self.eps2,
            state.chunks,
            state.starts,
            self.origin,
            packed,
            partial,
        )
        sizes = np.int32(components), np.int32(targets)
        self._launch("combine", result.size, *sizes, state.own_order, scale, partial, result)

    def _partial(self, components):
        """Return room for the partial sums at all own bodies, or at some of them."""
        return self._room((self.layout.parts, components, self.owned), "f8")

    def _room(self, shape, kind):
        """Return an array for intermediate results, made once for every shape."""
        if (shape, kind) not in self.room:
            self.room[shape, kind] = self.backend.zeros(shape, kind)
        return self.room[shape, kind]

    def kick(self, state, duration):
        """Add the acceleration over `duration` to the velocities."""
        self._add_scaled(state.velocity, duration, state.acceleration)

    def drift(self, state, duration):
        """Add the velocity over `duration` to the positions."""
        self._add_scaled(state.own_position, duration, state.velocity)

    def _add_scaled(self, result, factor, increment):
        self._launch(
            "add_scaled", result.size, np.int32(result.size), result, np.float64(factor), increment
        )

    def run(self, state, plan, steps):
        """Do whole steps of a rank that owns every body, with hardly any work for the host.

        Parameters and result as in the twin; the seconds in the force are those of the first step,
        times `steps`.
        """
        start = self.backend.mark()
        forces = TimedForces(self, state)
        plan.perform(forces)
        (self._run_few if self.few_threads else self._replay)(state, plan, steps - 1)
        total = self.backend.elapsed(start, self.backend.mark())
        return min(total, steps * sum(self.backend.elapsed(*marks) for marks in forces.marks))

    def _run_few(self, state, plan, steps):
        """Do all steps in one block of threads, which needs no launch between the stages of a step."""
        name = "run_steps" if state.common_mass is None else "run_steps_of_equal_masses"
        actions, lengths = self._on_device(plan)
        sizes = (
            np.int32(len(plan.stages)),
            actions,
            lengths,
            np.int32(len(state.mass)),
            np.int32(self.slots),
        )
        bodies = (state.position, state.velocity, state.acceleration, state.mass)
        order = (state.order, state.source_index, state.own_order)
        sums = (self._scale(state), self.eps2, state.chunks, state.starts)
        kernel = self.kernel(name)
        threads = self.few_threads
        for done in range(0, steps, STEPS_OF_A_LAUNCH):
            count = np.int32(min(steps - done, STEPS_OF_A_LAUNCH))
            kernel((1,), (threads,), (count, *sizes, *bodies, *order, *sums))

    def _on_device(self, plan):
        """Return the encoded stages of a plan, kept on the device."""
        if plan not in self.stages:
            self.stages[plan] = tuple(map(self.backend.upload, plan.encoded()))
        return self.stages[plan]

    def _replay(self, state, plan, steps):
        """Replay a captured graph of one step."""
        if steps:
            replay = self._graph(state, plan)
            for _ in range(steps):
                replay()

    def _graph(self, state, plan):
        """Return a replay of one step; a graph holds the addresses of one state, which is kept with it."""
        captured, replay = self.graphs.get(plan, (None, None))
        if captured is not state:
            actions = KernelActions(self, state)
            replay = self.backend.capture(lambda: plan.perform(actions))
            self.graphs[plan] = state, replay
        return replay


class TimedForces(KernelActions):
    """The same with a pair of marks around each force."""

    def __init__(self, kernels, state):
        super().__init__(kernels, state)
        self.marks = []

    def force(self):
        """Compute the accelerations between two marks."""
        start = self.kernels.backend.mark()
        super().force()
        self.marks.append((start, self.kernels.backend.mark()))
