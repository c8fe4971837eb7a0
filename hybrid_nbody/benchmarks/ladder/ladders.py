"""The rungs of the ladders, in order: what each is called, where it runs, and what makes it.

A rung that differs from another by how it is compiled alone has the same kernel and says so in its
options here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from hybrid_nbody.benchmarks.ladder import openmp
from hybrid_nbody.benchmarks.ladder.cpu_rungs import LoopRun, OpenMPRun, SymmetricRun
from hybrid_nbody.benchmarks.ladder.gpu_rungs import Kernel, KernelRun
from hybrid_nbody.benchmarks.ladder.layouts import Arrays, Structs, Vectors3, Vectors4
from hybrid_nbody.benchmarks.ladder.problems import box, massive_box, plummer_sphere
from hybrid_nbody.benchmarks.ladder.production import ProductionRun

FLUSH = ("-ftz=true",)


def nothing_missing(devices) -> str:
    """Return an empty string: a rung on the CPU needs nothing else."""
    return ""


def missing_compiler(devices) -> str:
    """Return what the loop in C lacks on this machine."""
    return "" if openmp.compiler() else "needs a C compiler"


def missing_gpu(devices) -> str:
    """Return what a GPU rung lacks on this machine."""
    return "" if devices.gpu else "needs a GPU"


@dataclass(frozen=True)
class Rung:
    """One rung.

    Attributes
    ----------
    name : str
        What tables and pictures call it.
    device : {"cpu", "gpu"}
        Where it runs; also which attribute of `Devices` that is.
    make : callable
        Takes the backend and the problem; returns a run, such as `LoopRun`.
    missing : callable
        Takes the devices; returns what the machine lacks for this rung, or an empty string.
    kernel : Kernel or None
        What a GPU rung compiles.
    production : bool
        Whether it is no step of the ladder but what a run uses, compared with the last rung on its
        own device.
    """

    name: str
    device: str
    make: Callable
    missing: Callable = nothing_missing
    kernel: Kernel | None = None
    production: bool = False


@dataclass(frozen=True)
class Ladder:
    """A ladder: its bodies and its rungs.

    Attributes
    ----------
    name : str
    title : str
        What its bodies are.
    problem : callable
        Takes a number of bodies; returns a `Problem`.
    rungs : tuple of Rung
    cpu_sizes, gpu_sizes : tuple of int
        Default sizes on a machine without and with a GPU.
    """

    name: str
    title: str
    problem: Callable
    rungs: tuple[Rung, ...]
    cpu_sizes: tuple[int, ...]
    gpu_sizes: tuple[int, ...]


def on_cpu(name, function, run=LoopRun) -> Rung:
    """Return a rung that is a loop of `loops`."""
    return Rung(name, "cpu", lambda backend, problem: run(backend, function, problem))


def on_gpu(name, source, kernel, layout, **how) -> Rung:
    """Return a rung that is a kernel of a ``.cu`` file."""
    compiled = Kernel(source, kernel, layout, **how)
    make = lambda backend, problem: KernelRun(backend, compiled, problem)  # noqa: E731
    return Rung(name, "gpu", make, missing_gpu, compiled)


SERIAL = on_cpu("serial loop", "serial")
SYMMETRIC = on_cpu("serial loop, F_ij = -F_ji", "symmetric", SymmetricRun)
THREADS = on_cpu("threads over the outer loop", "threads")
IN_C = Rung(
    "struct of arrays in C, OpenMP",
    "cpu",
    lambda *of: OpenMPRun(of[0], "float", of[1]),
    missing_compiler,
)
IN_C_DOUBLE = Rung(
    "struct of arrays in C, float64",
    "cpu",
    lambda *of: OpenMPRun(of[0], "double", of[1]),
    missing_compiler,
)


def _production(device, missing, precision="single"):
    make = lambda backend, problem: ProductionRun(backend, precision, problem)  # noqa: E731
    return Rung(
        f"production ({precision}), {device.upper()}", device, make, missing, production=True
    )


PRODUCTION = (_production("cpu", nothing_missing), _production("gpu", missing_gpu))
PRODUCTION_DOUBLE = _production("cpu", nothing_missing, "double")

_a = partial(on_gpu, source="ladder_a.cu")
_c = partial(on_gpu, source="ladder_c.cu", layout=Vectors4, options=FLUSH)
_e = partial(on_gpu, source="ladder_e.cu", layout=Arrays, parameters="constant")

A = Ladder(
    "A",
    "random in [-1, 1]^3, unit masses, softening^2 1e-9, dt 0.01",
    box,
    (
        SERIAL,
        THREADS,
        IN_C,
        _a("one thread a body, structs", kernel="structs", layout=Structs),
        _a("own position in registers", kernel="registers", layout=Structs),
        _a("struct of arrays", kernel="arrays", layout=Arrays),
        _a("float3", kernel="float3_vectors", layout=Vectors3),
        _a("float4", kernel="float4_vectors", layout=Vectors4),
        _a("tiles in shared memory", kernel="tiles", layout=Vectors4),
        _a("unrolled tiles", kernel="tiles", layout=Vectors4, unroll=32),
        _a("fast math", kernel="fast_tiles", layout=Vectors4, unroll=32, options=FLUSH),
        _a(
            "plain floats, not float4",
            kernel="fast_plain_tiles",
            layout=Arrays,
            unroll=32,
            options=FLUSH,
        ),
        *PRODUCTION,
    ),
    (16384,),
    (32768, 131072),
)

C = Ladder(
    "C",
    "random in [-5, 5]^3, masses in [1, 10], softening 0.01, dt 1e-5",
    massive_box,
    (
        SERIAL,
        SYMMETRIC,
        _c("float4, no tiles", kernel="untiled"),
        _c("p x p tiles, p = 256", kernel="tiles"),
        _c("unroll 4", kernel="tiles", unroll=4),
        _c("unroll 32", kernel="tiles", unroll=32),
        _c("4 threads a body, atomic adds", kernel="split_tiles", unroll=32, parts=4),
        _c("16 threads a body", kernel="split_tiles", unroll=32, parts=16),
        *PRODUCTION,
    ),
    (16384,),
    (4096, 65536),
)

E = Ladder(
    "E",
    "Plummer sphere at rest, softening 0.01, dt 0.01",
    plummer_sphere,
    (
        SERIAL,
        _e("one GPU thread", kernel="one_thread", layout=Structs, parameters="global", blocks=1),
        _e("N threads", kernel="thread_a_body", layout=Structs, parameters="global"),
        _e("scalar arrays", kernel="scalar_arrays", parameters="global"),
        _e("parameters in constant memory", kernel="constant_parameters"),
        _e("rsqrt", kernel="reciprocal_root"),
        _e("two loops, no `if i != j`", kernel="two_loops"),
        _e("blocks in shared memory", kernel="blocked"),
        _e("unroll 8", kernel="blocked", unroll=8),
        _e("without the `if`", kernel="blocked_without_if", unroll=8),
        _e("terms in multiply-adds", kernel="blocked_fused", unroll=8),
        _e("unroll 128", kernel="blocked_fused", unroll=128),
        _e("flush denormals", kernel="blocked_fused", unroll=128, options=FLUSH),
        *PRODUCTION,
    ),
    (1000, 10000),
    (1000, 10000, 100000),
)

LADDERS = {ladder.name: ladder for ladder in (A, C, E)}
