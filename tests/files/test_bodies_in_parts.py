"""A trajectory whose frames lie in parts is read: bodies, and frames beside h5py."""

import h5py
from support.ranks import RowsModel, rows_at, same_bits, this_rank
from support.trajectories import start

from hybrid_nbody.files import untrusted
from hybrid_nbody.files.bodies import read_bodies
from hybrid_nbody.files.run import open_run


def test_the_last_frame_is_read(tmp_path):
    start(tmp_path, RowsModel(5, this_rank()), [0, 3, 4]).close()
    bodies = read_bodies(tmp_path / "trajectory.h5")
    expected = rows_at(4, 5)
    assert same_bits(bodies.position, expected["bodies/position"])
    assert same_bits(bodies.velocity, expected["bodies/velocity"])
    assert bodies.id.tolist() == [4, 3, 2, 1, 0]


def test_frames_in_parts_are_no_bomb(tmp_path, monkeypatch):
    monkeypatch.setattr(untrusted, "SMALL", 0)
    start(tmp_path, RowsModel(5000, this_rank()), [0, 4]).close()
    assert len(read_bodies(tmp_path / "trajectory.h5")) == 5000


def test_it_is_read_beside_h5py_in_one_process(tmp_path):
    """The list and each part, whichever of the two opens it first."""
    start(tmp_path, RowsModel(5, this_rank()), [0, 3, 4]).close()
    expected = rows_at(4, 5)["bodies/position"]
    for path in [tmp_path / "trajectory.h5", *(tmp_path / "trajectory").iterdir()]:
        with h5py.File(path, "r"), open_run(tmp_path) as run:
            assert same_bits(run.positions(-1), expected)
        with open_run(tmp_path) as run:
            assert same_bits(run.positions(-1), expected)
            with h5py.File(path, "r"):
                assert same_bits(run.positions(-1), expected)
