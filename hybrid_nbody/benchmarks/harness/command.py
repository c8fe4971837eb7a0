"""The table of benchmarks and their options.

Nothing heavy is imported here, so that ``--help`` answers at once.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


def _sizes(parser):
    parser.add_argument(
        "--sizes", metavar="N,N,…", help="numbers of bodies (default: what suits the machine)"
    )


def _repeats(parser):
    parser.add_argument(
        "--repeats", default="10", metavar="R", help="timings of each row (default: 10)"
    )


def _backend(parser):
    parser.add_argument(
        "--backend",
        choices=("auto", "cpu", "gpu"),
        default="auto",
        help="what to measure (default: auto, all there is)",
    )


def _ladders(parser):
    parser.add_argument(
        "--ladders",
        default="A,C,E",
        metavar="L,L,…",
        help="which ladders to climb (default: A,C,E)",
    )


def _threads(parser):
    parser.add_argument(
        "--threads", metavar="T,T,…", help="numbers of threads (default: 1 to all cores)"
    )


def _blocks(parser):
    parser.add_argument(
        "--blocks",
        default="16,32,64,128,256,512,1024",
        metavar="P,P,…",
        help="block sizes (default: 16 to 1024)",
    )
    parser.add_argument(
        "--unrolls",
        default="1,2,4,8,16,32",
        metavar="U,U,…",
        help="unroll factors (default: 1 to 32)",
    )


def _parts(parser):
    default = "phases,layouts,convergence,blocks,solvers"
    parser.add_argument(
        "--parts", default=default, metavar="P,P,…", help=f"what to measure (default: {default})"
    )


def _edges(parser):
    parser.add_argument(
        "--sizes", metavar="N,N,…", help="cells along an edge, for phases and convergence"
    )
    parser.add_argument(
        "--large",
        metavar="N",
        help="the same for layouts and blocks (default: 256 on a CPU, else 512)",
    )
    parser.add_argument(
        "--poisson", metavar="N,N,…", help="the same for solvers (default: 64; on a GPU also 128)"
    )


def _dry_run(parser):
    parser.add_argument(
        "--dry-run", action="store_true", help="measure and choose, but keep nothing for later runs"
    )


def _roles(parser):
    parser.add_argument(
        "--roles",
        choices=("gpu", "cpu"),
        default="gpu",
        help="gpu: a GPU and the CPU; cpu: CPU threads play both roles, one after the other (default: gpu)",
    )
    parser.add_argument(
        "--precisions",
        default="single",
        metavar="P,P",
        help="single, mixed, double (default: single)",
    )
    parser.add_argument("--threads", metavar="T", help="CPU threads (default: all cores)")


def _scaling(parser):
    parser.add_argument(
        "--models", default="gravity,fluid", metavar="M,M", help="default: gravity,fluid"
    )
    parser.add_argument(
        "--kinds", default="strong,weak", metavar="K,K", help="default: strong,weak"
    )
    parser.add_argument(
        "--ranks", metavar="P,P,…", help="numbers of ranks (default: 1, 2, 4, … and all)"
    )
    parser.add_argument(
        "--bodies", metavar="N,N,…", help="bodies of gravity (default: what suits the ranks)"
    )
    parser.add_argument(
        "--exchange", metavar="E,E", help="of gravity: allgather, ring (default: allgather)"
    )
    parser.add_argument(
        "--cells", metavar="N,N,…", help="cells along an edge of the fluid (default: what suits)"
    )
    parser.add_argument("--sweeps", metavar="S", help="of a solve of the fluid (default: 20)")
    parser.add_argument(
        "--backend", default="auto", metavar="B", help="as compute.backend (default: auto)"
    )
    parser.add_argument(
        "--transport", default="auto", metavar="T", help="as compute.transport (default: auto)"
    )
    parser.add_argument(
        "--threads", metavar="T", help="CPU threads of a rank (default: its share of the cores)"
    )


def _flat(parser):
    parser.add_argument(
        "--sizes", metavar="N,N,…", help="bodies on a GPU (default: 250,500,1000,3000,5000)"
    )
    default = "500,700,900,1100"
    parser.add_argument(
        "--compare",
        default=default,
        metavar="N,N,…",
        help=f"bodies on all devices (default: {default})",
    )


def _network(parser):
    parser.add_argument(
        "--latency",
        default="2us",
        metavar="S",
        help="of the network that is predicted for (default: 2us)",
    )
    parser.add_argument(
        "--bandwidth",
        default="50GB/s",
        metavar="B",
        help="of that network, into each rank (default: 50GB/s)",
    )


@dataclass(frozen=True)
class Benchmark:
    """One name of ``bench``.

    Attributes
    ----------
    name : str
        As in ``bench NAME``.
    module : str
        The module below `hybrid_nbody.benchmarks` whose ``run(arguments)`` carries it out and
        returns the exit code.
    summary : str
        One line for ``--help``.
    options : tuple of callable
        Each adds an option to the parser; those for the output are added to all.
    mpi : bool
        Whether it runs on several ranks; its ``run`` takes their communicator, too.
    """

    name: str
    module: str
    summary: str
    options: tuple[Callable, ...]
    mpi: bool = False


BENCHMARKS = (
    Benchmark(
        "ladder",
        "ladder.ladder",
        "every optimisation step from the serial loop to the fastest kernel",
        (_ladders, _sizes, _backend, _repeats),
    ),
    Benchmark(
        "threads",
        "ladder.threads",
        "the CPU loops on 1 to all cores",
        (_threads, _sizes, _repeats),
    ),
    Benchmark(
        "blocks",
        "ladder.blocks",
        "tiles on a GPU: block size against unroll factor",
        (_sizes, _blocks, _repeats),
    ),
    Benchmark(
        "sizes",
        "gravity.sizes",
        "the kernels of a run against the number of bodies, in every precision",
        (_sizes, _backend, _repeats),
    ),
    Benchmark(
        "tune",
        "gravity.tune",
        "choose the fastest variants of the kernels for this GPU",
        (_sizes, _repeats, _dry_run),
    ),
    Benchmark(
        "fluid",
        "fluid.fluid",
        "the fluid model and the steps that led to it",
        (_parts, _edges, _backend, _repeats),
    ),
    Benchmark(
        "limits",
        "gravity.limits",
        "the kernels of a run against what this GPU can do at most",
        (_sizes, _repeats),
    ),
    Benchmark(
        "flat",
        "square.flat",
        "gravity in a plane: N threads against N x N threads, memories and layouts",
        (_flat, _backend, _repeats),
    ),
    Benchmark(
        "split",
        "gravity.split",
        "a force shared by a GPU and the CPU, against the CPU's share",
        (_sizes, _roles, _repeats),
    ),
    Benchmark(
        "scaling",
        "scaling.scaling",
        "both models on 1, 2, 4, … ranks of mpirun",
        (_scaling, _network, _repeats),
        mpi=True,
    ),
)


def add_arguments(parser, path) -> None:
    """Add every benchmark to the parser of ``bench``; `path` reads the name of a directory."""
    names = parser.add_subparsers(dest="name", metavar="NAME", required=True)
    for benchmark in BENCHMARKS:
        command = names.add_parser(
            benchmark.name, help=benchmark.summary, description=benchmark.summary
        )
        for add in benchmark.options:
            add(command)
        folder = f"output/bench-{benchmark.name}"
        command.add_argument(
            "--output", type=path, metavar="DIR", help=f"where results go (default: {folder})"
        )
        command.add_argument(
            "--overwrite", action="store_true", help="replace earlier results in that directory"
        )
        command.set_defaults(mpi=benchmark.mpi, module=benchmark.module)


def run(arguments, communicator) -> int:
    """Carry out the benchmark that was asked for and return the exit code.

    Parameters
    ----------
    arguments : Namespace
    communicator : Communicator or None
        The ranks of a benchmark that runs on several.
    """
    if arguments.output is None:
        arguments.output = Path("output") / f"bench-{arguments.name}"
    ranks = (communicator,) if arguments.mpi else ()
    return importlib.import_module(f"hybrid_nbody.benchmarks.{arguments.module}").run(
        arguments, *ranks
    )
