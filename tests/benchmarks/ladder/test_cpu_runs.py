"""CPU rungs against the float64 reference, and the problems and checks themselves."""

import ctypes

import numpy as np
import pytest
from support.bodies import make_backend

from hybrid_nbody.benchmarks.harness.machine import compiler
from hybrid_nbody.benchmarks.harness.runs import box, check, massive_box, plummer_sphere
from hybrid_nbody.benchmarks.ladder import runs
from hybrid_nbody.benchmarks.ladder.rungs import LADDERS, PRODUCTION, SYMMETRIC
from hybrid_nbody.errors import InputError
from hybrid_nbody.nbody.kernels import reference

PROBLEMS = (box, massive_box, plummer_sphere)
RUNGS = {
    rung.name: rung for ladder in LADDERS.values() for rung in ladder.rungs if rung.device == "cpu"
}


@pytest.fixture(scope="module")
def cpu():
    return make_backend("cpu")


def made(rung, backend, problem):
    if rung.missing(None):
        pytest.skip(rung.missing(None))
    return rung.make(backend, problem)


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("name", RUNGS)
def test_a_step_of_every_rung(cpu, name, problem):
    """Accelerations to the rounding of 500 float32 terms, relative to their length."""
    bodies = problem(500)
    run = made(RUNGS[name], cpu, bodies)
    run.step(500)
    position, velocity = run.result()
    true = reference.accelerations(
        bodies.position.astype(float), bodies.mass.astype(float), bodies.softening
    )
    error = np.linalg.norm(velocity / bodies.dt - true, axis=1) / np.linalg.norm(true, axis=1)
    assert np.median(error) < 2e-6
    assert error.max() < 1e-4
    np.testing.assert_allclose(position, bodies.position + bodies.dt**2 * true, rtol=0, atol=2e-5)


@pytest.mark.parametrize(
    "name", [name for name in RUNGS if "production" not in name and "in C" not in name]
)
def test_a_step_of_the_first_bodies_alone(cpu, name):
    run = made(RUNGS[name], cpu, massive_box(300))
    found = check(run, 70, stop=lambda: None)
    assert found["checked"] == np.sum(run.problem.sample < 70)
    assert found["error_max"] < 1e-4
    run.step(70)
    np.testing.assert_array_equal(run.result()[0][70:], run.problem.position[70:])


def test_the_symmetric_loop_counts_what_it_does(cpu):
    run = SYMMETRIC.make(cpu, box(100))
    assert run.interactions(100) == 100**2
    assert run.interactions(1) == 2 * 99 + 1  # 99 pairs, and the body itself


def test_a_problem_is_the_one_of_the_report():
    problem = box(4096)
    assert problem.eps2 == np.float32(1e-9)
    assert problem.dt == 0.01
    assert (problem.mass == 1).all()
    assert np.abs(problem.position).max() <= 1
    assert massive_box(64).mass.min() >= 1 < massive_box(64).mass.max() <= 10


def test_the_check_finds_a_wrong_step(cpu):
    run = PRODUCTION[0].make(cpu, massive_box(200))
    run.step(200)
    position, velocity = (array.copy() for array in run.result())
    good = run.problem.check(position, velocity, 200)
    position[0] += 0.01
    velocity[1] *= 1.5
    bad = run.problem.check(position, velocity, 200)
    assert good["within_tolerance"] == 1.0 and good["error_max"] < 1e-4
    assert bad["within_tolerance"] == pytest.approx(1 - 1 / bad["checked"])
    assert bad["position_error"] == pytest.approx(0.01, rel=1e-3)
    assert bad["error_max"] == pytest.approx(0.5, rel=1e-3)
    assert bad["error_median"] < 2e-6


# ---- The loop in C -------------------------------------------------------------------------------


@pytest.mark.skipif(compiler() is None, reason="needs a C compiler")
def test_the_library_is_compiled_once_and_leaves_denormals_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "node_local_cache", lambda: tmp_path)
    runs.load.cache_clear()
    library = runs.load("double")
    assert isinstance(library, ctypes.CDLL)
    (path,) = tmp_path.iterdir()
    written = path.stat().st_mtime_ns
    runs.load.cache_clear()
    runs.load("double")
    assert path.stat().st_mtime_ns == written
    runs.load.cache_clear()
    tiny = np.array([np.finfo(float).tiny])
    assert (tiny / 2 > 0).all()


def test_a_machine_without_a_compiler(monkeypatch, tmp_path):
    monkeypatch.setattr(runs, "node_local_cache", lambda: tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    runs.load.cache_clear()
    assert RUNGS["struct of arrays in C, OpenMP"].missing(None) == "needs a C compiler"
    with pytest.raises(InputError, match="^no C compiler: neither"):
        runs.load("float")


def test_a_compiler_that_fails_is_quoted(monkeypatch, tmp_path):
    fake = tmp_path / "gcc"
    fake.write_text("#!/bin/sh\necho 'no space left' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setattr(runs, "node_local_cache", lambda: tmp_path)
    monkeypatch.setenv("CC", str(fake))
    runs.load.cache_clear()
    with pytest.raises(InputError, match=r"gcc cannot compile openmp_loop\.c: no space left$"):
        runs.load("float")
