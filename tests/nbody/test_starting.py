"""The bodies that a run starts from: every rank gets its own rows, of bodies drawn or held."""

from dataclasses import replace

import numpy as np
import pytest
from support import configs
from support.ranks import RowsModel, rows_at, same_bits, this_rank
from support.trajectories import HEADER, start

from hybrid_nbody.errors import InputError
from hybrid_nbody.files import stored_bodies
from hybrid_nbody.nbody import starting
from hybrid_nbody.nbody.bodies import Bodies
from hybrid_nbody.nbody.build import NBodyBuilder
from hybrid_nbody.nbody.drawn import BLOCK
from hybrid_nbody.nbody.initial_conditions import plummer
from hybrid_nbody.nbody.starting import ExaminedFile, initial_bodies, on_all_ranks
from hybrid_nbody.output.checkpoint import CheckpointWriter

CONFIG = """
model: nbody
bodies: {{kind: plummer, n: {number}}}
seed: 5
gravity: {{softening: 0.1}}
time: {{dt: 1e-3, steps: 10}}
compute: {{backend: cpu, threads: 1, balance: {balance}}}
"""
NAMES = ("position", "velocity", "mass", "id")


def some_bodies(number):
    """Return bodies of different masses, whose identities are not their indices."""
    random = np.random.default_rng(number)
    vectors = random.standard_normal((2, number, 3))
    return Bodies(*vectors, random.uniform(1, 2, number), random.permutation(number) + 100)


@pytest.mark.mpi
@pytest.mark.parametrize("number", [1, 2, 50])
def test_ranks_get_the_rows_that_they_ask_the_root_for(communicator, number):
    """The last rank asks for all, the first for none, the others for those from their rank on."""
    whole = some_bodies(number)
    source = on_all_ranks(whole if communicator.is_root else None, communicator)
    is_last = communicator.rank == communicator.size - 1
    first = 0 if is_last else min(communicator.rank, number)
    last = number if is_last or communicator.rank else 0
    found = source.rows(first, last)
    assert len(source) == number
    for name in NAMES:
        np.testing.assert_array_equal(getattr(found, name), getattr(whole, name)[first:last])
    np.testing.assert_array_equal(source.masses(), whole.mass)


@pytest.mark.mpi
@pytest.mark.parametrize("number", [1, 2, 100, BLOCK + 5])
@pytest.mark.parametrize("uneven", [False, True])
def test_a_run_starts_from_the_same_bodies_on_any_number_of_ranks(communicator, number, uneven):
    balance = [1.0 + 9 * rank for rank in range(communicator.size)] if uneven else "auto"
    config = configs.loads(CONFIG.format(number=number, balance=balance), "test.yaml")
    builder = NBodyBuilder(config, communicator)
    model = builder.fresh(builder.initial() if communicator.is_root else None).model
    expected = plummer(number, seed=5)
    for name in NAMES:
        field = model.fields()[f"bodies/{name}"]
        found = communicator.concatenate(field.host(0, field.rows))
        np.testing.assert_array_equal(found, getattr(expected, name))


def test_bodies_must_fit_into_the_memory_of_their_machine(monkeypatch):
    """A machine needs memory for the part of them that its ranks will hold."""
    config = configs.loads(CONFIG.format(number=10**6, balance="auto"), "test.yaml")
    monkeypatch.setattr(starting, "available_memory", lambda: 10**8)
    with pytest.raises(InputError, match="1000000 bodies take 0.15 GB of memory at least"):
        initial_bodies(config)
    assert len(initial_bodies(config, part=0.5)) == 10**6


# ---- Files ---------------------------------------------------------------------------------------

FILE = """
model: nbody
bodies: {{kind: file, path: {path}, dimensions: {dimensions}}}
time: {{dt: 1e-3, steps: 10}}
compute: {{backend: cpu, threads: 1}}
"""


def of_file(path, dimensions=3):
    """Return the configuration of bodies in a file."""
    return configs.loads(FILE.format(path=path, dimensions=dimensions), "test.yaml")


def write_state(folder, kind, number):
    """Write bodies as a run does, and return the file and the step."""
    model = RowsModel(number, this_rank())
    if kind == "trajectory":
        start(folder, model, [0, 3]).close()
        return folder / "trajectory.h5"
    return CheckpointWriter(folder, HEADER, 1, model.communicator).save(model.at(3))


@pytest.mark.mpi
@pytest.mark.parametrize("number", [1, 2, 500])
@pytest.mark.parametrize("kind", ["trajectory", "checkpoint"])
def test_ranks_read_their_own_rows_of_a_file(communicator, shared_tmp_path, kind, number):
    """The last rank reads all, the first none, the others those from their rank on."""
    path = communicator.on_root(lambda: write_state(shared_tmp_path, kind, number))
    initial = initial_bodies(of_file(path)) if communicator.is_root else None
    source = on_all_ranks(initial, communicator)
    assert isinstance(initial, ExaminedFile) == communicator.is_root
    is_last = communicator.rank == communicator.size - 1
    first = 0 if is_last else min(communicator.rank, number)
    last = number if is_last or communicator.rank else 0
    found = source.rows(first, last)
    assert len(source) == number
    expected = rows_at(3, number)
    for name in NAMES:
        assert same_bits(getattr(found, name), expected[f"bodies/{name}"][first:last])
    np.testing.assert_array_equal(source.masses(), expected["bodies/mass"])


@pytest.mark.mpi
def test_a_file_that_one_rank_cannot_read_ends_all(communicator, shared_tmp_path):
    path = communicator.on_root(lambda: write_state(shared_tmp_path, "checkpoint", 10))
    initial = initial_bodies(of_file(path)) if communicator.is_root else None
    source = on_all_ranks(initial, communicator)
    communicator.barrier()
    communicator.on_root(path.unlink)
    with pytest.raises(InputError, match="no such file") as caught:
        source.rows(0, 10)
    assert caught.value.shared


def test_some_bodies_of_a_file_stand_for_all(tmp_path, monkeypatch):
    """The extreme ones are among them: units and refusals follow from these."""
    monkeypatch.setattr(starting, "SAMPLE", 100)
    monkeypatch.setattr(starting, "PIECE", 250)
    monkeypatch.setattr(stored_bodies, "PIECE", 250)
    path = write_state(tmp_path, "checkpoint", 5000)
    found = initial_bodies(of_file(path)).sample()
    whole = rows_at(3, 5000)
    assert len(np.unique(found.id)) == len(found) <= 100 + 20 * 9
    assert np.ptp(found.mass) == np.ptp(whole["bodies/mass"])
    for name in ("position", "velocity"):
        assert np.abs(getattr(found, name)).max() == np.abs(whole[f"bodies/{name}"]).max()
    np.testing.assert_array_equal(
        np.ptp(found.position, axis=0), np.ptp(whole["bodies/position"], axis=0)
    )


def test_all_bodies_of_a_small_file_stand_for_themselves(tmp_path):
    path = write_state(tmp_path, "checkpoint", 5000)
    found = initial_bodies(of_file(path)).sample()
    assert same_bits(found.position, rows_at(3, 5000)["bodies/position"])


def test_a_body_that_leaves_the_plane_is_named_by_its_number(tmp_path, monkeypatch):
    monkeypatch.setattr(stored_bodies, "PIECE", 2)
    monkeypatch.setattr(RowsModel, "fields", in_plane_up_to_the_fifth(RowsModel.fields))
    path = write_state(tmp_path, "checkpoint", 7)
    with pytest.raises(InputError, match="body 5, counted from 0, has z = 1 and vz = 0"):
        initial_bodies(of_file(path, dimensions=2))


def in_plane_up_to_the_fifth(fields):
    """Return the fields of a model, its bodies at rest at the origin but for one."""

    def changed(model):
        found = fields(model)
        at = np.zeros((model.number, 3))
        at[5, 2] = 1.0
        arrays = {"bodies/position": at, "bodies/velocity": np.zeros_like(at)}
        for name, array in arrays.items():
            host = lambda start, stop, array=array: array[start:stop]  # noqa: E731
            found[name] = replace(found[name], host=host)
        return found

    return changed
