"""Scenes of movies of bodies: few with paths, many as dots, more on a grid, or on their map."""

from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm

from hybrid_nbody.analysis.look import Look
from hybrid_nbody.analysis.panels import (
    DOTS,
    FEW_BODIES,
    View,
    colour_norm,
    density_at,
    density_norm,
    limits_of,
    norm_of,
    round_values,
)
from hybrid_nbody.analysis.scenes import XY, Scene
from hybrid_nbody.analysis.style import BODY_COLOURS, label, scaled_units
from hybrid_nbody.files.run import Run
from hybrid_nbody.files.views import Array
from hybrid_nbody.nbody.figures.components import members_of, no_components, styles_of, width_of
from hybrid_nbody.nbody.figures.eyes import eye_of
from hybrid_nbody.nbody.figures.planes import images_of
from hybrid_nbody.nbody.figures.sample import positions_of, stride_of
from hybrid_nbody.nbody.figures.structure import ACTIVITY, draw_activity
from hybrid_nbody.nbody.figures.tracks import no_bodies

SAMPLED = 200_000
"""Positions in all sampled frames together from which the scales follow."""

OWN_COLOURS = "bodies have colours of their own here"

TAIL = 40
"""Length of the path behind each of a few bodies, in frames."""


class Bodies(Scene):
    """Bodies seen along an axis or from a camera."""

    def aim(self, samples: Sequence[int]) -> None:
        """Choose the part of space that is shown, from a few frames."""
        points = _some_points(self.run, samples)
        self.eye = eye_of(self.look, points, self.run.units("bodies/position"), self.frames)
        self.view = self.eye.frame(self.axes)

    def seen(self, frame: int) -> Array:
        """Return the positions of all bodies as they are seen: (N, 3)."""
        return self.eye.seen(self.run.positions(frame), frame)

    def seen_inside(self, frame: int) -> Array:
        """Return the positions of the bodies in view as they are seen: (M, 3)."""
        points = self.seen(frame)
        return points[self.view.contains(points)]


class FewBodies(Bodies):
    """Each body a dot of its own colour, with the last part of its path behind it.

    Bodies of several components have the colours of these.
    """

    def build(self, samples: Sequence[int]) -> list[Any]:
        self.refuse(OWN_COLOURS, "colormap", "range")
        self.aim(samples)
        self.tail: deque[Array] = deque(maxlen=TAIL)
        styles = styles_of(self.run)
        colours = [style.colour for style in styles]
        self.lines = [self.axes.plot([], [], color=colour, linewidth=1)[0] for colour in colours]
        self.dots = self.axes.scatter(
            [0.0] * len(colours), [0.0] * len(colours), s=40, c=colours, linewidths=0
        )
        if not no_components(self.run):
            _name_components(self.axes, {style.name: style.colour for style in styles})
        return [*self.lines, self.dots]

    def show(self, frame: int) -> None:
        self.tail.append(self.run.positions(frame))
        paths = self.eye.seen(np.stack(self.tail), frame)[..., :2] / 10.0**self.view.power
        for body, line in enumerate(self.lines):
            line.set_data(*paths[:, body].T)
        self.dots.set_offsets(paths[-1])


class ManyBodies(Bodies):
    """Each body a dot, coloured by the bodies per area around it."""

    def build(self, samples: Sequence[int]) -> list[Any]:
        self.aim(samples)
        norms = [density_norm(self.seen(frame), self.view, (XY,)) for frame in samples]
        self.norm = self.in_range(_common_norm(norms))
        self.dots = self.axes.scatter(
            [], [], s=_size(self.run), c=[], cmap=self.colormap, norm=self.norm, linewidths=0
        )
        self._bar(self.dots, _per_area(self.view))
        return [self.dots]

    def show(self, frame: int) -> None:
        points = self.seen_inside(frame)
        density = density_at(points, self.view, XY)
        order = np.argsort(density, kind="stable")  # the densest on top
        self.dots.set_offsets(points[order][:, :2] / 10.0**self.view.power)
        self.dots.set_array(density[order])


class ManyMoreBodies(Bodies):
    """Bodies counted on a grid: dots would hide one another."""

    def build(self, samples: Sequence[int]) -> list[Any]:
        self.aim(samples)
        norms = [norm_of([self._density(frame)]) for frame in samples]
        self.norm = self.in_range(_common_norm(norms))
        empty = np.ma.masked_array(np.zeros((2, 2)), mask=True)
        self.image = self.axes.imshow(
            empty, origin="lower", extent=self.view.extent(XY), cmap=self.colormap, norm=self.norm
        )
        self._bar(self.image, _per_area(self.view))
        return [self.image]

    def show(self, frame: int) -> None:
        self.image.set_data(np.ma.masked_less_equal(self._density(frame), 0).T)

    def _density(self, frame: int) -> Array:
        """Return the bodies per scaled area of all bodies in a frame: (CELLS, CELLS)."""
        seen = partial(self.eye.seen, frame=frame)
        images, _ = images_of(self.run, frame, self.view, (XY,), seen)
        return images[XY]


class Components(Bodies):
    """Each body a dot in the colour of its component; those that are wide at first lie below."""

    def build(self, samples: Sequence[int]) -> list[Any]:
        self.refuse(OWN_COLOURS, "colormap", "range")
        self.aim(samples)
        members = members_of(self.run)
        palette = dict(zip(members, cycle(BODY_COLOURS), strict=False))
        _name_components(self.axes, palette)
        points = self.seen(samples[0])
        below = sorted(members, key=lambda name: width_of(points[members[name]]), reverse=True)
        self.members = {name: members[name] for name in below}
        self.dots = [
            self.axes.scatter([], [], s=_size(self.run), c=palette[name], linewidths=0)
            for name in below
        ]
        return self.dots

    def show(self, frame: int) -> None:
        points = self.seen(frame)
        for dots, rows in zip(self.dots, self.members.values(), strict=True):
            own = points[rows]
            shown = own[self.view.contains(own)]
            dots.set_offsets(shown[:, :2] / 10.0**self.view.power)


class Activity(Scene):
    """The activity map, the bodies over it."""

    def build(self, samples: Sequence[int]) -> list[Any]:
        self.refuse("an activity map is of the x-y plane", "plane", "camera")
        maps = [self.run.field(ACTIVITY, frame) for frame in samples]
        norm = self.in_range(colour_norm(maps))
        points = positions_of(self.run, samples[0])
        self.image, self.dots = draw_activity(
            self.axes, maps[0], points, self.run.units("bodies/position"), norm, self.colormap
        )
        self._bar(
            self.image, label("activity", self.run.units(ACTIVITY)), ticks=round_values(norm)
        ).minorticks_off()
        return [self.image, self.dots]

    def show(self, frame: int) -> None:
        self.image.set_data(self.run.field(ACTIVITY, frame))
        if self.run.number_of_bodies <= DOTS:
            self.dots.set_offsets(self.run.positions(frame)[:, :2])


def bodies_scene(run: Run, frames: Sequence[int], look: Look) -> Scene:
    """Return the scene for the number of bodies."""
    if run.number_of_bodies <= FEW_BODIES:
        return FewBodies(run, frames, look)
    if run.number_of_bodies <= DOTS:
        return ManyBodies(run, frames, look)
    return ManyMoreBodies(run, frames, look)


def has_bodies(run: Run) -> bool:
    """Return whether there is a frame of bodies."""
    return not no_bodies(run)


def has_components(run: Run) -> bool:
    """Return whether there is a frame of bodies of several components, not too many for dots."""
    return run.number_of_bodies <= DOTS and not no_components(run)


def has_activity(run: Run) -> bool:
    """Return whether there is a frame of an activity map."""
    return has_bodies(run) and ACTIVITY in run.fields


def _size(run: Run) -> float:
    """Return the area of a dot, in square points."""
    return float(np.clip(40_000 / run.number_of_bodies, 0.5, 12.0))


def _name_components(axes: Axes, colours: Mapping[str, str]) -> None:
    """Add a legend of components below the panel; empty names are left out."""
    for name, colour in colours.items():
        if name:
            axes.scatter([], [], s=40, c=colour, linewidths=0, label=name)
    axes.figure.legend(loc="outside lower center", ncols=4)


def _some_points(run: Run, samples: Sequence[int]) -> Array:
    """Return positions in all the samples, of a part of the bodies: (M, 3)."""
    drawn = run.number_of_bodies // stride_of(run)
    stride = max(1, drawn * len(samples) // SAMPLED)
    # copies, because a view would keep all bodies in memory
    return np.concatenate([positions_of(run, frame)[::stride].copy() for frame in samples])


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
