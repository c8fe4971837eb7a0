"""The activity map: bodies counted in the cells of the unit square, on any backend and ranks."""

import numpy as np
import pytest
from support.nvrtc import architectures, compile_to_cubin, words_for

from hybrid_nbody.backends.cpu import CpuBackend
from hybrid_nbody.backends.hybrid import HybridBackend
from hybrid_nbody.nbody.activity import ActivityMap
from hybrid_nbody.nbody.kernels import make_counter
from hybrid_nbody.nbody.kernels.gpu.activity import SOURCE
from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.simulation.model import Role


def positions(number, seed=3):
    """Return bodies in a square a little larger than the unit square."""
    return np.random.default_rng(seed).uniform(-0.1, 1.1, (number, 3))


def map_of(backend, communicator, cells, position, number):
    """Return an up-to-date map of bodies of which this rank has some."""
    made = ActivityMap(backend, communicator, cells, number)
    made.update(backend.upload(position))
    return made.field()


@pytest.mark.parametrize("cells", [1, 7, 100])
@pytest.mark.parametrize("number", [0, 1, 5000])
def test_counts_are_those_of_numpy(backend, cells, number):
    position = positions(number)
    counts = make_counter(backend, cells).count(backend.upload(position))
    expected, _, _ = np.histogram2d(position[:, 1], position[:, 0], cells, range=((0, 1), (0, 1)))
    np.testing.assert_array_equal(counts, expected)


def test_edges(backend):
    """A cell holds its lower edges, the last ones their upper edges too; nothing beyond counts."""
    inside = [(0, 0), (0.5, 0), (0, 0.5), (1, 1), (1, 0), (0.25, 1), (np.nextafter(0.5, 0), 0)]
    outside = [
        (-1e-300, 0.5),
        (np.nextafter(1, 2), 0.5),
        (0.5, 7e9),
        (np.nan, 0.5),
        (0.5, np.inf),
        (-np.inf, 0.5),
    ]
    position = np.array([(x, y, 0.0) for x, y in inside + outside])
    counts = make_counter(backend, 2).count(backend.upload(position))
    np.testing.assert_array_equal(counts, [[2, 2], [2, 1]])


def test_counts_are_made_anew(backend):
    counter = make_counter(backend, 4)
    for seed in (1, 2):
        counts = counter.count(backend.upload(positions(100, seed)))
    fresh = make_counter(backend, 4).count(backend.upload(positions(100, 2)))
    np.testing.assert_array_equal(counts, fresh)


def test_of_two_devices_the_one_with_the_positions_counts():
    device = HybridBackend(CpuBackend(1), CpuBackend(1))
    counts = make_counter(device, 3).count(positions(50))
    assert counts.sum() == np.sum(
        np.all((positions(50)[:, :2] >= 0) & (positions(50)[:, :2] <= 1), axis=1)
    )


@pytest.mark.mpi
@pytest.mark.parametrize(("cells", "number"), [(7, 1000), (2, 1)])
def test_the_map_over_ranks(backend, communicator, cells, number):
    """Each rank owns some rows, perhaps none, of the map of all bodies."""
    everybody = positions(number)
    everybody[0] = (0.1, 0.9, 0)
    own = Partition.weighted(number, list(range(1, communicator.size + 1))).share(communicator.rank)
    field = map_of(backend, communicator, cells, everybody[own], number)
    rows = np.concatenate(communicator.gather(field.host(0, field.rows)))
    counts, _, _ = np.histogram2d(everybody[:, 1], everybody[:, 0], cells, range=((0, 1), (0, 1)))
    assert (field.name, field.role, rows.dtype, field.shape) == (
        "activity/map",
        Role.SHOWN,
        "f8",
        (cells, cells),
    )
    np.testing.assert_array_equal(rows, counts * cells / number)
    starts = np.cumsum([0, *communicator.gather(field.rows)])[:-1]
    assert communicator.gather(field.index.start) == list(starts)


@pytest.mark.parametrize("architecture", architectures())
def test_the_cuda_source_compiles(architecture):
    cubin = compile_to_cubin(SOURCE.read_text(), words_for({}), architecture)
    assert b"count\0" in cubin
