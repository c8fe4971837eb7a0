"""Everything that is drawn of a run of a fluid."""

from collections.abc import Sequence
from typing import Any

from hybrid_nbody.analysis.panels import colour_norm, draw_plane, round_values
from hybrid_nbody.analysis.presentation import Figures, Movie, Picture, SpaceView, of_one_frame
from hybrid_nbody.analysis.scenes import XY, Scene
from hybrid_nbody.analysis.style import label
from hybrid_nbody.analysis.volume import column_along_z, slice_of, volume_of
from hybrid_nbody.files.run import Run
from hybrid_nbody.files.views import Array
from hybrid_nbody.fluid.figures import DENSITY, fields, pictures
from hybrid_nbody.fluid.figures.surface import frames_of_surface, surface_data


class Fluid(Scene):
    """The density integrated along z; of frames that hold a few planes, the middle one."""

    def build(self, samples: Sequence[int]) -> list[Any]:
        self.volume = volume_of(self.run, DENSITY)
        planes = [self._plane(frame) for frame in samples]
        self.norm = colour_norm(planes)
        self.image = draw_plane(self.axes, planes[0], self.volume, XY, self.norm)
        name, units = (
            ("column density", "density length") if self.volume.evenly else ("density", "density")
        )
        self._bar(self.image, label(name, units), ticks=round_values(self.norm)).minorticks_off()
        return [self.image]

    def _plane(self, frame: int) -> Array:
        if self.volume.evenly:
            return column_along_z(self.run, DENSITY, frame)
        return slice_of(self.run, DENSITY, frame, 2, self.volume.middle(2))

    def show(self, frame: int) -> None:
        self.image.set_data(self._plane(frame))


class FieldOfFluid(Scene):
    """A field in the middle plane of z.

    Parameters
    ----------
    run : Run
        An open run.
    frames : sequence of int
        The frames that will be shown.
    field : str
        One of `fields.FIELDS`.
    """

    def __init__(self, run: Run, frames: Sequence[int], field: str) -> None:
        fields.require(run, field)
        self.field = field
        super().__init__(run, frames)

    def build(self, samples: Sequence[int]) -> list[Any]:
        self.volume = volume_of(self.run, fields.FIELDS[self.field].stored)
        planes = [self._plane(frame) for frame in samples]
        norm = colour_norm(planes)
        self.image = draw_plane(self.axes, planes[0], self.volume, XY, norm)
        name = label(self.field, fields.units_of(self.run, self.field))
        self._bar(self.image, name, ticks=round_values(norm)).minorticks_off()
        return [self.image]

    def _plane(self, frame: int) -> Array:
        return fields.plane_of(self.run, self.field, frame, 2, self.volume.middle(2))

    def show(self, frame: int) -> None:
        self.image.set_data(self._plane(frame))


def figures_of(field: str) -> Figures:
    """Return the figures that show a field."""
    slices = Picture(
        of_one_frame(lambda run, frame: pictures.field_figure(run, field, frame)),
        lambda run: fields.missing(run, field),
        f"The {field} in three planes of the last frame.",
    )
    movie = Movie(has_frames, lambda run, frames: FieldOfFluid(run, frames, field))
    return Figures({"slices": slices}, {"fluid": movie})


def has_frames(run: Run) -> bool:
    """Return whether there is a frame; a scene says what is missing in it."""
    return bool(run.number_of_frames)


def has_density(run: Run) -> bool:
    """Return whether there is a frame of the density."""
    return bool(run.number_of_frames) and DENSITY in run.fields


PICTURES = {
    "diagnostics": Picture(
        of_one_frame(pictures.diagnostics_figure),
        pictures.no_diagnostics,
        "The diagnostics of the fluid.",
    ),
    "slices": Picture(
        of_one_frame(pictures.slices_figure),
        pictures.no_density,
        "The density in three planes of the last frame, with arrows of the velocity.",
    ),
    "projection": Picture(
        of_one_frame(pictures.projection_figure),
        pictures.no_box,
        "The density of the last frame, integrated along the line of sight.",
    ),
}

FIGURES = Figures(
    PICTURES,
    {"fluid": Movie(has_density, Fluid)},
    SpaceView(pictures.no_box, frames_of_surface, surface_data),
    fields={field: figures_of(field) for field in fields.FIELDS},
)
