"""What ``bench flat`` steps: bodies in the unit square, by loops on the CPU and by kernels on a GPU."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hybrid_nbody.benchmarks.ladder.problems import Problem
from hybrid_nbody.nbody.initial_conditions import random_square

SOURCE = Path(__file__).with_name("flat.cu")

G = 9.8
SOFTENING = 2.0
DT = 0.01
MOST_BODIES = 65535
"""Blocks that a grid may have along y: N x N threads have one a body there."""

LAYOUTS = ("structs", "arrays")
MEMORIES = ("global", "read-only", "texture", "shared")


def square(number: int) -> Problem:
    """Return bodies at rest in the unit square, their masses times G."""
    bodies = random_square(number, seed=1)
    return Problem(bodies.position.astype("f4"), (G * bodies.mass).astype("f4"), SOFTENING, DT)


def rows_of(problem) -> np.ndarray:
    """Return x, y, vx, vy and mass as the rows of a (5, N) array of float32."""
    at_rest = np.zeros_like(problem.mass)
    return np.stack([*problem.position.T[:2], at_rest, at_rest, problem.mass])


def in_space(rows):
    """Return positions and velocities, two (N, 3) arrays, from such rows."""
    flat = np.zeros_like(rows[0])
    return np.stack([*rows[:2], flat], axis=1), np.stack([*rows[2:4], flat], axis=1)


class LoopRun:
    """A step by one of the functions of `square.loops`; methods as in `ladder.cpu_rungs.LoopRun`."""

    divisible = False

    def __init__(self, backend, function, problem):
        from hybrid_nbody.benchmarks.square import (
            loops as flat_loops,  # compiles for the threads and the cache of `backend`
        )

        self.backend = backend
        self.problem = problem
        self.kick = getattr(flat_loops, function)
        self.drift = flat_loops.drift
        self.restart()

    def restart(self):
        """Go back to the bodies at rest."""
        self.bodies = rows_of(self.problem)

    def step(self, targets):
        """Do a step of all bodies."""
        dt = np.float32(self.problem.dt)
        self.kick(self.bodies, self.problem.eps2, dt)
        self.drift(self.bodies, dt)

    def interactions(self, targets):
        """Return the interactions of a step."""
        return self.problem.number**2

    def result(self):
        """Return positions and velocities, (N, 3) arrays."""
        return in_space(self.bodies)


# --- on a GPU -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kernel:
    """A kernel of ``flat.cu``, and how it is compiled and launched.

    Attributes
    ----------
    threads : {"N", "N x N"}
        One a body, or one a pair.
    layout : {"structs", "arrays"}
        An array of structs, or a struct of arrays.
    memory : {"global", "read-only", "texture", "shared"}
        Where sources are read from; with N x N threads ``shared`` is where results are staged.
    block, unroll : int
        Threads of a block, a power of two, and unroll factor of the loop over sources.
    """

    threads: str
    layout: str = "arrays"
    memory: str = "read-only"
    block: int = 64
    unroll: int = 1

    @property
    def name(self) -> str:
        """The function."""
        start = {"N": "threads", "N x N": "pairs"}[self.threads]
        return f"{start}_{self.layout}_{self.memory.replace('-', '_')}"

    @property
    def defines(self) -> dict[str, int]:
        """The macros it is compiled with."""
        return {"BLOCK": self.block, "UNROLL": self.unroll}

    def grid(self, number: int) -> tuple[int, int]:
        """Return the blocks of a launch along x and y."""
        return -(-number // self.block), {"N": 1, "N x N": number}[self.threads]


class Structs:
    """An array of structs {x, y, vx, vy, mass} on the device."""

    def __init__(self, backend, rows):
        self.bodies = backend.upload(rows.T)
        self.moving = (self.bodies,)
        self.arguments = (self.bodies, texture(backend, self.bodies))

    def result(self, download):
        """Return the rows."""
        return download(self.bodies).T


class Arrays:
    """A struct of the arrays x, y, vx, vy, mass on the device."""

    def __init__(self, backend, rows):
        self.arrays = tuple(backend.upload(row) for row in rows)
        self.moving = self.arrays[:4]
        x, y, _, _, mass = self.arrays
        self.arguments = (*self.arrays, *(texture(backend, array) for array in (x, y, mass)))

    def result(self, download):
        """Return the rows."""
        return np.stack([download(array) for array in self.arrays])


def texture(backend, array):
    """Return a texture that reads the float32 numbers of an array one by one."""
    cuda = backend.xp.cuda
    channel = cuda.texture.ChannelFormatDescriptor(
        32, 0, 0, 0, cuda.runtime.cudaChannelFormatKindFloat
    )
    resource = cuda.texture.ResourceDescriptor(
        cuda.runtime.cudaResourceTypeLinear, arr=array, chDesc=channel, sizeInBytes=array.nbytes
    )
    return cuda.texture.TextureObject(resource, cuda.texture.TextureDescriptor())


class KernelRun:
    """A step by a kernel of ``flat.cu``; methods as in `LoopRun`."""

    divisible = False

    def __init__(self, backend, kernel: Kernel, problem):
        self.backend = backend
        self.kernel = kernel
        self.problem = problem
        module = backend.compile(SOURCE, kernel.defines)
        self.kick = module.get_function(kernel.name)
        self.drift = module.get_function(f"drift_{kernel.layout}")
        self.restart()

    def restart(self):
        """Go back to the bodies at rest."""
        self.layout = {"structs": Structs, "arrays": Arrays}[self.kernel.layout](
            self.backend, rows_of(self.problem)
        )

    def step(self, targets):
        """Queue a step of all bodies."""
        number = np.int32(self.problem.number)
        dt = np.float32(self.problem.dt)
        columns, rows = self.kernel.grid(self.problem.number)
        threads = (self.kernel.block,)
        self.kick((columns, rows), threads, (number, self.problem.eps2, dt, *self.layout.arguments))
        self.drift((columns,), threads, (number, dt, *self.layout.moving))

    def interactions(self, targets):
        """Return the interactions of a step."""
        return self.problem.number**2

    def result(self):
        """Return positions and velocities, (N, 3) arrays."""
        return in_space(self.layout.result(self.backend.download))
