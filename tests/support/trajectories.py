"""Trajectories of a model without physics: written, and checked row by row."""

import h5py
import numpy as np
from support.ranks import rows_at, same_bits

from hybrid_nbody.output.trajectory import NAME, Trajectory

HEADER = {"model": "nbody", "title": "a title: ü", "config": "model: nbody\n"}
FRAMES = ("bodies/position", "bodies/velocity")
STATIC = ("bodies/mass", "bodies/id")


def write(trajectory, model, steps):
    """Write a frame and a row of diagnostics at each step."""
    for step in steps:
        model.at(step)
        trajectory.write_frame(model)
        trajectory.write_diagnostics(model, model.diagnostics())


def start(folder, model, steps=()):
    """Create a trajectory and write `steps` into it."""
    trajectory = Trajectory(folder / NAME, model.communicator)
    trajectory.create(model, HEADER)
    write(trajectory, model, steps)
    return trajectory


def check(path, number, steps, diagnostics=None):
    """Check every row of a file that was written at `steps`."""
    with h5py.File(path, "r", locking=False) as file:
        assert file["step"][:].tolist() == list(steps)
        assert file["time"][:].tolist() == [0.5 * step for step in steps]
        for name in FRAMES:
            assert len(file[name]) >= len(steps)
            for row, step in enumerate(steps):
                assert same_bits(file[name][row], rows_at(step, number)[name])
        for name in STATIC:
            assert same_bits(file[name][:], rows_at(0, number)[name])
        steps = np.array(steps if diagnostics is None else diagnostics, dtype=float)
        table = file["diagnostics"]
        assert table["step"][:].tolist() == steps.tolist()
        assert table["time"][:].tolist() == (0.5 * steps).tolist()
        assert table["total_energy"][: len(steps)].tolist() == (-0.25 - steps).tolist()
        assert table["momentum"][: len(steps)].tolist() == [[step, 0.5, -1e-300] for step in steps]
