"""Benchmarks of the fluid model, and of the steps that led to it."""

from hybrid_nbody.benchmarks.harness.options import BACKEND, REPEATS, Benchmark, Option

PARTS = Option(
    "--parts P,P,…", "what to measure", "phases,layouts,convergence,blocks,edges,solvers"
)
SIZES = Option("--sizes N,N,…", "cells along an edge, for phases, convergence and edges")
LARGE = Option("--large N,N,…", "the same for layouts and blocks (default: 256 on a CPU, else 512)")
POISSON = Option("--poisson N,N,…", "the same for solvers (default: 64; on a GPU also 128)")

BENCHMARKS = (
    Benchmark(
        "fluid",
        "fluid.experiment.run",
        "the fluid model and the steps that led to it",
        (PARTS, SIZES, LARGE, POISSON, BACKEND, REPEATS),
        keys=("part", "device", "cells", "rung"),
    ),
)
