"""The fast multipole method as the force of a run: bits over ranks, restarts, energy, refusals."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from support import configs
from support.bodies import clustered, make_backend, make_model, whole
from support.runs import assert_same_run, contents, run
from support.tree_forces import make_force, make_settling_force, moved

from hybrid_nbody.backends.simd import LANES
from hybrid_nbody.errors import InputError
from hybrid_nbody.nbody.bodies import Bodies
from hybrid_nbody.nbody.build import NBodyBuilder
from hybrid_nbody.nbody.forces.registry import FORCES, check_backends
from hybrid_nbody.nbody.forces.tree import devices, force
from hybrid_nbody.nbody.forces.tree.force import TreeForce
from hybrid_nbody.nbody.initial_conditions import (
    figure_eight,
    lagrange_triangle,
    plummer,
    random_box,
    two_body,
)
from hybrid_nbody.nbody.kernels.cpu.tree.grown_tree import GrownTree
from hybrid_nbody.nbody.kernels.cpu.tree.kernels import TreeSums

CONFIG = """\
model: nbody
bodies: {kind: plummer, n: 400}
gravity: {solver: fmm, accuracy: 3e-3, softening: 0.05}
time: {dt: 1e-2, steps: 40}
compute: {backend: cpu}
output:
  directory: OUT
  trajectory: {every_steps: 10}
  diagnostics: {every_steps: 5}
  checkpoint: {every_steps: 20, keep: 3}
"""


@pytest.fixture
def job(tmp_path):
    """Return a configuration file; its run goes to ``tmp_path / "out"``."""
    path = tmp_path / "job.yaml"
    path.write_text(CONFIG.replace("OUT", str(tmp_path / "out")))
    return path


WEIGHTS = ("equal", "uneven", "one rank has none")


def shares_of(weights, ranks):
    """Return the shares of ranks, or None for equal ones."""
    return {
        "equal": None,
        "uneven": [1.0 + 2 * rank for rank in range(ranks)],
        "one rank has none": [1.0] * (ranks - 1) + [float(ranks == 1)],
    }[weights]


def assert_same_bits(bodies, communicator, alone, weights, **options):
    """Assert that a model on several ranks has the bits of one on one rank."""
    names = ("bodies/position", "bodies/velocity", "gravity/acceleration")

    def found(ranks, **shares):
        model = moved(bodies, ranks, **shares, **options)
        model.diagnostics()  # they may have to bring bodies back
        model.advance(2)
        return {name: whole(model, name) for name in names}, model.diagnostics()

    expected, diagnostics = communicator.on_root(lambda: found(alone))
    rows, values = found(communicator, weights=shares_of(weights, communicator.size))
    for name in names:
        np.testing.assert_array_equal(rows[name], expected[name], err_msg=name)
    np.testing.assert_equal(values, diagnostics)  # a NaN equals a NaN


@pytest.fixture(params=["return", "stay"])
def settling(request, monkeypatch):
    """Return options of forces after which bodies return, or stay at once, however few came."""
    monkeypatch.setattr(force, "FORCES_AT_HOME", 1)
    monkeypatch.setattr(force, "MOST_AWAY", 0.0)
    return {"make_force": {"return": make_force, "stay": make_settling_force}[request.param]}


@pytest.mark.mpi
@pytest.mark.parametrize("weights", WEIGHTS)
def test_bits_do_not_depend_on_the_ranks(communicator, alone, weights, settling):
    assert_same_bits(plummer(700, seed=3), communicator, alone, weights, **settling)


def clumps_of_any_size(seed, number):
    """Return bodies in clumps down to 1e-8 of the whole, one far away, masses over six decades."""
    chance = np.random.default_rng(seed)
    scale = 10.0 ** chance.uniform(-8, 0, 4)
    clump = chance.integers(0, 4, number)
    position = chance.uniform(-1, 1, (4, 3))[clump]
    position += scale[clump, None] * chance.normal(size=(number, 3))
    position[0, 0] += 10.0 ** chance.uniform(0, 6)
    mass = 10.0 ** chance.uniform(-6, 0, number)
    mass[1::5] = 0  # the first one always has some
    return Bodies(position, 0.1 * chance.normal(size=(number, 3)), mass / mass.sum())


@pytest.mark.mpi
@settings(
    derandomize=True,  # the same examples on all ranks
    database=None,
    deadline=None,
    max_examples=8,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    seed=st.integers(0, 1000),
    number=st.integers(1, 300),
    weights=st.sampled_from(WEIGHTS),
)
@example(seed=1, number=1, weights="uneven")
@example(seed=2, number=2, weights="one rank has none")
@example(seed=3, number=300, weights="uneven")
def test_bits_of_any_bodies_do_not_depend_on_the_ranks(
    communicator, alone, settling, seed, number, weights
):
    bodies = clumps_of_any_size(seed, number)
    assert_same_bits(bodies, communicator, alone, weights, **settling)


@cache
def gpu_of(local_rank):
    return make_backend("gpu", local_rank=local_rank)


@pytest.mark.gpu
@pytest.mark.mpi
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("softening", [0.0, 0.05])
@pytest.mark.parametrize("set_of_bodies", ["a few", "many", "clumps", "crowded"])
@pytest.mark.parametrize("piece", [devices.CELLS_OF_A_PIECE, 40])
def test_bits_do_not_depend_on_the_ranks_of_gpus(
    communicator, alone, weights, set_of_bodies, softening, piece, settling, monkeypatch
):
    """Of a tree that ranks divide among them."""
    monkeypatch.setattr(devices, "CELLS_OF_A_PIECE", piece)
    monkeypatch.setattr(force, "MOST_WHOLE", 0)
    bodies = {
        "a few": lambda: plummer(3, seed=3),
        "many": lambda: plummer(9000, seed=3),
        "clumps": lambda: clustered(9000, clusters=5),
        "crowded": lambda: Bodies(np.zeros((500, 3)), np.zeros((500, 3)), np.full(500, 1 / 500)),
    }[set_of_bodies]()
    backend = gpu_of(communicator.local_rank)
    options = {"backend": backend, "softening": softening} | settling
    assert_same_bits(bodies, communicator, alone, weights, **options)


@pytest.mark.mpi
def test_ranks_get_the_cells_that_they_need_and_hold_no_others(communicator, monkeypatch):
    held = []
    release = TreeSums.release

    def look_and_release(tree):
        sources = tree._whole.bodies.columns.shape[1] - LANES
        held.append((len(tree.own.bodies.mass), sources))
        release(tree)
        assert not any(isinstance(each, GrownTree) for each in vars(tree).values())

    monkeypatch.setattr(TreeSums, "release", look_and_release)
    moved(plummer(10000, seed=8), communicator)
    own, sources = held[-1]
    assert communicator.sum(np.array(own)) == 10000
    others = sources - own
    share = others / max(10000 - own, 1)
    assert 0.1 < share < 0.8 or communicator.size == 1


@pytest.mark.mpi
def test_a_cell_that_was_not_sent_is_fetched(communicator, monkeypatch):
    """As if ranks differed in whether an expansion is accurate enough."""
    bodies = plummer(700, seed=9)
    expected = whole(moved(bodies, communicator), "gravity/acceleration")
    essential = TreeSums.essential

    def nothing(self, rank, targets):
        return essential(self, rank, None if targets is None else targets[:0])

    monkeypatch.setattr(TreeSums, "essential", nothing)
    found = whole(moved(bodies, communicator), "gravity/acceleration")
    np.testing.assert_array_equal(found, expected)


def test_a_resumed_run_has_the_bits_of_one_that_was_not_interrupted(job, tmp_path, mpirun):
    run(job)
    again = ["--set", f"output.directory={tmp_path / 'again'}"]
    run(job, *again, "--set", "time.steps=20")
    result = mpirun(2, "-m", "hybrid_nbody", "resume", tmp_path / "again", "--set", "time.steps=40")
    assert result.returncode == 0, result.stderr
    assert_same_run(tmp_path / "again", tmp_path / "out")
    energy = contents(tmp_path / "out")["diagnostics/relative_energy_error"]
    assert 0 < np.abs(energy).max() < 1e-3


def test_energy_and_motion_are_those_of_the_direct_sum(alone):
    bodies = plummer(500, seed=4)
    direct = make_model(bodies, 1e-2, alone, precision="single", softening=0.05)
    direct.advance(5)
    tree = moved(bodies, alone)
    np.testing.assert_allclose(
        tree.diagnostics()["total_energy"], direct.diagnostics()["total_energy"], rtol=1e-4, atol=0
    )
    found, expected = (whole(model, "bodies/velocity") for model in (tree, direct))
    change = np.abs(expected - bodies.velocity).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=0.01 * change)


def make_accurate_force(setup):
    """Return a force whose expansions the tests of kernels compile, too."""
    return TreeForce(replace(setup, accuracy=3e-4))


@pytest.mark.parametrize("make", [figure_eight, two_body, lagrange_triangle])
def test_known_orbits_are_those_of_the_direct_sum(alone, make):
    """Few bodies share a leaf, whatever the accuracy."""
    direct = make_model(make(), 1e-2, alone)
    tree = make_model(make(), 1e-2, alone, make_force=make_accurate_force)
    for model in (direct, tree):
        model.advance(200)
    for name in ("bodies/position", "bodies/velocity"):
        np.testing.assert_allclose(whole(tree, name), whole(direct, name), rtol=0, atol=1e-11)


def test_results_scale_with_the_units(alone):
    """By powers of two, to the bit; with m ~ r^3 times stay."""
    bodies = random_box(300, seed=5)
    larger = 2.0**40
    scaled = Bodies(larger * bodies.position, larger * bodies.velocity, larger**3 * bodies.mass)
    first = moved(bodies, alone, softening=0.01)
    second = moved(scaled, alone, softening=0.01 * larger)
    for name in ("gravity/acceleration", "bodies/position"):
        np.testing.assert_array_equal(whole(second, name), larger * whole(first, name))


@pytest.mark.parametrize("factor", [2.0**-600, 2.0**600])
def test_accelerations_scale_with_the_masses(alone, factor):
    """Their squares would be beyond the range of float64."""
    bodies = plummer(3000, seed=5)
    scaled = replace(bodies, mass=factor * bodies.mass)
    first, second = (
        make_model(some, 1e-2, alone, precision="single", softening=0.01, make_force=make_force)
        for some in (bodies, scaled)
    )
    expected = factor * whole(first, "gravity/acceleration")
    np.testing.assert_array_equal(whole(second, "gravity/acceleration"), expected)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ("time.integrator=hermite4", "gravity.solver: fmm does not compute"),
        ("compute.exchange=ring", "is not for gravity.solver: fmm"),
        ("gravity.solver=direct", "is for a solver that is not exact"),
        ("gravity.accuracy=1e-9", "1e-07"),
        ("gravity.accuracy=0.1", "0.01"),
    ],
)
def test_what_it_cannot_do_is_refused_in_a_line(job, settings, reason):
    error = run("check", job, "--set", settings, check=2).stderr
    assert reason in error
    assert "Traceback" not in error


def test_a_device_on_which_it_does_not_run_is_refused(alone, monkeypatch):
    monkeypatch.setitem(FORCES, "fmm", replace(FORCES["fmm"], backends=("gpu",)))
    builder = NBodyBuilder(configs.loads(CONFIG, "job.yaml"), alone)
    with pytest.raises(InputError, match=r"fmm does not run on backend cpu; take compute\.backend"):
        builder.fresh(builder.initial())


@pytest.mark.parametrize(("number", "name"), [(200, "direct"), (14_000, "fmm")])
def test_auto_says_what_it_takes_and_a_restart_takes_the_same(job, number, name, tmp_path):
    settings = ["--set", "gravity.solver=auto", "--set", f"bodies.n={number}"]
    settings += ["--set", "gravity.accuracy=1e-2", "--set", f"output.directory={tmp_path / 'out'}"]
    plan = run("check", job, *settings).stdout
    assert f"solver auto chose {name}: on such devices" in plan
    assert "s a step" in plan
    assert f"{name} gravity" in run("run", job, *settings).stdout
    resumed = run("resume", tmp_path / "out", "--set", "time.steps=41").stdout
    assert f"solver auto chose {name}: the run began with it" in resumed


def test_all_ranks_take_one_backend():
    check_backends("fmm", ["gpu", "gpu"])
    with pytest.raises(InputError, match="takes one backend on all ranks, not cpu and gpu"):
        check_backends("fmm", ["cpu", "gpu"])


def test_positions_that_are_no_numbers_stay_so(alone):
    bodies = plummer(100, seed=6)
    model = moved(bodies, alone)
    model.bodies.position[3] = np.nan
    model.advance(1)
    assert np.isnan(whole(model, "bodies/acceleration")).all()


def test_check_tells_the_work(job):
    text = run("check", job).stdout
    assert "1.6e+04 accelerations" in text
    assert "fmm" in text
