"""Every optimisation of the pair force, one rung at a time."""

from hybrid_nbody.benchmarks.harness.options import BACKEND, REPEATS, SIZES, Benchmark, Option

LADDERS = Option("--ladders L,L,…", "which ladders to climb", "A,C,E")
THREADS = Option("--threads T,T,…", "numbers of threads (default: 1 to all cores)")
BLOCKS = Option("--blocks P,P,…", "block sizes", "16,32,64,128,256,512,1024")
UNROLLS = Option("--unrolls U,U,…", "unroll factors", "1,2,4,8,16,32")

BENCHMARKS = (
    Benchmark(
        "ladder",
        "ladder.experiment.run",
        "every optimisation step from the serial loop to the fastest kernel",
        (LADDERS, SIZES, BACKEND, REPEATS),
        keys=("ladder", "bodies", "rung"),
    ),
    Benchmark(
        "threads",
        "ladder.scans.run_threads",
        "the CPU loops on 1 to all cores",
        (THREADS, SIZES, REPEATS),
        keys=("bodies", "loop", "threads"),
    ),
    Benchmark(
        "blocks",
        "ladder.scans.run_blocks",
        "tiles on a GPU: block size against unroll factor",
        (SIZES, BLOCKS, UNROLLS, REPEATS),
        keys=("bodies", "block", "unroll"),
    ),
)
