"""What a movie shows: each scene draws its axes once, and then only what moves.

The scale of colours and the cube of space stay the same for the whole movie. They come from a few
frames, evenly apart.
"""

from collections import deque

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from hybrid_nbody.analysis.fluid_panels import colour_norm, draw_plane, round_values
from hybrid_nbody.analysis.panels import (
    DOTS,
    FEW_BODIES,
    View,
    density_at,
    density_norm,
    frame_plane,
    surface_density,
)
from hybrid_nbody.analysis.panels import view_of as view_of_points
from hybrid_nbody.analysis.structure_figures import ACTIVITY, draw_activity
from hybrid_nbody.analysis.style import BODY_COLOURS, DENSITY_MAP, label, plain, scaled_units
from hybrid_nbody.analysis.volume import DENSITY, column_along_z, slice_of, volume_of
from hybrid_nbody.errors import InputError

SIZE = (6.4, 5.6)
DPI = 120
"""Inches and dots an inch: 768 x 672 pixels. Encoders want even numbers."""

SAMPLES = 12
SAMPLED = 200_000
"""Frames, and numbers of all of them together, that the scales are chosen from."""

TAIL = 40
"""Frames of the path behind each of a few bodies."""

XY = (0, 1)


class Scene:
    """A figure of which some artists move. Subclasses draw in `build` and move in `show`.

    Parameters
    ----------
    run : Run
        An open run.
    frames : sequence of int
        The frames that will be shown, in this order.

    Attributes
    ----------
    figure : matplotlib.figure.Figure
        Its canvas holds the pixels.
    """

    def __init__(self, run, frames):
        self.run = run
        self.frames = frames
        self.figure = Figure(figsize=SIZE, dpi=DPI, layout="constrained")
        FigureCanvasAgg(self.figure)
        self.axes = self.figure.subplots()
        self.times = run.time
        self.moving = [*self.build(samples_of(frames)), self._clock()]
        self._still = None

    def build(self, samples) -> list:
        """Draw the axes and what stands still.

        Parameters
        ----------
        samples : list of int
            Some of the frames, from which the scales of space and of colours follow; these then
            hold for all.

        Returns
        -------
        list of matplotlib.artist.Artist
            What moves, in the order in which it is drawn.
        """
        raise NotImplementedError

    def show(self, frame) -> None:
        """Move the artists to a frame, an index into the run's frames."""
        raise NotImplementedError

    def _clock(self):
        self.axes.set_title(plain(self.run.title) or " ", loc="left")
        return self.axes.text(1, 1.012, "", transform=self.axes.transAxes, ha="right", va="bottom")

    def render(self, frame) -> np.ndarray:
        """Return the pixels of a frame: (height, width, 4) uint8, valid until the next call."""
        canvas = self.figure.canvas
        if self._still is None:
            self._draw_still()
        self.show(frame)
        self.moving[-1].set_text(f"time {self.times[frame]:.4g}")
        canvas.restore_region(self._still)
        for artist in self.moving:
            self.axes.draw_artist(artist)
        return np.asarray(canvas.buffer_rgba())

    def _draw_still(self):
        for artist in self.moving:
            artist.set_animated(True)
        self.figure.canvas.draw()
        self.figure.set_layout_engine("none")
        self._still = self.figure.canvas.copy_from_bbox(self.figure.bbox)

    def _bar(self, drawn, name, **options):
        return self.figure.colorbar(drawn, ax=self.axes, label=name, shrink=0.86, **options)


class FewBodies(Scene):
    """Each body a dot of its own colour, with the last part of its path behind it."""

    def build(self, samples):
        self.view = _view(self.run, samples)
        self.tail = deque(maxlen=TAIL)
        frame_plane(self.axes, self.view, XY)
        colours = [
            BODY_COLOURS[body % len(BODY_COLOURS)] for body in range(self.run.number_of_bodies)
        ]
        self.lines = [self.axes.plot([], [], color=colour, linewidth=1)[0] for colour in colours]
        self.dots = self.axes.scatter(
            [0.0] * len(colours), [0.0] * len(colours), s=40, c=colours, linewidths=0
        )
        return [*self.lines, self.dots]

    def show(self, frame):
        points = self.run.positions(frame)[:, :2] / 10.0**self.view.power
        self.tail.append(points)
        paths = np.stack(self.tail)
        for body, line in enumerate(self.lines):
            line.set_data(*paths[:, body].T)
        self.dots.set_offsets(points)


class ManyBodies(Scene):
    """Each body a dot, coloured by the bodies per area around it."""

    def build(self, samples):
        self.view = _view(self.run, samples)
        frame_plane(self.axes, self.view, XY)
        self.norm = _common_norm(self.run, self.view, samples)
        size = float(np.clip(40_000 / self.run.number_of_bodies, 0.5, 12.0))
        self.dots = self.axes.scatter(
            [], [], s=size, c=[], cmap=DENSITY_MAP, norm=self.norm, linewidths=0
        )
        self._bar(self.dots, _per_area(self.view))
        return [self.dots]

    def show(self, frame):
        points = self.run.positions(frame)
        points = points[self.view.contains(points)]
        density = density_at(points, self.view, XY)
        order = np.argsort(density, kind="stable")  # the densest on top
        self.dots.set_offsets(points[order][:, :2] / 10.0**self.view.power)
        self.dots.set_array(density[order])


class ManyMoreBodies(ManyBodies):
    """Bodies counted on a grid: dots would hide one another."""

    def build(self, samples):
        self.view = _view(self.run, samples)
        frame_plane(self.axes, self.view, XY)
        self.norm = _common_norm(self.run, self.view, samples)
        empty = np.ma.masked_all((2, 2))
        self.image = self.axes.imshow(
            empty, origin="lower", extent=self.view.extent(XY), cmap=DENSITY_MAP, norm=self.norm
        )
        self._bar(self.image, _per_area(self.view))
        return [self.image]

    def show(self, frame):
        counts, _, _ = surface_density(self.run.positions(frame), self.view, XY)
        self.image.set_data(np.ma.masked_less_equal(counts, 0).T)


class Activity(Scene):
    """The activity map, the bodies over it."""

    def build(self, samples):
        maps = [self.run.field(ACTIVITY, frame) for frame in samples]
        norm = colour_norm(maps)
        points = self.run.positions(samples[0])
        self.image, self.dots = draw_activity(
            self.axes, maps[0], points, self.run.units("bodies/position"), norm
        )
        self._bar(
            self.image, label("activity", self.run.units(ACTIVITY)), ticks=round_values(norm)
        ).minorticks_off()
        return [self.image, self.dots]

    def show(self, frame):
        self.image.set_data(self.run.field(ACTIVITY, frame))
        if self.run.number_of_bodies <= DOTS:
            self.dots.set_offsets(self.run.positions(frame)[:, :2])


class Fluid(Scene):
    """The density seen through the box along z; of frames that hold a few planes, the middle one of them."""

    def build(self, samples):
        self.volume = volume_of(self.run)
        planes = [self._plane(frame) for frame in samples]
        self.norm = colour_norm(planes)
        self.image = draw_plane(self.axes, planes[0], self.volume, XY, self.norm)
        name, units = (
            ("column density", "density length") if self.volume.evenly else ("density", "density")
        )
        self._bar(self.image, label(name, units), ticks=round_values(self.norm)).minorticks_off()
        return [self.image]

    def _plane(self, frame):
        if self.volume.evenly:
            return column_along_z(self.run, frame)
        return slice_of(self.run, DENSITY, frame, 2, self.volume.middle(2))

    def show(self, frame):
        self.image.set_data(self._plane(frame))


def samples_of(frames, most=SAMPLES) -> list[int]:
    """Return some of the frames, evenly apart, the first and the last among them."""
    places = np.unique(np.linspace(0, len(frames) - 1, most).round().astype(int))
    return [frames[place] for place in places]


def kinds_of(run) -> list[str]:
    """Return the kinds of movies that a run holds enough for, the one made by default first."""
    bodies = run.number_of_frames > 0 and run.number_of_bodies > 0
    found = ["activity"] if bodies and ACTIVITY in run.fields else []
    found += ["bodies"] if bodies else []
    return found + (["fluid"] if run.number_of_frames and DENSITY in run.fields else [])


def scene_of(run, kind, frames) -> Scene:
    """Return the scene of a kind.

    Raises
    ------
    InputError
        The run does not hold enough for it.
    """
    known = kinds_of(run)
    if kind not in known:
        there = f"there is {', '.join(known)}" if known else "there are no frames yet"
        raise InputError(
            f"{run.path}: no movie of kind '{kind}' in this run of model '{run.model}'; {there}"
        )
    if kind != "bodies":
        return {"activity": Activity, "fluid": Fluid}[kind](run, frames)
    return _bodies_scene(run.number_of_bodies)(run, frames)


def _bodies_scene(number):
    if number <= FEW_BODIES:
        return FewBodies
    return ManyBodies if number <= DOTS else ManyMoreBodies


def _view(run, samples) -> View:
    """Return the cube that shows the bodies in all the samples; of many bodies every so many are looked at."""
    stride = max(1, run.number_of_bodies * len(samples) // SAMPLED)
    points = np.concatenate(
        [run.positions(frame)[::stride].copy() for frame in samples]
    )  # a view would keep it all
    return view_of_points(points, run.units("bodies/position"))


def _common_norm(run, view, samples):
    norms = [density_norm(run.positions(frame), view, (XY,)) for frame in samples]
    norms = [norm for norm in norms if norm is not None]
    if not norms:
        return LogNorm(1.0, 100.0)
    highest = max(norm.vmax for norm in norms)
    return LogNorm(min(min(norm.vmin for norm in norms), highest / 100), highest)


def _per_area(view):
    length = scaled_units(view.units, view.power)
    if not length:
        return "bodies per area"
    return (
        f"bodies per area (1 / ({length})²)"
        if " " in length
        else f"bodies per area (1 / {length}²)"
    )
