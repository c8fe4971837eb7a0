"""The rungs of the ladders, in order: what each is called, where it runs, and what makes it."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from hybrid_nbody.benchmarks.harness import runs as harness
from hybrid_nbody.benchmarks.harness.machine import Devices, compiler
from hybrid_nbody.benchmarks.harness.measure import Row, Stop
from hybrid_nbody.benchmarks.harness.runs import BodyRun, Problem, ProductionRun, measured
from hybrid_nbody.benchmarks.ladder import runs
from hybrid_nbody.benchmarks.ladder.runs import ARRAYS, STRUCTS, VECTORS3, VECTORS4

FLUSH = ("-ftz=true",)


class Rung(NamedTuple):
    """One rung, which ``make(backend, problem)`` makes ready; `production` is what a run uses."""

    name: str
    device: str
    make: Callable[[Any, Problem], BodyRun]
    kernel: Any = None
    in_c: bool = False
    production: bool = False

    def missing(self, devices: Devices) -> str:
        """Return what the machine lacks for this rung, or an empty string."""
        if self.in_c and compiler() is None:
            return "needs a C compiler"
        return "needs a GPU" if self.device == "gpu" and devices.gpu is None else ""

    def row(self, head: Row, devices: Devices, problem: Problem, repeats: int, stop: Stop) -> Row:
        """Return the head of a row with what was measured, or with what the machine lacks."""
        if missing := self.missing(devices):
            return head | {"note": missing}
        run = self.make(getattr(devices, self.device), problem)
        return head | measured(run, repeats, stop)


class Ladder(NamedTuple):
    """A ladder: what its bodies are, which `problem` makes, its rungs, and its sizes by device."""

    name: str
    title: str
    problem: Callable[[int], Problem]
    rungs: tuple[Rung, ...]
    sizes: dict[str, tuple[int, ...]]


def on_cpu(name: str, function: str, run: Callable[..., BodyRun] = runs.StructLoopRun) -> Rung:
    """Return a rung that is a loop of `loops`."""
    return Rung(name, "cpu", partial(run, kick=function))


def in_c(name: str, real: str) -> Rung:
    """Return a rung that is the loop in C."""
    return Rung(name, "cpu", partial(runs.OpenMPRun, real=real), in_c=True)


def on_gpu(name: str, kernel: str, source: str, **how: Any) -> Rung:
    """Return a rung that is a kernel of a ``.cu`` file."""
    compiled = runs.Kernel(source, kernel, **how)
    return Rung(name, "gpu", partial(runs.KernelRun, kernel=compiled), compiled)


def in_production(device: str, precision: str = "single") -> Rung:
    """Return a rung that is what a run computes."""
    name = f"production ({precision}), {device.upper()}"
    return Rung(name, device, partial(ProductionRun, precision=precision), production=True)


SERIAL = on_cpu("serial loop", "serial")
SYMMETRIC = on_cpu("serial loop, F_ij = -F_ji", "symmetric", runs.SymmetricRun)
THREADS = on_cpu("threads over the outer loop", "threads")
IN_C = in_c("struct of arrays in C, OpenMP", "float")
IN_C_DOUBLE = in_c("struct of arrays in C, float64", "double")
PRODUCTION = (in_production("cpu"), in_production("gpu"))
PRODUCTION_DOUBLE = in_production("cpu", "double")

_a = partial(on_gpu, source="ladder_a.cu")
_c = partial(on_gpu, source="ladder_c.cu", layout=VECTORS4, options=FLUSH)
_e = partial(on_gpu, source="ladder_e.cu", layout=ARRAYS, parameters="constant")

A = Ladder(
    "A",
    "random in [-1, 1]^3, unit masses, softening^2 1e-9, dt 0.01",
    harness.box,
    (
        SERIAL,
        THREADS,
        IN_C,
        _a("one thread a body, structs", "structs", layout=STRUCTS),
        _a("own position in registers", "registers", layout=STRUCTS),
        _a("struct of arrays", "arrays", layout=ARRAYS),
        _a("float3", "float3_vectors", layout=VECTORS3),
        _a("float4", "float4_vectors", layout=VECTORS4),
        _a("tiles in shared memory", "tiles", layout=VECTORS4),
        _a("unrolled tiles", "tiles", layout=VECTORS4, unroll=32),
        _a("fast math", "fast_tiles", layout=VECTORS4, unroll=32, options=FLUSH),
        _a("plain floats, not float4", "fast_plain_tiles", layout=ARRAYS, unroll=32, options=FLUSH),
        *PRODUCTION,
    ),
    {"cpu": (16384,), "gpu": (32768, 131072)},
)

C = Ladder(
    "C",
    "random in [-5, 5]^3, masses in [1, 10], softening 0.01, dt 1e-5",
    harness.massive_box,
    (
        SERIAL,
        SYMMETRIC,
        _c("float4, no tiles", "untiled"),
        _c("p x p tiles, p = 256", "tiles"),
        _c("unroll 4", "tiles", unroll=4),
        _c("unroll 32", "tiles", unroll=32),
        _c("4 threads a body, atomic adds", "split_tiles", unroll=32, parts=4),
        _c("16 threads a body", "split_tiles", unroll=32, parts=16),
        *PRODUCTION,
    ),
    {"cpu": (16384,), "gpu": (4096, 65536)},
)

E = Ladder(
    "E",
    "Plummer sphere at rest, softening 0.01, dt 0.01",
    harness.plummer_sphere,
    (
        SERIAL,
        _e("one GPU thread", "one_thread", layout=STRUCTS, parameters="global", blocks=1),
        _e("N threads", "thread_a_body", layout=STRUCTS, parameters="global"),
        _e("scalar arrays", "scalar_arrays", parameters="global"),
        _e("parameters in constant memory", "constant_parameters"),
        _e("rsqrt", "reciprocal_root"),
        _e("two loops, no `if i != j`", "two_loops"),
        _e("blocks in shared memory", "blocked"),
        _e("unroll 8", "blocked", unroll=8),
        _e("without the `if`", "blocked_without_if", unroll=8),
        _e("terms in multiply-adds", "blocked_fused", unroll=8),
        _e("unroll 128", "blocked_fused", unroll=128),
        _e("flush denormals", "blocked_fused", unroll=128, options=FLUSH),
        *PRODUCTION,
    ),
    {"cpu": (1000, 10000), "gpu": (1000, 10000, 100000)},
)

LADDERS = {ladder.name: ladder for ladder in (A, C, E)}
