"""Everything that is drawn of a run of a fluid."""

from collections.abc import Mapping, Sequence
from functools import partial

from hybrid_nbody.analysis.look import Look
from hybrid_nbody.analysis.presentation import Figures, Movie, Picture, SpaceView, of_one_frame
from hybrid_nbody.analysis.scenes import Scene
from hybrid_nbody.files.run import Run
from hybrid_nbody.fluid.figures import fields, pictures
from hybrid_nbody.fluid.figures.scenes import FieldOfFluid, Fluid
from hybrid_nbody.fluid.figures.surface import frames_of_surface, surface_data


def figures_of(field: str) -> Figures:
    """Return the figures that show a field."""
    slices = Picture(
        of_one_frame(lambda run, frame: pictures.field_figure(run, field, frame)),
        lambda run: fields.missing(run, field),
        f"The {field} in three planes of the last frame.",
    )
    lines = Picture(
        of_one_frame(lambda run, frame: pictures.field_figure(run, field, frame, True)),
        lambda run: fields.missing(run, field) or pictures.no_velocity(run),
        f"The {field} in three planes of the last frame, with streamlines.",
        by_default=False,
    )
    movie = Movie(has_frames, partial(FieldOfFluid, field=field))
    return Figures({"slices": slices, "streamlines": lines}, {"fluid": movie})


def has_frames(run: Run) -> bool:
    """Return whether there is a frame; a scene says what is missing in it."""
    return bool(run.number_of_frames)


def usual_scene(run: Run, frames: Sequence[int], look: Look) -> Scene:
    """Return a movie of the density, or of another field where the frames hold none."""
    other = fields.instead_of_density(run)
    return FieldOfFluid(run, frames, look, field=other) if other else Fluid(run, frames, look)


def figures_of_scalars(run: Run) -> Mapping[str, Figures]:
    """Return the figures of the further scalars of a run, such as its temperature."""
    return {name: figures_of(name) for name in fields.scalars_of(run)}


PICTURES = {
    "diagnostics": Picture(
        of_one_frame(pictures.diagnostics_figure),
        pictures.no_diagnostics,
        "The diagnostics of the fluid.",
    ),
    "slices": Picture(
        of_one_frame(pictures.slices_figure),
        pictures.no_slices,
        "Three planes of the last frame.",
    ),
    "streamlines": Picture(
        of_one_frame(lambda run, frame: pictures.field_figure(run, "speed", frame, True)),
        pictures.no_velocity,
        "The speed in three planes of the last frame, with streamlines.",
        by_default=False,
    ),
    "projection": Picture(
        of_one_frame(pictures.projection_figure),
        pictures.no_box,
        "The density of the last frame, integrated along the line of sight.",
    ),
}

FIGURES = Figures(
    PICTURES,
    {"fluid": Movie(has_frames, usual_scene)},
    SpaceView(pictures.no_box, frames_of_surface, surface_data),
    fields={field: figures_of(field) for field in fields.FIELDS},
    fields_in=figures_of_scalars,
)
