"""Ranks on different devices agree with ranks on one kind to rounding, and share by speed."""

from types import SimpleNamespace

import numpy as np
import pytest
from support import configs

from hybrid_nbody.running.models import MODELS
from hybrid_nbody.running.rebalance import Rebalancer

BODIES = """
model: nbody
bodies: {kind: plummer, n: 3000}
gravity: {softening: 0.05, precision: PRECISION}
time: {dt: 1e-3, steps: 30}
compute: {backend: BACKEND, threads: 1}
"""
FLUID = """
model: fluid
grid: {cells: [37, 24, 40]}
fluid: {boundary: [free-slip, no-slip, WALL], dtype: float64}
solver: {method: METHOD, criterion: CRITERION, tolerance: 1e-5}
sources:
  events:
    - {step: 0, density: 1}
    - {steps: [0, 3], velocity: [1, 2, -3]}
    - {step: 6, velocity: [0, 2, 1]}
time: {dt: 0.1, steps: 8}
compute: {backend: BACKEND, threads: 1}
"""


def fluid(method, criterion="change", wall="free-slip"):
    return FLUID.replace("METHOD", method).replace("CRITERION", criterion).replace("WALL", wall)


CASES = {
    "single": (BODIES.replace("PRECISION", "single"), 1e-7),
    "double": (BODIES.replace("PRECISION", "double"), 1e-13),
    "red-black": (fluid("red-black"), 1e-4),
    "red-black by the residual": (fluid("red-black", "residual"), 1e-4),
    "sor": (fluid("sor", wall="periodic"), 1e-4),
    "multigrid": (fluid("multigrid", "residual"), 1e-4),
}
"""Configurations, and how far the states of two kinds of devices may be apart: for a fluid, what a
solve leaves."""


def built_of(text, communicator, backends):
    config = configs.loads(text.replace("BACKEND", f"[{', '.join(backends)}]"), "test.yaml")
    builder = MODELS[config.model].builder(config, communicator)
    builder.check()
    return builder, builder.fresh(communicator.only_on_root(builder.initial))


def state_of(model):
    names = ("bodies/position", "bodies/velocity", "state/density", "state/u", "state/w")
    fields = [model.fields()[name] for name in names if name in model.fields()]
    return [
        np.concatenate(model.communicator.gather(field.host(0, field.rows))) for field in fields
    ]


def assert_close(first, second, tolerance):
    for one, other in zip(state_of(first), state_of(second), strict=True):
        assert np.abs(one).max() > 0
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * np.abs(other).max())


@pytest.mark.gpu
@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("name", CASES)
def test_a_gpu_and_cpus_step_together(communicator, name):
    text, tolerance = CASES[name]
    cpus = ["cpu"] * (communicator.size - 1)
    _, expected = built_of(text, communicator, ["cpu", *cpus])
    builder, built = built_of(text, communicator, ["gpu", *cpus])
    assert built.placement.backends == ("gpu", *cpus)
    assert built.exchange.transport.name == "host"
    simulation = SimpleNamespace(model=built.model)
    rebalancer = Rebalancer(builder, built, lambda line: None)
    steps = builder.config.time.steps // 2
    for speeds in (
        [1.0] * communicator.size,
        [float(rank + 1) for rank in range(communicator.size)],
    ):
        simulation.model.advance(steps)
        expected.model.advance(steps)
        assert_close(simulation.model, expected.model, tolerance)
        builder.speeds = lambda built, seconds, now=speeds: now
        rebalancer.speeds = None
        rebalancer.look(simulation)
    counts = rebalancer.setup.exchange.partition.counts
    assert counts[0] < counts[-1]  # it was moved as the speeds said
    assert_close(simulation.model, expected.model, tolerance)


@pytest.mark.gpu
@pytest.mark.mpi(min_size=2)
def test_hybrid_ranks_beside_others(communicator):
    text, tolerance = CASES["double"]
    others = ["gpu", "cpu"] * communicator.size
    _, expected = built_of(text, communicator, ["cpu"] * communicator.size)
    shared = text.replace("threads: 1", "threads: 1, cpu_share: 0.2")
    _, built = built_of(shared, communicator, ["hybrid", *others][: communicator.size])
    for model in (expected.model, built.model):
        model.advance(20)
    assert_close(built.model, expected.model, tolerance)


@pytest.mark.gpu
@pytest.mark.mpi(min_size=2)
def test_a_gpu_gets_more_than_a_thread(communicator):
    text = CASES["single"][0].replace("n: 3000", "n: 30000")
    _, built = built_of(text, communicator, ["gpu"] + ["cpu"] * (communicator.size - 1))
    counts = built.exchange.partition.counts
    assert counts[0] > 0.8 * sum(counts)
