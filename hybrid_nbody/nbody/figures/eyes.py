"""From where a movie sees bodies: along an axis, or from a camera that may turn."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from hybrid_nbody.analysis.look import Camera, Look, Plane
from hybrid_nbody.analysis.panels import View, frame_plane, view_of
from hybrid_nbody.analysis.scenes import XY
from hybrid_nbody.analysis.style import label
from hybrid_nbody.files.views import Array


class Eye:
    """Sees bodies along an axis of space.

    Attributes
    ----------
    view : View
        The cube of space that is shown, after `seen`.
    """

    def __init__(self, points: Array, units: str, plane: Plane) -> None:
        self.order = [*plane, 3 - sum(plane)]
        self.names = tuple("xyz"[axis] for axis in plane)
        self.view = view_of(points[:, self.order], units)

    def seen(self, points: Array, frame: int) -> Array:
        """Return positions (N, 3) across, up and towards the eye, in the units of length."""
        return points[..., self.order]

    def frame(self, axes: Axes) -> View:
        """Set limits, labels and equal scales of a panel, and return the view."""
        frame_plane(axes, self.view, XY)
        axes.set_xlabel(label(self.names[0], self.view.units, self.view.power))
        axes.set_ylabel(label(self.names[1], self.view.units, self.view.power))
        return self.view


class TurningEye(Eye):
    """Sees bodies from a camera, about the middle of what is shown."""

    def __init__(self, points: Array, units: str, camera: Camera, frames: Sequence[int]) -> None:
        self.camera = camera
        self.names = ("across", "up")
        self.shares = dict(zip(frames, np.linspace(0, 1, len(frames)).tolist(), strict=True))
        cube = view_of(points, units)
        self.centre = cube.centre
        shown = points[cube.contains(points)]
        radius = np.linalg.norm(shown - cube.centre, axis=1).max(initial=0.0)
        self.view = View(np.zeros(3), 1.05 * radius or 1.0, cube.power, units)

    def seen(self, points: Array, frame: int) -> Array:
        turned: Array = (points - self.centre) @ self.camera.axes(self.shares[frame])
        return turned


def eye_of(look: Look, points: Array, units: str, frames: Sequence[int]) -> Eye:
    """Return the eye of a movie.

    Parameters
    ----------
    look : Look
        Its plane or camera; from above by default.
    points : ndarray
        (N, 3), positions from which the shown part of space follows.
    units : str
        The units of length.
    frames : sequence of int
        The frames of the movie.
    """
    if look.camera is not None:
        return TurningEye(points, units, look.camera, frames)
    return Eye(points, units, look.plane or XY)
