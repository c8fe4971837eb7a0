"""Frames of some bodies and fields: what they hold on any ranks, and what they leave alone."""

import numpy as np
import pytest
from support import configs
from support.ranks import scattered_shares
from support.runs import contents, run, run_in_ways

from hybrid_nbody.backends.cpu import CpuBackend
from hybrid_nbody.errors import InputError
from hybrid_nbody.files.bodies import read_bodies
from hybrid_nbody.files.listing import load_listing
from hybrid_nbody.files.run import open_run
from hybrid_nbody.nbody.build import NBodyBuilder
from hybrid_nbody.nbody.frames import Frames, every_nth, of_ids
from hybrid_nbody.output.checkpoint import SAVED_ROLES
from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.parallel.rows import slabs
from hybrid_nbody.simulation.model import FRAME_ROLES, SHARED_ROLES, Field, fields_of

CONFIG = """\
model: nbody
bodies: {kind: plummer, n: 50}
gravity: {softening: 0.1}
time: {dt: 1e-3, steps: 12}
compute: {backend: cpu, threads: 1}
output:
  directory: OUT
  trajectory: {every_steps: 4}
  diagnostics: {every_steps: 3}
  checkpoint: {every_steps: 6}
"""
NUMBER = 50
IDS = 100 - np.arange(NUMBER)
POSITION = np.random.default_rng(1).standard_normal((NUMBER, 3))


def built(communicator, frames):
    """Return the model of a configuration whose frames hold what `frames` says."""
    config = configs.loads(CONFIG.replace("every_steps: 4", f"every_steps: 4, {frames}"), "a.yaml")
    maker = NBodyBuilder(config, communicator)
    return maker.fresh(maker.initial() if communicator.is_root else None).model


def whole(field, communicator):
    """Return the rows of a field that the root puts together, on the root; None elsewhere."""
    pieces = [rows.copy() for _, rows in slabs(field, communicator)]
    return np.concatenate(pieces) if communicator.is_root else None


def shares(communicator, permuted):
    """Return this rank's rows: consecutive ones, perhaps none, or any."""
    if permuted:
        return scattered_shares(NUMBER, communicator.size)[communicator.rank]
    weights = list(range(communicator.size + 1))[1:]
    return Partition.weighted(NUMBER, weights).share(communicator.rank)


def field_of(own):
    """Return the positions of a rank as a model has them."""
    mine = POSITION[own]
    return mine, Field(
        "bodies/position", POSITION.shape, np.dtype("f8"), "", "", own, lambda a, b: mine[a:b]
    )


@pytest.mark.mpi
@pytest.mark.parametrize("permuted", [False, True])
@pytest.mark.parametrize("step", [1, 2, 7, 49, 50, 1000])
def test_every_nth_body_on_any_ranks(communicator, permuted, step):
    own = shares(communicator, permuted)
    mine, field = field_of(own)
    chosen = every_nth(step, own, NUMBER)
    shown = Frames(("position",), "float32", chosen, CpuBackend(1)).shown(field, mine, [field])
    found = whole(shown, communicator)
    if communicator.is_root:
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, POSITION[::step].astype("f4"))
    assert shown.shape == (len(POSITION[::step]), 3)
    assert shown.start().rows().shape == (shown.rows, 3)


@pytest.mark.mpi
@pytest.mark.parametrize("permuted", [False, True])
@pytest.mark.parametrize("rows", [[3], [49, 0, 20, 21], list(range(NUMBER))])
def test_bodies_of_some_ids_in_the_order_of_the_bodies(communicator, permuted, rows):
    own = shares(communicator, permuted)
    mine, field = field_of(own)
    chosen = of_ids(IDS[rows].tolist(), IDS[own], own, communicator)
    frames = Frames(("position",), "float64", chosen, CpuBackend(1))
    found = whole(frames.shown(field, mine, [field]), communicator)
    ids = whole(frames.shown_once(replaced_by_ids(field), IDS[own]), communicator)
    if communicator.is_root:
        np.testing.assert_array_equal(found, POSITION[sorted(rows)])
        np.testing.assert_array_equal(ids, IDS[sorted(rows)])


def replaced_by_ids(field):
    """Return the field of the identities."""
    return Field("bodies/id", (NUMBER,), np.dtype("i8"), "", "", field.index, field.host)


@pytest.mark.parametrize("chosen", [every_nth(1, slice(0, 4), 4), every_nth(3, slice(0, 4), 4)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_copies_at_several_times_are_chosen_as_one_is(chosen, dtype):
    copies = 10.0 ** np.random.default_rng(3).uniform(-300, 300, (5, 4, 3))
    field = Field("bodies/position", (4, 3), np.dtype("f8"), "", "", slice(0, 4), None)
    frames = Frames(("position",), dtype, chosen, CpuBackend(1))
    found = frames.shown(field, copies[0], [field]).part_of.choose(copies)
    assert found.flags.c_contiguous
    assert found.dtype == dtype
    for k, copy in enumerate(copies):
        one = frames.shown(field, copy, [field])
        np.testing.assert_array_equal(found[k], one.host(0, one.rows))


@pytest.mark.mpi
def test_ids_that_no_body_has_are_refused_on_every_rank(communicator):
    own = shares(communicator, permuted=False)
    with pytest.raises(InputError) as caught:
        of_ids([100, 7, *range(-6, 1), 52], IDS[own], own, communicator)
    assert caught.value.shared
    assert str(caught.value) == (
        "output.trajectory.ids: no body has the id -6, -5, -4, -3, -2 and 3 more"
    )


@pytest.mark.mpi
def test_checkpoints_and_the_guard_see_every_body(communicator):
    model = built(communicator, "every_body: 10, fields: [velocity], precision: float32")
    saved = {field.name: field for field in fields_of(model, *SAVED_ROLES)}
    everything = {field.name: field for field in fields_of(built(communicator, ""), *SAVED_ROLES)}
    assert saved.keys() == everything.keys()
    assert all(saved[name].shape == everything[name].shape for name in saved)
    assert saved["bodies/position"].dtype == np.float64
    frames = {field.name: field for field in fields_of(model, *FRAME_ROLES)}
    assert {name: (field.shape, field.dtype) for name, field in frames.items()} == {
        "bodies/velocity": ((5, 3), np.float32)
    }
    shared = {field.name: field for field in fields_of(model, *SHARED_ROLES)}
    ids = whole(shared["bodies/id"], communicator)
    assert shared["bodies/mass"].dtype == np.float64
    if communicator.is_root:
        assert ids.tolist() == [0, 10, 20, 30, 40]


# ---- Whole runs ----------------------------------------------------------------------------------

THIN = "output.trajectory.every_body=9", "output.trajectory.precision=float32"
SOME = "output.trajectory.ids=[41, 2, 3]", "output.trajectory.fields=[position]"


@pytest.fixture
def job(tmp_path):
    """A configuration in a folder of its own."""
    path = tmp_path / "job.yaml"
    path.write_text(CONFIG.replace("OUT", str(tmp_path / "out")))
    return path


def checkpointed(folder):
    """Return the arrays of the last checkpoint of a run."""
    table = read_bodies(folder / "checkpoint-0000000012.h5")
    return table.position, table.velocity, table.mass, table.id


def test_runs_write_the_rows_of_a_whole_frame_on_one_and_three_ranks(job, mpirun):
    ways = {"whole": (1,)}
    for ranks in (1, 3):
        ways |= {f"thin{ranks}": (ranks, *THIN), f"some{ranks}": (ranks, *SOME)}
    run_in_ways(mpirun, job, ways)
    complete = contents(job.parent / "whole")
    for ranks in (1, 3):
        thin = contents(job.parent / f"thin{ranks}")
        some = contents(job.parent / f"some{ranks}")
        for name in ("bodies/position", "bodies/velocity"):
            np.testing.assert_array_equal(thin[name], complete[name][:, ::9].astype("f4"))
        np.testing.assert_array_equal(thin["bodies/id"], range(0, 50, 9))
        np.testing.assert_array_equal(
            some["bodies/position"], complete["bodies/position"][:, [2, 3, 41]]
        )
        assert "bodies/velocity" not in some
        for found in (thin, some):
            for name in (name for name in complete if name.startswith("diagnostics/")):
                np.testing.assert_array_equal(found[name], complete[name], err_msg=name)
        for name in (f"thin{ranks}", f"some{ranks}"):
            pairs = zip(
                checkpointed(job.parent / name), checkpointed(job.parent / "whole"), strict=True
            )
            assert all(np.array_equal(one, two) for one, two in pairs)


def test_every_rank_writes_its_share_of_large_thinned_frames(job, mpirun):
    """Frames that are large enough are shared, whatever the bodies that they hold."""
    code = (
        "from hybrid_nbody.output import sharing; sharing.SHARED_BYTES = 1\n"
        "import sys; from hybrid_nbody.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    done = mpirun(3, "-c", code, "run", str(job), *(f"--set={setting}" for setting in THIN))
    assert done.returncode == 0, done.stdout + done.stderr
    shared = contents(job.parent / "out")
    parts = load_listing(job.parent / "out" / "trajectory.h5").parts
    assert {part.entries.pieces for part in parts if part.frames} == {3}
    run(job, "--overwrite", *(f"--set={setting}" for setting in THIN))
    alone = contents(job.parent / "out")
    np.testing.assert_array_equal(shared["bodies/position"], alone["bodies/position"])
    np.testing.assert_array_equal(shared["bodies/id"], alone["bodies/id"])


def test_a_thinned_run_goes_on_in_the_same_file_and_begins_another_for_others(job):
    run(job, *(f"--set={setting}" for setting in THIN))
    folder = job.parent / "out"
    run("resume", folder, "--set=time.steps=16")
    assert contents(folder)["bodies/position"].shape == (5, 6, 3)
    text = run("resume", folder, "--set=time.steps=20", "--set=output.trajectory.ids=[7]").stdout
    assert "frames hold other contents from here on" in text
    assert contents(folder)["bodies/id"].tolist() == [7]
    with open_run(folder / "trajectory.until-0000000016.h5") as before:
        assert before.positions(-1).dtype == np.float32
        assert before.number_of_bodies == 6


def test_a_thinned_trajectory_does_not_stand_for_its_run(job):
    run(job, *(f"--set={setting}" for setting in THIN))
    path = job.parent / "out" / "trajectory.h5"
    with pytest.raises(InputError, match=r"not all bodies \(1 of every 9\).*checkpoints"):
        read_bodies(path)
    assert "6, 1 of every 9" in run("info", path.parent).stdout
    run(job, "--overwrite", "--set=output.trajectory.fields=[position]")
    with pytest.raises(InputError, match="no velocity"):
        read_bodies(path)


def test_check_tells_the_size_of_what_is_kept(job):
    """Four frames of 24 bytes for each ninth body, and two checkpoints of 6.9 MB."""
    many = "--set=bodies.n=100000"
    thin = run("check", job, many, *(f"--set={setting}" for setting in THIN)).stdout
    assert "2 checkpoints, about 15.1 MB" in thin
