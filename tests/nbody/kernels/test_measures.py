"""Measures of bodies on a device are those of the host, bit by bit, on any shares."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.bodies import make_backend
from support.nvrtc import compile_to_cubin, oldest_and_newest, words_for
from support.ranks import on_threads, this_rank

from hybrid_nbody.nbody import diagnostics
from hybrid_nbody.nbody.bodies import Bodies
from hybrid_nbody.nbody.kernels import make_measuring
from hybrid_nbody.nbody.kernels.gpu import measures as gpu
from hybrid_nbody.nbody.kernels.measured import MeasuredBodies

ON_EACH = pytest.mark.parametrize(
    "backend_name", ["cpu", pytest.param("gpu", marks=pytest.mark.gpu)]
)

SIZES = st.sampled_from([1, 2, 7, 100, 1000, 5000])


def bodies_of(number, seed, spread=0.0, scale=1.0):
    """Return bodies and potentials; `spread` is the decades over which lengths range."""
    random = np.random.default_rng([number, seed])
    position = random.standard_normal((number, 3)) * 10 ** random.uniform(
        -spread, spread, (number, 1)
    )
    mass = scale * random.uniform(0, 1, number)
    mass[:: max(3, number // 5)] = 0  # some have none
    mass[-1] = scale
    potential = -random.uniform(0, 1, number)
    return Bodies(position, random.standard_normal((number, 3)), mass, np.arange(number)), potential


def on_device(backend, bodies, potential):
    """Return the measures of bodies on a device."""
    arrays = (bodies.position, bodies.velocity, bodies.mass, potential)
    return make_measuring(backend).of(MeasuredBodies(*map(backend.upload, arrays)))


@ON_EACH
@settings(deadline=None, max_examples=30)
@given(
    number=SIZES,
    seed=st.integers(0, 2**32),
    spread=st.sampled_from([0.0, 3.0, 30.0]),
    scale=st.sampled_from([1.0, 1e-300, 1e100]),
)
def test_they_are_those_of_the_host(backend_name, number, seed, spread, scale):
    backend = make_backend(backend_name)
    bodies, potential = bodies_of(number, seed, spread, scale)
    found = diagnostics.measure_many(on_device(backend, bodies, potential), number, this_rank())
    assert repr(found) == repr(diagnostics.measure(bodies, potential, number, this_rank()))


@pytest.mark.parametrize("architecture", oldest_and_newest())
def test_the_kernels_compile(architecture):
    options = words_for(gpu.DEFINES, gpu.UNFUSED)
    cubin = compile_to_cubin(gpu.SOURCE.read_text(), options, architecture)
    for kernel in (b"find_largest", b"add_parts", b"find_distances", b"count_masses"):
        assert kernel + b"\0" in cubin


@pytest.mark.parametrize("cuts", [[], [40], [0, 17, 60], [100, 100]])
def test_shares_do_not_matter(backend_name, cuts):
    backend = make_backend(backend_name)
    bodies, potential = bodies_of(100, seed=3)
    shares = [slice(*pair) for pair in zip([0, *cuts], [*cuts, 100], strict=True)]

    def measured(rank):
        own = shares[rank.rank]
        part = bodies.part(own.start, own.stop)
        measures = on_device(backend, part, potential[own])
        return diagnostics.measure_many(measures, 100, rank)

    expected = repr(diagnostics.measure(bodies, potential, 100, this_rank()))
    assert {repr(found) for found in on_threads(len(shares), measured)} == {expected}


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_sums_over_a_number_that_is_not_finite_are_not_numbers(backend_name, value):
    backend = make_backend(backend_name)
    bodies, potential = bodies_of(100, seed=4)
    potential[17] = value
    found = diagnostics.measure_many(on_device(backend, bodies, potential), 100, this_rank())
    assert math.isnan(found["potential_energy"])


def test_bodies_without_mass_have_no_radii(backend_name):
    backend = make_backend(backend_name)
    bodies, potential = bodies_of(100, seed=5, scale=0.0)
    found = diagnostics.measure_many(on_device(backend, bodies, potential), 100, this_rank())
    assert all(math.isnan(found[name]) for name in diagnostics.RADII)
    assert found["kinetic_energy"] == 0.0
