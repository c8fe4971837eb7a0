"""Readers of runs that know the models of the program, and the figures of these."""

from functools import partial

from hybrid_nbody.analysis import export, info, movie, plots, report
from hybrid_nbody.analysis.look import look_of
from hybrid_nbody.running.models import MODELS

describe = partial(info.describe, models=MODELS)
make_report = partial(report.make_report, models=MODELS)


def plot_run(path, kind=None, output=None, say=None, progress=None, **options):
    """Draw pictures, with the fields of `PictureOptions` as keywords."""
    chosen = plots.PictureOptions(kind, **options)
    return plots.plot_run(path, output, chosen, say, progress, models=MODELS)


def make_movie(path, output=None, kind=None, progress=None, **options):
    """Make a movie, with the fields of `MovieOptions` as keywords."""
    chosen = movie.MovieOptions(kind, **options)
    return movie.make_movie(path, output, chosen, progress, models=MODELS)


def export_run(path, format, output, frame=-1, overwrite=False, progress=None):
    """Export frames, with the fields of `ExportOptions` as arguments."""
    options = export.ExportOptions(frame, overwrite)
    return export.export_run(path, format, output, options, progress, models=MODELS)


def figure_of(model, kind):
    """Return the function ``draw(run, frame)`` of a kind of picture of a model."""
    picture = MODELS[model].figures.pictures[kind]
    return lambda run, frame=-1: picture.draw(run, frame, lambda: None)


def kinds_of(run):
    """Return the kinds of movies that a run holds enough for."""
    return movie.kinds_of(run, MODELS[run.model].figures.movies)


def scene_of(run, kind, frames, **look):
    """Return the scene of a kind of movie of a run; its look in the words of the command line."""
    movies = MODELS[run.model].figures.movies
    return movie.scene_of(run, movies, kind, frames, look_of(**look))
