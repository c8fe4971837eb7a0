"""Planes of other ranks: the ones next to a slab, or as many as are asked for."""

import numpy as np
import pytest
from support.ranks import same_bits

from hybrid_nbody.backends.cpu import CpuBackend
from hybrid_nbody.parallel import communicator as communicators
from hybrid_nbody.parallel.exchange.halo import HaloExchange
from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.parallel.transport.host import HostTransport

UNTOUCHED = -7.0


def exchange(communicator, planes, periodic):
    """Return the exchange of a grid whose planes are shared out unevenly."""
    partition = Partition.weighted(planes, [1.0 + rank % 2 for rank in range(communicator.size)])
    return HaloExchange(
        HostTransport(CpuBackend(1), communicator), partition, communicator, periodic
    )


def whole(planes):
    """Return planes that are all different."""
    return np.arange(planes * 6, dtype="f4").reshape(planes, 2, 3) + 1


def planes_around(grid, own, depth, periodic):
    """Return the planes of a slab and `depth` beyond each end, as the exchange should find them."""
    wanted = range(own.start - depth, own.stop + depth)
    missing = np.full_like(grid[0], UNTOUCHED)
    inside = [
        grid[plane % len(grid)] if periodic or 0 <= plane < len(grid) else missing
        for plane in wanted
    ]
    return np.stack(inside)


def own_planes(halo, grid):
    """Return this rank's planes with a halo plane at each end that holds nothing yet."""
    array = np.full((halo.own.stop - halo.own.start + 2, *grid.shape[1:]), UNTOUCHED, grid.dtype)
    array[1:-1] = grid[halo.own]
    return array


@pytest.mark.mpi
@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("planes", [4, 5, 11])
def test_halo_planes_are_those_of_the_neighbours(communicator, planes, periodic):
    halo, grid = exchange(communicator, planes, periodic), whole(planes)
    array = own_planes(halo, grid)
    halo.fill(array)
    assert same_bits(array, planes_around(grid, halo.own, 1, periodic))


@pytest.mark.mpi
@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("depth", [1, 2, 4])
def test_several_arrays_with_more_planes_beyond_the_ends_than_are_filled(
    communicator, depth, periodic
):
    """Also where slabs have fewer planes than that."""
    most, grids = 4, [whole(6), -whole(6)]
    halo = exchange(communicator, 6, periodic)
    arrays = [planes_around(grid, halo.own, most, periodic) for grid in grids]
    for array in arrays:
        array[:most] = array[-most:] = UNTOUCHED
    halo.fill(*arrays, depth=depth)
    for array, grid in zip(arrays, grids, strict=True):
        filled = slice(most - depth, len(array) - most + depth)
        assert same_bits(array[filled], planes_around(grid, halo.own, depth, periodic))
        assert (array[: most - depth] == UNTOUCHED).all()
        assert (array[len(array) - most + depth :] == UNTOUCHED).all()


@pytest.mark.mpi
@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("depth", [1, 2, 5, 13])
def test_a_window_reaches_across_any_number_of_ranks(communicator, depth, periodic):
    """Across all of them, and round the edge more than once."""
    halo, grid = exchange(communicator, 6, periodic), whole(6)
    array = own_planes(halo, grid)
    out = np.full((len(array) - 2 + 2 * depth, *grid.shape[1:]), UNTOUCHED, grid.dtype)
    halo.window(array, depth, out)
    assert same_bits(out, planes_around(grid, halo.own, depth, periodic))


@pytest.mark.mpi
def test_the_largest_value_of_all_ranks_is_known_to_all(communicator):
    halo = exchange(communicator, 4, False)
    flags = np.array([communicator.rank, -communicator.rank], np.int32)
    halo.maximum(flags)
    assert flags.tolist() == [communicator.size - 1, 0]
    assert halo.largest(float(communicator.rank)) == communicator.size - 1


@pytest.mark.mpi
@pytest.mark.parametrize("planes", [1, 2, 5])
@pytest.mark.parametrize("faces", [False, True])
def test_what_ranks_found_of_planes_comes_in_their_order_by_one_message(
    communicator, monkeypatch, planes, faces
):
    """Also from ranks without planes, and where the last one has a face more."""
    halo = exchange(communicator, planes, False)
    grid = np.arange(2.0 * (planes + faces)).reshape(-1, 2)
    last = halo.own.stop == planes and halo.own.stop > halo.own.start
    own = grid[halo.own.start : halo.own.stop + (faces and last)]
    waits = []
    wait = communicators.wait
    monkeypatch.setattr(
        communicators, "wait", lambda *request: waits.append(request) or wait(*request)
    )
    assert same_bits(halo.planes_of_all(own), grid)
    assert len(waits) == (communicator.size > 1)
