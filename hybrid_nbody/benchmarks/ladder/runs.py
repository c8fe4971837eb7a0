"""Rungs made ready to run: a problem in the layout that a loop or a kernel takes, and its step."""

import ctypes
import hashlib
import os
import platform
import subprocess
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Array
from hybrid_nbody.backends.cpu import node_local_cache
from hybrid_nbody.backends.launch import CudaModule
from hybrid_nbody.benchmarks.harness.machine import compiler, compiler_version
from hybrid_nbody.benchmarks.harness.runs import BodyRun, LoopRun, Problem
from hybrid_nbody.errors import InputError

FOLDER = Path(__file__).parent


class StructLoopRun(LoopRun):
    """A step by one of the CPU loops in space."""

    divisible = True
    drift_name = "drift"

    def restart(self) -> None:
        at_rest = np.zeros_like(self.problem.position)
        self.bodies = np.column_stack([self.problem.position, at_rest, self.problem.mass])

    def step(self, targets: int) -> None:
        self.kick(self.bodies, targets, self.problem.eps2, self.dt)
        self.drift(self.bodies, targets, self.dt)

    def result(self) -> tuple[NDArray, NDArray]:
        return self.bodies[:, :3], self.bodies[:, 3:6]


class SymmetricRun(StructLoopRun):
    """The same for the loop that computes each pair once, and counts it as two interactions."""

    def interactions(self, targets: int) -> int:
        """Return twice the pairs, and each body with itself: N * N of a whole step, as others."""
        return 2 * targets * self.problem.number - targets * targets


LOOP_IN_C = FOLDER / "openmp_loop.c"
OPTIONS = ("-O3", "-march=native", "-ffast-math", "-fopenmp", "-fPIC", "-std=gnu11")
REALS: dict[str, Any] = {"float": np.float32, "double": np.float64}


class OpenMPRun(BodyRun):
    """A step by the loop in C, a struct of arrays, in ``float`` or ``double``."""

    def __init__(self, backend: Any, problem: Problem, real: str):
        super().__init__(backend, problem)
        self.real = REALS[real]
        self.library = load(real)
        self.dt = self.real(problem.dt)
        self.mass = problem.mass.astype(self.real)
        self.eps2 = self.real(problem.eps2)
        self.library.omp_set_num_threads(backend.threads)
        self.restart()

    def restart(self) -> None:
        self.position = self.problem.position.T.astype(self.real, order="C")
        self.velocity = np.zeros_like(self.position)
        self.acceleration = np.zeros_like(self.position)

    def step(self, targets: int) -> None:
        sources = *self.position, self.mass, self.eps2
        self.library.accelerations(self.problem.number, *sources, *self.acceleration)
        self.velocity += self.dt * self.acceleration
        self.position += self.dt * self.velocity

    def result(self) -> tuple[NDArray, NDArray]:
        return self.position.T, self.velocity.T


@cache
def load(real: str = "float") -> ctypes.CDLL:
    """Return the compiled loop for ``float`` or ``double``, kept in this node's cache."""
    words = (LOOP_IN_C.read_text(), compiler_version(), platform.node(), real, *OPTIONS)
    digest = hashlib.sha256("\n".join(words).encode()).hexdigest()[:16]
    path = node_local_cache() / f"openmp_loop-{real}-{digest}.so"
    if not path.exists():
        _compile(real, path)
    library = ctypes.CDLL(str(path))
    array = np.ctypeslib.ndpointer(REALS[real], ndim=1, flags="C_CONTIGUOUS")
    number = np.ctypeslib.as_ctypes_type(REALS[real])
    library.accelerations.argtypes = [ctypes.c_int, *[array] * 4, number, *[array] * 3]
    library.accelerations.restype = None
    return library


def _compile(real: str, path: Path) -> None:
    """Compile and link apart: linking with -ffast-math would flush denormals in this process."""
    name = compiler()
    if name is None:
        raise InputError("no C compiler: neither $CC, gcc nor cc is there")
    part = path.with_suffix(f".{os.getpid()}.o")
    library = part.with_suffix(".so")
    try:
        _call(name, *OPTIONS, f"-DREAL={real}", "-c", LOOP_IN_C, "-o", part)
        _call(name, "-shared", "-fopenmp", part, "-lm", "-o", library)
        library.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _call(*words: object) -> None:
    result = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if result.returncode:
        lines = (result.stderr or result.stdout).strip().splitlines()
        reason = lines[0] if lines else "no message"
        raise InputError(f"{words[0]} cannot compile {LOOP_IN_C.name}: {reason}")


class Layout(NamedTuple):
    """The layout of bodies in a GPU's memory: the kernel `drift` takes the first `moving` arrays.

    `arrays` say what an element of each holds, of x, y, z, vx, vy, vz, mass and padding.
    """

    drift: str
    arrays: tuple[tuple[int, ...], ...]
    moving: int

    def upload(self, backend: Any, problem: Problem, padded: int) -> tuple[Array, ...]:
        """Return the arrays of `padded` bodies, those beyond the problem's without mass."""
        rows = np.zeros((8, padded), np.float32)
        rows[:3, : problem.number] = problem.position.T
        rows[6, : problem.number] = problem.mass
        elements = [rows[list(array)].T for array in self.arrays]
        return tuple(backend.upload(part if part.shape[1] > 1 else part[:, 0]) for part in elements)

    def result(self, arrays: list[NDArray]) -> tuple[NDArray, NDArray]:
        """Return positions and velocities, (padded, 3) arrays, from all arrays on the host."""
        rows = np.zeros((8, len(arrays[0])), np.float32)
        for places, array in zip(self.arrays, arrays, strict=True):
            rows[list(places)] = array.reshape(len(array), -1).T
        return rows[:3].T, rows[3:6].T


STRUCTS = Layout("drift_structs", ((0, 1, 2, 3, 4, 5, 6),), 1)
ARRAYS = Layout("drift_arrays", ((0,), (1,), (2,), (3,), (4,), (5,), (6,)), 6)
VECTORS3 = Layout("drift_float3", ((0, 1, 2), (3, 4, 5), (6,)), 2)
VECTORS4 = Layout("drift_float4", ((0, 1, 2, 6), (3, 4, 5, 7)), 2)

DRIFT = FOLDER / "drift.cu"
DRIFT_BLOCK = 256


class Kernel(NamedTuple):
    """The compilation and launch of a GPU rung, of `parts` threads a body or `blocks` in all.

    Softening, time step and sizes are its arguments, or in global or constant memory.
    """

    source: str
    name: str
    layout: Layout = VECTORS4
    block: int = 256
    unroll: int = 1
    parts: int = 1
    options: tuple[str, ...] = ()
    parameters: str = "arguments"
    blocks: int | None = None

    @property
    def path(self) -> Path:
        return FOLDER / self.source

    @property
    def defines(self) -> dict[str, int]:
        return {"BLOCK": self.block, "UNROLL": self.unroll}

    def grid(self, targets: int) -> tuple[int, int]:
        """Return the blocks that a launch for `targets` bodies takes."""
        return (self.blocks or -(-targets // self.block), self.parts)

    @property
    def columns(self) -> dict[str, Any]:
        compiled = {"block": self.block, "unroll": self.unroll, "options": " ".join(self.options)}
        return {"kernel": f"{self.name} in {self.source}", **compiled}


PARAMETERS_TYPE = np.dtype([("eps2", "f4"), ("dt", "f4"), ("n", "i4"), ("targets", "i4")])


class KernelRun(BodyRun):
    """A step by a kernel of the ladders."""

    divisible = True

    def __init__(self, backend: Any, problem: Problem, kernel: Kernel):
        super().__init__(backend, problem)
        self.kernel = kernel
        self.dt = np.float32(problem.dt)
        self.kick = CudaModule(backend, kernel.path, kernel.defines, kernel.options)
        self.drift = CudaModule(backend, DRIFT, {})
        self.targets = 0
        self.parameters: tuple[Any, ...] = ()
        self.restart()

    def restart(self) -> None:
        block = self.kernel.block
        padded = -(-self.problem.number // block) * block
        self.arrays = self.kernel.layout.upload(self.backend, self.problem, padded)

    def step(self, targets: int) -> None:
        kernel = self.kernel
        if targets != self.targets:  # not within a captured graph, which repeats steps of one size
            self.parameters = self._parameters(targets)
            self.targets = targets
        threads = kernel.block if kernel.blocks is None else 1
        arguments = (*self.parameters, *self.arrays)
        self.kick.launch_grid(kernel.name, kernel.grid(targets), (threads,), arguments)
        moving = self.arrays[: kernel.layout.moving]
        count = np.int32(targets)
        self.drift.launch(kernel.layout.drift, targets, DRIFT_BLOCK, count, self.dt, *moving)

    def _parameters(self, targets: int) -> tuple[Any, ...]:
        """Store the parameters where the kernel reads them; return what it gets of them."""
        eps2, number = self.problem.eps2, self.problem.number
        if self.kernel.parameters == "arguments":
            return np.int32(number), np.int32(targets), eps2, self.dt
        packed = np.array([(eps2, self.dt, number, targets)], PARAMETERS_TYPE).view(np.uint8)
        stored = self.backend.upload(packed)
        if self.kernel.parameters == "global":
            return (stored,)
        size = PARAMETERS_TYPE.itemsize
        self.backend.xp.ndarray(size, np.uint8, self.kick.constant("constants"))[:] = stored
        return ()

    def result(self) -> tuple[NDArray, NDArray]:
        host = [self.backend.download(array) for array in self.arrays]
        position, velocity = self.kernel.layout.result(host)
        return position[: self.problem.number], velocity[: self.problem.number]
