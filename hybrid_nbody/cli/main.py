"""The command line: arguments to calls, one short function a command.

Heavy parts are imported by the command that needs them, so that ``--help`` answers at once.
"""

import argparse
import difflib
import os
import sys
import time
import traceback
from collections.abc import Sequence

from hybrid_nbody import __version__
from hybrid_nbody.cli.arguments import ARGUMENTS
from hybrid_nbody.errors import STOPPED_EARLY, FileError, HybridNBodyError, InputError
from hybrid_nbody.run.models import MODELS

STARTED = time.monotonic()
BY_CTRL_C = "stopped by Ctrl-C"

ON_RANKS = "on MPI ranks, each on its GPU or on CPU threads"
EPILOG = """\
examples:
  mpirun -n 4 hybrid-nbody input/plummer.yaml          run on four ranks
  mpirun -n 2 hybrid-nbody resume output/plummer       continue from the newest checkpoint
  hybrid-nbody run input/plummer.yaml --set time.dt=1e-4 --overwrite
  hybrid-nbody plot output/plummer                     draw energies and bodies
  mpirun -n 4 hybrid-nbody input/smoke.yaml            smoke that rises in a box
  hybrid-nbody bench ladder                            what each optimisation of the pair force brings here

exit codes: 0 done; 1 a fault of ours; 2 bad input; 3 numerical failure; 4 input/output failed;
            75 stopped early: a run with a checkpoint written (resume it)
"""


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    top = argparse.ArgumentParser(
        prog="hybrid-nbody",
        description=_description(),
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"hybrid_nbody {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, function, mpi, summary in COMMANDS:
        command = commands.add_parser(name, help=summary, description=summary)
        command.set_defaults(function=function, mpi=mpi)
        ARGUMENTS[name](command)
    return top


def _description() -> str:
    """Return what the program does, in a sentence."""
    summaries = " or ".join(model.summary for model in MODELS.values())
    return f"{summaries[:1].upper()}{summaries[1:]}, {ON_RANKS}."


def command_run(arguments, communicator) -> int:
    """Run a configuration."""
    from hybrid_nbody.run.start import run

    return run(arguments.file, arguments.overrides, arguments.overwrite, communicator, STARTED)


def command_resume(arguments, communicator) -> int:
    """Continue a run."""
    from hybrid_nbody.run.start import resume

    return resume(arguments.directory, arguments.overrides, communicator, STARTED)


def command_check(arguments, communicator) -> int:
    """Check a configuration and say what it would do."""
    from hybrid_nbody.cli.check import check

    print_on_root(communicator, check(arguments.file, arguments.overrides, communicator))
    return 0


def command_doctor(arguments, communicator) -> int:
    """Look at the machine."""
    from hybrid_nbody.cli.doctor import doctor

    text, healthy = doctor(communicator)
    print_on_root(communicator, text)
    return 0 if healthy else 2


def command_info(arguments, communicator) -> int:
    """Say what a file or directory holds."""
    from hybrid_nbody.analysis.info import check_trajectory, describe

    print(describe(arguments.path, models=MODELS), flush=True)
    check_trajectory(arguments.path)
    return 0


def command_plot(arguments, communicator) -> int:
    """Draw pictures of a run."""
    from hybrid_nbody.analysis.plots import plot_run

    path = arguments.path
    kind = arguments.kind
    output = arguments.output
    frame = arguments.frame
    with progress_of("part") as progress:
        targets = plot_run(
            path, kind, output, frame, say=print_aside, progress=progress, models=MODELS
        )
    print(*targets, sep="\n")
    return 0


def command_movie(arguments, communicator) -> int:
    """Make a movie of a run."""
    from hybrid_nbody.analysis.movie import make_movie

    path = arguments.path
    output = arguments.output
    with progress_of("frame") as progress:
        target = make_movie(
            path,
            output,
            arguments.kind,
            arguments.fps,
            arguments.every,
            progress,
            models=MODELS,
        )
    print(target)
    return 0


def command_report(arguments, communicator) -> int:
    """Write the report of a run."""
    from hybrid_nbody.analysis.report import make_report

    with progress_of("part") as progress:
        target = make_report(arguments.path, arguments.output, print_aside, progress, models=MODELS)
    print(target)
    return 0


def command_compare(arguments, communicator) -> int:
    """Compare two runs."""
    from hybrid_nbody.analysis.compare import table_of
    from hybrid_nbody.analysis.plots import plot_comparison

    with progress_of("frame") as progress:
        found, target = plot_comparison(
            arguments.first, arguments.second, arguments.output, progress=progress
        )
    print(f"{table_of(found)}\n{target}")
    return 0


def command_export(arguments, communicator) -> int:
    """Write frames of a run for other programs."""
    from hybrid_nbody.analysis.export import export_run

    path = arguments.path
    output = arguments.output
    with progress_of("part") as progress:
        target = export_run(
            path, arguments.format, output, arguments.frame, arguments.overwrite, progress
        )
    print(target)
    return 0


def command_flat(arguments, communicator) -> int:
    """Move bodies in the unit square, in one shot."""
    from hybrid_nbody.cli.square import run

    return run(arguments, communicator, STARTED)


def command_examples(arguments, communicator) -> int:
    """List the example inputs, or write one here."""
    from hybrid_nbody.cli.examples import table, write

    if arguments.name is None:
        print(table())
    else:
        print(*write(arguments.name, arguments.output, arguments.overwrite), sep="\n")
    return 0


def command_completion(arguments, communicator) -> int:
    """Print the script that completes commands and options in a shell."""
    import shtab

    print(shtab.complete(parser(), arguments.shell))
    return 0


def command_bench(arguments, communicator) -> int:
    """Measure this machine."""
    from hybrid_nbody.benchmarks.harness.command import run

    return run(arguments, communicator)


def print_aside(text: str) -> None:
    """Print what is no result, such as why something was left out."""
    from hybrid_nbody.progress import BestEffortStream

    print(text, file=BestEffortStream(sys.stderr), flush=True)


def progress_of(what: str):
    """Return what shows the progress of a long job, counted in frames or parts, beside its results."""
    from hybrid_nbody.progress import progress_on

    return progress_on(sys.stderr, what)


def print_on_root(communicator, text: str) -> None:
    """Print `text` once."""
    if communicator.is_root:
        print(text, flush=True)


COMMANDS = (
    ("run", command_run, True, "run a configuration (the word run may be left out)"),
    ("resume", command_resume, True, "continue a run from its newest valid checkpoint"),
    ("check", command_check, True, "check a configuration and say what it would do"),
    ("info", command_info, False, "say what a run's directory or file holds"),
    ("plot", command_plot, False, "draw the diagnostics of a run, and its state"),
    (
        "export",
        command_export,
        False,
        "write frames of a run for yt, pynbody, ParaView, tables and NumPy",
    ),
    ("flat", command_flat, True, "bodies in the unit square and their activity map, in one shot"),
    ("movie", command_movie, False, "make a movie of a run"),
    ("report", command_report, False, "write a web page on a run, with a view of it in space"),
    ("compare", command_compare, False, "say how far two runs are apart, over time"),
    (
        "bench",
        command_bench,
        False,
        "measure this machine, and what each optimisation of the force brings on it",
    ),
    ("examples", command_examples, False, "list the example inputs, or write one here"),
    ("doctor", command_doctor, True, "look at MPI, ranks, GPUs and threads, and say what is wrong"),
    (
        "completion",
        command_completion,
        False,
        "print the script that completes commands and options in a shell",
    ),
)


def main(arguments: list[str] | None = None) -> int:
    """Carry out a command and return the exit code; on several ranks, all end together."""
    try:
        chosen = parser().parse_args(
            _with_command(sys.argv[1:] if arguments is None else arguments)
        )
        return (_with_mpi if chosen.mpi else _alone)(chosen)
    except KeyboardInterrupt:  # a run that has begun ends in its own way, with a checkpoint
        print(f"hybrid_nbody: {BY_CTRL_C}", file=sys.stderr)
        return STOPPED_EARLY


def _with_command(words: Sequence[str]) -> list[str]:
    """Return the words with ``run`` before a file; a misspelt command is left for the parser to refuse."""
    if not words or words[0] in ARGUMENTS or words[0].startswith("-"):
        return list(words)
    misspelt = not os.path.exists(words[0]) and difflib.get_close_matches(words[0], ARGUMENTS)
    return list(words) if misspelt else ["run", *words]


def _alone(chosen) -> int:
    """Run a command that needs no MPI."""
    try:
        return _call(chosen, None)
    except HybridNBodyError as error:
        return _complain(error)
    except BrokenPipeError:
        return _stop_printing()
    except OSError as error:  # such as a name that is longer than the file system allows
        return _complain(FileError(str(error)))


def _with_mpi(chosen) -> int:
    """Run a command on all ranks; an error that only some ranks meet aborts all of them."""
    from hybrid_nbody.parallel import communicator

    ranks = None
    try:
        ranks = communicator.start_mpi()
        return _call(chosen, ranks)
    except HybridNBodyError as error:
        if ranks is None or error.shared or ranks.size == 1:
            code = _complain(error, silent=ranks is not None and not ranks.is_root)
            return (
                code if not isinstance(error, FileError) or error.shared else _leave_at_once(code)
            )
        communicator.abort(error, error.exit_code)
    except KeyboardInterrupt:
        if ranks is None or ranks.size == 1:
            raise
        communicator.abort(HybridNBodyError(BY_CTRL_C), STOPPED_EARLY)
    except BaseException as error:  # SystemExit, too: one rank must not leave the others waiting
        if ranks is None or ranks.size == 1:
            return _unexpected(error)
        communicator.abort(error, 1)


def _unexpected(error) -> int:
    """End a process whose command met what is no error of its input."""
    if isinstance(error, BrokenPipeError):
        return _stop_printing()
    traceback.print_exception(error)
    return 1


def _call(chosen, ranks) -> int:
    """Carry out a command; too little memory is a fault of the input."""
    try:
        return chosen.function(chosen, ranks)
    except MemoryError as error:
        raise InputError(
            f"not enough memory: {error}; take fewer bodies, or more ranks or nodes"
        ) from error


def _stop_printing() -> int:
    """End quietly when whoever read the output, such as ``head``, has gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _leave_at_once(code: int):
    """End this process without closing its files: HDF5 would crash on one whose last write failed."""
    sys.stdout.flush()
    os._exit(code)


def _complain(error: HybridNBodyError, silent: bool = False) -> int:
    """Print an error for the person at the keyboard, once; return its exit code."""
    if str(error) and not silent:
        gap = "\n" if "\n" in str(error) else " "
        print(f"hybrid_nbody: error:{gap}{error}", file=sys.stderr, flush=True)
    return error.exit_code
