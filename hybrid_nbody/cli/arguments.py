"""The arguments and options of each command."""

import argparse
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path

PICTURES = "which picture (default: every one that fits the run; a wrong name lists them)"

MOVIES = "which movie (default: the one that fits the run; a wrong name lists them)"

LOOK = (
    ("--size", "WIDTHxHEIGHT", "pixels, such as 1280x720 (default: 768x672)"),
    ("--colormap", "NAME", "colours, one of matplotlib's maps (default: viridis)"),
    ("--plane", "AXES", "axes across and up, such as xz (default: xy)"),
    ("--range", "LOW,HIGH", "the ends of the scale of colours; --range=-1,1 if one is negative"),
    (
        "--camera",
        "AZIMUTH,ELEVATION[,TURN]",
        "see bodies from there, in degrees; TURN is how far it goes round during the movie",
    ),
)
"""The options of how a movie looks: name, what it takes, and what it is."""

FIELD = (
    "which field of a grid: density, speed, vorticity, pressure, divergence, q_criterion, or a "
    "scalar by its name"
)

EXPORTS = {
    "gadget": "bodies for yt, pynbody and ParaView",
    "vtkhdf": "bodies or a grid for ParaView, one frame or all",
    "csv": "a table of bodies",
    "npz": "bodies or a grid for NumPy",
}
"""The formats of `hybrid_nbody.analysis.export`, whose import would delay the help."""


def _path(text: str) -> Path:
    """Read the name of a file or directory.

    An empty one is a mistake: that of a shell's variable that is not set.
    """
    if not text:
        raise argparse.ArgumentTypeError("must not be empty")
    return Path(text)


def _run_arguments(command: ArgumentParser) -> None:
    command.add_argument("file", nargs="?", help="configuration in YAML")
    command.add_argument(
        "--from",
        dest="source",
        metavar="DIR[@step:N|@time:T]",
        help="instead of a file: start a run of its own from a checkpoint or frame of the run in "
        "DIR, with its configuration (default: the newest checkpoint)",
    )
    _set_argument(command)
    command.add_argument(
        "--overwrite", action="store_true", help="replace a run that the output directory holds"
    )


def _sweep_arguments(command: ArgumentParser) -> None:
    command.add_argument("file", help="configuration in YAML")
    command.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE,VALUE,...",
        dest="overrides",
        help="the values of a key, e.g. time.dt=1e-3,5e-4; repeated, every combination is run",
    )
    command.add_argument(
        "--output",
        type=_path,
        metavar="DIR",
        help="where the directories of the runs are made (default: output.directory with -sweep)",
    )
    command.add_argument(
        "--jobs",
        type=_jobs,
        metavar="N",
        help="runs side by side (default: one a GPU, else one a core; on several ranks one a rank)",
    )
    command.add_argument(
        "--overwrite", action="store_true", help="do runs again that are there already"
    )
    command.add_argument(
        "--together",
        action="store_true",
        help="compute systems of 2 to 32 bodies side by side on one device, in double precision, "
        "with a table and one file for all",
    )
    command.add_argument("--helper", help=argparse.SUPPRESS)


def _jobs(text: str) -> int:
    """Read the number of jobs."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"must be a whole number, at least 1 (got '{text}')")
    return int(text)


def _resume_arguments(command: ArgumentParser) -> None:
    command.add_argument("directory", type=_path, help="directory of the run")
    _set_argument(command)


def _check_arguments(command: ArgumentParser) -> None:
    command.add_argument("file", help="configuration in YAML")
    _set_argument(command)


def _set_argument(command: ArgumentParser) -> None:
    command.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="overrides",
        help="replace a key, e.g. time.dt=1e-4; may be repeated",
    )


def _info_arguments(command: ArgumentParser) -> None:
    command.add_argument("path", type=_path, help="a run's directory, or one file of it")


def _plot_arguments(command: ArgumentParser) -> None:
    command.add_argument("path", type=_path, help="a run's directory, or its trajectory.h5")
    command.add_argument("--kind", help=PICTURES)
    command.add_argument("--field", metavar="NAME", help=FIELD)
    command.add_argument(
        "--output",
        type=_path,
        help="a .png, .pdf or .svg file, or a folder (default: the run's directory)",
    )
    command.add_argument(
        "--frame", type=int, default=-1, help="which frame it shows (default: the last)"
    )


def _export_arguments(command: ArgumentParser) -> None:
    command.add_argument(
        "path", type=_path, help="a run's directory, its trajectory.h5, or a checkpoint"
    )
    formats = "; ".join(f"{name}: {holds}" for name, holds in EXPORTS.items())
    command.add_argument("--format", required=True, choices=EXPORTS, help=formats)
    command.add_argument(
        "--output", type=_path, required=True, metavar="FILE", help="the file to write"
    )
    command.add_argument(
        "--frame",
        type=_frame,
        default=-1,
        help="which frame, or all of them in vtkhdf and npz (default: the last)",
    )
    command.add_argument("--overwrite", action="store_true", help="replace an existing file")


def _frame(text: str) -> int | str:
    """Read the number of a frame, or the word all."""
    try:
        return "all" if text == "all" else int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a whole number or all (got '{text}')") from None


def _square_arguments(command: ArgumentParser) -> None:
    command.add_argument("bodies", metavar="N", help="number of bodies")
    command.add_argument("cells", metavar="D", help="cells of the activity map along each side")
    command.add_argument(
        "mode", metavar="MODE", help="cpu (one thread), openmp (all cores) or cuda (a GPU)"
    )
    command.add_argument(
        "-i", metavar="I", dest="iterations", help="iterations to time; without it, an animation"
    )
    command.add_argument(
        "-f", type=_path, metavar="FILE", dest="file", help="CSV: x, y, vx, vy, m (default: random)"
    )
    command.add_argument(
        "--seed", default="1", metavar="S", help="seed of the random numbers (default: 1)"
    )
    command.add_argument(
        "--animation",
        metavar="FILE",
        help="save a .gif or .mp4 instead of opening a window (default: square.gif)",
    )
    command.add_argument(
        "--output", type=_path, metavar="DIR", help="keep the whole run in this folder"
    )
    command.add_argument("--overwrite", action="store_true", help="replace a run that DIR holds")


def _movie_arguments(command: ArgumentParser) -> None:
    command.add_argument("path", type=_path, help="a run's directory, or its trajectory.h5")
    command.add_argument("--kind", help=MOVIES)
    command.add_argument("--field", metavar="NAME", help=FIELD)
    command.add_argument(
        "--output", type=_path, help="an .mp4 file (needs ffmpeg), a .gif file or a folder"
    )
    speed = command.add_mutually_exclusive_group()
    speed.add_argument("--fps", type=float, help="frames per second")
    speed.add_argument(
        "--duration", type=float, metavar="SECONDS", help="how long it lasts (default: about 10)"
    )
    command.add_argument(
        "--every",
        type=int,
        metavar="N",
        help="take every N-th frame (default: all, or as many as 600 without --fps and --duration)",
    )
    for name, metavar, text in LOOK:
        command.add_argument(name, metavar=metavar, help=text)


def _report_arguments(command: ArgumentParser) -> None:
    command.add_argument("path", type=_path, help="a run's directory, or its trajectory.h5")
    command.add_argument(
        "--output", type=_path, help="an HTML file or a folder (default: the run's directory)"
    )


def _watch_arguments(command: ArgumentParser) -> None:
    command.add_argument("path", type=_path, help="a run's directory, or its trajectory.h5")
    command.add_argument(
        "--port", type=int, default=0, metavar="N", help="port of 127.0.0.1 (default: a free one)"
    )


def _compare_arguments(command: ArgumentParser) -> None:
    command.add_argument("first", type=_path, help="a run's directory, or its trajectory.h5")
    command.add_argument(
        "others", type=_path, nargs="+", metavar="other", help="the same of one or more other runs"
    )
    command.add_argument(
        "--labels", metavar="NAME,NAME,...", help="names of the runs (default: their directories)"
    )
    command.add_argument(
        "--output", type=_path, help="a picture or a folder (default: the first run's directory)"
    )


def _bench_arguments(command: ArgumentParser) -> None:
    from hybrid_nbody.benchmarks import add_arguments

    add_arguments(command, _path)


def _examples_arguments(command: ArgumentParser) -> None:
    command.add_argument("name", nargs="?", metavar="NAME", help="the example to write")
    command.add_argument(
        "--output",
        type=_path,
        default=Path("."),
        metavar="DIR",
        help="where it is written (default: the current folder)",
    )
    command.add_argument("--overwrite", action="store_true", help="replace files of the same names")


def _completion_arguments(command: ArgumentParser) -> None:
    command.add_argument("shell", choices=("bash", "zsh", "fish"))


def _doctor_arguments(command: ArgumentParser) -> None:
    """Doctor takes no arguments."""


ARGUMENTS: dict[str, Callable[[ArgumentParser], None]] = {
    "run": _run_arguments,
    "sweep": _sweep_arguments,
    "resume": _resume_arguments,
    "check": _check_arguments,
    "info": _info_arguments,
    "plot": _plot_arguments,
    "export": _export_arguments,
    "square": _square_arguments,
    "movie": _movie_arguments,
    "report": _report_arguments,
    "watch": _watch_arguments,
    "compare": _compare_arguments,
    "bench": _bench_arguments,
    "examples": _examples_arguments,
    "doctor": _doctor_arguments,
    "completion": _completion_arguments,
}
"""For each command, the function that adds what it takes to its parser."""

ALIASES = {"square": ("flat",)}
"""Other names of commands."""

NAMES = frozenset([*ARGUMENTS, *(name for names in ALIASES.values() for name in names)])
"""Everything that may stand in the place of a command."""
