"""Pictures of a run, written to files.

Each ``*_figure`` function of `body_figures` and `fluid_figures` returns a matplotlib figure that belongs to nobody
else: no window opens, and neither the user's settings nor ``pyplot`` are touched. `plot_run` writes them to files, in
the look of `style.our_look`.
"""

import difflib
import io
from contextlib import suppress
from pathlib import Path

from hybrid_nbody.analysis import body_figures, fluid_figures
from hybrid_nbody.analysis.run import open_run
from hybrid_nbody.analysis.style import our_look
from hybrid_nbody.errors import FileError, InputError

FIGURES = {**body_figures.FIGURES, **fluid_figures.FIGURES}
"""The function that draws each kind of picture."""

DPI = 200

FORMATS = (".png", ".pdf", ".svg")


def plot_run(path, kind=None, output=None, frame=-1, dpi=DPI) -> list[Path]:
    """Draw pictures of a run and write them to files.

    Parameters
    ----------
    path : str or Path
        The run's directory or its trajectory; the run may still be going on.
    kind : str, optional
        Of bodies ``energies``, ``snapshot``, ``tracks`` or ``overview``; of a fluid ``diagnostics``, ``slices`` or
        ``projection``. By default all but the overview that the run holds enough for.
    output : str or Path, optional
        A file ending in .png, .pdf or .svg, or a directory for files named after their kind. By default the run's
        directory.
    frame : int, optional
        The frame of a snapshot and the like; negative ones count from the end.
    dpi : float, optional
        Dots an inch; pictures are 7.2 inches wide.

    Returns
    -------
    list of Path
        The files written.

    Raises
    ------
    InputError
        There is no such run, kind, frame or picture format, or the run holds nothing of that kind.
    FileError
        The run cannot be read or a picture cannot be written.
    """
    _check_kind(kind)
    with open_run(path) as run:
        kinds = [kind] if kind else _default_kinds(run)
        targets = _targets(run, kinds, output)
        with our_look():
            for name, target in zip(kinds, targets, strict=True):
                _write(FIGURES[name](run, frame), target, dpi)
    return targets


def _check_kind(kind):
    if kind is not None and kind not in FIGURES:
        near = difflib.get_close_matches(str(kind), FIGURES, 1)
        hint = f"; did you mean '{near[0]}'?" if near else ""
        raise InputError(f"no picture of kind '{kind}'; there are {', '.join(FIGURES)}{hint}")


def _default_kinds(run):
    kinds = (fluid_figures if run.model == "fluid" else body_figures).default_kinds(run)
    if not kinds:
        raise InputError(f"{run.path}: nothing to plot yet, neither diagnostics nor frames")
    return kinds


def _targets(run, kinds, output):
    output = Path(output) if output is not None else run.path.parent
    if output.is_dir():
        return [output / f"{kind}.png" for kind in kinds]
    if output.suffix.lower() not in FORMATS:
        raise InputError(f"{output}: neither a directory nor a file ending in {', '.join(FORMATS)}")
    if len(kinds) > 1:
        raise InputError(
            f"{output}: one file for {len(kinds)} pictures ({', '.join(kinds)}); name one kind, or a directory"
        )
    return [output]


def _write(figure, target, dpi):
    picture = io.BytesIO()
    figure.savefig(picture, format=target.suffix[1:].lower(), dpi=dpi)
    partial = target.with_name(f".{target.name}.part")  # a full disk must not cost the picture of before
    try:
        partial.write_bytes(picture.getvalue())
        partial.replace(target)
    except OSError as error:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise FileError(f"{target}: cannot write the picture ({error.strerror or error})") from error
