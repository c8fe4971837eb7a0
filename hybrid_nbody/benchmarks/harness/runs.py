"""Bodies that benchmarks move by a step, what moves them, and the check of that step."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Backend
from hybrid_nbody.benchmarks.harness.measure import Action, Row, Stop, targets_within, timed
from hybrid_nbody.nbody.forces.base import ForceSetup
from hybrid_nbody.nbody.forces.tree.force import TreeForce
from hybrid_nbody.nbody.initial_conditions import isotropic, plummer, random_box
from hybrid_nbody.nbody.kernels import make_kernels, make_symmetric_kernels, reference
from hybrid_nbody.nbody.kernels.contract import PairForce
from hybrid_nbody.nbody.kernels.gpu.exact_sums import is_applicable
from hybrid_nbody.nbody.precision import PRECISIONS
from hybrid_nbody.nbody.sources import given_order, spatial_order
from hybrid_nbody.nbody.state import make_state, set_order
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.exchange.allgather import AllgatherExchange
from hybrid_nbody.parallel.one_rank import OneRank
from hybrid_nbody.parallel.partition import Partition

OPERATIONS = 20
"""Floating-point operations counted for an interaction."""

POSITION_TOLERANCE = 0.005
"""Largest difference of a coordinate after a step at which it still agrees with the reference."""

CLUMPS = 64
CLUMP_RADIUS = 1e-3
APART = (100.0, 3.0, 0.0)
THICKNESS = 0.03
"""From one of two galaxies to the other, and of the disc, over the scale of its radii."""

FIRST = 32
SPREAD = 96
"""Bodies that are checked: the first ones, which every rung moves, and others among the rest."""


@dataclass(frozen=True)
class Problem:
    """Bodies at rest, and one step of semi-implicit Euler: v += dt a(x), then x += dt v (G = 1)."""

    position: NDArray  # (N, 3), float32
    mass: NDArray  # (N,), float32
    softening: float
    dt: float

    @property
    def number(self) -> int:
        return len(self.mass)

    @property
    def eps2(self) -> np.float32:
        return np.float32(self.softening**2)

    @cached_property
    def sample(self) -> NDArray:
        """The bodies that are checked, in order."""
        first = np.arange(min(FIRST, self.number))
        return np.unique(np.concatenate([first, np.arange(SPREAD) * self.number // SPREAD]))

    @cached_property
    def acceleration(self) -> NDArray:
        """True accelerations of the sample."""
        bodies = self.position.astype(float), self.mass.astype(float)
        return reference.accelerations(*bodies, self.softening, targets=list(self.sample))

    def check(self, position: NDArray, velocity: NDArray, targets: int) -> dict[str, float]:
        """Compare a step of the first bodies with the reference; errors are relative to lengths."""
        done = self.sample[self.sample < targets]
        true = self.acceleration[: len(done)]
        moved = self.position[done].astype(float) + self.dt**2 * true
        offset = np.abs(position[done] - moved).max(axis=1)
        difference = np.linalg.norm(velocity[done] / self.dt - true, axis=1)
        error = difference / np.linalg.norm(true, axis=1)
        return {
            "checked": len(done),
            "position_error": float(offset.max()),
            "within_tolerance": float(np.mean(offset < POSITION_TOLERANCE)),
            "error_median": float(np.median(error)),
            "error_max": float(error.max()),
        }


def box(number: int) -> Problem:
    """Return the bodies of ladder A: random in [-1, 1]^3, unit masses, softening^2 1e-9."""
    return as_problem(random_box(number, seed=1), 1e-9**0.5, 0.01)


def massive_box(number: int) -> Problem:
    """Return the bodies of ladder C: random in [-5, 5]^3, masses in [1, 10], dt = 1e-5."""
    bodies = random_box(number, seed=1, half_width=5.0)
    bodies.mass[:] = np.random.default_rng(2).uniform(1, 10, number)
    return as_problem(bodies, 0.01, 1e-5)


def plummer_sphere(number: int) -> Problem:
    """Return the bodies of ladder E: a Plummer sphere of total mass 1, softening 0.01."""
    return as_problem(plummer(number, seed=1), 0.01, 0.01)


def clumps(number: int) -> Problem:
    """Return clumps in a box of edge 2, each a cusp, far smaller than their distances."""
    random = np.random.default_rng(1)
    centres = random.uniform(-1, 1, (CLUMPS, 3))
    radius = CLUMP_RADIUS * random.uniform(0, 1, number) ** 1.5
    offset = radius[:, None] * isotropic(random, number)
    return at_rest(centres[random.integers(0, CLUMPS, number)] + offset)


def galaxies(number: int) -> Problem:
    """Return two Plummer spheres far from each other."""
    sphere = plummer_sphere(number)
    position = sphere.position.astype("f8")
    position[number // 2 :] += APART
    return at_rest(position)


def disc(number: int) -> Problem:
    """Return a thin exponential disc."""
    random = np.random.default_rng(1)
    radius = random.exponential(1 / 3, number)
    angle = random.uniform(0, 2 * np.pi, number)
    height = THICKNESS / 3 * random.standard_normal(number)
    return at_rest(np.column_stack([radius * np.cos(angle), radius * np.sin(angle), height]))


def at_rest(position: NDArray) -> Problem:
    """Return bodies of equal masses, softening 0.01."""
    mass = np.full(len(position), 1 / len(position), "f4")
    return Problem(position.astype("f4"), mass, 0.01, 0.01)


def as_problem(bodies: Any, softening: float, dt: float, G: float = 1.0) -> Problem:
    """Return a problem of bodies, with the gravitational constant in their masses."""
    return Problem(bodies.position.astype("f4"), (G * bodies.mass).astype("f4"), softening, dt)


class BodyRun:
    """A problem on a device: `restart` puts the bodies back at rest, `step` moves the first ones.

    `result` returns positions and velocities, (N, 3); `divisible` says whether fewer can move.
    """

    divisible = False
    restart: Callable[[], None]
    step: Callable[[int], None]
    result: Callable[[], tuple[NDArray, NDArray]]

    def __init__(self, backend: Any, problem: Problem):
        self.backend = backend
        self.problem = problem

    def interactions(self, targets: int) -> int:
        """Return the interactions of a step of the first bodies."""
        return targets * self.problem.number


class LoopRun(BodyRun):
    """A step by two of the CPU loops of `hybrid_nbody.benchmarks.harness.loops`, by their names."""

    drift_name: str

    def __init__(self, backend: Backend, problem: Problem, kick: str):
        from hybrid_nbody.benchmarks.harness import loops  # compiled for the backend's threads

        super().__init__(backend, problem)
        self.kick = getattr(loops, kick)
        self.drift = getattr(loops, self.drift_name)
        self.dt = np.float32(problem.dt)
        self.restart()


class ProductionRun(BodyRun):
    """A step by the kernels of a run, symmetric by default where those of a run would be."""

    def __init__(
        self,
        backend: Backend,
        problem: Problem,
        precision: str,
        symmetric: bool | None = None,
        **options,
    ):
        super().__init__(backend, problem)
        self.precision = precision
        mass = problem.mass.astype("f8")
        self.state = make_state(backend, slice(0, problem.number), mass)
        order = given_order(problem.number)
        if PRECISIONS[precision].local:
            order = spatial_order(problem.position.astype("f8"))
        set_order(backend, self.state, order)
        pair_force = PairForce(precision, problem.softening)
        if symmetric is None:
            symmetric = is_applicable([backend.name], pair_force, mass)
        make = make_symmetric_kernels if symmetric else make_kernels
        self.kernels: Any = make(backend, self.state, pair_force, **options)
        self.restart()

    def restart(self) -> None:
        self.state.position[:] = self.backend.upload(self.problem.position.astype("f8"))
        self.state.velocity[:] = 0

    def force(self) -> None:
        """Compute the accelerations of all bodies."""
        self.kernels.pack(self.state)
        self.kernels.accelerations(self.state)

    def jerks(self) -> Action:
        """Return what computes the accelerations and jerks of all bodies, packed before."""
        jerk = self.backend.zeros((self.problem.number, 3), "f8")
        return partial(self.kernels.accelerations_and_jerks, self.state, self.state.velocity, jerk)

    def step(self, targets: int) -> None:
        self.force()
        self.kernels.kick(self.state, self.problem.dt)
        self.kernels.drift(self.state, self.problem.dt)

    def result(self) -> tuple[NDArray, NDArray]:
        download = self.backend.download
        return download(self.state.position), download(self.state.velocity)


def tree_force(backend: Backend, problem: Problem, precision: str, accuracy: float) -> TreeForce:
    """Return the force of a run on one rank, after two forces; the last one took the first's."""
    nothing: Any = None
    mass = problem.mass.astype("f8")
    setup = ForceSetup(
        backend=backend,
        communicator=Communicator(OneRank()),
        exchange=AllgatherExchange(nothing, Partition.equal(problem.number, 1), 0),
        own_mass=mass,
        all_masses=lambda: mass,
        pair_force=PairForce(precision, problem.softening),
        backends=(backend.name,),
        accuracy=accuracy,
    )
    force = TreeForce(setup)
    force.bodies.position[:] = backend.upload(problem.position.astype("f8"))
    force.start()
    return force


def check(run: BodyRun, targets: int, stop: Stop) -> Row:
    """Do a step of the bodies at rest, compare it with the reference, and put the bodies back."""
    stop()
    run.restart()
    run.step(targets)
    run.backend.synchronize()
    result = run.problem.check(*run.result(), targets)
    run.restart()
    return result


def rates(run: BodyRun, seconds: float, targets: int) -> Row:
    """Return the rates of a step, given its seconds."""
    rate = run.interactions(targets) / seconds
    return {"interactions_per_s": rate, "gflops": rate * OPERATIONS * 1e-9}


def measured(run: BodyRun, repeats: int, stop: Stop) -> Row:
    """Return times, rates and check of a run."""
    number = run.problem.number
    targets = targets_within(run.backend, run.step, number, stop) if run.divisible else number
    checked = check(run, targets, stop)
    taken = timed(run.backend, lambda: run.step(targets), repeats, stop)
    return {
        "targets": targets,
        "note": f"{targets} targets" if targets < number else "",
        **taken.columns,
        **rates(run, taken.median, targets),
        **checked,
    }
