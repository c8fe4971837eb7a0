"""Both models on more and more ranks."""

from hybrid_nbody.benchmarks.harness.options import REPEATS, Benchmark, Option

OPTIONS = (
    Option("--models M,M", "gravity, fmm, fluid, staggered, ball: which to run", "gravity,fluid"),
    Option("--kinds K,K", "which kinds of scaling", "strong,weak"),
    Option("--ranks P,P,…", "numbers of ranks (default: 1, 2, 4, … and all)"),
    Option("--bodies N,N,…", "numbers of bodies (default: what suits the ranks)"),
    Option("--exchange E,E", "exchange of the bodies: allgather, ring (default: allgather)"),
    Option("--cells N,N,…", "cells along an edge of the fluid (default: what suits the ranks)"),
    Option("--sweeps S", "red-black iterations per solve of the fluid (default: 20)"),
    Option("--backend B", "as compute.backend", "auto"),
    Option("--transport T", "as compute.transport", "auto"),
    Option("--threads T", "CPU threads of a rank (default: its share of the cores)"),
    Option("--latency S", "latency of the network in predictions", "2us"),
    Option("--bandwidth B", "its bandwidth into each rank", "50GB/s"),
    REPEATS,
)

BENCHMARKS = (
    Benchmark(
        "scaling",
        "scaling.experiment.run",
        "both models on 1, 2, 4, … ranks of mpirun",
        OPTIONS,
        keys=("model", "kind", "exchange", "size", "sweeps", "ranks"),
        mpi=True,
    ),
)
