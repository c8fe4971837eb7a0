"""The commands: each one short function from arguments to calls.

Heavy parts are imported by the command that needs them, so that ``--help`` answers at once.
"""

import os
import sys
import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

from hybrid_nbody.errors import FileError, InputError
from hybrid_nbody.interrupts import interrupted_afterwards
from hybrid_nbody.running.models import MODELS

TYPE_CHECKING = False  # that of `typing`, whose import would delay every command
if TYPE_CHECKING:
    from hybrid_nbody.analysis.look import Look
    from hybrid_nbody.parallel.communicator import Communicator
    from hybrid_nbody.progress import Progress

STARTED = time.monotonic()
"""When the program started, for wall-clock time."""


def command_run(arguments: Namespace, communicator: "Communicator") -> int:
    """Run a configuration, or go on from a state of another run."""
    if (arguments.file is None) == (arguments.source is None):
        raise InputError(
            "run: give a configuration file, or --from DIR of a run (and not both)"
        ).on_all_ranks()
    with interrupted_afterwards():
        from hybrid_nbody.cli.kinds import require_configuration
        from hybrid_nbody.running.branch import run_from
        from hybrid_nbody.running.start import run

    settings = (arguments.overrides, arguments.overwrite)
    if arguments.source is not None:
        return run_from(arguments.source, *settings, communicator, STARTED).code
    communicator.only_on_root(lambda: require_configuration(Path(arguments.file)))
    return run(arguments.file, *settings, communicator, STARTED).code


def command_sweep(arguments: Namespace, communicator: "Communicator") -> int:
    """Run all combinations of some values."""
    with interrupted_afterwards():
        from hybrid_nbody.cli.kinds import require_configuration
        from hybrid_nbody.cli.sweep import sweep

    communicator.only_on_root(lambda: require_configuration(Path(arguments.file)))
    return sweep(arguments, communicator)


def command_resume(arguments: Namespace, communicator: "Communicator") -> int:
    """Continue a run."""
    with interrupted_afterwards():
        from hybrid_nbody.running.start import resume

    return resume(arguments.directory, arguments.overrides, communicator, STARTED).code


def command_check(arguments: Namespace, communicator: "Communicator") -> int:
    """Check a configuration and say what it would do."""
    with interrupted_afterwards():
        from hybrid_nbody.cli.check import check
        from hybrid_nbody.cli.kinds import require_configuration

    communicator.only_on_root(lambda: require_configuration(Path(arguments.file)))
    print_on_root(communicator, check(arguments.file, arguments.overrides, communicator))
    return 0


def command_doctor(arguments: Namespace, communicator: "Communicator") -> int:
    """Look at the machine."""
    from hybrid_nbody.cli.doctor import doctor

    text, healthy = doctor(communicator)
    print_on_root(communicator, text)
    return 0 if healthy else 2


def command_info(arguments: Namespace) -> int:
    """Say what a file or directory holds."""
    from hybrid_nbody.analysis.info import check_trajectory, describe
    from hybrid_nbody.cli.kinds import require_output

    require_output(arguments.path)
    print_at_once(describe(arguments.path, models=MODELS))
    check_trajectory(arguments.path)
    return 0


def command_plot(arguments: Namespace) -> int:
    """Draw pictures of a run."""
    from hybrid_nbody.analysis.plots import PictureOptions, plot_run
    from hybrid_nbody.cli.kinds import require_run

    require_run(arguments.path)
    options = PictureOptions(arguments.kind, arguments.frame, field=arguments.field)
    with progress_of("part") as progress:
        targets = plot_run(
            arguments.path, arguments.output, options, print_aside, progress, models=MODELS
        )
    print(*targets, sep="\n")
    return 0


def command_movie(arguments: Namespace) -> int:
    """Make a movie of a run."""
    from hybrid_nbody.analysis.movie import MovieOptions, make_movie
    from hybrid_nbody.cli.kinds import require_run

    require_run(arguments.path)
    options = MovieOptions(
        kind=arguments.kind,
        fps=arguments.fps,
        every=arguments.every,
        field=arguments.field,
        duration=arguments.duration,
        look=_look(arguments),
    )
    with progress_of("frame") as progress:
        target = make_movie(arguments.path, arguments.output, options, progress, models=MODELS)
    print(target)
    return 0


def _look(arguments: Namespace) -> "Look":
    """Return the look of a movie."""
    from hybrid_nbody.analysis.look import look_of

    colours = (arguments.colormap, arguments.plane, arguments.range)
    return look_of(arguments.size, *colours, arguments.camera)


def command_report(arguments: Namespace) -> int:
    """Write the report of a run."""
    from hybrid_nbody.analysis.report import make_report
    from hybrid_nbody.cli.kinds import require_run

    require_run(arguments.path)
    with progress_of("part") as progress:
        target = make_report(arguments.path, arguments.output, print_aside, progress, models=MODELS)
    print(target)
    return 0


def command_watch(arguments: Namespace) -> int:
    """Serve the page of a run until Ctrl-C."""
    from hybrid_nbody.analysis.watch import server_of
    from hybrid_nbody.cli.kinds import require_run

    require_run(arguments.path)
    with server_of(arguments.path, arguments.port, models=MODELS) as server:
        print_at_once(server.address)
        print_aside("open it in a browser on this machine; Ctrl-C ends it")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print_aside("\nhybrid_nbody: stopped watching; the run is not touched")
    return 0


def command_compare(arguments: Namespace) -> int:
    """Compare two runs, or several with the first of them."""
    from hybrid_nbody.analysis.compare import table_of
    from hybrid_nbody.analysis.plots import plot_comparison
    from hybrid_nbody.cli.kinds import require_run

    for path in (arguments.first, *arguments.others):
        require_run(path)
    if len(arguments.others) > 1 or arguments.labels is not None:
        return _compare_several(arguments)
    with progress_of("frame") as progress:
        found, target = plot_comparison(
            arguments.first, arguments.others[0], arguments.output, progress=progress
        )
    print(f"{table_of(found)}\n{target}")
    return 0


def _compare_several(arguments: Namespace) -> int:
    from hybrid_nbody.analysis.compare_several import table_of_several
    from hybrid_nbody.analysis.compare_several_figure import plot_several

    labels = None if arguments.labels is None else arguments.labels.split(",")
    paths = [arguments.first, *arguments.others]
    with progress_of("run") as progress:
        found, target = plot_several(paths, labels, arguments.output, progress)
    print(f"{table_of_several(found)}\n{target}")
    return 0


def command_export(arguments: Namespace) -> int:
    """Write frames of a run for other programs."""
    from hybrid_nbody.analysis.export import ExportOptions, export_run
    from hybrid_nbody.cli.kinds import CHECKPOINT, require_run

    require_run(arguments.path, CHECKPOINT)
    options = ExportOptions(arguments.frame, arguments.overwrite)
    path = arguments.path
    with progress_of("part") as progress:
        target = export_run(
            path, arguments.format, arguments.output, options, progress, models=MODELS
        )
    print(target)
    return 0


def command_square(arguments: Namespace, communicator: "Communicator") -> int:
    """Run bodies in the unit square, without a file."""
    from hybrid_nbody.cli.square import run

    return run(arguments, communicator, STARTED)


def command_examples(arguments: Namespace) -> int:
    """List the example inputs, or write one here."""
    from hybrid_nbody.cli.examples import table, write

    if arguments.name is None:
        print(table())
    else:
        print(*write(arguments.name, arguments.output, arguments.overwrite), sep="\n")
    return 0


def command_completion(arguments: Namespace) -> int:
    """Print the script that completes commands and options in a shell."""
    import shtab

    from hybrid_nbody.cli.main import parser

    print(shtab.complete(parser(), arguments.shell))
    return 0


def command_bench(arguments: Namespace, communicator: "Communicator | None" = None) -> int:
    """Measure this machine."""
    from hybrid_nbody.benchmarks import run

    return run(arguments, communicator)


def print_aside(text: str) -> None:
    """Print a remark beside the result, such as why something was left out."""
    from hybrid_nbody.progress import BestEffortStream

    print(text, file=BestEffortStream(sys.stderr), flush=True)


def progress_of(what: str) -> "Progress":
    """Return what shows the progress of a long job, counted in frames or parts."""
    from hybrid_nbody.progress import progress_on

    return progress_on(sys.stderr, what)


def print_on_root(communicator: "Communicator", text: str) -> None:
    """Print `text` once; raises `FileError` as `print_at_once`."""
    if communicator.is_root:
        print_at_once(text)


def print_at_once(text: str) -> None:
    """Print `text`.

    Raises
    ------
    FileError
        It goes to a file that cannot be written, such as one on a full disk.
    BrokenPipeError
        Its reader has gone.
    """
    try:
        print(text, flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is still buffered
        raise FileError(f"standard output cannot be written: {error.strerror}") from error


class Command:
    """A command.

    Parameters
    ----------
    name, summary : str
        As the help shows them.
    alone : callable, optional
        ``alone(arguments)`` carries it out and returns the exit code.
    on_ranks : callable, optional
        ``on_ranks(arguments, communicator)`` does so on all ranks together. For a command that has
        both, ``mpi`` among its arguments says which one to call.
    runs : bool, optional
        Whether it needs what a run needs, which is imported while MPI starts.
    """

    def __init__(
        self,
        name: str,
        summary: str,
        alone: Callable[[Namespace], int] | None = None,
        on_ranks: "Callable[[Namespace, Communicator], int] | None" = None,
        runs: bool = False,
    ) -> None:
        self.name = name
        self.summary = summary
        self.alone = alone
        self.on_ranks = on_ranks
        self.runs = runs


COMMANDS = (
    Command(
        "run",
        "run a configuration (the word run may be left out)",
        on_ranks=command_run,
        runs=True,
    ),
    Command(
        "resume",
        "continue a run from its newest valid checkpoint",
        on_ranks=command_resume,
        runs=True,
    ),
    Command(
        "sweep",
        "run every combination of some values, side by side, and tabulate them",
        on_ranks=command_sweep,
    ),
    Command(
        "check", "check a configuration and report what a run would do", on_ranks=command_check
    ),
    Command("info", "describe a run's directory or a file", command_info),
    Command("plot", "draw pictures of a run", command_plot),
    Command(
        "export",
        "write frames of a run for yt, pynbody, ParaView or NumPy, or as a table",
        command_export,
    ),
    Command(
        "square",
        "run bodies in the unit square without a file: timed, or with their activity map",
        on_ranks=command_square,
    ),
    Command("movie", "make a movie of a run", command_movie),
    Command("report", "write a web page about a run, with an interactive 3D view", command_report),
    Command(
        "watch", "serve the page of a run on this machine, live while it goes on", command_watch
    ),
    Command("compare", "report how far runs diverge over time", command_compare),
    Command(
        "bench",
        "measure this machine, and the gain of each optimisation",
        command_bench,
        command_bench,
    ),
    Command("examples", "list the example inputs, or write one here", command_examples),
    Command(
        "doctor",
        "check MPI, ranks, GPUs and threads, and say what is wrong and how to fix it",
        on_ranks=command_doctor,
    ),
    Command(
        "completion",
        "print a completion script for your shell",
        command_completion,
    ),
)
