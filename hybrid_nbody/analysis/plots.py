"""Pictures of a run, written to files.

The model of a run says which kinds of pictures there are (`presentation.Figures`). The function of
each kind returns a matplotlib figure of its own: it opens no window and touches neither the user's
settings nor ``pyplot``. `plot_run` writes the figures to files, in the look of `style.our_look`.
"""

import difflib
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from hybrid_nbody.analysis.compare import Comparison, compare
from hybrid_nbody.analysis.compare_figure import compare_figure
from hybrid_nbody.analysis.damage import on_whole_frames
from hybrid_nbody.analysis.presentation import (
    Picture,
    PresentedModel,
    Say,
    figures_of_field,
    presented,
)
from hybrid_nbody.analysis.style import our_look
from hybrid_nbody.errors import InputError
from hybrid_nbody.files.atomic import output_path, write_whole
from hybrid_nbody.files.run import Run, find_trajectory, open_run
from hybrid_nbody.progress import OnProgress, counted, counter

DPI = 200

FORMATS = (".png", ".pdf", ".svg")


@dataclass(frozen=True)
class PictureOptions:
    """The pictures that are drawn of a run.

    Attributes
    ----------
    kind : str, optional
        One of the kinds of pictures of the run's model. By default each that the run holds enough
        for.
    frame : int, optional
        The frame of a snapshot and the like; negative ones count from the end.
    dpi : float, optional
        Dots per inch; pictures are 7.2 inches wide.
    field : str, optional
        Which field is shown, where the run's model has a choice, such as the speed of a fluid.
    """

    kind: str | None = None
    frame: int = -1
    dpi: float = DPI
    field: str | None = None


def plot_run(
    path: str | Path,
    output: str | Path | None = None,
    options: PictureOptions = PictureOptions(),
    say: Say | None = None,
    progress: OnProgress | None = None,
    *,
    models: Mapping[str, PresentedModel],
) -> list[Path]:
    """Draw pictures of a run and write them to files.

    Parameters
    ----------
    path : str or Path
        The run's directory or its trajectory; the run may still be going on.
    output : str or Path, optional
        A file ending in .png, .pdf or .svg, or a directory for files named after their kind. By
        default the run's directory.
    options : PictureOptions, optional
        What is drawn.
    say : callable, optional
        Takes a line about each default picture that is left out, and why.
    progress : callable, optional
        Called with the numbers of parts done and of all parts, after each picture and after each
        frame of those that go through many.
    models : mapping of str to PresentedModel
        The models by name; of a run of another one the diagnostics are drawn.

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
    with open_run(path) as run:
        figures = presented(models, run.model).figures
        pictures = figures_of_field(run, figures, options.field).pictures
        found = _reasons_of_kind(run, pictures, options.kind)
        kinds = drawable(found)
        if not kinds:
            raise InputError(_nothing(run, found, options))
        targets = _targets(run, _names(kinds, options.field), output)
        say_what_is_left_out(found, say)
        which = [(pictures[name], target) for name, target in zip(kinds, targets, strict=True)]
        drawn = on_whole_frames(lambda: _drawn(run, which, options, progress), run)
    for target, picture in zip(targets, drawn, strict=True):  # when all of them are drawn
        write_whole(target, picture, "picture")
    return targets


def _drawn(
    run: Run,
    pictures: Sequence[tuple[Picture, Path]],
    options: PictureOptions,
    progress: OnProgress | None,
) -> list[bytes]:
    """Return pictures, each in the format of its file."""
    step = counter(progress, parts_of(run, [picture for picture, _ in pictures]))
    with our_look():
        return [
            _picture(picture.draw(run, options.frame, step), target, options.dpi)
            for picture, target in counted(pictures, step)
        ]


def parts_of(run: Run, pictures: Iterable[Picture]) -> int:
    """Return in how many parts pictures are drawn: one each, and one a frame of those of many."""
    return sum(1 + len(picture.frames(run)) for picture in pictures)


def plot_comparison(
    first: str | Path,
    second: str | Path,
    output: str | Path | None = None,
    dpi: float = DPI,
    progress: OnProgress | None = None,
) -> tuple[Comparison, Path]:
    """Compare two runs, and draw their differences over time.

    Parameters
    ----------
    first, second : str or Path
        Runs' directories or trajectories.
    output : str or Path, optional
        A file ending in .png, .pdf or .svg, or a directory. By default ``compare.png`` in the
        directory of the first.
    dpi : float, optional
        Dots per inch.
    progress : callable, optional
        See `compare.compare`.

    Returns
    -------
    found : Comparison
        The differences.
    target : Path
        The file written.

    Raises
    ------
    InputError, FileError
        As `plot_run` and `compare.compare`.
    """
    target = _target("compare", find_trajectory(first).parent if output is None else Path(output))
    found = compare(first, second, progress)
    with our_look():
        write_whole(target, _picture(compare_figure(found), target, dpi), "picture")
    return found, target


def _nothing(run: Run, found: Mapping[str, str], options: PictureOptions) -> str:
    """Return why nothing can be drawn."""
    if options.field is None:
        return f"{run.path}: nothing to plot yet, neither diagnostics nor frames"
    why = "; ".join(dict.fromkeys(found.values()))
    return f"{run.path}: no picture of the {options.field}: {why}"


def _names(kinds: Sequence[str], field: str | None) -> list[str]:
    """Return the names of the files of pictures, with the field that they show."""
    return [kind if field is None else f"{kind}-{field}" for kind in kinds]


def _reasons_of_kind(run: Run, pictures: Mapping[str, Picture], kind: str | None) -> dict[str, str]:
    """Return the `reasons` of all pictures, or of one that is asked for, which says them itself.

    Raises
    ------
    InputError
        The model has no such kind.
    """
    if kind is None:
        return reasons(run, pictures)
    if kind not in pictures:
        near = difflib.get_close_matches(str(kind), pictures, 1)
        hint = f"; did you mean '{near[0]}'?" if near else ""
        raise InputError(
            f"{run.path}: no picture of kind '{kind}' of a run of model '{run.model}'; "
            f"there are {', '.join(pictures)}{hint}"
        )
    return {kind: ""}


def reasons(run: Run, pictures: Mapping[str, Picture]) -> dict[str, str]:
    """Return for each default picture why the run has not enough for it; empty if it has."""
    return {name: picture.reason(run) for name, picture in pictures.items() if picture.by_default}


def drawable(found: Mapping[str, str]) -> list[str]:
    """Return the kinds of pictures that can be drawn, given `reasons`."""
    return [kind for kind, reason in found.items() if not reason]


def say_what_is_left_out(found: Mapping[str, str], say: Say | None) -> None:
    """Say why the other kinds are left out."""
    for kind, reason in found.items():
        if reason and say:
            say(f"no {kind}: {reason}")


def _targets(run: Run, kinds: Sequence[str], output: str | Path | None) -> list[Path]:
    output = Path(output) if output is not None else run.path.parent
    targets = [_target(kind, output) for kind in kinds]
    if len(targets) > 1 and not output.is_dir():
        raise InputError(
            f"{output}: one file for {len(kinds)} pictures ({', '.join(kinds)}); "
            "name one kind, or a directory"
        )
    return targets


def _target(kind: str, output: Path) -> Path:
    """Return the file of a picture: `output`, or a file named after the kind in that directory."""
    return output_path("picture", output, f"{kind}.png", FORMATS)


def _picture(figure: Figure, target: Path, dpi: float) -> bytes:
    """Return the contents of a file in the format given by the ending of its name."""
    found = io.BytesIO()
    figure.savefig(found, format=target.suffix[1:].lower(), dpi=dpi)
    return found.getvalue()
