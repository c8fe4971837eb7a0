"""Benchmarks of the pair force: sizes, limits, tuning, and forces that two devices share."""

from hybrid_nbody.benchmarks.harness import options
from hybrid_nbody.benchmarks.harness.options import REPEATS, SIZES, Benchmark, Option

ROLES = Option(
    "--roles",
    "gpu: a GPU and the CPU; cpu: CPU threads play both roles, one after the other",
    "gpu",
    ("gpu", "cpu"),
)
PRECISIONS = Option("--precisions P,P", "single, mixed, double", "single")
PRECISION = Option("--precision", "of the pair force", "single", ("single", "mixed", "double"))
ACCURACIES = Option("--accuracies A,A,…", "rms errors to ask for", "1e-3,1e-4,1e-5,1e-6")
DISTRIBUTIONS = Option(
    "--distributions D,D,…", "where the bodies are", "sphere,clumps,galaxies,disc"
)
DRY_RUN = Option("--dry-run", "measure and choose, but keep nothing for later runs")

EVERY = Option("--every N", "steps from one frame to the next", "20")
LASTING = Option("--seconds S", "about how long a run without frames lasts", "4s")

BENCHMARKS = (
    Benchmark(
        "sizes",
        "gravity.sizes.run",
        "the kernels of a run against the number of bodies, in every precision",
        (SIZES, options.BACKEND, REPEATS),
        keys=("device", "precision", "bodies"),
    ),
    Benchmark(
        "fmm",
        "gravity.fmm.run",
        "the fast multipole method: rate against error, beside the direct sum",
        (SIZES, DISTRIBUTIONS, ACCURACIES, PRECISION, options.BACKEND, REPEATS),
        keys=("device", "distribution", "bodies", "method"),
    ),
    Benchmark(
        "limits",
        "gravity.limits.run",
        "the kernels of a run against what this GPU can do at most",
        (SIZES, REPEATS),
        keys=("precision", "kernel", "bodies"),
    ),
    Benchmark(
        "tune",
        "gravity.tune.run",
        "choose the fastest variants of the kernels for this GPU",
        (SIZES, REPEATS, DRY_RUN),
        keys=("precision", "sum", "bodies", "choice"),
    ),
    Benchmark(
        "split",
        "gravity.split.run",
        "a force shared by a GPU and the CPU, against the CPU's share",
        (SIZES, ROLES, PRECISIONS, options.THREADS, REPEATS),
        keys=("precision", "bodies", "label"),
    ),
    Benchmark(
        "frames",
        "gravity.frames.run",
        "whole runs that write frames, beside the same runs without any",
        (SIZES, EVERY, LASTING, options.BACKEND, options.THREADS, REPEATS),
        keys=("device", "bodies", "every_steps"),
    ),
)
