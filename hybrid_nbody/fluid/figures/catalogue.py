"""Everything that is drawn of a run of a fluid."""

from typing import Any

from hybrid_nbody.analysis.presentation import Figures, Movie, Picture, SpaceView, of_one_frame
from hybrid_nbody.analysis.scene3d import frames_of_surface, surface_data
from hybrid_nbody.files.run import Run
from hybrid_nbody.fluid.figures import pictures
from hybrid_nbody.fluid.figures.names import DENSITY
from hybrid_nbody.fluid.figures.scenes import Fluid, has_density
from hybrid_nbody.progress import Step


def _surface(run: Run, step: Step) -> dict[str, Any]:
    """Return the surface of the density in space."""
    return surface_data(run, DENSITY, step)


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
    SpaceView(pictures.no_box, frames_of_surface, _surface),
)
