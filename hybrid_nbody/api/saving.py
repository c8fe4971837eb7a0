"""The state of a simulation in a file, to go on from."""

from pathlib import Path

from hybrid_nbody.config.sections import ModelConfig
from hybrid_nbody.errors import InputError
from hybrid_nbody.files.atomic import file_errors
from hybrid_nbody.files.checkpoint import checkpoint_path, checkpoints
from hybrid_nbody.output import directory
from hybrid_nbody.output import trajectory as trajectories
from hybrid_nbody.output.checkpoint import CheckpointWriter
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.running.job import header_of
from hybrid_nbody.simulation.model import Model


def save(folder: Path, config: ModelConfig, communicator: Communicator, model: Model) -> Path:
    """Write the state of a model into a folder, in the place of an earlier one; return its path.

    All ranks call together.

    Raises
    ------
    InputError
        On every rank, if the folder holds a run of the command line, or a later state.
    FileError
        On every rank, if it cannot be written.
    """
    communicator.only_on_root(lambda: _make_place(folder, model.step))
    header = header_of(config, communicator, model)
    path = CheckpointWriter(folder, header, 1, communicator).save(model)
    communicator.only_on_root(lambda: directory.write_config(folder, header["config"]))
    return path


def _make_place(folder: Path, step: int) -> None:
    """Make a folder, unless it holds what a state may not replace."""
    with file_errors(folder, "making the folder"):
        folder.mkdir(parents=True, exist_ok=True)
    if (folder / trajectories.NAME).exists():
        raise InputError(f"save: {folder} holds a run with a trajectory; choose another directory")
    later = [path.name for path in checkpoints(folder) if path > checkpoint_path(folder, step)]
    if later:
        raise InputError(
            f"save: {folder} holds a later state, {later[0]}; remove it, or choose another "
            "directory"
        )
