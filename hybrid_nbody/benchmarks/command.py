"""The table of benchmarks and their options. Nothing heavy is imported here, so that ``--help`` answers at once."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


def _sizes(parser):
    parser.add_argument("--sizes", metavar="N,N,…", help="numbers of bodies (default: what suits the machine)")


def _repeats(parser):
    parser.add_argument("--repeats", default="10", metavar="R", help="timings of each row (default: 10)")


def _backend(parser):
    parser.add_argument(
        "--backend",
        choices=("auto", "cpu", "gpu"),
        default="auto",
        help="what to measure (default: auto, all there is)",
    )


def _ladders(parser):
    parser.add_argument("--ladders", default="A,C,E", metavar="L,L,…", help="which ladders to climb (default: A,C,E)")


def _threads(parser):
    parser.add_argument("--threads", metavar="T,T,…", help="numbers of threads (default: 1 to all cores)")


def _blocks(parser):
    parser.add_argument(
        "--blocks", default="16,32,64,128,256,512,1024", metavar="P,P,…", help="block sizes (default: 16 to 1024)"
    )
    parser.add_argument("--unrolls", default="1,2,4,8,16,32", metavar="U,U,…", help="unroll factors (default: 1 to 32)")


def _parts(parser):
    default = "phases,layouts,convergence,blocks,solvers"
    parser.add_argument("--parts", default=default, metavar="P,P,…", help=f"what to measure (default: {default})")


def _edges(parser):
    parser.add_argument("--sizes", metavar="N,N,…", help="cells along an edge, for phases and convergence")
    parser.add_argument(
        "--large", metavar="N", help="the same for layouts and blocks (default: 256 on a CPU, else 512)"
    )
    parser.add_argument("--poisson", metavar="N,N,…", help="the same for solvers (default: 64; on a GPU also 128)")


def _dry_run(parser):
    parser.add_argument("--dry-run", action="store_true", help="measure and choose, but keep nothing for later runs")


@dataclass(frozen=True)
class Benchmark:
    """One name of ``bench``.

    Attributes
    ----------
    name : str
        Also the module of this room whose ``run(arguments)`` carries it out and returns the exit code.
    summary : str
        One line for ``--help``.
    options : tuple of callable
        Each adds an option to the parser; those for the output are added to all.
    """

    name: str
    summary: str
    options: tuple[Callable, ...]


BENCHMARKS = (
    Benchmark(
        "ladder",
        "every optimisation step from the serial loop to the fastest kernel",
        (_ladders, _sizes, _backend, _repeats),
    ),
    Benchmark("threads", "the CPU loops on 1 to all cores", (_threads, _sizes, _repeats)),
    Benchmark("blocks", "tiles on a GPU: block size against unroll factor", (_sizes, _blocks, _repeats)),
    Benchmark(
        "sizes", "the kernels of a run against the number of bodies, in every precision", (_sizes, _backend, _repeats)
    ),
    Benchmark("tune", "choose the fastest variants of the kernels for this GPU", (_sizes, _repeats, _dry_run)),
    Benchmark("fluid", "the fluid model and the steps that led to it", (_parts, _edges, _backend, _repeats)),
    Benchmark("limits", "the kernels of a run against what this GPU can do at most", (_sizes, _repeats)),
)


def add_arguments(parser) -> None:
    """Add every benchmark to the parser of ``bench``."""
    names = parser.add_subparsers(dest="name", metavar="NAME", required=True)
    for benchmark in BENCHMARKS:
        command = names.add_parser(benchmark.name, help=benchmark.summary, description=benchmark.summary)
        for add in benchmark.options:
            add(command)
        folder = f"output/bench-{benchmark.name}"
        command.add_argument("--output", type=Path, metavar="DIR", help=f"where results go (default: {folder})")
        command.add_argument("--overwrite", action="store_true", help="replace earlier results in that directory")


def run(arguments) -> int:
    """Carry out the benchmark that was asked for and return the exit code."""
    if arguments.output is None:
        arguments.output = Path("output") / f"bench-{arguments.name}"
    return importlib.import_module(f"hybrid_nbody.benchmarks.{arguments.name}").run(arguments)
