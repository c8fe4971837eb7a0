"""The presentation of a model's runs: pictures, movies, a view in space, and facts."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from hybrid_nbody.errors import InputError

if TYPE_CHECKING:  # `info` must not wait for matplotlib
    import h5py
    from matplotlib.figure import Figure

    from hybrid_nbody.analysis.look import Look
    from hybrid_nbody.analysis.scenes import Scene
    from hybrid_nbody.files.run import Run
    from hybrid_nbody.files.views import Array
    from hybrid_nbody.progress import Step

Say = Callable[[str], None]
"""Takes a line for the user, such as why something is left out."""

Facts = list[tuple[str, str]]
"""Names and texts, one line each."""


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
        ``reason(run)`` returns why the run has not enough for it; empty if it has.
    caption : str
        Text below it in a report.
    frames : callable, optional
        ``frames(run)`` returns the frames that drawing reads, if they are many.
    by_default : bool, optional
        Whether it is drawn if no kind is named.
    """

    draw: Callable[["Run", int, "Step"], "Figure"]
    reason: Callable[["Run"], str]
    caption: str
    frames: Callable[["Run"], Sequence[int]] = no_frames
    by_default: bool = True


def of_one_frame(
    draw: Callable[["Run", int], "Figure"],
) -> Callable[["Run", int, "Step"], "Figure"]:
    """Return the `draw` of a picture that reads one frame."""
    return lambda run, frame, step: draw(run, frame)


@dataclass(frozen=True)
class Movie:
    """A kind of movie.

    Attributes
    ----------
    fits : callable
        ``fits(run)`` returns whether the run holds enough for it.
    scene : callable
        ``scene(run, frames, look)`` returns the scene.
    """

    fits: Callable[["Run"], bool]
    scene: Callable[["Run", Sequence[int], "Look"], "Scene"]


@dataclass(frozen=True)
class SpaceView:
    """The view in space of a report.

    Attributes
    ----------
    reason : callable
        ``reason(run)`` returns why there is nothing to show; empty if there is.
    frames : callable
        ``frames(run)`` returns the frames that the view holds.
    data : callable
        ``data(run, step)`` returns what the page's script draws, see `scene3d`.
    """

    reason: Callable[["Run"], str]
    frames: Callable[["Run"], Sequence[int]]
    data: Callable[["Run", "Step"], dict[str, Any]]


@dataclass(frozen=True)
class WindowFrame:
    """A frame of a window.

    Attributes
    ----------
    time : float
    fields : mapping of str to ndarray
        The fields of a model by their names in files.
    """

    time: float
    fields: Mapping[str, "Array"]


Window = Callable[[Iterator[WindowFrame], str], None]
"""``window(frames, title)`` shows frames until it is closed, or there are no more."""


def no_more(run: "Run") -> Mapping[str, "Figures"]:
    """Return no figures: the run has no fields but those of its model."""
    return {}


@dataclass(frozen=True)
class Figures:
    """All figures of the runs of a model.

    Attributes
    ----------
    pictures : mapping of str to Picture
        The kinds of pictures, in the order in which they are drawn.
    movies : mapping of str to Movie, optional
        The kinds of movies; the first that fits a run is made by default.
    view : SpaceView, optional
        The view in space of a report.
    window : Window, optional
        A window that shows a run while it is computed.
    fields : mapping of str to Figures, optional
        The figures that show another field than usual, by the field's name.
    fields_in : callable, optional
        ``fields_in(run)`` returns the figures of fields that only this run has, by their names.
    """

    pictures: Mapping[str, Picture]
    movies: Mapping[str, Movie] = field(default_factory=dict)
    view: SpaceView | None = None
    window: Window | None = None
    fields: Mapping[str, "Figures"] = field(default_factory=dict)
    fields_in: Callable[["Run"], Mapping[str, "Figures"]] = no_more


def figures_of_field(run: "Run", figures: Figures, name: str | None) -> Figures:
    """Return the figures that show a field; those that are usual if none is named.

    Raises
    ------
    InputError
        The model of the run has no figures of this field.
    """
    if name is None:
        return figures
    known = {**figures.fields, **figures.fields_in(run)}
    if name not in known:
        there = f"there are {', '.join(known)}" if known else "it has no fields"
        raise InputError(
            f"{run.path}: no pictures of field '{name}' of a run of model '{run.model}'; {there}"
        )
    return known[name]


@dataclass(frozen=True)
class StoredField:
    """The data sets of a field that is exported.

    Attributes
    ----------
    in_frames : str
        Its name in the frames of a trajectory.
    in_checkpoint : tuple of str
        Its name in a checkpoint; several if each component has a data set of its own.
    """

    in_frames: str
    in_checkpoint: tuple[str, ...]


@dataclass(frozen=True)
class ComputedField:
    """A field on a grid that follows from what a run stores.

    Attributes
    ----------
    dtype : str
    units : str
    part : callable
        ``part(frame, rows)`` returns the stored planes of a slice: (planes, ny, nx).
    """

    dtype: str
    units: str
    part: Callable[[int, slice], "Array"]


def nothing_computed(run: "Run") -> Mapping[str, ComputedField]:
    """Return no fields: frames hold all that is exported."""
    return {}


def nothing_else(run: "Run") -> Mapping[str, str]:
    """Return no data sets: all runs of the model have the same."""
    return {}


@dataclass(frozen=True)
class Exports:
    """The data of a model that are exported, by their names in an export.

    Attributes
    ----------
    fields : mapping of str to StoredField
        Fields of bodies, or fields on a grid.
    constants : mapping of str to str
        Data sets that all frames share, by their names in trajectories and checkpoints.
    maps : mapping of str to str
        Maps in the frames of a trajectory, if a run has them: plane arrays beside the fields.
    on_grid : bool
        Whether the fields lie on a grid (z, y, x).
    stored_in : callable
        ``stored_in(run)`` returns further data sets of the frames of one run, by their names.
    computed : callable
        ``computed(run)`` returns fields of a run that no data set holds, by their names.
    """

    fields: Mapping[str, StoredField] = field(default_factory=dict)
    constants: Mapping[str, str] = field(default_factory=dict)
    maps: Mapping[str, str] = field(default_factory=dict)
    on_grid: bool = False
    stored_in: Callable[["Run"], Mapping[str, str]] = nothing_else
    computed: Callable[["Run"], Mapping[str, ComputedField]] = nothing_computed


class PresentedModel(Protocol):
    """The part of a model that readers of its runs need.

    Attributes
    ----------
    highlights : sequence of str
        Names of the diagnostics that come first.
    """

    @property
    def highlights(self) -> Sequence[str]:
        """See the class."""

    @property
    def figures(self) -> Figures:
        """Return all figures of its runs."""

    @property
    def exports(self) -> Exports:
        """Return what is exported of its runs."""

    def facts_of_run(self, run: "Run") -> Facts:
        """Return facts on the size of a run and the contents of its frames."""

    def facts_of_checkpoint(self, file: "h5py.File") -> Facts:
        """Return facts on the size of an open checkpoint."""


class PlainPresentation:
    """Presents a run by what its files say of themselves.

    It stands in for models that are not known here, and is a base for those without figures of
    their own.
    """

    highlights: Sequence[str] = ()
    exports = Exports()

    @property
    def figures(self) -> Figures:
        """Return pictures of the diagnostics."""
        from hybrid_nbody.analysis.time_series import DIAGNOSTICS

        return DIAGNOSTICS

    def facts_of_run(self, run: "Run") -> Facts:
        """Return the fields of a frame and their shapes."""
        return [(name.rpartition("/")[2], _shape(run.shape(name)[1:])) for name in run.fields]

    def facts_of_checkpoint(self, file: "h5py.File") -> Facts:
        """Return nothing: only its model understands a checkpoint."""
        return []


def _shape(shape: tuple[int, ...]) -> str:
    return f"{' x '.join(map(str, shape))} numbers a frame"


UNKNOWN = PlainPresentation()


def presented(models: Mapping[str, PresentedModel], name: str) -> PresentedModel:
    """Return the model of a name, or a substitute for an unknown one."""
    return models.get(name, UNKNOWN)
