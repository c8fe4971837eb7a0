"""The order of sources that a GPU finds is that of `sources`, chunks included."""

import numpy as np
import pytest
from support.bodies import clustered, make_backend
from support.nvrtc import compile_to_cubin, oldest_and_newest, words_for

from hybrid_nbody.nbody.initial_conditions import plummer, random_box
from hybrid_nbody.nbody.kernels.gpu import order
from hybrid_nbody.nbody.sources import spatial_order
from hybrid_nbody.nbody.state import make_state, set_order

NAMES = ("order", "starts", "chunks", "source_index", "own_order")

POSITIONS = {
    "a sphere": lambda: plummer(3000, 1).position,
    "a small sphere": lambda: plummer(1024, 2).position,
    "a large one": lambda: plummer(order.MOST_BODIES, 3).position,
    "a box": lambda: random_box(4097, seed=4).position,
    "clusters": lambda: clustered(4000, seed=5).position,
    "clumps": lambda: (
        np.repeat(random_box(40, seed=6).position, 32, axis=0)
        + 1e-6 * random_box(1280, seed=7).position
    ),
    "equal places": lambda: np.repeat(random_box(150, seed=8).position, 3, axis=0),
    "one place": lambda: np.ones((300, 3)),
    "one body": lambda: np.ones((1, 3)),
    "two bodies": lambda: np.array([[1.0, 0, 0], [-1, 0, 0]]),
    "a line": lambda: np.outer(np.linspace(-3, 3, 700), [1.0, 0, 0]),
}


@pytest.mark.parametrize("architecture", oldest_and_newest())
def test_the_sort_compiles(architecture):
    options = words_for(order.DEFINES, order.OPTIONS)
    cubin = compile_to_cubin(order.SOURCE.read_text(), options, architecture)
    for kernel in (b"find_box", b"find_keys", b"sort", b"find_leaps", b"find_heads", b"cut"):
        assert kernel + b"\0" in cubin


@pytest.mark.gpu
@pytest.mark.parametrize("name", POSITIONS)
def test_a_gpu_finds_the_order_of_the_host(name):
    backend = make_backend("gpu")
    position = POSITIONS[name]()
    everything = slice(0, len(position))
    sorted_there, expected = (
        make_state(backend, everything, np.ones(len(position))) for _ in range(2)
    )
    sorter = order.Sorter(backend, sorted_there)
    for shift in (0.0, 0.25, 0.5):  # the last sorts are replayed
        moved = position + shift * position**2
        sorted_there.position[:] = backend.upload(moved)
        sorter.sort()
        set_order(backend, expected, spatial_order(moved))
        for array in NAMES:
            found, true = (
                backend.download(getattr(state, array)) for state in (sorted_there, expected)
            )
            np.testing.assert_array_equal(found, true, err_msg=array)
    assert sorted_there.orders[0] == 3
