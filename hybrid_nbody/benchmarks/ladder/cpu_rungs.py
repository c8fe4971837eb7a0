"""CPU rungs, made ready to run: a problem in the layout of a loop, and its step."""

import numpy as np

from hybrid_nbody.benchmarks.ladder import openmp


class LoopRun:
    """A step by one of the functions of `loops`.

    Parameters
    ----------
    backend : CpuBackend
    function : str
        Name in `hybrid_nbody.benchmarks.ladder.loops`.
    problem : Problem

    Attributes
    ----------
    divisible : bool
        Whether a step can be done for the first bodies alone.
    """

    divisible = True

    def __init__(self, backend, function, problem):
        from hybrid_nbody.benchmarks.ladder import (
            loops,
        )  # compiles for the threads and the cache of `backend`

        self.backend = backend
        self.problem = problem
        self.kick = getattr(loops, function)
        self.drift = loops.drift
        self.dt = np.float32(problem.dt)
        self.restart()

    def restart(self) -> None:
        """Go back to the bodies at rest."""
        problem = self.problem
        self.bodies = np.column_stack(
            [problem.position, np.zeros_like(problem.position), problem.mass]
        )

    def step(self, targets: int) -> None:
        """Do a step of the first `targets` bodies."""
        self.kick(self.bodies, targets, self.problem.eps2, self.dt)
        self.drift(self.bodies, targets, self.dt)

    def interactions(self, targets: int) -> int:
        """Return the interactions of such a step."""
        return targets * self.problem.number

    def result(self):
        """Return positions and velocities, (N, 3) arrays."""
        return self.bodies[:, :3], self.bodies[:, 3:6]


class SymmetricRun(LoopRun):
    """The same for the loop that does a pair once: a pair counts as the two interactions it stands for."""

    def interactions(self, targets):
        """Return twice the pairs, and each body with itself, so that a whole step counts N * N as all others do."""
        return 2 * targets * self.problem.number - targets * targets


class OpenMPRun:
    """A step by the loop in C, a struct of arrays, in ``float`` or ``double``; methods as in `LoopRun`."""

    divisible = False

    def __init__(self, backend, real, problem):
        self.backend = backend
        self.problem = problem
        self.real = openmp.REALS[real]
        self.library, self.dt = openmp.load(real), self.real(problem.dt)
        self.mass, self.eps2 = problem.mass.astype(self.real), self.real(problem.eps2)
        self.library.omp_set_num_threads(backend.threads)
        self.restart()

    def restart(self):
        """Go back to the bodies at rest."""
        self.position = self.problem.position.T.astype(self.real, order="C")
        self.velocity = np.zeros_like(self.position)
        self.acceleration = np.zeros_like(self.position)

    def step(self, targets):
        """Do a step of all bodies."""
        self.library.accelerations(
            self.problem.number, *self.position, self.mass, self.eps2, *self.acceleration
        )
        self.velocity += self.dt * self.acceleration
        self.position += self.dt * self.velocity

    def interactions(self, targets):
        """Return the interactions of a step."""
        return self.problem.number**2

    def result(self):
        """Return positions and velocities, (N, 3) arrays."""
        return self.position.T, self.velocity.T
