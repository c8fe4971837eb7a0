"""Everything that is drawn of a run of bodies."""

from hybrid_nbody.analysis.presentation import Figures, Movie, Picture, SpaceView, of_one_frame
from hybrid_nbody.nbody.figures import components, pictures, scenes, structure, window
from hybrid_nbody.nbody.figures.points import frames_of_points, points_data
from hybrid_nbody.nbody.figures.tracks import no_bodies

PICTURES = {
    "energies": Picture(
        of_one_frame(pictures.energies_figure),
        pictures.no_energies,
        "Kinetic, potential and total energy, and the relative error of the total.",
    ),
    "snapshot": Picture(
        of_one_frame(pictures.snapshot_figure),
        no_bodies,
        "The bodies of the last frame in three planes, or in the plane that holds them all.",
    ),
    "tracks": Picture(
        of_one_frame(pictures.tracks_figure),
        pictures.no_tracks,
        "The paths of the bodies, each from a ring to a dot.",
    ),
    "tracks-3d": Picture(
        of_one_frame(structure.space_figure),
        structure.no_tracks_in_space,
        "The same paths in 3D.",
    ),
    "lagrangian": Picture(
        structure.lagrangian_figure,
        structure.no_radii,
        "The radii about the centre of mass that hold given fractions of the mass.",
        frames=structure.frames_of_radii,
    ),
    "profiles": Picture(
        of_one_frame(structure.profiles_figure),
        structure.no_profiles,
        "Density and velocity dispersion in one dimension about the centre of mass, in the last "
        "frame.",
    ),
    "activity": Picture(
        of_one_frame(structure.activity_figure),
        structure.no_activity,
        "The activity map of the last frame, with the bodies over it.",
    ),
    "components": Picture(
        of_one_frame(components.components_figure),
        components.no_components,
        "The bodies of the last frame in three planes, each component in a colour.",
        by_default=False,
    ),
    "overview": Picture(
        of_one_frame(pictures.overview_figure),
        pictures.no_overview,
        "Energies and bodies in one picture.",
        by_default=False,
    ),
}

MOVIES = {
    "activity": Movie(scenes.has_activity, scenes.Activity),
    "bodies": Movie(scenes.has_bodies, scenes.bodies_scene),
    "components": Movie(scenes.has_components, scenes.Components),
}


FIGURES = Figures(
    PICTURES, MOVIES, SpaceView(no_bodies, frames_of_points, points_data), window.show
)
