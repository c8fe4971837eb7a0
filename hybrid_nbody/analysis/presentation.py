"""What a model tells the readers of its runs: pictures, movies, a view in space, and facts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:  # a reader of facts must not wait for matplotlib
    import h5py
    from matplotlib.figure import Figure

    from hybrid_nbody.analysis.scenes import Scene
    from hybrid_nbody.files.run import Run

Step = Callable[[], None]
"""Called after each frame of a job that goes through many."""

Facts = list[tuple[str, str]]
"""Names and texts, a line each."""


def no_frames(run: "Run") -> Sequence[int]:
    """Return no frames: the picture is drawn at once."""
    return ()


@dataclass(frozen=True)
class Picture:
    """A kind of picture.

    Attributes
    ----------
    draw : callable
        ``draw(run, frame, step)`` returns the figure; `step` is called after each of `frames`.
    reason : callable
        ``reason(run)`` says why the run does not hold enough for it; it is empty where it does.
    caption : str
        What a report writes below it.
    frames : callable, optional
        ``frames(run)`` returns the frames that drawing goes through, if they are many.
    by_default : bool, optional
        Whether it is drawn where no kind is named.
    """

    draw: Callable[["Run", int, Step], "Figure"]
    reason: Callable[["Run"], str]
    caption: str
    frames: Callable[["Run"], Sequence[int]] = no_frames
    by_default: bool = True


def of_one_frame(draw: Callable[["Run", int], "Figure"]) -> Callable[["Run", int, Step], "Figure"]:
    """Return the function of a `Picture` that goes through no other frames."""
    return lambda run, frame, step: draw(run, frame)


@dataclass(frozen=True)
class Movie:
    """A kind of movie.

    Attributes
    ----------
    fits : callable
        ``fits(run)`` returns whether the run holds enough for it.
    scene : callable
        ``scene(run, frames)`` returns what moves.
    """

    fits: Callable[["Run"], bool]
    scene: Callable[["Run", Sequence[int]], "Scene"]


@dataclass(frozen=True)
class SpaceView:
    """The view in space of a report.

    Attributes
    ----------
    reason : callable
        ``reason(run)`` says why there is nothing to show; it is empty where there is.
    frames : callable
        ``frames(run)`` returns the frames that the view holds.
    data : callable
        ``data(run, step)`` returns what the page's script draws, see `scene3d`.
    """

    reason: Callable[["Run"], str]
    frames: Callable[["Run"], Sequence[int]]
    data: Callable[["Run", Step], dict[str, Any]]


@dataclass(frozen=True)
class Figures:
    """Everything that is drawn of the runs of a model.

    Attributes
    ----------
    pictures : mapping of str to Picture
        The kinds of pictures, in the order in which they are drawn.
    movies : mapping of str to Movie, optional
        The kinds of movies; the first that fits a run is made by default.
    view : SpaceView, optional
        The view in space of a report.
    """

    pictures: Mapping[str, Picture]
    movies: Mapping[str, Movie] = field(default_factory=dict)
    view: SpaceView | None = None


class PresentedModel(Protocol):
    """What readers of runs ask of a model.

    Attributes
    ----------
    highlights : sequence of str
        The diagnostics that are told first.
    """

    @property
    def highlights(self) -> Sequence[str]:
        """See the class."""

    @property
    def figures(self) -> Figures:
        """Return everything that is drawn of its runs."""

    def facts_of_run(self, run: "Run") -> Facts:
        """Say how large the problem of a run is, and what its frames hold."""

    def facts_of_checkpoint(self, file: "h5py.File") -> Facts:
        """Say how large the problem of an open checkpoint is."""


class PlainPresentation:
    """Presents a run by what its files say of themselves.

    It stands in for models that are not known here, and is a base for those without figures of
    their own.
    """

    highlights: Sequence[str] = ()

    @property
    def figures(self) -> Figures:
        """Return pictures of the diagnostics."""
        from hybrid_nbody.analysis.time_series import DIAGNOSTICS

        return DIAGNOSTICS

    def facts_of_run(self, run: "Run") -> Facts:
        """Name the fields of a frame and their shapes."""
        return [(name.rpartition("/")[2], _shape(run.shape(name)[1:])) for name in run.fields]

    def facts_of_checkpoint(self, file: "h5py.File") -> Facts:
        """Say nothing: what a checkpoint holds means something to its model alone."""
        return []


def _shape(shape: tuple[int, ...]) -> str:
    return f"{' x '.join(map(str, shape))} numbers a frame"


UNKNOWN = PlainPresentation()


def presented(models: Mapping[str, PresentedModel], name: str) -> PresentedModel:
    """Return the model of a run by its name, or what stands in for one that is not known."""
    return models.get(name, UNKNOWN)
