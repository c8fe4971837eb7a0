"""The examples of docs/fluids.md and of the wind tunnel: each of them takes a step."""

import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from support.meshes import cube
from support.ranks import alone, communicator

from hybrid_nbody import Simulation
from hybrid_nbody.fluid.obstacles.stl import write_stl

__all__ = ["alone", "communicator"]

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "fluids.md").read_text()
TUTORIAL = (DOCS / "tutorials" / "wind-tunnel.md").read_text()
BLOCKS = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
BASE = yaml.safe_load(BLOCKS[0])
"""The file of which the other blocks are parts."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files that the examples read."""
    folder = tmp_path_factory.mktemp("page")
    write_stl(folder / "ship.stl", 0.2 * cube())
    mask = np.zeros(BASE["grid"]["cells"][::-1])
    mask[4:8, 4:8, 4:8] = 1.0
    np.save(folder / "mask.npy", mask)
    (folder / "wind.csv").write_text("y,u,v,w\n0,0,0,0\n0.5,1,0,0\n")
    (shapes,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (folder / "shapes.py").write_text(shapes)
    return folder


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_an_example_runs(folder, alone, number):
    whole = BASE | {"compute": {"backend": "cpu", "threads": 1}} | yaml.safe_load(BLOCKS[number])
    (folder / "x.yaml").write_text(yaml.safe_dump(whole))
    with Simulation(folder / "x.yaml", communicator=alone) as simulation:
        simulation.step()
        assert simulation.diagnostics["divergence"] <= 1e-4
        assert np.isfinite(simulation.velocity).all()


def test_the_wind_tunnel_blows(tmp_path, alone):
    (block,) = re.findall(r"```yaml\n(.*?)```", TUTORIAL, re.DOTALL)
    (tmp_path / "tunnel.yaml").write_text(block)
    few = {"grid.cells": [24, 12, 12], "compute.backend": "cpu"}
    with Simulation(tmp_path / "tunnel.yaml", few, communicator=alone) as simulation:
        simulation.run(steps=20)
        drag, *lift = simulation.diagnostics["force_body"]
    assert drag == pytest.approx(0.006, rel=0.5)
    np.testing.assert_allclose(lift, 0.0, rtol=0, atol=1e-3 * drag)
