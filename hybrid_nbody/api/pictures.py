"""Figures of the present state of a simulation."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from matplotlib.figure import Figure

from hybrid_nbody.analysis.plots import drawable, reasons
from hybrid_nbody.analysis.presentation import Picture
from hybrid_nbody.analysis.style import our_look
from hybrid_nbody.config.sections import ModelConfig
from hybrid_nbody.errors import InputError
from hybrid_nbody.files.run import open_run
from hybrid_nbody.output import trajectory as trajectories
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.progress import no_step
from hybrid_nbody.running.job import header_of
from hybrid_nbody.running.models import MODELS
from hybrid_nbody.simulation.model import Model


def figure_of(
    config: ModelConfig, communicator: Communicator, model: Model, kind: str | None
) -> Figure | None:
    """Return a figure of the state of a model on the root, None elsewhere; all ranks call together.

    The figures of a model read files: one frame is written for them, into a temporary directory.

    Raises
    ------
    InputError
        On every rank, if there is no such figure of a single state.
    """
    with tempfile.TemporaryDirectory() as own:
        folder = Path(communicator.broadcast(own))
        trajectory = trajectories.Trajectory(folder / trajectories.NAME, communicator)
        trajectory.create(model, header_of(config, communicator, model))
        try:
            trajectory.write_frame(model)
            trajectory.close()
        except BaseException:
            trajectory.abandon()  # the caller goes on
            raise
        return communicator.only_on_root(lambda: _drawn(folder, config.model, kind))


def _drawn(folder: Path, model: str, kind: str | None) -> Figure:
    """Return the figure of the one frame in a folder."""
    pictures = MODELS[model].figures.pictures
    with open_run(folder) as run, our_look():
        wanted = kind or drawable(reasons(run, pictures))[0]
        picture = _known(pictures, wanted)
        if reason := picture.reason(run):
            raise InputError(f"plot: no {wanted} of a single state: {reason}")
        return picture.draw(run, -1, no_step)


def _known(pictures: Mapping[str, Picture], kind: str) -> Picture:
    if kind not in pictures:
        raise InputError(f"plot: no picture of kind '{kind}'; there are {', '.join(pictures)}")
    return pictures[kind]
