"""Short calibrations: what is measured is counted right, on as many bodies as it takes."""

import numba
import pytest
from support import configs
from support.bodies import make_backend, make_gravity
from support.devices import hybrid
from support.ranks import this_rank

from hybrid_nbody.nbody import build, calibrate, diagnostics
from hybrid_nbody.nbody.forces.tree import calibrate as tree_calibrate
from hybrid_nbody.nbody.initial_conditions import plummer
from hybrid_nbody.nbody.kernels import expansion_of, make_measuring, reference
from hybrid_nbody.nbody.kernels.contract import PairForce
from hybrid_nbody.nbody.kernels.cpu import measures
from hybrid_nbody.nbody.kernels.cpu.sums import add_scaled_on_threads
from hybrid_nbody.nbody.kernels.cpu.tree import kernels as tree_sums
from hybrid_nbody.nbody.kernels.measured import MANY, MeasuredBodies

LAW = PairForce("single", 0.1)


@pytest.mark.parametrize(("number", "rate"), [(500, 1e9), (5000, 1e6), (5000, 1e9), (5000, 1e12)])
def test_interactions_a_second_on_a_clock_of_known_rate(monkeypatch, alone, number, rate):
    tried = []

    def seconds(backend, kernels, state):
        tried.append(len(state.source_index))
        return len(state.source_index) * len(state.mass) / rate

    monkeypatch.setattr(calibrate, "_seconds", seconds)
    weights = calibrate.measured_weights(make_backend("cpu"), LAW, number, alone)
    assert weights == [pytest.approx(rate, rel=1e-12)]
    assert tried[0] == min(calibrate.FIRST_TARGETS, number)
    assert tried == sorted(tried)
    enough = tried[-1] * number / rate > calibrate.LONG_ENOUGH
    assert enough or tried[-1] == number
    assert all(
        targets * number / rate <= calibrate.LONG_ENOUGH for targets in tried if targets < tried[-1]
    )


@pytest.mark.mpi
def test_every_rank_hears_the_speed_of_all(communicator):
    weights = calibrate.measured_weights(make_backend("cpu"), LAW, 300, communicator)
    assert len(weights) == communicator.size
    assert min(weights) > 0
    assert len(set(map(str, communicator.gather(weights)))) == 1


def test_a_calibration_beside_a_run_leaves_what_the_backend_of_the_run_remembers(alone):
    """The share of the helper in the run decides whether a step of it is replayed."""
    backend = hybrid(0.0)
    make_gravity(backend, plummer(300, seed=1), "single", 0.1).kernels.fix(0.3)
    calibrate.measured_weights(backend, LAW, 300, alone)
    assert backend.helping


def test_a_sample_has_the_requested_targets():
    kernels, state = calibrate.make_sample(make_backend("cpu"), PairForce("double", 0.1), 200, 30)
    kernels.accelerations(state)
    true = reference.accelerations(state.position, state.mass, 0.1, targets=range(30))
    assert abs(state.acceleration - true).max() < 1e-12 * abs(true).max()


@pytest.mark.parametrize("accuracy", [1e-2, 1e-4, 1e-7])
def test_the_walk_of_a_rank_without_bodies_takes_what_others_take(monkeypatch, accuracy):
    """So it is compiled without the kernels that grow a tree, which a helper compiles."""
    backend, taken = make_backend("cpu"), []

    def noted(roots, *arguments):  # the walk is not compiled; an output of zeros is a result
        taken.append(([numba.typeof(each) for each in (roots, *arguments)], len(roots)))

    monkeypatch.setattr(tree_sums, "sum_forces", noted)
    settings = (expansion_of(backend, accuracy, "single"), 1e-4)
    tree_calibrate.walk_without_bodies(backend, settings)
    tree_calibrate.grow_sample(backend, settings).sums(potentials=False)
    (without, none), (usual, some) = taken
    assert without == usual
    assert none == 0 < some


@pytest.mark.parametrize(("solver", "sums"), [("direct", True), ("fmm", False)])
def test_a_tree_on_one_rank_compiles_no_direct_sums(monkeypatch, alone, solver, sums):
    asked = []
    monkeypatch.setattr(build, "compile_kernels", lambda *given: asked.append(given[-1]))
    text = f"""
model: nbody
bodies: {{kind: plummer, n: 300}}
gravity: {{softening: 0.1, solver: {solver}}}
time: {{dt: 1e-3, steps: 1}}
compute: {{backend: cpu, threads: 1}}
"""
    maker = build.NBodyBuilder(configs.loads(text, "test.yaml"), alone)
    maker.fresh(maker.initial())
    assert asked == [sums]


def test_what_many_bodies_need_is_compiled_beforehand():
    backend = make_backend("cpu")
    functions = (
        add_scaled_on_threads,
        measures.find_largest,
        measures.add_parts,
        measures.find_distances,
        measures.count_masses,
    )
    calibrate.compile_kernels(backend, LAW, MANY, sums=False)
    compiled = [list(function.signatures) for function in functions]
    assert all(compiled)
    kernels, state = calibrate.make_bodies(backend, LAW, MANY, MANY)
    kernels.kick(state, 0.5)
    own = MeasuredBodies(state.own_position, state.velocity, state.mass, state.mass)
    diagnostics.measure_many(make_measuring(backend).of(own), MANY, this_rank())
    assert [list(function.signatures) for function in functions] == compiled
