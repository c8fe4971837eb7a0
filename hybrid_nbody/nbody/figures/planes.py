"""The bodies of a frame in planes: dots, or images of their density where they are many."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize

from hybrid_nbody.analysis.panels import (
    CELLS,
    DOTS,
    FEW_BODIES,
    View,
    density_norm,
    draw_bodies,
    draw_density,
    norm_of,
    surface_density,
    view_of,
)
from hybrid_nbody.analysis.style import BodyStyle
from hybrid_nbody.files.run import Run
from hybrid_nbody.files.views import Array
from hybrid_nbody.nbody.figures.components import no_components, styles_of
from hybrid_nbody.nbody.figures.sample import pieces_of_positions

Plane = tuple[int, int]
"""Two axes of space."""


@dataclass(frozen=True)
class Planes:
    """What planes show of a frame.

    Attributes
    ----------
    points : ndarray
        (M, 3) float64 or float32, the bodies that figures take.
    view : View
        The cube that is shown.
    images : mapping
        The density in each plane, see `images_of`; none where bodies are dots.
    norm : Normalize or None
        From bodies per area to colours; None for a few bodies.
    outside : int
        Bodies that are out of view.
    styles : sequence of BodyStyle, optional
        Of a few bodies of several components.
    """

    points: Array
    view: View
    images: Mapping[Plane, Array]
    norm: Normalize | None
    outside: int
    styles: Sequence[BodyStyle] = ()

    def draw(self, axes: Axes, plane: Plane) -> Any:
        """Draw a plane, and return the artist for a colour bar, or None."""
        if plane in self.images:
            return draw_density(axes, self.images[plane], self.view, plane, self.norm)
        return draw_bodies(axes, self.points, self.view, plane, self.norm, self.styles)


def planes_of(run: Run, frame: int, points: Array, planes: Sequence[Plane]) -> Planes:
    """Return what planes show of a frame, of which figures take some `points` (M, 3)."""
    view = view_of(points, run.units("bodies/position"))
    if run.number_of_bodies <= DOTS:
        outside = len(points) - int(view.contains(points).sum())
        told_apart = run.number_of_bodies <= FEW_BODIES and not no_components(run)
        styles = styles_of(run) if told_apart else ()
        return Planes(points, view, {}, density_norm(points, view, planes), outside, styles)
    images, outside = images_of(run, frame, view, planes)
    return Planes(points, view, images, norm_of(list(images.values())), outside)


def as_stored(points: Array) -> Array:
    """Return positions as they are."""
    return points


def images_of(
    run: Run,
    frame: int,
    view: View,
    planes: Sequence[Plane],
    seen: Callable[[Array], Array] = as_stored,
) -> tuple[dict[Plane, Array], int]:
    """Count all bodies of a frame on grids, a piece of the frame at a time.

    Parameters
    ----------
    run : Run
        An open run.
    frame : int
        Negative frames count from the end.
    view : View
        The cube that is shown.
    planes : sequence of tuple
        Two axes of space each.
    seen : callable, optional
        From positions (M, 3) to those whose axes `view` and `planes` mean.

    Returns
    -------
    images : dict
        For each plane (CELLS, CELLS) float64, bodies per scaled area.
    outside : int
        Bodies that are out of view.
    """
    images = {plane: np.zeros((CELLS, CELLS)) for plane in planes}
    outside = 0
    for points in pieces_of_positions(run, frame):
        shown = seen(points)
        shown = shown[view.contains(shown)]
        outside += len(points) - len(shown)
        for plane, image in images.items():
            image += surface_density(shown, view, plane)[0]
    return images, outside
