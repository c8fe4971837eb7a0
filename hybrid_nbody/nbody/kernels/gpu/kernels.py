"""Gravity on a GPU (CUDA through CuPy): an implementation of `hybrid_nbody.nbody.kernels.contract`.

The kernels are in ``pair_force.cu``.
"""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hybrid_nbody.backends.base import Array
from hybrid_nbody.backends.gpu import GpuBackend
from hybrid_nbody.backends.launch import FLUSH_DENORMALS, CudaModule, checksum
from hybrid_nbody.backends.timing import begin
from hybrid_nbody.backends.workspace import Workspace
from hybrid_nbody.nbody.copies import Motion, StateCopies
from hybrid_nbody.nbody.kernels.contract import PairForce
from hybrid_nbody.nbody.kernels.gpu.hermite import Formulas
from hybrid_nbody.nbody.kernels.gpu.layout import RUN, Layout, Tuning, tuning_for
from hybrid_nbody.nbody.kernels.gpu.order import MOST_BODIES as MOST_SORTED
from hybrid_nbody.nbody.kernels.gpu.order import Sorter
from hybrid_nbody.nbody.kernels.gpu.steps import MOST_MOVES, Moves, StepGraphs, never_copied
from hybrid_nbody.nbody.precision import PRECISIONS, chunk_capacity, excludes_self
from hybrid_nbody.nbody.stages import StepPlan
from hybrid_nbody.nbody.state import Sources, State

SOURCE = Path(__file__).with_name("pair_force.cu")
HEADERS = tuple(map(SOURCE.with_name, ("totals.cuh", "motion.cuh", "moves.cuh", "few_bodies.cuh")))
OPTIONS = (*FLUSH_DENORMALS, f"-I{SOURCE.parent}")
"""Options of NVRTC that ``pair_force.cu`` is compiled with."""

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
    """Return the macros of ``pair_force.cu`` for a rank that owns `owned` of `number` bodies."""
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
        "MOST_MOVES": MOST_MOVES,
        "FEW_THREADS": few_threads(number, layout) if few else 0,
        "FEW_BODIES": number if few else 0,
        "FEW_SLOTS": layout.slots(number) if few else 0,
        "HEADERS": checksum(HEADERS),
    }


def few_threads(number: int, layout: Layout) -> int:
    """Return the threads of the block that steps a few bodies.

    It has one thread a coordinate, and a warp for each 32 bodies and part of the sums.
    """
    groups = -(-number // RUN)
    return RUN * max(3 * groups, layout.parts * groups)


class PairKernel(NamedTuple):
    """A kernel of ``pair_force.cu`` that sums over the sources, and what it is launched with.

    Attributes
    ----------
    name : str
    targets : int
        Targets of a lane.
    scale : float64
        What sums are multiplied by.
    packed : array
        The sources.
    velocity : (n, 3) array of float64
        Velocities of the targets, which only jerks need.
    """

    name: str
    targets: int
    scale: np.float64
    packed: Array
    velocity: Array


class Kernels:
    """Gravity on one GPU; see `hybrid_nbody.nbody.kernels.contract.Kernels`.

    Launches are queued on the backend's stream and return at once.

    Parameters
    ----------
    backend : GpuBackend
    state : State
        The rank's arrays, of which the sizes matter here.
    pair_force : PairForce
        Precision, softening, gravitational constant and units.
    tuning : Tuning, optional
        By default what was measured for this model of GPU.

    Attributes
    ----------
    times_a_pair : int
        How often a pair of bodies is computed: once for each of the two.
    """

    remark = ""
    skips_massless = True
    times_a_pair = 2
    run_hermite = None  # the host queues each substep: its length follows from the one before

    def __init__(
        self, backend: GpuBackend, state: State, pair_force: PairForce, tuning: Tuning | None = None
    ):
        precision = pair_force.precision
        number = len(state.mass)
        self.backend = backend
        self.precision = precision
        self.pair_force = pair_force
        self.units = pair_force.units
        self.lengths = np.float64(1 / self.units.length)
        self.masses = np.float64(1 / self.units.mass)
        self.speeds = np.float64(1 / self.units.speed)
        self.owned = len(state.velocity)
        massive = int(np.count_nonzero(backend.download(state.mass)))
        self.massless = number - (massive or number)
        self.layout = Layout.of(number, massive)
        self.tuning = tuning or tuning_for(backend.model, precision)
        self.working = PRECISIONS[precision].working
        self.eps2 = self.working(pair_force.eps2)
        self.acceleration_unit = self.units.accelerations(pair_force.G)
        self.macros = self._macros(state)
        self.targets = int(self.macros["TARGETS"])
        self.jerk_targets = int(self.macros["JERK_TARGETS"])
        self.few_threads = int(self.macros["FEW_THREADS"])
        self.module = CudaModule(backend, SOURCE, self.macros, OPTIONS)
        self.slots = self.layout.slots(number)
        self.origin = backend.zeros((chunk_capacity(number), 3), "f8")
        self.packed = backend.zeros((self.slots, NUMBERS_PER_SOURCE[precision]), self.working)
        self.middles = [backend.zeros((len(self.origin), 3, 2), "f8") for _ in range(2)]
        self.workspace = Workspace(backend.zeros)
        self.graphs = StepGraphs(self)
        self.encoded: dict[StepPlan, tuple[Array, Array]] = {}

    def _macros(self, state: State) -> dict[str, int | str]:
        unsoftened = excludes_self(state.heaviest / self.units.mass, self.eps2)
        sizes = (len(state.mass), self.owned)
        return defines(self.precision, self.layout, self.tuning, *sizes, unsoftened)

    @functools.cached_property
    def hermite(self) -> Formulas:
        """Return the formulas of Hermite's scheme."""
        return Formulas(self.backend)

    def _launch(self, name: str, threads: int, *arguments: Any) -> None:
        """Launch a kernel of ``pair_force.cu``."""
        self.module.launch(name, threads, THREADS, *arguments)

    # --- sums -------------------------------------------------------------------------------------

    def pack(self, sources: Sources) -> None:
        """Store the sources as the sums read them."""
        self._launch("pack", self.slots, *self._unpacked(sources), self.packed)

    def _unpacked(self, sources: Sources) -> tuple[Any, ...]:
        """Return the arguments of `pack` that say which bodies fill the slots."""
        bodies = (sources.position, sources.mass, sources.order, sources.starts)
        return (np.int32(self.slots), self.lengths, self.masses, *bodies, self.origin)

    def accelerations(self, state: State) -> None:
        """Fill ``state.acceleration`` from the packed sources."""
        self._sum(state, self._acceleration_kernel(state), state.acceleration)

    def _acceleration_kernel(self, state: State) -> PairKernel:
        """Return what sums accelerations."""
        name = self._accelerations(state)
        return PairKernel(name, self.targets, self._scale(state), self.packed, state.velocity)

    def _accelerations(self, state: State) -> str:
        """Return the name of the kernel that sums accelerations."""
        return "accelerations" if state.common_mass is None else "accelerations_of_equal_masses"

    def _scale(self, state: State) -> np.float64:
        """Return the factor of summed accelerations, with the mass where all are equal."""
        mass = 1.0 if state.common_mass is None else state.common_mass / self.units.mass
        return np.float64(self.acceleration_unit * mass)

    def accelerations_and_jerks(self, state: State, velocity: Array, jerk: Array) -> None:
        """Fill ``state.acceleration`` and `jerk`, (n, 3), from the velocities of all bodies."""
        moving, relative = self._pack_moving(state, velocity)
        name = "accelerations_and_jerks"
        scale = np.float64(self.acceleration_unit)
        kernel = PairKernel(name, self.jerk_targets, scale, moving, relative[state.own])
        partial = self._sum_parts(state, kernel, 6)
        rate = np.float64(self.units.speed / self.units.length)
        results = (state.acceleration, jerk)
        arguments = (np.int32(len(jerk)), state.own_order, scale, rate, partial, *results)
        self.module.launch_grid(f"combine_{name}", _grid(len(jerk), 6), (THREADS,), arguments)

    def _pack_moving(self, state: State, velocity: Array) -> tuple[Array, Array]:
        """Return the sources with their velocities, and these relative to one body's.

        A common velocity of all bodies must not cost accuracy.
        """
        relative = self.workspace.array("relative velocities", velocity.shape, "f8")
        self.backend.xp.subtract(velocity, velocity[:1], out=relative)
        shape = (self.slots, NUMBERS_PER_SOURCE[self.precision] + 4)
        moving = self.workspace.array("moving sources", shape, self.working)
        self._launch(
            "pack_moving", self.slots, *self._unpacked(state), self.speeds, relative, moving
        )
        return moving, relative

    def potential(self, state: State, result: Array) -> None:
        """Fill `result`, (n,), with the potential at this rank's bodies."""
        scale = np.float64(self.units.potentials(self.pair_force.G))
        kernel = PairKernel("potentials", self.targets, scale, self.packed, state.velocity)
        self._sum(state, kernel, result)

    def _sum(self, state: State, kernel: PairKernel, result: Array) -> None:
        """Sum over the packed sources at this rank's bodies: all parts, then their total."""
        components = result.size // max(len(state.source_index), 1)
        partial = self._sum_parts(state, kernel, components)
        self._combine(state, kernel.scale, partial, result)

    def _sum_parts(self, state: State, kernel: PairKernel, components: int) -> Array:
        """Return the sums over each part of the packed sources."""
        targets = len(state.source_index)
        warps = -(-targets // (RUN * kernel.targets)) * self.layout.parts
        partial = self._partial(components)
        indices = (state.source_index, state.own_order)
        bodies = (np.int32(targets), state.own_position, kernel.velocity, *indices)
        chunks = (state.chunks, state.starts, self.origin)
        packed = (self.lengths, self.speeds, self.eps2, *chunks, kernel.packed)
        self._launch(kernel.name, warps * RUN, *bodies, *packed, partial)
        return partial

    def _partial(self, components: int) -> Array:
        """Return scratch for the partial sums at all own bodies, or at some of them."""
        return self.workspace.array(
            "partial sums", (self.layout.parts, components, self.owned), "f8"
        )

    def _combine(self, state: State, scale: np.float64, partial: Array, result: Array) -> None:
        """Add up the partial sums of each target."""
        targets = len(state.source_index)
        components = result.size // max(targets, 1)
        arguments = (np.int32(targets), state.own_order, scale, partial, result)
        self.module.launch_grid("combine", _grid(targets, components), (THREADS,), arguments)

    def sorter(self, state: State) -> Sorter | None:
        """Return what sorts the sources; None where CuPy does it as fast."""
        few = len(state.mass) <= MOST_SORTED
        return Sorter(self.backend, state) if few else None

    # --- steps ------------------------------------------------------------------------------------

    def kick(self, state: State, duration: float) -> None:
        """Change velocities: v += a `duration`."""
        self._add_scaled(state.velocity, duration, state.acceleration)

    def drift(self, state: State, duration: float) -> None:
        """Change positions: x += v `duration`."""
        self._add_scaled(state.own_position, duration, state.velocity)

    def _add_scaled(self, result: Array, factor: float, increment: Array) -> None:
        size = result.size
        self._launch("add_scaled", size, np.int32(size), result, np.float64(factor), increment)

    def run(self, state: State, plan: StepPlan, steps: int) -> Callable[[], float]:
        """Queue whole steps of a rank that owns every body, with hardly any work for the host.

        Returns
        -------
        callable
            Waits for the steps; returns their seconds: what moves the bodies is a part of the
            kernels of a force.
        """
        run = self._run_few if self.few_threads else self.graphs.run
        return begin(self.backend, lambda: run(state, plan, steps))

    def run_with_copies(
        self, state: State, plan: StepPlan, steps: int, copies: StateCopies
    ) -> Callable[[], float]:
        """Queue whole steps, as `run` does, and the copies of the state that are due among them."""
        self.module.load("combine_move_copy_and_pack")  # not while a graph is captured
        run = self._run_few_with_copies if self.few_threads else self.graphs.run_with_copies
        return begin(self.backend, lambda: run(state, plan, steps, copies))

    def _run_few(self, state: State, plan: StepPlan, steps: int) -> None:
        """Take all steps in one block of threads, which needs no launch between stages."""
        self._run_few_with_copies(state, plan, steps, never_copied(state))

    def _run_few_with_copies(
        self, state: State, plan: StepPlan, steps: int, copies: StateCopies
    ) -> None:
        """Take all steps in one block of threads, which copies the state as well."""
        name = "run_steps" if state.common_mass is None else "run_steps_of_equal_masses"
        stages = (np.int32(len(plan.stages)), *self._encoded(plan))
        sizes = (np.int32(len(state.mass)), np.int32(self.slots))
        bodies = (state.position, state.velocity, state.acceleration, state.mass)
        order = (state.order, state.source_index, state.own_order)
        unit = np.float64(self.units.length)
        factors = (self.lengths, unit, self.masses, self._scale(state))
        sums = (*factors, self.eps2, state.chunks, state.starts)
        arguments = (*stages, *sizes, *bodies, *order, *sums)
        for done in range(0, steps, STEPS_OF_A_LAUNCH):
            count = min(steps - done, STEPS_OF_A_LAUNCH)
            given = (np.int32(count), *arguments, *_copies_argument(copies, count))
            self.module.launch_grid(name, (1,), (self.few_threads,), given)

    def _encoded(self, plan: StepPlan) -> tuple[Array, Array]:
        """Return the encoded stages of a plan, kept on the device."""
        if plan not in self.encoded:
            actions, lengths = plan.encoded()
            self.encoded[plan] = (self.backend.upload(actions), self.backend.upload(lengths))
        return self.encoded[plan]

    def prepare_force(self, state: State, number: int) -> None:
        """Pack the sources for a `step_force` of that number."""
        self.pack(state)
        if PRECISIONS[self.precision].local:
            chunks = np.int32(len(self.origin))
            bodies = (state.position, state.velocity, state.order, state.starts)
            middles = self.middles[number % 2]
            self._launch("keep_middles", 3 * len(self.origin), chunks, *bodies, middles)

    def step_force(self, state: State, moves: Moves, number: int) -> None:
        """Fill ``state.acceleration`` from the packed sources, kick and drift, and pack again.

        Parameters
        ----------
        state : State
        moves : Moves
            Kicks and drifts until the next force.
        number : int
            Of the force: whether it is even says where the middle bodies are.
        """
        if len(moves) > MOST_MOVES:
            self.accelerations(state)
            moves.perform(self, state)
            self.prepare_force(state, number + 1)
            return
        kernel = self._acceleration_kernel(state)
        partial = self._sum_parts(state, kernel, 3)
        sizes = (np.int32(self.slots), np.int32(self.owned), self.lengths, kernel.scale)
        sums = (state.order, state.chunks, state.starts, partial, moves.argument)
        bodies = (state.position, state.velocity, state.acceleration)
        middles = (self.middles[number % 2], self.middles[(number + 1) % 2])
        copy = moves.copy or Motion(state.position, state.velocity)  # not written to, then
        copied = (copy.position, copy.velocity)
        arguments = (*sizes, *sums, *bodies, *middles, self.origin, self.packed, *copied)
        name = "combine_move_copy_and_pack" if moves.copy else "combine_move_and_pack"
        grid = _grid(self.slots + self.massless, 3)
        self.module.launch_grid(name, grid, (THREADS,), arguments)


def _copies_argument(copies: StateCopies, steps: int) -> tuple[Any, ...]:
    """Return what a block of few bodies is told of the copies among its next steps."""
    interval = np.int32(copies.interval)
    since = np.int32(copies.since)
    memory = copies.note_steps(steps) or copies.memory
    return interval, since, memory.position, memory.velocity


def _grid(threads: int, components: int) -> tuple[int, int]:
    """Return the blocks that give every component as many threads."""
    return -(-threads // THREADS), components
