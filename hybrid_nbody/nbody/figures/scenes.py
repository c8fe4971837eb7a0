"""Scenes of movies of bodies: few with paths, many as dots, more on a grid, or on their map."""

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.colors import LogNorm

from hybrid_nbody.analysis.panels import (
    DOTS,
    FEW_BODIES,
    View,
    colour_norm,
    density_at,
    density_norm,
    frame_plane,
    limits_of,
    norm_of,
    round_values,
    view_of,
)
from hybrid_nbody.analysis.scenes import XY, Scene
from hybrid_nbody.analysis.style import BODY_COLOURS, DENSITY_MAP, label, scaled_units
from hybrid_nbody.files.run import Run
from hybrid_nbody.files.views import Array
from hybrid_nbody.nbody.figures.planes import images_of
from hybrid_nbody.nbody.figures.sample import positions_of, stride_of
from hybrid_nbody.nbody.figures.structure import ACTIVITY, draw_activity
from hybrid_nbody.nbody.figures.tracks import no_bodies

SAMPLED = 200_000
"""Positions in all sampled frames together from which the scales follow."""

TAIL = 40
"""Length of the path behind each of a few bodies, in frames."""


class FewBodies(Scene):
    """Each body a dot of its own colour, with the last part of its path behind it."""

    def build(self, samples: Sequence[int]) -> list[Any]:
        self.view = _view(self.run, samples)
        self.tail: deque[Array] = deque(maxlen=TAIL)
        frame_plane(self.axes, self.view, XY)
        colours = [
            BODY_COLOURS[body % len(BODY_COLOURS)] for body in range(self.run.number_of_bodies)
        ]
        self.lines = [self.axes.plot([], [], color=colour, linewidth=1)[0] for colour in colours]
        self.dots = self.axes.scatter(
            [0.0] * len(colours), [0.0] * len(colours), s=40, c=colours, linewidths=0
        )
        return [*self.lines, self.dots]

    def show(self, frame: int) -> None:
        points = self.run.positions(frame)[:, :2] / 10.0**self.view.power
        self.tail.append(points)
        paths = np.stack(self.tail)
        for body, line in enumerate(self.lines):
            line.set_data(*paths[:, body].T)
        self.dots.set_offsets(points)


class ManyBodies(Scene):
    """Each body a dot, coloured by the bodies per area around it."""

    def build(self, samples: Sequence[int]) -> list[Any]:
        self.view = _view(self.run, samples)
        frame_plane(self.axes, self.view, XY)
        self.norm = _common_norm(
            [density_norm(self.run.positions(frame), self.view, (XY,)) for frame in samples]
        )
        size = float(np.clip(40_000 / self.run.number_of_bodies, 0.5, 12.0))
        self.dots = self.axes.scatter(
            [], [], s=size, c=[], cmap=DENSITY_MAP, norm=self.norm, linewidths=0
        )
        self._bar(self.dots, _per_area(self.view))
        return [self.dots]

    def show(self, frame: int) -> None:
        points = self.run.positions(frame)
        points = points[self.view.contains(points)]
        density = density_at(points, self.view, XY)
        order = np.argsort(density, kind="stable")  # the densest on top
        self.dots.set_offsets(points[order][:, :2] / 10.0**self.view.power)
        self.dots.set_array(density[order])


class ManyMoreBodies(ManyBodies):
    """Bodies counted on a grid: dots would hide one another."""

    def build(self, samples: Sequence[int]) -> list[Any]:
        self.view = _view(self.run, samples)
        frame_plane(self.axes, self.view, XY)
        self.norm = _common_norm([norm_of([self._density(frame)]) for frame in samples])
        empty = np.ma.masked_array(np.zeros((2, 2)), mask=True)
        self.image = self.axes.imshow(
            empty, origin="lower", extent=self.view.extent(XY), cmap=DENSITY_MAP, norm=self.norm
        )
        self._bar(self.image, _per_area(self.view))
        return [self.image]

    def show(self, frame: int) -> None:
        self.image.set_data(np.ma.masked_less_equal(self._density(frame), 0).T)

    def _density(self, frame: int) -> Array:
        """Return the bodies per scaled area of all bodies in a frame: (CELLS, CELLS)."""
        images, _ = images_of(self.run, frame, self.view, (XY,))
        return images[XY]


class Activity(Scene):
    """The activity map, the bodies over it."""

    def build(self, samples: Sequence[int]) -> list[Any]:
        maps = [self.run.field(ACTIVITY, frame) for frame in samples]
        norm = colour_norm(maps)
        points = positions_of(self.run, samples[0])
        self.image, self.dots = draw_activity(
            self.axes, maps[0], points, self.run.units("bodies/position"), norm
        )
        self._bar(
            self.image, label("activity", self.run.units(ACTIVITY)), ticks=round_values(norm)
        ).minorticks_off()
        return [self.image, self.dots]

    def show(self, frame: int) -> None:
        self.image.set_data(self.run.field(ACTIVITY, frame))
        if self.run.number_of_bodies <= DOTS:
            self.dots.set_offsets(self.run.positions(frame)[:, :2])


def bodies_scene(run: Run, frames: Sequence[int]) -> Scene:
    """Return the scene for the number of bodies."""
    if run.number_of_bodies <= FEW_BODIES:
        return FewBodies(run, frames)
    if run.number_of_bodies <= DOTS:
        return ManyBodies(run, frames)
    return ManyMoreBodies(run, frames)


def has_bodies(run: Run) -> bool:
    """Return whether there is a frame of bodies."""
    return not no_bodies(run)


def has_activity(run: Run) -> bool:
    """Return whether there is a frame of an activity map."""
    return has_bodies(run) and ACTIVITY in run.fields


def _view(run: Run, samples: Sequence[int]) -> View:
    """Return the cube that shows the bodies in all the samples, from a part of them."""
    drawn = run.number_of_bodies // stride_of(run)
    stride = max(1, drawn * len(samples) // SAMPLED)
    # copies, because a view would keep all bodies in memory
    points = np.concatenate([positions_of(run, frame)[::stride].copy() for frame in samples])
    return view_of(points, run.units("bodies/position"))


def _common_norm(norms: Sequence[LogNorm | None]) -> LogNorm:
    """Return the scale of colours of all sampled frames."""
    limits = [limits_of(norm) for norm in norms if norm is not None]
    if not limits:
        return LogNorm(1.0, 100.0)
    lowest = min(low for low, _ in limits)
    highest = max(high for _, high in limits)
    return LogNorm(min(lowest, highest / 100), highest)


def _per_area(view: View) -> str:
    length = scaled_units(view.units, view.power)
    if not length:
        return "bodies per area"
    area = f"({length})²" if " " in length else f"{length}²"
    return f"bodies per area (1 / {area})"
