"""A run of the command line, from Python."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hybrid_nbody.api.settings import as_set
from hybrid_nbody.files.run import Run, open_run
from hybrid_nbody.parallel.communicator import Communicator, start_mpi
from hybrid_nbody.running import start


def run(
    path: str | Path,
    overrides: Mapping[str, Any] | None = None,
    *,
    overwrite: bool = False,
    communicator: Communicator | None = None,
) -> Run:
    """Run a configuration file as ``hybrid-nbody run`` does, and open what it wrote.

    All ranks call together. A run that is stopped early, by its time limit, a condition or Ctrl-C,
    returns what it has written.

    Parameters
    ----------
    path : str or Path
        The configuration.
    overrides : mapping, optional
        Values in the place of the file's, such as ``{"time.dt": 1e-3}``.
    overwrite : bool, optional
        Whether a run that the output directory holds may be replaced.
    communicator : Communicator, optional
        The ranks; by default all of them.

    Returns
    -------
    Run
        As of ``open_run``; close it, or use it in a ``with`` statement.

    Raises
    ------
    InputError
        On every rank; nothing was written.
    NumericalError, FileError
        While running.
    """
    communicator = communicator or start_mpi()
    settings = as_set(overrides)
    start.run(path, settings, overwrite, communicator, time.monotonic())
    config = communicator.on_root(lambda: start.resolved(path, settings))
    return open_run(config.output.directory)
