"""How much a run writes, and the memory that it takes."""

import resource
import sys
from typing import NamedTuple

import numpy as np

from hybrid_nbody.config.sections import Every, ModelConfig, Output, Time
from hybrid_nbody.output.summary import with_prefix
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.simulation.model import FRAME_ROLES, SAVED_ROLES, SHARED_ROLES, Model, fields_of

TRAJECTORY_BYTES = 45_000
"""Bytes that HDF5, names and units add to the numbers of a trajectory; measured."""

CHECKPOINT_BYTES = 6_600
"""The same, of a checkpoint."""

WORTH_SAYING = 1e8
"""Bytes on the disk from which on a run says at its start how many there will be."""

MUCH_MEMORY = 1e9
"""Bytes of memory of a rank from which on it does."""


class Sizes(NamedTuple):
    """Bytes of the numbers in a frame, in a checkpoint, and in what a trajectory holds once.

    Attributes
    ----------
    frame, checkpoint, static : int
    columns : int
        Numbers of a row of diagnostics, with step and time.
    """

    frame: int
    checkpoint: int
    static: int
    columns: int


class Counts(NamedTuple):
    """Frames and rows that a run writes, and checkpoints that it keeps."""

    frames: int
    rows: int
    checkpoints: int

    @property
    def in_words(self) -> str:
        """Return them as text."""
        checkpoints = "1 checkpoint" if self.checkpoints == 1 else f"{self.checkpoints} checkpoints"
        return f"{self.frames} frames, {self.rows} rows of diagnostics, {checkpoints}"


def counts_of(output: Output, time: Time) -> Counts:
    """Return what a whole run writes."""
    kept = output.checkpoint.keep if output.checkpoint else 1
    frames = event_count(output.trajectory, time)
    return Counts(frames, event_count(output.diagnostics, time), kept)


def disk_bytes(counts: Counts, sizes: Sizes) -> int:
    """Return the bytes of a whole run."""
    # tables stand in the parts, and in the list of them
    tables = 2 * 8 * (2 * counts.frames + sizes.columns * counts.rows)
    trajectory = TRAJECTORY_BYTES + counts.frames * sizes.frame + sizes.static + tables
    return trajectory + counts.checkpoints * (sizes.checkpoint + CHECKPOINT_BYTES)


def event_count(every: Every | None, time: Time) -> int:
    """Return how often an output section is due, the initial and the final state included."""
    if every is None:
        return 0
    steps = time.total_steps
    interval = _interval(every, time.dt)
    whole = int(steps / interval + 1e-9)
    ends_between = whole * interval < steps - 1e-9 * steps
    return whole + 1 + ends_between


def _interval(every: Every, dt: float) -> float:
    """Return the steps between two events."""
    if every.every_steps is not None:
        return every.every_steps
    assert every.every_time is not None  # the schema asks for exactly one of the two
    return max(every.every_time / dt, 1.0)


def expected_lines(config: ModelConfig, model: Model, communicator: Communicator) -> list[str]:
    """Return a line on the disk and the memory that a run takes; none where both are little.

    Parameters
    ----------
    config : ModelConfig
    model : Model
        It may have computed its first forces: what it holds by then, it holds for the whole run.
    communicator : Communicator
        Every rank calls together.
    """
    counts = counts_of(config.output, config.time)
    disk = disk_bytes(counts, sizes_of(model))
    memory = int(communicator.maximum(np.array(float(peak_memory()))))
    if disk < WORTH_SAYING and memory < MUCH_MEMORY:
        return []
    written = f"{with_prefix(disk).rstrip()}B on the disk ({counts.in_words})"
    held = f"{with_prefix(memory).rstrip()}B of host memory on the rank that takes most"
    return [f"expected: about {written}, {held}"]


def sizes_of(model: Model) -> Sizes:
    """Return the bytes of what a model writes."""
    frame, checkpoint, static = (
        sum(field.total_bytes for field in fields_of(model, *roles))
        for roles in (FRAME_ROLES, SAVED_ROLES, SHARED_ROLES)
    )
    columns = 2 + sum(quantity.components for quantity in model.quantities.values())
    return Sizes(frame, checkpoint, static, columns)


def peak_memory() -> int:
    """Return the most bytes of host memory that this process has held."""
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
