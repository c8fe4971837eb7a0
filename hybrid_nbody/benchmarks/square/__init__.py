"""Bodies in the unit square: kernels of one thread a body and one a pair."""

from hybrid_nbody.benchmarks.harness.options import BACKEND, REPEATS, Benchmark, Option

SIZES = Option("--sizes N,N,…", "bodies on a GPU", "250,500,1000,3000,5000")
COMPARED = Option("--compare N,N,…", "bodies on all devices", "500,700,900,1100")

BENCHMARKS = (
    Benchmark(
        "square",
        "square.experiment.run",
        "gravity in a plane: N threads against N x N threads, memories and layouts",
        (SIZES, COMPARED, BACKEND, REPEATS),
        keys=("part", "bodies", "rung"),
        aliases=("flat",),
    ),
)
