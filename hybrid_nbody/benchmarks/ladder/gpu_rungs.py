"""GPU rungs: what a rung compiles and launches, and a problem made ready for it."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hybrid_nbody.benchmarks.ladder.layouts import Vectors4

FOLDER = Path(__file__).parent
DRIFT = FOLDER / "drift.cu"
DRIFT_BLOCK = 256


@dataclass(frozen=True)
class Kernel:
    """How a GPU rung is compiled and launched.

    Attributes
    ----------
    source : str
        A ``.cu`` file of this room.
    name : str
        The function in it.
    layout : type
        See `hybrid_nbody.benchmarks.ladder.layouts`.
    block, unroll : int
        Threads of a block, and the unroll factor of the innermost loop, compiled in.
    parts : int
        Threads a body.
    options : tuple of str
        More options of the compiler.
    parameters : str
        How softening, time step and sizes reach the kernel: see `PARAMETERS`.
    blocks : int, optional
        Blocks in all, where it is not a thread a body.
    """

    source: str
    name: str
    layout: type = Vectors4
    block: int = 256
    unroll: int = 1
    parts: int = 1
    options: tuple[str, ...] = ()
    parameters: str = "arguments"
    blocks: int | None = None

    @property
    def path(self) -> Path:
        """The file that holds it."""
        return FOLDER / self.source

    @property
    def defines(self) -> dict[str, int]:
        """The macros it is compiled with."""
        return {"BLOCK": self.block, "UNROLL": self.unroll}

    def grid(self, targets: int) -> tuple[int, int]:
        """Return the blocks that a launch for `targets` bodies takes."""
        return (self.blocks or -(-targets // self.block), self.parts)


PARAMETERS_TYPE = np.dtype([("eps2", "f4"), ("dt", "f4"), ("n", "i4"), ("targets", "i4")])


def as_arguments(backend, module, eps2, dt, number, targets):
    """Hand the parameters over as arguments of the kernel."""
    return np.int32(number), np.int32(targets), eps2, dt


def in_global_memory(backend, module, eps2, dt, number, targets):
    """Store the parameters in the device's global memory; the kernel gets their address."""
    return (backend.upload(_packed(eps2, dt, number, targets)),)


def in_constant_memory(backend, module, eps2, dt, number, targets):
    """Store the parameters in the module's constant memory; the kernel gets nothing."""
    memory = backend.xp.ndarray(PARAMETERS_TYPE.itemsize, np.uint8, module.get_global("constants"))
    memory[:] = backend.upload(_packed(eps2, dt, number, targets))
    return ()


def _packed(eps2, dt, number, targets):
    return np.array([(eps2, dt, number, targets)], PARAMETERS_TYPE).view(np.uint8)


PARAMETERS = {"arguments": as_arguments, "global": in_global_memory, "constant": in_constant_memory}


class KernelRun:
    """A step by a kernel of the ladders; methods as in `hybrid_nbody.benchmarks.ladder.cpu_rungs.LoopRun`.

    Parameters
    ----------
    backend : GpuBackend
    kernel : Kernel
    problem : Problem
    """

    divisible = True

    def __init__(self, backend, kernel, problem):
        self.backend = backend
        self.kernel = kernel
        self.problem = problem
        self.module = backend.compile(kernel.path, kernel.defines, kernel.options)
        self.kick = self.module.get_function(kernel.name)
        self.drift = backend.compile(DRIFT, {}).get_function(kernel.layout.drift)
        self.targets = 0
        self.parameters = ()
        self.restart()

    def restart(self):
        """Go back to the bodies at rest."""
        block = self.kernel.block
        self.layout = self.kernel.layout(
            self.backend, self.problem, -(-self.problem.number // block) * block
        )

    def step(self, targets):
        """Queue a step of the first `targets` bodies."""
        kernel = self.kernel
        dt = np.float32(self.problem.dt)
        if targets != self.targets:  # not within a captured graph, which repeats a step of one size
            give = PARAMETERS[kernel.parameters]
            self.parameters = give(
                self.backend, self.module, self.problem.eps2, dt, self.problem.number, targets
            )
            self.targets = targets
        self.kick(
            kernel.grid(targets),
            (kernel.block if kernel.blocks is None else 1,),
            (*self.parameters, *self.layout.buffers),
        )
        drift_grid = (-(-targets // DRIFT_BLOCK),)
        self.drift(drift_grid, (DRIFT_BLOCK,), (np.int32(targets), dt, *self.layout.moving))

    def interactions(self, targets):
        """Return the interactions of such a step."""
        return targets * self.problem.number

    def result(self):
        """Return positions and velocities, (N, 3) arrays."""
        return tuple(
            array[: self.problem.number] for array in self.layout.result(self.backend.download)
        )
