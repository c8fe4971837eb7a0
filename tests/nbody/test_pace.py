"""How long a run takes: from tables and the pace of this machine."""

import re
from types import SimpleNamespace

import pytest

from hybrid_nbody.backends.cpu import CpuBackend
from hybrid_nbody.nbody.calibrate import measured_pace
from hybrid_nbody.nbody.forces.choice import Choice
from hybrid_nbody.nbody.forces.speed import CORE, SPEEDS
from hybrid_nbody.nbody.kernels.contract import PairForce
from hybrid_nbody.nbody.kernels.units import Units
from hybrid_nbody.nbody.pace import expected_lines, in_words, seconds_of_force
from hybrid_nbody.nbody.plan import _memory, _method
from hybrid_nbody.simulation.plan import Workers

SPHERE = "bodies: {kind: plummer, n: 100}\ngravity: {softening: 0.01}\n"
DIRECT = Choice("direct")
N = 1_000_000


def test_a_direct_sum_takes_the_time_of_its_pairs(config_of):
    config = config_of(SPHERE)
    workers = Workers(("cpu", "cpu"), threads=4, pace=0.5)
    expected = N**2 / (CORE.pairs["single"] * 4 * 0.5) + CORE.overhead
    assert seconds_of_force(config, N, DIRECT, workers) == pytest.approx(expected, rel=1e-12)
    assert seconds_of_force(config, N, Choice("fmm"), workers) < 0.1 * expected
    assert seconds_of_force(config, N, DIRECT, Workers(("hybrid",), 4)) is None
    two_gpus = Workers(("gpu", "gpu"), 4)
    gpu = SPEEDS["gpu"]
    expected = gpu.seconds_of_tree(N, config.gravity.accuracy, "single", devices=2) + gpu.overhead
    found = seconds_of_force(config, N, Choice("fmm"), two_gpus)
    assert found == pytest.approx(expected, rel=1e-12)
    assert seconds_of_force(config, N, Choice("own"), workers) is None


MEASURED = [
    *[("single", 131072, 1e-4, 1.49e-3), ("single", 1 << 20, 1e-4, 5.97e-3)],
    *[("single", 1 << 20, 1e-6, 21.9e-3), ("single", 1 << 24, 1e-3, 39.8e-3)],
    *[("mixed", 1 << 20, 1e-4, 7.57e-3), ("double", 1 << 20, 1e-4, 9.52e-3)],
    *[("mixed", 1 << 20, 1e-7, 89.4e-3), ("double", 1 << 20, 1e-7, 89.5e-3)],
]
"""Precision, bodies, accuracy, and the seconds of a force on one H200."""


@pytest.mark.parametrize(("precision", "number", "accuracy", "seconds"), MEASURED)
def test_a_tree_on_a_gpu_takes_the_time_that_was_measured(precision, number, accuracy, seconds):
    speed = SPEEDS["gpu"]
    assert speed.seconds_of_tree(number, accuracy, precision) == pytest.approx(seconds, rel=0.25)
    shared = speed.seconds_of_tree(number, accuracy, precision, devices=2)
    assert seconds / 2 < shared < seconds  # a part of the work is done by each


@pytest.mark.parametrize(
    ("number", "pace", "line"),
    [
        (N, 1.0, ["expected: about 1 h 48 min, 2 min 10 s a step, without output"]),
        (N, 0.5, ["expected: about 3 h 37 min, 4 min 21 s a step, without output"]),
        (100, None, []),  # a fraction of a second: the pace is not measured
    ],
)
def test_a_long_run_says_how_long_it_takes_at_the_pace_of_this_machine(
    config_of, alone, number, pace, line
):
    """Three forces a step; of 100 steps 50 are left."""
    config = config_of(SPHERE + "time: {integrator: yoshida4, dt: 0.01, steps: 100}")
    placement = SimpleNamespace(backend=CpuBackend(2), backends=["cpu"])
    model = SimpleNamespace(number=number, step=50)
    setup = SimpleNamespace(placement=placement, model=model)
    measured = {placement.backend: pace} if pace else {}
    assert expected_lines(setup, config, DIRECT, alone, measured.__getitem__) == line


def test_a_much_faster_force_is_proposed(config_of):
    config = config_of(SPHERE)
    workers = Workers(("cpu",), 2)
    (_, method), (name, note) = _method(config, N, workers)
    assert method.startswith("direct; 43 s a step")
    assert name == "note"
    assert re.fullmatch(
        r"gravity\.solver: auto would take fmm: \S+ s a step, with errors of 0\.0001", note
    )
    assert len(_method(config, 10_000, workers)) == 1  # little is to be gained
    jerks = config_of(SPHERE + "time: {integrator: hermite4, dt: 0.01, steps: 100}")
    assert len(_method(jerks, N, workers)) == 1
    chosen = config_of(SPHERE.replace("{softening", "{solver: auto, softening"))
    assert len(_method(chosen, N, workers)) == 1


def test_seconds_in_words(config_of):
    fixed = config_of(SPHERE)
    adaptive = config_of(SPHERE + "time: {integrator: hermite4, dt: 0.01, steps: 100}")
    assert in_words(0.3, fixed) == "less than a second"
    assert in_words(125.0, fixed) == "about 2 min 05 s"
    assert in_words(125.0, adaptive) == "at least 2 min 05 s"


def test_the_pace_of_this_machine_is_measured(alone):
    law = PairForce("single", 0.01, 1.0, Units())
    assert 0.01 < measured_pace(CpuBackend(1), law, alone) < 100
    unknown = SimpleNamespace(name="abacus", threads=1)
    assert measured_pace(unknown, law, alone) == 1.0


def test_the_memory_of_many_bodies_is_said():
    one, two = ("gpu",), ("gpu", "gpu")
    assert _memory(1000, is_tree=False, backends=one) == ""
    assert _memory(N, is_tree=False, backends=two) == ", 0.64 GB of memory at most on a rank"
    assert _memory(N, is_tree=True, backends=one) == ", 0.6 GB of memory in all"
    assert _memory(N, is_tree=True, backends=two) == ", 0.6 GB of memory at most on a rank"
    assert _memory(10 * N, is_tree=True, backends=two) == ", 6 GB of memory in all"
    assert _memory(N, is_tree=True, backends=("cpu", "cpu")) == ", 0.6 GB of memory in all"
