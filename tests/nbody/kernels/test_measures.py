"""Measures of bodies on a device are those of the host, bit by bit, on any shares."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.bodies import make_backend
from support.nvrtc import compile_to_cubin, oldest_and_newest, words_for
from support.ranks import communicator, this_rank

from hybrid_nbody import Simulation
from hybrid_nbody.nbody import diagnostics
from hybrid_nbody.nbody import model as model_of_bodies
from hybrid_nbody.nbody.bodies import Bodies
from hybrid_nbody.nbody.kernels import make_measuring
from hybrid_nbody.nbody.kernels.gpu import measures as gpu
from hybrid_nbody.nbody.kernels.measured import MeasuredBodies
from hybrid_nbody.parallel.partition import Partition

__all__ = ["communicator"]

ON_EACH = pytest.mark.parametrize(
    "backend_name", ["cpu", pytest.param("gpu", marks=pytest.mark.gpu)]
)

SIZES = st.sampled_from([1, 2, 7, 100, 1000, 10_000])


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
    spread=st.sampled_from([0.0, 3.0, 30.0, 200.0]),
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


@pytest.mark.mpi
@pytest.mark.parametrize("weights", [(1, 1, 1, 1), (3, 0, 1, 5)], ids=["even", "uneven"])
def test_shares_do_not_matter(backend_name, communicator, weights):
    bodies, potential = bodies_of(100, seed=3)
    shares = Partition.weighted(100, [float(weight) for weight in weights[: communicator.size]])
    own = shares.share(communicator.rank)
    measures = on_device(
        make_backend(backend_name), bodies.part(own.start, own.stop), potential[own]
    )
    found = diagnostics.measure_many(measures, 100, communicator)
    assert repr(found) == repr(diagnostics.measure(bodies, potential, 100, this_rank()))


ALIKE = {
    "equal masses": lambda bodies: np.full(len(bodies), 0.25),
    "a mass of -0.0": lambda bodies: np.where(np.arange(len(bodies)) % 7, bodies.mass, -0.0),
}


@pytest.mark.parametrize("name", ALIKE)
@pytest.mark.parametrize("place", ["anywhere", "one place", "far away"])
def test_bodies_that_are_alike(backend_name, name, place):
    bodies, potential = bodies_of(10_000, seed=6)
    mass = 1e5 * ALIKE[name](bodies)
    factor = {"anywhere": 1.0, "one place": 0.0, "far away": 1e160}[place]
    bodies = Bodies(factor * bodies.position, bodies.velocity, mass, bodies.id)
    number = len(bodies)
    found = diagnostics.measure_many(
        on_device(make_backend(backend_name), bodies, potential), number, this_rank()
    )
    assert repr(found) == repr(diagnostics.measure(bodies, potential, number, this_rank()))


@pytest.mark.gpu
def test_threads_take_several_bodies(monkeypatch):
    monkeypatch.setattr(gpu, "MOST_THREADS", 512)
    bodies, potential = bodies_of(10_000, seed=7)
    measures = on_device(make_backend("gpu"), bodies, potential)
    found = diagnostics.measure_many(measures, 10_000, this_rank())
    assert repr(found) == repr(diagnostics.measure(bodies, potential, 10_000, this_rank()))


TREE = {"solver": "fmm", "accuracy": 1e-3}
FIELD = {"external": [{"kind": "uniform", "acceleration": [0.0, 0.0, -1.0]}]}


@pytest.mark.mpi
@pytest.mark.parametrize("gravity", [{}, TREE, FIELD], ids=["direct", "tree", "field"])
def test_a_model_measures_the_same_on_its_device(backend_name, communicator, gravity, monkeypatch):
    simulation = Simulation(
        model="nbody",
        bodies={"kind": "plummer", "n": 900},
        gravity={"softening": 0.05, **gravity},
        time={"dt": 1e-3, "steps": 20},
        compute={"backend": backend_name, "threads": 1},
        communicator=communicator,
    )
    simulation.run(steps=11)  # bodies may be on other ranks
    on_host = simulation.model.diagnostics()
    monkeypatch.setattr(model_of_bodies, "MANY", 1)
    assert repr(simulation.model.diagnostics()) == repr(on_host)


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
