"""How long a run of a fluid takes, said before it starts."""

import re

import numpy as np
import pytest
from support.ranks import alone

from hybrid_nbody.cli.check import check
from hybrid_nbody.config import loader
from hybrid_nbody.fluid import pace
from hybrid_nbody.fluid.build import FluidBuilder
from hybrid_nbody.running.models import MODELS

__all__ = ["alone"]

TEXT = """\
model: fluid
grid: {cells: [80, 8, 8]}
fluid: {boundary: [periodic, no-slip, free-slip], buoyancy: 0.5}
time: {dt: 0.5, steps: 100}
compute: {backend: cpu, threads: 1}
output: {planes: [7], fields: [density]}
"""


def config_of(**changes):
    return loader.loads(TEXT, "test", [f"{k}={v}" for k, v in changes.items()], models=MODELS)


def test_what_is_for_the_grid_of_a_run_alone_is_not_measured(tmp_path, alone):
    """A mask has the shape of that grid."""
    np.save(tmp_path / "mask.npy", np.indices((8, 8, 80)).sum(axis=0) < 4)
    mask = f"[{{mask: {tmp_path / 'mask.npy'}}}]"
    changes = {"fluid.grid": "staggered", "obstacles": mask, "time.steps": 10**9}
    builder = FluidBuilder(config_of(**changes), alone)
    builder.check()
    assert builder.pace(alone_device(builder)) == 0.0


@pytest.mark.parametrize("grid", ["collocated", "staggered"])
def test_a_long_run_is_measured_on_a_small_grid(grid, alone, monkeypatch):
    steps = {"fluid.grid": grid, "time.steps": 10**9}
    builder = FluidBuilder(config_of(**steps), alone)
    seen = []
    monkeypatch.setattr(pace, "_seconds", lambda model, device: seen.append(model) or 0.5)
    assert builder.pace(alone_device(builder)) == pytest.approx(64 * 8 * 8 / 0.5, rel=1e-12)
    assert len(seen) == pace.REPEATS
    assert seen[0].fields()["fluid/density"].shape == (8, 8, 64)
    assert seen[0].state.velocity[0].any()


def alone_device(builder):
    """Return the device of the only rank."""
    return builder.devices.assign("cpu", 1, builder.communicator).backend


def test_a_short_run_is_not_measured(alone):
    builder = FluidBuilder(config_of(), alone)
    assert builder.pace(alone_device(builder)) == 0.0


def test_what_is_said_follows_from_the_rate():
    config = config_of(**{"time.steps": 1000})
    (line,) = pace.expected_lines(config, rate=51200.0, steps=1000)
    assert line == "expected: about 1 min 40 s, 0.1 s a step, without output"
    assert pace.expected_lines(config, rate=51200.0, steps=90) == []


def test_check_says_it(alone, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.yaml").write_text(TEXT)
    monkeypatch.setattr(pace, "_seconds", lambda model, device: 1.0)
    text = check("x.yaml", ["time.steps=2048000"], alone)
    found = re.search(r"expected +(.*)", text)[1]
    assert found == "about 711 h 06 min, 1.2 s a step, without output"
    assert "expected" not in check("x.yaml", [], alone)
