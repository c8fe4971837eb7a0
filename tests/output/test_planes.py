"""Fields of a grid: frames of some planes under the names that checkpoints use for all of them."""

import h5py
import numpy as np
import pytest
from support.ranks import same_bits

from hybrid_nbody.files.checkpoint import load_newest
from hybrid_nbody.output.checkpoint import CheckpointWriter
from hybrid_nbody.output.trajectory import NAME, Trajectory
from hybrid_nbody.parallel import rows as rows_of_ranks
from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.simulation.model import Field, Role

HEADER = {"model": "fluid", "title": "smoke", "config": "model: fluid\n"}
CELLS = (5, 4, 7)
"""nx, ny, nz."""


def grid_at(step, components):
    """Return a field of the whole grid at a step: (nz, ny, nx[, components]) float32."""
    shape = (*reversed(CELLS), *([components] if components > 1 else []))
    return np.random.default_rng([step, components]).standard_normal(shape).astype("f4")


class GridModel:
    """A model of a distributed grid; frames hold every other cell of the planes 1, 4 and 5."""

    quantities = {}
    shown = np.array([1, 4, 5])

    def __init__(self, communicator):
        self.communicator, self.step, self.asked = communicator, 0, []
        self.own = Partition.weighted(CELLS[2], [1.0] * communicator.size).share(communicator.rank)

    @property
    def time(self):
        return 0.5 * self.step

    def scalars(self):
        return {"step": self.step}

    def fields(self):
        found = {}
        for name, components in (("fluid/density", 1), ("fluid/velocity", 3)):
            whole = grid_at(self.step, components)
            found[name] = self._field(name, whole, self.own.start, self.own.stop, Role.INTERNAL)
            start, stop = np.searchsorted(self.shown, [self.own.start, self.own.stop]).tolist()
            found[f"frames of {name}"] = self._field(
                name, whole[self.shown, ::2, ::2], start, stop, Role.SHOWN
            )
        return found

    def _field(self, name, whole, start, stop, role):
        return Field(
            name=name,
            shape=whole.shape,
            dtype=whole.dtype,
            units="1",
            description="of each cell",
            index=slice(start, stop),
            host=lambda first, last: self._rows(whole[start:stop], first, last),
            role=role,
        )

    def _rows(self, own, first, last):
        rows = own[first:last].copy()
        self.asked.append((rows.nbytes, own[:1].nbytes))
        return rows


@pytest.mark.mpi
@pytest.mark.parametrize("slab_bytes", [1, 200, 4 << 20])
def test_frames_and_checkpoints_of_any_number_of_ranks(
    communicator, shared_tmp_path, monkeypatch, slab_bytes
):
    monkeypatch.setattr(rows_of_ranks, "SLAB_BYTES", slab_bytes)
    model, trajectory = GridModel(communicator), Trajectory(shared_tmp_path / NAME, communicator)
    trajectory.create(model, HEADER)
    for model.step in (0, 3):
        trajectory.write_frame(model)
    model.asked.clear()
    path = CheckpointWriter(shared_tmp_path, HEADER, 2, communicator).save(model)
    trajectory.close()
    communicator.barrier()
    with (
        h5py.File(shared_tmp_path / NAME, locking=False) as frames,
        h5py.File(path, locking=False) as saved,
    ):
        for name, components in (("fluid/density", 1), ("fluid/velocity", 3)):
            expected = [grid_at(step, components)[[1, 4, 5], ::2, ::2] for step in (0, 3)]
            assert same_bits(frames[name][:], np.array(expected))
            assert same_bits(saved[name][:], grid_at(3, components))
    assert all(size <= max(slab_bytes, plane) for size, plane in model.asked)


@pytest.mark.mpi
def test_a_checkpoint_counts_planes_and_a_trajectory_goes_on(communicator, shared_tmp_path):
    model, trajectory = GridModel(communicator), Trajectory(shared_tmp_path / NAME, communicator)
    trajectory.create(model, HEADER)
    trajectory.write_frame(model)
    CheckpointWriter(shared_tmp_path, HEADER, 2, communicator).save(model)
    trajectory.close()
    saved, _ = communicator.on_root(lambda: load_newest(shared_tmp_path))
    assert saved.number == CELLS[2]
    assert same_bits(saved.rows("fluid/density", slice(2, 4)), grid_at(0, 1)[2:4])
    trajectory = Trajectory(shared_tmp_path / NAME, communicator)
    trajectory.reopen(model, HEADER)
    model.step = 2
    trajectory.write_frame(model)
    trajectory.close()
    communicator.barrier()
    with h5py.File(shared_tmp_path / NAME, locking=False) as file:
        assert file["step"][:].tolist() == [0, 2]
        assert len(file["fluid/velocity"]) == 2
