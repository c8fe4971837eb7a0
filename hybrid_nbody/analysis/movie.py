"""Movies of a run: frames are read, drawn and encoded one at a time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hybrid_nbody.analysis.encoders import SUFFIXES, Encoder, has_ffmpeg, new_encoder
from hybrid_nbody.analysis.look import USUAL, Look
from hybrid_nbody.analysis.presentation import (
    Movie,
    PresentedModel,
    figures_of_field,
    presented,
)
from hybrid_nbody.analysis.scenes import Scene
from hybrid_nbody.analysis.style import our_look
from hybrid_nbody.errors import FileError, InputError
from hybrid_nbody.files.atomic import output_path, written_beside
from hybrid_nbody.files.run import Run, open_run
from hybrid_nbody.progress import OnProgress, Step, counted, counter

FASTEST = 120.0
"""Most frames per second."""

USUAL_DURATION = 10.0
"""Seconds that a movie lasts, about, if nothing is said."""

USUAL_SPEEDS = (2.0, 60.0)
"""Fewest and most frames per second of such a movie."""


@dataclass(frozen=True)
class MovieOptions:
    """The contents and the speed of a movie.

    Attributes
    ----------
    kind : str, optional
        One of the kinds of movies of the run's model; by default the first that fits the run.
    fps : float, optional
        Frames per second, up to 120; a GIF shows at most 50. By default the movie lasts about 10 s.
    every : int, optional
        Stride of the frames; by default one that leaves at most 600.
    field : str, optional
        Which field is shown, where the run's model has a choice, such as the speed of a fluid.
    duration : float, optional
        Seconds that the movie lasts, instead of `fps`.
    look : Look, optional
        Size, colours, plane and camera.
    """

    kind: str | None = None
    fps: float | None = None
    every: int | None = None
    field: str | None = None
    duration: float | None = None
    look: Look = USUAL


def make_movie(
    path: str | Path,
    output: str | Path | None = None,
    options: MovieOptions = MovieOptions(),
    progress: OnProgress | None = None,
    *,
    models: Mapping[str, PresentedModel],
) -> Path:
    """Make a movie of a run.

    Parameters
    ----------
    path : str or Path
        The run's directory or its trajectory; the run may still be going on.
    output : str or Path, optional
        A file ending in .mp4 or .gif, or a directory. By default ``movie.mp4`` in the run's
        directory, or ``movie.gif`` where there is no ffmpeg.
    options : MovieOptions, optional
        What it shows, and how fast.
    progress : callable, optional
        Called with the numbers of frames done and of all frames, after each.
    models : mapping of str to PresentedModel
        The models by name.

    Returns
    -------
    Path
        The file written.

    Raises
    ------
    InputError
        There is no such run or kind, no frame, no ffmpeg for an MP4, or a number is out of range.
    FileError
        The run cannot be read or the movie cannot be written.
    """
    _check_numbers(options)
    with open_run(path) as run, our_look():
        target = _target(run, output)
        every = _stride(options, run.number_of_frames)
        frames = run.intact_frames(range(0, run.number_of_frames, every))
        figures = presented(models, run.model).figures
        movies = figures_of_field(run, figures, options.field).movies
        kind = options.kind or _default_kind(run, movies)
        scene = scene_of(run, movies, kind, frames, options.look)
        fps = _speed(options, len(frames), every)
        _write(scene, target, fps, counter(progress, len(frames)))
    return target


def _stride(options: MovieOptions, frames: int) -> int:
    """Return the stride of the frames that are shown."""
    if options.every is not None:
        return options.every
    if options.fps is not None or options.duration is not None:
        return 1
    return max(1, -(-frames // int(USUAL_SPEEDS[1] * USUAL_DURATION)))


def _speed(options: MovieOptions, frames: int, every: int) -> float:
    """Return the frames per second of a movie.

    Raises
    ------
    InputError
        More than `FASTEST` are needed for the duration.
    """
    if options.fps is not None:
        return options.fps
    if options.duration is None:
        return min(max(frames / USUAL_DURATION, USUAL_SPEEDS[0]), USUAL_SPEEDS[1])
    fps = frames / options.duration
    if fps > FASTEST:
        needed = -(-every * fps // FASTEST)
        raise InputError(
            f"--duration {options.duration:g}: {frames} frames in it are {fps:.0f} a second, and "
            f"at most {FASTEST:g} are shown; take fewer by --every {needed:.0f}"
        )
    return fps


def _check_numbers(options: MovieOptions) -> None:
    """Raise `InputError` if a number is out of range."""
    duration = options.duration
    if duration is not None and not 0 < duration < float("inf"):
        raise InputError(f"--duration {duration:g}: must be a number of seconds greater than 0")
    if options.fps is not None and not 0 < options.fps <= FASTEST:
        raise InputError(f"--fps {options.fps:g}: must be greater than 0 and at most {FASTEST:g}")
    if options.every is not None and options.every < 1:
        raise InputError(f"--every {options.every}: must be at least 1")


def _default_kind(run: Run, movies: Mapping[str, Movie]) -> str:
    kinds = kinds_of(run, movies)
    if not kinds:
        raise InputError(f"{run.path}: no frames to make a movie of")
    return kinds[0]


def kinds_of(run: Run, movies: Mapping[str, Movie]) -> list[str]:
    """Return the kinds of movies that fit a run, the default first."""
    return [kind for kind, movie in movies.items() if movie.fits(run)]


def scene_of(
    run: Run, movies: Mapping[str, Movie], kind: str, frames: Sequence[int], look: Look = USUAL
) -> Scene:
    """Return the scene of a kind.

    Raises
    ------
    InputError
        The kind does not fit the run.
    """
    known = kinds_of(run, movies)
    if kind not in known:
        there = f"there is {', '.join(known)}" if known else "there are no frames yet"
        raise InputError(
            f"{run.path}: no movie of kind '{kind}' in this run of model '{run.model}'; {there}"
        )
    return movies[kind].scene(run, frames, look)


def _target(run: Run, output: str | Path | None) -> Path:
    name = "movie.mp4" if has_ffmpeg() else "movie.gif"
    target = output_path(
        "movie", Path(output) if output is not None else run.path.parent, name, SUFFIXES
    )
    if target.suffix.lower() == ".mp4" and not has_ffmpeg():
        raise InputError(
            f"{target}: an MP4 needs ffmpeg, which is not on the PATH; install it, or write a .gif"
        )
    return target


def _write(scene: Scene, target: Path, fps: float, step: Step) -> None:
    try:
        with written_beside(target) as partial:
            size = scene.figure.canvas.get_width_height()
            _film(scene, new_encoder(partial, size, fps), step)
    except OSError as error:
        raise FileError(f"{target}: cannot write the movie ({error.strerror or error})") from error


def _film(scene: Scene, encoder: Encoder, step: Step) -> None:
    try:
        for frame in counted(scene.frames, step):
            encoder.add(scene.render(frame))
        encoder.close()
    except BaseException:
        encoder.abandon()
        raise
