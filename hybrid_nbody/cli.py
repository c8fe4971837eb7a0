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
from pathlib import Path

from hybrid_nbody import __version__
from hybrid_nbody.errors import STOPPED_EARLY, FileError, HybridNBodyError, InputError

STARTED = time.monotonic()

DESCRIPTION = "Gravity between bodies, and smoke in a box, on MPI ranks, each on its GPU or on CPU threads."
EPILOG = """\
examples:
  mpirun -n 4 hybrid-nbody input/plummer.yaml          run on four ranks
  mpirun -n 2 hybrid-nbody resume output/plummer       continue from the newest checkpoint
  hybrid-nbody run input/plummer.yaml --set time.dt=1e-4 --overwrite
  hybrid-nbody plot output/plummer                     draw energies and bodies
  mpirun -n 4 hybrid-nbody input/smoke.yaml            smoke that rises in a box
  hybrid-nbody bench ladder                            what each optimisation of the pair force brings here

exit codes: 0 done; 1 a fault of ours; 2 bad input; 3 numerical failure; 4 input/output failed;
            75 stopped early with a checkpoint written (resume it)
"""


PICTURES = (
    "of bodies energies, snapshot, tracks, tracks-3d, lagrangian, profiles, activity or overview; of a fluid "
    "diagnostics, slices or projection (default: what fits the run)"
)

EXPORTS = (
    "gadget: bodies for yt, pynbody and ParaView; vtkhdf: bodies or a fluid for ParaView, in time; "
    "csv: a table of bodies; npz: bodies or a fluid for NumPy"
)


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    top = argparse.ArgumentParser(
        prog="hybrid-nbody",
        description=DESCRIPTION,
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


def _path(text):
    """Read the name of a file or directory; an empty one, of a shell's variable that is not set, is a mistake."""
    if not text:
        raise argparse.ArgumentTypeError("must not be empty")
    return Path(text)


def _run_arguments(command):
    command.add_argument("file", help="configuration in YAML")
    _set_argument(command)
    command.add_argument("--overwrite", action="store_true", help="replace a run that the output directory holds")


def _resume_arguments(command):
    command.add_argument("directory", type=_path, help="directory of the run")
    _set_argument(command)


def _check_arguments(command):
    command.add_argument("file", help="configuration in YAML")
    _set_argument(command)


def _set_argument(command):
    command.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="overrides",
        help="override a key, e.g. time.dt=1e-4",
    )


def _info_arguments(command):
    command.add_argument("path", type=_path, help="a run's directory, or one file of it")


def _plot_arguments(command):
    command.add_argument("path", type=_path, help="a run's directory, or its trajectory.h5")
    command.add_argument("--kind", help=PICTURES)
    command.add_argument("--output", type=_path, help="a PNG file or a folder (default: the run's directory)")
    command.add_argument("--frame", type=int, default=-1, help="which frame it shows (default: the last)")


def _export_arguments(command):
    command.add_argument("path", type=_path, help="a run's directory, its trajectory.h5, or a checkpoint")
    command.add_argument("--format", required=True, choices=("gadget", "vtkhdf", "csv", "npz"), help=EXPORTS)
    command.add_argument("--output", type=_path, required=True, metavar="FILE", help="the file to write")
    command.add_argument(
        "--frame", type=_frame, default=-1, help="which frame, or all of them in vtkhdf and npz (default: the last)"
    )
    command.add_argument("--overwrite", action="store_true", help="replace an existing file")


def _frame(text):
    """Read the number of a frame, or the word all."""
    try:
        return "all" if text == "all" else int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a whole number or all (got '{text}')") from None


def _flat_arguments(command):
    command.add_argument("bodies", metavar="N", help="number of bodies")
    command.add_argument("cells", metavar="D", help="cells of the activity map along each side")
    command.add_argument("mode", metavar="MODE", help="cpu (one thread), openmp (all cores) or cuda (a GPU)")
    command.add_argument("-i", metavar="I", dest="iterations", help="iterations to time; without it, an animation")
    command.add_argument("-f", type=_path, metavar="FILE", dest="file", help="CSV: x, y, vx, vy, m (default: random)")
    command.add_argument("--seed", default="1", metavar="S", help="of what is drawn at random (default: 1)")
    command.add_argument("--animation", metavar="FILE", help="a .gif or .mp4, in place of a window (default: flat.gif)")
    command.add_argument("--output", type=_path, metavar="DIR", help="keep the whole run there, as run does")
    command.add_argument("--overwrite", action="store_true", help="replace a run that DIR holds")


def _movie_arguments(command):
    command.add_argument("path", type=_path, help="a run's directory, or its trajectory.h5")
    command.add_argument("--kind", help="bodies, activity or fluid (default: what fits the run)")
    command.add_argument("--output", type=_path, help="an .mp4 (takes ffmpeg) or .gif file or a folder")
    command.add_argument("--fps", type=float, default=25.0, help="frames a second (default: 25)")
    command.add_argument("--every", type=int, default=1, metavar="N", help="take every N-th frame (default: all)")


def _report_arguments(command):
    command.add_argument("path", type=_path, help="a run's directory, or its trajectory.h5")
    command.add_argument("--output", type=_path, help="an HTML file or a folder (default: the run's directory)")


def _compare_arguments(command):
    command.add_argument("first", type=_path, help="a run's directory, or its trajectory.h5")
    command.add_argument("second", type=_path, help="the other one")
    command.add_argument("--output", type=_path, help="a picture or a folder (default: the first run's directory)")


def _bench_arguments(command):
    from hybrid_nbody.benchmarks.command import add_arguments

    add_arguments(command, _path)


def _doctor_arguments(command):
    """Doctor takes no arguments."""


def command_run(arguments, communicator) -> int:
    """Run a configuration."""
    from hybrid_nbody.application import run

    return run(arguments.file, arguments.overrides, arguments.overwrite, communicator, STARTED)


def command_resume(arguments, communicator) -> int:
    """Continue a run."""
    from hybrid_nbody.application import resume

    return resume(arguments.directory, arguments.overrides, communicator, STARTED)


def command_check(arguments, communicator) -> int:
    """Check a configuration and say what it would do."""
    from hybrid_nbody.inspection import check

    print_on_root(communicator, check(arguments.file, arguments.overrides, communicator))
    return 0


def command_doctor(arguments, communicator) -> int:
    """Look at the machine."""
    from hybrid_nbody.doctor import doctor

    text, healthy = doctor(communicator)
    print_on_root(communicator, text)
    return 0 if healthy else 2


def command_info(arguments, communicator) -> int:
    """Say what a file or directory holds."""
    from hybrid_nbody.analysis.info import check_trajectory, describe

    print(describe(arguments.path), flush=True)
    check_trajectory(arguments.path)
    return 0


def command_plot(arguments, communicator) -> int:
    """Draw pictures of a run."""
    from hybrid_nbody.analysis.plots import plot_run

    path, kind, output, frame = arguments.path, arguments.kind, arguments.output, arguments.frame
    with progress_of("part") as progress:
        targets = plot_run(path, kind, output, frame, say=print_aside, progress=progress)
    print(*targets, sep="\n")
    return 0


def command_movie(arguments, communicator) -> int:
    """Make a movie of a run."""
    from hybrid_nbody.analysis.movie import make_movie

    path, output = arguments.path, arguments.output
    with progress_of("frame") as progress:
        target = make_movie(path, output, arguments.kind, arguments.fps, arguments.every, progress)
    print(target)
    return 0


def command_report(arguments, communicator) -> int:
    """Write the report of a run."""
    from hybrid_nbody.analysis.report import make_report

    with progress_of("part") as progress:
        target = make_report(arguments.path, arguments.output, print_aside, progress)
    print(target)
    return 0


def command_compare(arguments, communicator) -> int:
    """Compare two runs."""
    from hybrid_nbody.analysis.compare import table_of
    from hybrid_nbody.analysis.plots import plot_comparison

    with progress_of("frame") as progress:
        found, target = plot_comparison(arguments.first, arguments.second, arguments.output, progress=progress)
    print(f"{table_of(found)}\n{target}")
    return 0


def command_export(arguments, communicator) -> int:
    """Write frames of a run for other programs."""
    from hybrid_nbody.analysis.export import export_run

    path, output = arguments.path, arguments.output
    with progress_of("part") as progress:
        target = export_run(path, arguments.format, output, arguments.frame, arguments.overwrite, progress)
    print(target)
    return 0


def command_flat(arguments, communicator) -> int:
    """Move bodies in the unit square, in one shot."""
    from hybrid_nbody.flat import run

    return run(arguments, communicator, STARTED)


def command_bench(arguments, communicator) -> int:
    """Measure this machine."""
    from hybrid_nbody.benchmarks.command import run

    return run(arguments, communicator)


def print_aside(text: str) -> None:
    """Print what is no result, such as why something was left out."""
    print(text, file=sys.stderr, flush=True)


def progress_of(what: str):
    """Return what shows the progress of a long job, counted in frames or parts, beside its results."""
    from hybrid_nbody.analysis.progress import FrameProgress

    return FrameProgress(sys.stderr, what)


def print_on_root(communicator, text: str) -> None:
    """Print `text` once."""
    if communicator.is_root:
        print(text, flush=True)


COMMANDS = (
    ("run", command_run, True, "run a configuration (the word run may be left out)"),
    ("resume", command_resume, True, "continue a run from its newest valid checkpoint"),
    ("check", command_check, True, "check a configuration and say what it would do"),
    ("info", command_info, False, "say what a run's directory or file holds"),
    ("plot", command_plot, False, "draw the diagnostics of a run, and its bodies or its smoke"),
    ("export", command_export, False, "write frames of a run for yt, pynbody, ParaView, tables and NumPy"),
    ("flat", command_flat, True, "bodies in the unit square and their activity map, in one shot"),
    ("movie", command_movie, False, "make a movie of a run's bodies, activity map or smoke"),
    ("report", command_report, False, "write a web page on a run, with a view of it in space"),
    ("compare", command_compare, False, "say how far two runs are apart, over time"),
    ("bench", command_bench, False, "measure this machine, and what each optimisation of the force brings on it"),
    ("doctor", command_doctor, True, "look at MPI, ranks, GPUs and threads, and say what is wrong"),
)

ARGUMENTS = {
    "run": _run_arguments,
    "resume": _resume_arguments,
    "check": _check_arguments,
    "info": _info_arguments,
    "plot": _plot_arguments,
    "export": _export_arguments,
    "flat": _flat_arguments,
    "movie": _movie_arguments,
    "report": _report_arguments,
    "compare": _compare_arguments,
    "bench": _bench_arguments,
    "doctor": _doctor_arguments,
}


def main(arguments: list[str] | None = None) -> int:
    """Carry out a command and return the exit code; on several ranks, all end together."""
    chosen = parser().parse_args(_with_command(sys.argv[1:] if arguments is None else arguments))
    return (_with_mpi if chosen.mpi else _alone)(chosen)


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
    except KeyboardInterrupt:
        print("hybrid_nbody: stopped by Ctrl-C", file=sys.stderr)
        return STOPPED_EARLY
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
            return code if not isinstance(error, FileError) or error.shared else _leave_at_once(code)
        communicator.abort(error, error.exit_code)
    except BrokenPipeError:
        return _stop_printing()
    except BaseException as error:  # SystemExit and Ctrl-C too: one rank must not leave the others waiting
        if ranks is None or ranks.size == 1:
            traceback.print_exc()
            return 1
        communicator.abort(error, 1)


def _call(chosen, ranks) -> int:
    """Carry out a command; too little memory is a fault of the input."""
    try:
        return chosen.function(chosen, ranks)
    except MemoryError as error:
        raise InputError(f"not enough memory: {error}; take fewer bodies, or more ranks or nodes") from error


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
