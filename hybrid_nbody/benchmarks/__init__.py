"""Experiments that users run with ``hybrid-nbody bench NAME``: the table of their names.

Each package declares its benchmarks and their options, and none loads anything heavy before one is
run, so that ``--help`` answers at once.
"""

import importlib
from argparse import ArgumentParser, Namespace
from collections.abc import Callable

from hybrid_nbody.benchmarks import fluid, gravity, ladder, scaling, square
from hybrid_nbody.benchmarks.harness import options
from hybrid_nbody.benchmarks.harness.options import Benchmark, Option

BENCHMARKS: tuple[Benchmark, ...] = (
    *ladder.BENCHMARKS,
    *gravity.BENCHMARKS,
    *square.BENCHMARKS,
    *fluid.BENCHMARKS,
    *scaling.BENCHMARKS,
)

COMPARE = "the ratios of all rows of two JSON files of one benchmark; fails if a row is slower"
SLOWER = Option("--slower SHARE", "how much slower a row may be", "5%")


def add_arguments(parser: ArgumentParser, path: Callable) -> None:
    """Add every benchmark to the parser of ``bench``; `path` reads the name of a directory."""
    names = parser.add_subparsers(dest="name", metavar="NAME", required=True)
    for benchmark in BENCHMARKS:
        summary = benchmark.summary
        command = names.add_parser(
            benchmark.name, help=summary, description=summary, aliases=benchmark.aliases
        )
        benchmark.add_arguments(command, path)
    compare = names.add_parser("compare", help=COMPARE, description=COMPARE)
    compare.add_argument("old", type=path, metavar="OLD.json", help="results to compare with")
    compare.add_argument("new", type=path, metavar="NEW.json", help="results to be compared")
    SLOWER.add(compare)
    keys = {name: one.keys for one in BENCHMARKS for name in (one.name, *one.aliases)}
    compare.set_defaults(mpi=False, entry="harness.compare.run", keys=keys)


def run(arguments: Namespace, communicator) -> int:
    """Carry out what was asked for and return the exit code; `communicator` may be None."""
    carry_out = _load(arguments.entry)
    if "repeats" in arguments and not arguments.mpi:
        arguments.repeats = options.number("--repeats", arguments.repeats)
    return carry_out(arguments, communicator) if arguments.mpi else carry_out(arguments)


def figure_of(name: str) -> Callable:
    """Return the function that draws a benchmark: it takes rows and facts and returns a figure."""
    benchmark = next(one for one in BENCHMARKS if name in (one.name, *one.aliases))
    return _load(benchmark.entry.replace(".run", ".draw"))


def _load(name: str) -> Callable:
    module, _, function = f"hybrid_nbody.benchmarks.{name}".rpartition(".")
    return getattr(importlib.import_module(module), function)
