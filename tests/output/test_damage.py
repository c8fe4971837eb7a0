"""Damage to the files of a trajectory is named; what is whole can be read, and the run goes on."""

from shutil import copyfile

import pytest
from support.ranks import RowsModel, rows_at, same_bits
from support.trajectories import HEADER, check, start, write

from hybrid_nbody.errors import DamagedFileError, FileError
from hybrid_nbody.files.run import DamageWarning, open_run
from hybrid_nbody.output.trajectory import NAME, Trajectory


def spoil(path, deed):
    """Damage a file."""
    content = path.read_bytes()
    path.unlink()
    if deed == "text":
        path.write_text("no HDF5 at all")
    elif deed == "cut off":
        path.write_bytes(content[: len(content) // 2])
    elif deed == "empty":
        path.write_bytes(b"")
    elif deed == "folder":
        path.mkdir()
    elif deed == "flipped":
        path.write_bytes(content[:-100] + bytes([content[-100] ^ 8]) + content[-99:])


DEEDS = ("text", "cut off", "empty", "gone", "flipped")


def three_parts(folder, communicator):
    """Write three parts of two steps each."""
    model = RowsModel(5, communicator)
    trajectory = start(folder, model)
    for step in (0, 2, 4):
        write(trajectory, model, [step, step + 1])
        trajectory.flush()
    trajectory.close()
    communicator.barrier()
    return sorted((folder / "trajectory").glob("part-*"))


@pytest.mark.mpi
@pytest.mark.parametrize("deed", DEEDS)
def test_a_damaged_list_costs_nothing(communicator, shared_tmp_path, deed):
    three_parts(shared_tmp_path, communicator)
    path = shared_tmp_path / NAME
    communicator.only_on_root(lambda: spoil(path, deed))
    communicator.barrier()
    with pytest.warns(DamageWarning, match="the parts in .* are listed instead"):
        run = open_run(shared_tmp_path)
    with run:
        assert run.step.tolist() == run.diagnostics.step.tolist() == [0, 1, 2, 3, 4, 5]
        assert same_bits(run.positions(4), rows_at(4, 5)["bodies/position"])
        assert run.units("bodies/position") == "units of bodies/position"
    trajectory = Trajectory(path, communicator)
    communicator.barrier()
    trajectory.reopen(RowsModel(5, communicator).at(3), HEADER)
    write(trajectory, RowsModel(5, communicator), [9])
    trajectory.close()
    communicator.barrier()
    check(path, 5, [0, 1, 2, 3, 9])


@pytest.mark.filterwarnings("ignore::hybrid_nbody.files.run.DamageWarning")
@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize("deed", [*DEEDS, "folder"])
def test_a_damaged_part_costs_its_frames(tmp_path, alone, deed, which):
    parts = three_parts(tmp_path, alone)
    spoil(parts[which], deed)
    with open_run(tmp_path) as run:
        assert run.step.tolist() == run.diagnostics.step.tolist() == [0, 1, 2, 3, 4, 5]
        for frame in range(6):
            if frame // 2 == which:
                with pytest.raises(FileError) as caught:
                    run.positions(frame)
                first = 2 * which
                assert str(caught.value).startswith(str(parts[which]))
                assert str(caught.value).endswith(
                    f"frames {first} to {first + 1}, time {first / 2:g} to {first / 2 + 0.5:g}, "
                    "cannot be read, the others can"
                )
            else:
                assert same_bits(run.positions(frame), rows_at(frame, 5)["bodies/position"])


def test_a_part_of_another_run_is_not_taken_for_one_of_this(tmp_path, alone):
    """Nothing but the head tells them apart where the list does not know the part yet."""
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        trajectory = Trajectory(tmp_path / name / NAME, alone)
        trajectory.create(RowsModel(5, alone), HEADER | {"title": name})
        for step in (0, 1):
            write(trajectory, RowsModel(5, alone), [step])
            trajectory.flush()
        trajectory.close()
    one, other = tmp_path / "one", tmp_path / "other"
    last = sorted((one / "trajectory").glob("part-*"))[-1]
    trajectory = Trajectory(one / NAME, alone)
    trajectory.reopen(RowsModel(5, alone).at(0), HEADER)
    trajectory.close()
    assert not last.exists()
    copyfile(other / "trajectory" / last.name, last)
    for deed in (None, "gone"):
        if deed:
            spoil(one / NAME, deed)
        with pytest.warns(DamageWarning, match=f"{last.name}: a part of another run"):
            run = open_run(one)
        with run:
            assert run.step.tolist() == [0]


@pytest.mark.parametrize("deed", ["gone", "swapped", "empty"])
def test_parts_that_are_not_there_are_named_when_a_run_is_opened(tmp_path, alone, deed):
    parts = three_parts(tmp_path, alone)
    if deed == "swapped":
        parts[1].write_bytes(parts[0].read_bytes())
    else:
        spoil(parts[1], deed)
    with pytest.warns(DamageWarning, match=f"{parts[1].name}: .*the others can"):
        open_run(tmp_path).close()
    said = []
    trajectory = Trajectory(tmp_path / NAME, alone, said.append)
    trajectory.reopen(RowsModel(5, alone).at(5), HEADER)
    trajectory.close()
    assert any(parts[1].name in line for line in said)


@pytest.mark.filterwarnings("ignore::hybrid_nbody.files.run.DamageWarning")
def test_parts_that_have_been_swapped_are_named(tmp_path, alone):
    parts = three_parts(tmp_path, alone)
    first, second = (path.read_bytes() for path in parts[:2])
    parts[0].write_bytes(second)
    parts[1].write_bytes(first)
    with open_run(tmp_path) as run:
        for frame in range(4):
            with pytest.raises(FileError, match="another part than the one that belongs here"):
                run.positions(frame)
        assert same_bits(run.positions(4), rows_at(4, 5)["bodies/position"])


@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_damaged_part_without_a_list_is_named(tmp_path, alone, which):
    parts = three_parts(tmp_path, alone)
    spoil(parts[which], "flipped")
    spoil(tmp_path / NAME, "gone")
    with pytest.warns(DamageWarning, match=f"{parts[which].name}: damaged"):
        run = open_run(tmp_path)
    with run:
        whole = [step for step in range(6) if step // 2 != which]
        assert run.step.tolist() == run.diagnostics.step.tolist() == whole
        for frame, step in enumerate(whole):
            assert same_bits(run.positions(frame), rows_at(step, 5)["bodies/position"])


def test_a_part_that_is_cut_and_damaged_is_named_and_the_run_goes_on(tmp_path, alone):
    parts = three_parts(tmp_path, alone)
    spoil(parts[1], "flipped")
    said = []
    trajectory = Trajectory(tmp_path / NAME, alone, said.append)
    trajectory.reopen(RowsModel(5, alone).at(2), HEADER)
    write(trajectory, RowsModel(5, alone), [3])
    trajectory.close()
    assert len(said) == 1
    assert said[0].endswith(
        "damaged: its contents do not match its digest; the 1 frames in it are lost"
    )
    check(tmp_path / NAME, 5, [0, 1, 3], diagnostics=[0, 1, 2, 3])


@pytest.mark.mpi
@pytest.mark.parametrize("deed", DEEDS)
def test_a_trajectory_without_list_and_head_is_refused_on_every_rank(
    communicator, shared_tmp_path, deed
):
    three_parts(shared_tmp_path, communicator)
    path = shared_tmp_path / NAME
    communicator.only_on_root(lambda: spoil(path, deed))
    head = shared_tmp_path / "trajectory" / "head-0000000000.h5"
    communicator.only_on_root(lambda: spoil(head, deed))
    trajectory = Trajectory(path, communicator)
    model = RowsModel(5, communicator)
    with pytest.raises(DamagedFileError) as caught:
        trajectory.reopen(model, {})
    assert str(caught.value).startswith(f"{shared_tmp_path}/")
    assert caught.value.shared
    communicator.barrier()
    trajectory.create(model, HEADER)  # the same object begins anew, beside the parts there are
    write(trajectory, model, [0])
    trajectory.close()
    communicator.barrier()
    check(path, 5, [0])


def test_damaged_frames_are_left_out(tmp_path, alone):
    parts = three_parts(tmp_path, alone)
    spoil(parts[1], "flipped")
    with open_run(tmp_path) as run:
        with pytest.warns(DamageWarning, match="frames 2 to 3, time 1 to 1.5, cannot be read"):
            assert run.intact_frames(range(1, 6, 2)) == [1, 5]
        with pytest.warns(DamageWarning, match="frames 2 to 3"):
            assert run.leave_out_damaged()
        assert run.step.tolist() == [0, 1, 4, 5]
        assert same_bits(run.positions(2), rows_at(4, 5)["bodies/position"])
        assert run.diagnostics.step.tolist() == [0, 1, 2, 3, 4, 5]
        assert not run.leave_out_damaged()
    for part in (parts[0], parts[2]):
        spoil(part, "gone")
    with pytest.warns(DamageWarning, match="no such file"):
        run = open_run(tmp_path)
    with run, pytest.raises(FileError, match="frames 2 to 3"):
        run.leave_out_damaged()
