"""Shares that follow the speed of the ranks during a run: the state moves, and its bits stay."""

import gc
import weakref
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from support import configs
from support.ranks import same_bits
from support.runs import assert_same_run, contents

from hybrid_nbody.fluid import on_centres
from hybrid_nbody.nbody import build as nbody
from hybrid_nbody.nbody.build import NBodyBuilder
from hybrid_nbody.parallel import calibrate
from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.parallel.shares import RunSetup
from hybrid_nbody.running import job, start
from hybrid_nbody.running.models import MODELS
from hybrid_nbody.running.rebalance import LEAST_GAIN, Rebalancer, better_shares
from hybrid_nbody.simulation.model import Role

BODIES = """
model: nbody
bodies: {kind: plummer, n: 150}
gravity: {softening: 0.05, precision: PRECISION}
time: {dt: 1e-3, steps: 8, integrator: INTEGRATOR}
compute: {backend: cpu, threads: 1, balance: equal}
output:
  directory: OUT
  trajectory: {every_steps: 2}
  diagnostics: {every_steps: 2}
  checkpoint: {every_steps: 5}
"""
FLUID = """
model: fluid
grid: {cells: [10, 8, 13]}
fluid: {boundary: [free-slip, no-slip, WALL]}
solver: {method: METHOD, max_iterations: 6}
sources:
  events:
    - {step: 0, density: 1}
    - {steps: [0, 3], velocity: [1, 2, -3]}
    - {step: 6, velocity: [0, 2, 1]}
time: {dt: 0.1, steps: 8}
compute: {backend: cpu, threads: 1, balance: equal}
output:
  directory: OUT
  trajectory: {every_steps: 2}
  diagnostics: {every_steps: 2}
  checkpoint: {every_steps: 5}
"""
STAGGERED = FLUID.replace("solver: {method: METHOD, max_iterations: 6}\n", "").replace(
    "fluid: {boundary: [free-slip, no-slip, WALL]}",
    "fluid: {grid: staggered, advection: maccormack, boundary: {z-: {inflow: [0, 0, 1]}, "
    "z+: outflow, y: no-slip}}",
)
CASES = {
    "single leapfrog": BODIES.replace("PRECISION", "single").replace("INTEGRATOR", "leapfrog"),
    "double euler": BODIES.replace("PRECISION", "double").replace("INTEGRATOR", "euler"),
    "double hermite4": BODIES.replace("PRECISION", "double").replace("INTEGRATOR", "hermite4"),
    "red-black": FLUID.replace("METHOD", "red-black").replace("WALL", "free-slip"),
    "staggered": STAGGERED,
    "multigrid": FLUID.replace("METHOD", "multigrid").replace("WALL", "no-slip"),
}
STEPS = {"nbody": (4, 3, 2, 3, 4), "fluid": (2, 1, 1, 2, 2)}
"""Steps before each move, and after the last one: a fluid's take many messages."""
ON_CPUS = list(CASES)
CASES |= {
    f"{name}, GPUs": text.replace("backend: cpu, threads: 1", "backend: gpu")
    for name, text in CASES.items()
}
EVERYWHERE = [
    pytest.param(name, marks=() if name in ON_CPUS else pytest.mark.gpu) for name in CASES
]


@pytest.fixture(autouse=True)
def pass_over_older_objects(monkeypatch):
    """Each move collects garbage: let it look at the objects of its test alone."""
    monkeypatch.setattr(gc, "unfreeze", lambda: None)
    gc.freeze()


def built_of(text, communicator):
    """Return the builder of a configuration, and what it built."""
    config = configs.loads(text, "test.yaml")
    builder = MODELS[config.model].builder(config, communicator)
    return builder, builder.fresh(communicator.only_on_root(builder.initial))


def stepped(model, steps):
    """Advance a model, whose device another one may have left, and return its diagnostics."""
    model.backend.use()
    model.advance(steps)
    return model.diagnostics()


def state_of(model):
    """Return every row of the complete state, on every rank."""
    fields = [
        field for field in model.fields().values() if field.role not in (Role.SHOWN, Role.WATCHED)
    ]
    return {
        field.name: np.concatenate(model.communicator.gather(field.host(0, field.rows)))
        for field in fields
    }


def rising(size):
    return [float(rank + 1) for rank in range(size)]


def falling(size):
    return rising(size)[::-1]


def nearly_alone(size):
    """The second rank gets all bodies, or all planes but one of each other rank."""
    return [1.0 if rank == 1 else 1e-6 for rank in range(size)]


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("name", EVERYWHERE)
def test_a_run_that_is_shared_out_anew_has_the_bits_of_one_that_is_not(communicator, name):
    _, still = built_of(CASES[name], communicator)
    builder, built = built_of(CASES[name], communicator)
    # so that a sort of the sources lies between
    first_step = 505 if name.startswith("single leapfrog") else 0
    for model in (still.model, built.model):
        model.step = first_step
    simulation, lines = SimpleNamespace(model=built.model), []
    rebalancer = Rebalancer(builder, built, lines.append)
    del built, model
    *before_moves, at_the_end = STEPS[builder.config.model]
    shares = (rising, nearly_alone, falling, rising)
    for steps, speeds in zip(before_moves, shares, strict=True):
        stepped(still.model, steps)
        stepped(simulation.model, steps)
        rebalancer.speeds = None
        builder.speeds = lambda built, seconds, now=speeds: now(communicator.size)
        model = simulation.model
        before = weakref.ref(getattr(model, "bodies", None) or model.state)
        del model
        rebalancer.look(simulation)
        assert before() is None  # it would take its memory beside the new one
    assert len(lines) == 4
    assert rebalancer.setup.exchange.partition.counts != still.exchange.partition.counts
    diagnostics = stepped(still.model, at_the_end)
    assert stepped(simulation.model, at_the_end) == diagnostics
    moved, expected = state_of(simulation.model), state_of(still.model)
    assert moved.keys() == expected.keys()
    for field, rows in expected.items():
        assert same_bits(moved[field], rows), field
    assert (
        simulation.model.step == still.model.step == first_step + sum(STEPS[builder.config.model])
    )


@pytest.mark.mpi(min_size=2)
def test_bodies_that_go_around_in_blocks_move_as_well(communicator):
    """With the exchange `ring` the order of sums follows the shares: the last digits differ."""
    text = CASES["single leapfrog"].replace("threads: 1", "threads: 1, exchange: ring")
    _, still = built_of(text, communicator)
    builder, built = built_of(text, communicator)
    rebalancer = Rebalancer(builder, built, lambda line: None)
    simulation = SimpleNamespace(model=built.model)
    builder.speeds = lambda built, seconds: rising(communicator.size)
    for model in (still.model, simulation.model):
        model.advance(4)
    rebalancer.look(simulation)
    for model in (still.model, simulation.model):
        model.advance(4)
    assert rebalancer.setup.exchange.partition.counts != still.exchange.partition.counts
    moved = state_of(simulation.model)["bodies/position"]
    expected = state_of(still.model)["bodies/position"]
    np.testing.assert_allclose(moved, expected, rtol=0, atol=1e-8)


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("name", ["single leapfrog", "red-black"])
def test_a_whole_run_keeps_its_output_while_it_is_shared_out_anew(
    communicator, shared_tmp_path, monkeypatch, name
):
    """Simulation, recorder, guard and schedules go on with the model that replaces the other."""
    outcomes = []
    for balance in ("equal", "measured"):
        folder = shared_tmp_path / balance
        config = shared_tmp_path / f"{balance}.yaml"
        text = (
            CASES[name].replace("OUT", str(folder)).replace("balance: equal", f"balance: {balance}")
        )
        communicator.only_on_root(partial(config.write_text, text))
        calls = iter([rising, falling] * 100)
        builder = type(built_of(text, communicator)[0])
        monkeypatch.setattr(
            builder, "speeds", lambda *_, calls=calls: next(calls)(communicator.size)
        )
        monkeypatch.setattr(
            Rebalancer, "_speeds", lambda self: self.builder.speeds(self.setup, None)
        )
        monkeypatch.setattr(job, "BALANCE_SECONDS", 0.0)
        outcomes.append(start.run(config, [], False, communicator, 0.0).code)
    assert outcomes == [0, 0]
    if communicator.is_root:
        assert_same_run(shared_tmp_path / "equal", shared_tmp_path / "measured")
        assert len(contents(shared_tmp_path / "measured")["step"]) > 3
        log = (shared_tmp_path / "measured" / "log.txt").read_text()
        assert log.count("shared out anew as") > 3
        assert "shared out anew" not in (shared_tmp_path / "equal" / "log.txt").read_text()


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize(
    ("module", "text"),
    [
        (nbody, CASES["single leapfrog"].replace("n: 150", "n: 1500")),
        (on_centres, CASES["red-black"]),
    ],
    ids=["bodies", "fluid"],
)
def test_a_whole_run_by_speeds_that_were_measured(
    communicator, shared_tmp_path, monkeypatch, module, text
):
    """The first calibration alone is made up, so that the run begins with shares that change."""
    wrong, measured = iter([[19.0] + [1.0] * (communicator.size - 1)]), module.measured_weights
    monkeypatch.setattr(
        module, "measured_weights", lambda *arguments: next(wrong, None) or measured(*arguments)
    )
    monkeypatch.setattr(nbody, "LEAST_SECONDS", 0.0)  # however fast the machine is
    monkeypatch.setattr(calibrate, "ROUND_SECONDS", 0.005)
    monkeypatch.setattr(job, "BALANCE_SECONDS", 0.0)
    for balance in ("equal", "measured"):
        config, folder = shared_tmp_path / f"{balance}.yaml", shared_tmp_path / balance
        written = text.replace("OUT", str(folder)).replace("balance: equal", f"balance: {balance}")
        communicator.only_on_root(partial(config.write_text, written))
        assert start.run(config, [], False, communicator, 0.0).code == 0
    if communicator.is_root:
        assert_same_run(shared_tmp_path / "equal", shared_tmp_path / "measured")
        assert "shared out anew as" in (shared_tmp_path / "measured" / "log.txt").read_text()


@pytest.mark.mpi(min_size=2)
def test_timings_go_on_where_they_were(communicator):
    builder, built = built_of(CASES["double euler"], communicator)
    rebalancer = Rebalancer(builder, built, lambda line: None)
    simulation = SimpleNamespace(model=built.model)
    built.model.advance(3)
    before = dict(built.model.timings.seconds)
    builder.speeds = lambda built, seconds: rising(communicator.size)
    rebalancer.look(simulation)
    assert simulation.model is not built.model
    assert before["force"] > 0
    assert all(simulation.model.timings[name] >= seconds for name, seconds in before.items())


# ---- Deciding ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counts", "speeds", "least", "expected", "gain"),
    [
        ((50, 50), [1.0, 1.0], 0, (50, 50), 0.0),
        ((50, 50), [3.0, 1.0], 0, (75, 25), 0.5),
        ((75, 25), [3.0, 1.0], 0, (75, 25), 0.0),
        ((5, 5), [99.0, 1.0], 1, (9, 1), 0.8),  # the slow rank keeps a plane
        ((100, 0), [2.0, 0.0], 0, (100, 0), 0.0),  # nothing is known of a rank without work
        ((60, 40), None, 0, (60, 40), 0.0),
    ],
)
def test_better_shares(counts, speeds, least, expected, gain):
    present = Partition((0, *np.cumsum(counts).tolist()))
    partition, saved = better_shares(present, speeds, least)
    assert partition.counts == expected
    assert saved == pytest.approx(gain, abs=1e-12)


class Standing:
    """A builder whose ranks have the speeds that a test says; it must not build."""

    least = 0

    def __init__(self, communicator, *speeds):
        self.communicator, self.answers, self.heard = communicator, list(speeds), []

    def busy_seconds(self, built):
        return built.model.timings["force"]

    def speeds(self, built, seconds):
        self.heard.append(seconds)
        return self.answers.pop(0)

    def rearranged(self, built, partition, saved):
        pytest.fail(f"moved to {partition.counts}")


def standing(alone, *speeds):
    """Return a rebalancer of two ranks with equal shares, and the timings of its model."""
    timings = {"force": 0.0}
    exchange = SimpleNamespace(partition=Partition.equal(100, 2))
    built = SimpleNamespace(model=SimpleNamespace(timings=timings, step=0), exchange=exchange)
    return Rebalancer(Standing(alone, *speeds), built, pytest.fail), timings


def look_after_a_step(rebalancer):
    rebalancer.setup.model.step += 1
    rebalancer.look(SimpleNamespace(model=rebalancer.setup.model))


def test_a_small_gain_moves_nothing(alone):
    rebalancer, _ = standing(alone, [1.0, 1.0 - 1.5 * LEAST_GAIN])
    look_after_a_step(rebalancer)


def test_nothing_is_measured_before_a_step_is_done(alone):
    rebalancer, _ = standing(alone, [1.0, 1.0])
    for _ in range(2):
        rebalancer.look(SimpleNamespace(model=rebalancer.setup.model))
    assert rebalancer.builder.heard == []
    look_after_a_step(rebalancer)
    assert rebalancer.builder.heard == [[0.0]]


def test_one_slow_moment_is_averaged_with_what_was_before(alone):
    rebalancer, _ = standing(alone, [1.0, 1.0], [1.0, 0.9], [1.0, 0.9])
    for expected in ([1.0, 1.0], [1.0, 0.95], [1.0, 0.925]):
        look_after_a_step(rebalancer)
        assert rebalancer.speeds == pytest.approx(expected, rel=1e-12)


def test_seconds_count_from_the_last_look_that_could_tell(alone):
    rebalancer, timings = standing(alone, None, [1.0, 1.0], [1.0, 1.0])
    for seconds in (0.25, 0.5, 2.0):
        timings["force"] = seconds
        look_after_a_step(rebalancer)
    assert rebalancer.builder.heard == [[0.25], [0.5], [1.5]]


def sharing(*weights):
    """Return what a hundred bodies with such shares run on."""
    model = SimpleNamespace(pair_force="a law")
    exchange = SimpleNamespace(partition=Partition.weighted(100, weights))
    return RunSetup(model, SimpleNamespace(backend="a device"), exchange)


def test_speeds_of_bodies_are_bodies_a_second():
    assert NBodyBuilder.speeds(None, sharing(3, 1), [1.5, 2.5]) == [50.0, 10.0]
    assert NBodyBuilder.speeds(None, sharing(3, 1), [0.01, 0.02]) is None


def test_where_a_rank_has_no_bodies_calibration_measures_all(monkeypatch, alone):
    """Also in bodies a second, however short the forces were."""

    def measured(backend, pair_force, number, communicator):
        assert (backend, pair_force) == ("a device", "a law")
        assert (number, communicator) == (100, alone)
        return [9e6, 2e6, 1e6]

    monkeypatch.setattr(nbody, "measured_weights", measured)
    builder = NBodyBuilder(configs.loads(CASES["single leapfrog"], "test.yaml"), alone)
    assert builder.speeds(sharing(3, 1, 0), [0.01, 0.02, 0.0]) == [9e4, 2e4, 1e4]


@pytest.mark.mpi(min_size=2)
def test_a_rank_without_bodies_gets_some_again(communicator, monkeypatch):
    monkeypatch.setattr(calibrate, "ROUND_SECONDS", 0.01)
    weights = [1.0] + [0.0] * (communicator.size - 1)
    builder, built = built_of(CASES["single leapfrog"].replace("equal", str(weights)), communicator)
    assert built.exchange.partition.counts[1:] == (0,) * (communicator.size - 1)
    rebalancer = Rebalancer(builder, built, lambda line: None)
    simulation = SimpleNamespace(model=built.model)
    simulation.model.advance(1)
    rebalancer.look(simulation)
    assert min(rebalancer.setup.exchange.partition.counts) > 0
