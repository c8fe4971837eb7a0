"""Obstacles of a run at the time of a frame, as pictures, movies and exports show them.

A run stores its configuration, from which its obstacles are made again by the functions that the
run itself uses. Those that are functions of Python are left out: reading a file runs no program.
"""

import warnings
from collections.abc import Sequence

import numpy as np
from pydantic import ValidationError
from scipy.ndimage import zoom

from hybrid_nbody.errors import InputError
from hybrid_nbody.files.cells import Volume
from hybrid_nbody.files.run import Run
from hybrid_nbody.files.views import Array
from hybrid_nbody.fluid.config import FluidConfig
from hybrid_nbody.fluid.config_boundary import kinds_of
from hybrid_nbody.fluid.config_obstacles import ObstacleSection, obstacles_of
from hybrid_nbody.fluid.obstacles import Obstacle
from hybrid_nbody.fluid.obstacles.images import CLOSED, Image, Periodic, images_of
from hybrid_nbody.fluid.obstacles.openings import openings

PIXELS = 384
"""Points along the longest edge of a plane at which the distance from obstacles is computed."""

POINTS = 48
"""Points along the longest edge of the box, where the box is looked through."""


class Solids:
    """The obstacles of a run.

    Parameters
    ----------
    run : Run
        An open run of a fluid.

    Attributes
    ----------
    obstacles : tuple of Obstacle
        Empty if there are none, or their files are gone.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.obstacles: tuple[Obstacle, ...] = ()
        self.cells = (1, 1, 1)
        self.periodic: Periodic = CLOSED
        if run.config.get("obstacles"):
            self.obstacles = self._read()

    @property
    def moves(self) -> bool:
        """Return whether one of them does."""
        return any(obstacle.moves for obstacle in self.obstacles)

    def __bool__(self) -> bool:
        return bool(self.obstacles)

    def in_plane(self, volume: Volume, frame: int, axis: int, position: float) -> Array:
        """Return signed distances from the obstacles in a plane, negative within.

        Parameters
        ----------
        volume : Volume
        frame : int
        axis : int
            The axis across the plane.
        position : float
            The coordinate of the plane along it.

        Returns
        -------
        ndarray
            The other two axes, the later one first, at most `PIXELS` points along each.
        """
        grid = _points(volume, PIXELS)
        grid[axis] = np.array([position])
        return np.squeeze(self._distances(grid, frame), axis=2 - axis)

    def cells_in_plane(self, volume: Volume, frame: int, axis: int, index: int) -> Array:
        """Return whether the centre of each stored cell of a plane is within an obstacle."""
        grid = [volume.centres(along) for along in range(3)]
        grid[axis] = grid[axis][index : index + 1]
        return np.squeeze(self._distances(grid, frame), axis=2 - axis) < 0.0

    def through(self, volume: Volume, frame: int, axis: int) -> Array:
        """Return the least signed distance along an axis: negative where an obstacle is seen.

        It is computed at `POINTS` points along the longest edge and interpolated: the other two
        axes, the later one first, have at most `PIXELS` points.
        """
        least = self._distances(_points(volume, POINTS), frame).min(axis=2 - axis)
        fine = zoom(least, PIXELS // POINTS, order=1, mode="nearest", grid_mode=True)
        return np.asarray(fine)

    def share(self, frame: int, rows: slice) -> Array:
        """Return the solid share of whole planes of cells: (planes, ny, nx) float32, 0 to 1."""
        first, last = rows.start, rows.stop
        time = float(self.run.time[frame])
        found = openings(self.obstacles, self.cells, first, last - first, time, self.periodic)
        return (1.0 - found.volume[1:-1, 1:-1, 1:-1]).astype(np.float32)

    def _distances(self, grid: Sequence[Array], frame: int) -> Array:
        """Return signed distances at the points of a grid, given its coordinates x, y and z."""
        z, y, x = np.meshgrid(*reversed(grid), indexing="ij")
        points = np.stack([x, y, z], axis=-1).reshape(-1, 3)
        found = np.min([image.distance(points) for image in self._images(frame)], axis=0)
        return np.asarray(found.reshape(x.shape))

    def _images(self, frame: int) -> Sequence[Image]:
        edges = [number / max(self.cells) for number in self.cells]
        time = float(self.run.time[frame])
        return images_of(self.obstacles, (edges[0], edges[1], edges[2]), self.periodic, time)

    def _read(self) -> tuple[Obstacle, ...]:
        """Return the obstacles that the stored configuration describes."""
        try:
            config = FluidConfig.model_validate(self.run.config)
        except ValidationError:
            _warn(self.run, "the stored configuration is one of another version")
            return ()
        self.cells = config.grid.cells
        x, y, z = (kind == "periodic" for kind in kinds_of(config.fluid.boundary)[::2])
        self.periodic = (x, y, z)
        found = [self._made(section) for section in config.obstacles]
        return tuple(obstacle for made in found for obstacle in made)

    def _made(self, section: ObstacleSection) -> tuple[Obstacle, ...]:
        """Return the obstacle of a section; none, and say why, if that cannot be."""
        if section.shape == "python":
            _warn(self.run, f"{section.name or section.python} is a function, which is not called")
            return ()
        try:
            return obstacles_of([section], self.cells, self.periodic)
        except InputError as error:
            _warn(self.run, str(error).partition(": ")[2])
            return ()


def _warn(run: Run, reason: str) -> None:
    warnings.warn(f"{run.path}: an obstacle is not drawn: {reason}", stacklevel=2)


def _points(volume: Volume, most: int) -> list[Array]:
    """Return coordinates x, y and z of evenly spaced points, the middles of parts of the box."""
    longest = max(volume.edge(axis) for axis in range(3))
    numbers = [max(1, round(most * volume.edge(axis) / longest)) for axis in range(3)]
    return [
        (np.arange(number) + 0.5) * (volume.edge(axis) / number)
        for axis, number in enumerate(numbers)
    ]
