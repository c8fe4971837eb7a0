"""Windows: what the paths of each section of a slab see."""

import numpy as np
import pytest
from support.ranks import this_rank
from support.staggered import PERIODIC, WALLS, make_stepper, put, still

from hybrid_nbody.fluid.staggered.windows import Windows


def windows_of(backend, communicator, faces, planes):
    """Return windows of a grid of some planes a rank."""
    cells = (4, 4, planes * communicator.size)
    return Windows(make_stepper(backend, communicator, cells, faces, still()).grid)


@pytest.mark.mpi
@pytest.mark.parametrize("faces", [PERIODIC, WALLS])
@pytest.mark.parametrize("planes", [2, 8, 20])
@pytest.mark.parametrize("depth", [2, 3, 4, 6])
def test_every_plane_sees_all_within_the_depth(backend, communicator, faces, planes, depth):
    """Whatever the ranks: planes hold their numbers here."""
    windows = windows_of(backend, communicator, faces, planes)
    grid = windows.grid
    own = np.arange(grid.planes + 2.0) + grid.first
    array = backend.upload(np.ones(grid.shape) * own[:, None, None])
    grid.fill(array)
    seen = [backend.download(a) for a in windows.of(array, depth, windows.empty(depth))]
    sections = windows.sections(depth)
    assert [section.start for section in sections[1:]] == [s.stop for s in sections[:-1]]
    assert (sections[0].start, sections[-1].stop) == (0, grid.planes + 2)
    number = grid.cells[2]
    for section, planes_seen in zip(sections, seen, strict=True):
        for plane in range(max(section.start, 1), min(section.stop, grid.planes + 1)):
            for step in range(-depth, depth + 1):
                there = plane + step + grid.first
                expected = (there - 1) % number + 1 if grid.periodic[2] else there
                if grid.periodic[2] or 0 <= there <= number + 1:
                    assert planes_seen[plane + step - section.origin, 0, 0] == expected


def test_a_rank_alone_sees_fields_as_they_are_between_walls(backend):
    windows = windows_of(backend, this_rank(), WALLS, 8)
    array = windows.grid.zeros()
    (seen,) = windows.of(array, 3, ())
    assert seen is array


def test_few_planes_are_copied(backend):
    """Of a periodic box alone: three depths at each end."""
    windows = windows_of(backend, this_rank(), PERIODIC, 40)
    assert [len(window) for window in windows.empty(4)] == [11, 0, 11]


@pytest.mark.mpi
@pytest.mark.parametrize("faces", [PERIODIC, WALLS])
def test_windows_that_were_too_shallow_are_made_again(backend, communicator, faces):
    """They are made of the depth so far while it is found out whether that suffices."""

    def seen(*durations):
        cells = (4, 4, 8 * communicator.size)
        stepper = make_stepper(backend, communicator, cells, faces, still())
        put(stepper, lambda axis, x, y, z: np.sin(3.0 * x + 5.0 * y + 7.0 * z + axis))
        for duration in durations:
            stepper.advection.follow(stepper.state.velocity, duration)
        advection = stepper.advection
        windows = [backend.download(window) for flow in advection.flow for window in flow]
        return advection.depth, windows

    for durations in ((0.5,), (0.01, 0.5), (0.01, 0.5, 0.01)):
        depth, windows = seen(*durations)
        if durations == (0.5,):
            expected = depth, windows
        assert depth == expected[0]
        for found, one in zip(windows, expected[1], strict=True):
            np.testing.assert_array_equal(found, one)
