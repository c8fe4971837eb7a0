"""Scenes of movies of a fluid: its density along an axis, or a field in a plane."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hybrid_nbody.analysis.look import USUAL, Look
from hybrid_nbody.analysis.panels import colour_norm, draw_plane, round_values
from hybrid_nbody.analysis.scenes import XY, Scene
from hybrid_nbody.analysis.style import label
from hybrid_nbody.analysis.volume import column_along_z, columns, slice_of
from hybrid_nbody.errors import InputError
from hybrid_nbody.files.cells import volume_of
from hybrid_nbody.files.run import Run
from hybrid_nbody.files.views import Array
from hybrid_nbody.fluid.figures import DENSITY, fields
from hybrid_nbody.fluid.figures.overlay import SEEN_THROUGH, colours_of_solid, draw_solid
from hybrid_nbody.fluid.figures.solids import Solids

FLAT = "a fluid is shown in a plane; take --plane"


class OfPlane(Scene):
    """Values in a plane of the box, or along the axis across it.

    Attributes
    ----------
    axis : int
        The axis across the plane.
    """

    stored = DENSITY

    def build(self, samples: Sequence[int]) -> list[Any]:
        self.refuse(FLAT, "camera")
        self.plane = self.look.plane or XY
        self.axis = 3 - sum(self.plane)
        self.volume = volume_of(self.run, self.stored)
        if self.axis != 2 and not self.volume.evenly:
            raise InputError(f"--plane: {self.run.path} holds a few planes of z only; take xy")
        planes = [self._upright(frame) for frame in samples]
        norm = self.in_range(colour_norm(planes))
        self.image = draw_plane(self.axes, planes[0], self.volume, self.plane, norm, self.colormap)
        self._bar(self.image, self.name(), ticks=round_values(norm)).minorticks_off()
        self.solids = Solids(self.run)
        if not self.solids:
            return [self.image]
        distances = self._distances(samples[0])
        self.gap = self.volume.edge(self.plane[1]) / len(distances)
        opacity = SEEN_THROUGH if self.summed else 1.0
        self.solid = draw_solid(self.axes, distances, self.volume, self.plane, opacity)
        return [self.image, self.solid]

    def name(self) -> str:
        """Return the name of the scale of colours."""
        raise NotImplementedError

    def values(self, frame: int) -> Array:
        """Return a frame's values: the two other axes, the later one first."""
        raise NotImplementedError

    def show(self, frame: int) -> None:
        self.image.set_data(self._upright(frame))
        if self.solids.moves:
            opacity = SEEN_THROUGH if self.summed else 1.0
            self.solid.set_data(colours_of_solid(self._distances(frame), self.gap, opacity))

    @property
    def summed(self) -> bool:
        """Return whether values are sums along the axis across the plane."""
        return False

    def _distances(self, frame: int) -> Array:
        """Return signed distances from obstacles, the axis that points up first."""
        across, up = self.plane
        if self.summed:
            found = self.solids.through(self.volume, frame, self.axis)
        else:
            middle = self.volume.centres(self.axis)[self.volume.middle(self.axis)]
            found = self.solids.in_plane(self.volume, frame, self.axis, float(middle))
        return found if across < up else np.swapaxes(found, 0, 1)

    def _upright(self, frame: int) -> Array:
        """Return a frame's values, the axis that points up first."""
        across, up = self.plane
        values = self.values(frame)
        return values if across < up else np.swapaxes(values, 0, 1)


class Fluid(OfPlane):
    """The density integrated along an axis; of frames that hold a few planes, the middle one."""

    @property
    def summed(self) -> bool:
        return self.volume.evenly

    def name(self) -> str:
        if self.volume.evenly:
            return label("column density", "density length")
        return label("density", "density")

    def values(self, frame: int) -> Array:
        if not self.volume.evenly:
            return slice_of(self.run, DENSITY, frame, 2, self.volume.middle(2))
        if self.axis == 2:
            return column_along_z(self.run, DENSITY, frame)
        return columns(self.run, DENSITY, frame)[self.axis]


class FieldOfFluid(OfPlane):
    """A field in the plane through the middle.

    Parameters
    ----------
    run : Run
        An open run.
    frames : sequence of int
        The frames that will be shown.
    look : Look, optional
        Size, colours and plane.
    field : str
        One of `fields.FIELDS`, or a scalar of the run.
    """

    def __init__(self, run: Run, frames: Sequence[int], look: Look = USUAL, *, field: str) -> None:
        fields.require(run, field)
        self.field = field
        self.stored = fields.shown_as(field).stored
        super().__init__(run, frames, look)

    def name(self) -> str:
        return fields.label_of(self.run, self.field)

    def values(self, frame: int) -> Array:
        middle = self.volume.middle(self.axis)
        return fields.plane_of(self.run, self.field, frame, self.axis, middle)
