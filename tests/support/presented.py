"""Readers of runs that know the models of the program, and the figures of these."""

from functools import partial

from hybrid_nbody.analysis import export, info, movie, plots, report
from hybrid_nbody.run.models import MODELS

export_run = partial(export.export_run, models=MODELS)
describe = partial(info.describe, models=MODELS)
make_movie = partial(movie.make_movie, models=MODELS)
make_report = partial(report.make_report, models=MODELS)
plot_run = partial(plots.plot_run, models=MODELS)


def figure_of(model, kind):
    """Return the function ``draw(run, frame)`` of a kind of picture of a model."""
    picture = MODELS[model].figures.pictures[kind]
    return lambda run, frame=-1: picture.draw(run, frame, lambda: None)


def kinds_of(run):
    """Return the kinds of movies that a run holds enough for."""
    return movie.kinds_of(run, MODELS[run.model].figures.movies)


def scene_of(run, kind, frames):
    """Return the scene of a kind of movie of a run."""
    return movie.scene_of(run, MODELS[run.model].figures.movies, kind, frames)
