"""Fluids that cannot be: one line each on the command line, exit code 2, nothing written."""

import numpy as np
import pytest
from support.command import call, refused
from support.meshes import cube

from hybrid_nbody.fluid.obstacles.stl import write_stl

CONFIG = """\
model: fluid
grid: {{cells: 8}}
fluid: {{{fluid}}}
obstacles: [{obstacles}]
time: {{dt: 0.02, steps: 8}}
compute: {{backend: cpu, threads: 1}}
output: {{directory: out}}
"""

FUNCTIONS = """
def fails(points):
    raise RuntimeError("no such\\nluck")

def stops(points):
    raise SystemExit(0)

def fails_at_many(points):
    if len(points) > 5:
        raise ValueError("too many")
    return points[:, 0] - 0.5

def fails_late(points, time):
    if time > 0.05:
        raise ValueError("too late")
    return points[:, 0] - 0.5
"""

FLUIDS = {
    "viscosity: .nan": "fluid.viscosity: must be a number, at least 0 (got nan)",
    "boundary: {x-: {inflow: [1, 0, 0]}}": "what flows in at x- cannot leave; make another face",
    "boundary: {x-: {inflow: [fast, 0, 0]}, x+: outflow}": "'fast' is unknown in 'fast'; a formula",
    "boundary: {x-: {inflow: ['log(y - 1)', 0, 0]}, x+: outflow}": (
        "fluid.boundary.x-: is not a finite number at x, y, z = 0, 0, 0 at time 0"
    ),
    "boundary: {x-: {inflow: wide.csv}, x+: outflow}": "wide.csv has the columns x, u, v, w; a",
    "boundary: {x: periodic, x-: {inflow: [1, 0, 0]}, z: outflow}": (
        "only one of the faces x- and x+ is periodic; make both so, or none"
    ),
}
OBSTACLES = {
    "{sphere: {centre: [3, 3, 3], radius: 0.1}}": "is wholly outside the box, which reaches from 0",
    "{sphere: {centre: [0.5, 0.5, 0.5], radius: 5}}": "obstacles: they fill the whole box",
    "{mesh: open.stl}": "open.stl is not closed: 3 of its edges have a triangle",
    "{mesh: empty.stl}": "empty.stl is no STL file: neither text that starts with solid, nor as",
    "{mesh: short.stl}": "short.stl is no STL file: neither text that starts with solid, nor as",
    "{mesh: text.stl}": "text.stl ",
    "{mask: flat.npy}": "flat.npy has the shape (4, 8, 8); the grid has (nz, ny, nx) = (8, 8, 8)",
    "{mask: three.npy}": "three.npy is 2 at [0, 0, 0]; must be from 0 to 1",
    "{python: 'shapes:fails'}": "shapes.py:fails raised RuntimeError: no such luck",
    "{python: 'shapes:stops'}": "shapes.py:stops raised SystemExit: 0",
    "{python: 'shapes:fails_at_many'}": "shapes.py:fails_at_many raised ValueError: too many",
    "{sphere: {centre: [0.5, 0.5, 0.5], radius: 0.1}, name: a b}, "
    "{sphere: {centre: [0.2, 0.5, 0.5], radius: 0.1}, name: a/b}": (
        "obstacles[1].name: another obstacle is called a_b in tables too; take another name"
    ),
}


@pytest.fixture
def folder(tmp_path):
    """A folder with files that cannot be used."""
    closed = 0.2 * cube() + 0.3
    write_stl(tmp_path / "open.stl", closed[1:])
    write_stl(tmp_path / "short.stl", closed)
    whole = (tmp_path / "short.stl").read_bytes()
    (tmp_path / "short.stl").write_bytes(whole[:-30])
    (tmp_path / "empty.stl").touch()
    (tmp_path / "text.stl").write_text("solid a\nfacet normal 0 0 0\nouter loop\nvertex 0 zero 0\n")
    mask = np.zeros((8, 8, 8))
    mask[2:4, 2:4, 2:4] = 1.0
    np.save(tmp_path / "flat.npy", mask[:4])
    mask[0, 0, 0] = 2.0
    np.save(tmp_path / "three.npy", mask)
    (tmp_path / "wide.csv").write_text("x,u,v,w\n0,1,0,0\n")
    (tmp_path / "shapes.py").write_text(FUNCTIONS)
    return tmp_path


def message(folder, fluid="", obstacles=""):
    """Return what a configuration is refused with."""
    (folder / "x.yaml").write_text(CONFIG.format(fluid=fluid, obstacles=obstacles))
    found = refused(folder, "x.yaml")
    assert "\n" not in found
    return found


@pytest.mark.parametrize("text", FLUIDS)
def test_a_fluid_that_cannot_be_is_refused_in_a_line(folder, text):
    assert FLUIDS[text] in message(folder, fluid=text)


@pytest.mark.parametrize("text", OBSTACLES)
def test_an_obstacle_that_cannot_be_is_refused_in_a_line(folder, text):
    assert OBSTACLES[text] in message(folder, obstacles=text)


def test_a_function_that_fails_during_a_run_ends_it_with_a_line(folder):
    text = "{python: 'shapes:fails_late'}"
    fluid = "boundary: {x+: outflow}"
    (folder / "x.yaml").write_text(CONFIG.format(fluid=fluid, obstacles=text))
    result = call(folder, "x.yaml")
    assert result.returncode == 2
    (line,) = result.stderr.strip().split("\n")
    assert line.endswith("shapes.py:fails_late raised ValueError: too late")
