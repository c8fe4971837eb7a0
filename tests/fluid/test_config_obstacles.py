"""The key obstacles: what it makes, what is bad, and the way to a file and back."""

from types import SimpleNamespace
from typing import Literal, Self

import numpy as np
import pytest
from pydantic import Field, ValidationError, model_validator
from support.meshes import cube

from hybrid_nbody.config import loader
from hybrid_nbody.config.loader import ConfigError, dump
from hybrid_nbody.config.sections import ModelConfig
from hybrid_nbody.errors import InputError
from hybrid_nbody.fluid.config_obstacles import Obstacles, faults, obstacles_of
from hybrid_nbody.fluid.obstacles import Box, Cylinder, Sphere
from hybrid_nbody.fluid.obstacles.stl import write_stl

CELLS = (16, 8, 8)
ALONG_Y = (False, True, False)


class FlowConfig(ModelConfig):
    """A model with that key."""

    model: Literal["flow"]
    obstacles: Obstacles = Field((), description="Solids.")

    @model_validator(mode="after")
    def _together(self) -> Self:
        if found := list(faults(self.obstacles, CELLS, ALONG_Y)):
            raise ValidationError.from_exception_data("flow", found)
        return self


MODELS = {"flow": SimpleNamespace(schema=FlowConfig)}


def sections_of(text):
    config = loader.loads(f"model: flow\nobstacles: [{text}]\n", "x.yaml", models=MODELS)
    assert loader.loads(dump(config), "stored.yaml", models=MODELS) == config
    hash(config.obstacles)
    return config.obstacles


def obstacle_of(text):
    (found,) = obstacles_of(sections_of(text), CELLS, ALONG_Y)
    return found


def faults_of(text):
    with pytest.raises(ConfigError) as caught:
        sections_of(text)
    return [line.removeprefix("x.yaml:2: obstacles") for line in str(caught.value).split("\n")]


# --- what is good ---------------------------------------------------------------------------------

GOOD = {
    "sphere: {centre: [0.5, 0.2, 0.3], radius: 0.1}": Sphere((0.5, 0.2, 0.3), 0.1),
    "box: {low: [0, 0, 0], high: [0.5, 0.25, 0.125]}": Box(
        (0.25, 0.125, 0.0625), (0.5, 0.25, 0.125)
    ),
    "box: {centre: [0.5, 0.2, 0.2], size: [1, 2, 3], orientation: [0, 0, 30]}": Box(
        (0.5, 0.2, 0.2), (1.0, 2.0, 3.0), (0.0, 0.0, 30.0)
    ),
    "cylinder: {start: [0, 0, 0], end: [0, 0, 2], radius: 0.1}": Cylinder(
        (0.0, 0.0, 1.0), (0.0, 0.0, 2.0), 0.1, 2.0
    ),
    "cylinder: {centre: [0.5, 0, 0], axis: [0, 0, 1], radius: 0.1}": Cylinder(
        (0.5, 0.0, 0.0), (0.0, 0.0, 1.0), 0.1
    ),
}


@pytest.mark.parametrize("text", GOOD)
def test_shapes(text):
    assert obstacle_of(f"{{{text}}}") == GOOD[text]


def test_motion_wall_and_name():
    text = "wall: free-slip, velocity: [1, 0, 0], rotation: [0, 0, 2], name: ball"
    found = obstacle_of(f"{{sphere: {{centre: [9, 9, 9], radius: 1}}, {text}}}")
    motion = {"velocity": (1.0, 0.0, 0.0), "rotation": (0.0, 0.0, 2.0), "name": "ball"}
    assert found == Sphere((9.0, 9.0, 9.0), 1.0, wall="free-slip", **motion)


def test_no_obstacle_is_none():
    assert obstacles_of(sections_of(""), CELLS) == ()


def test_a_periodic_axis_brings_an_obstacle_back():
    assert obstacle_of("{sphere: {centre: [0.5, 7.2, 0.2], radius: 0.1}}").radius == 0.1


def test_a_small_obstacle_between_cell_centres_is_inside():
    assert obstacle_of("{sphere: {centre: [0.5, 0.25, 0.25], radius: 1e-3}}").radius == 1e-3


# --- what is bad ----------------------------------------------------------------------------------

BALL = "sphere: {centre: [0.5, 0.2, 0.2], radius: 0.1}"
OUTSIDE = "is wholly outside the box, which reaches from 0 to [1, 0.5, 0.5]"
BAD = {
    "{sphere: {centre: [1.2, 0.2, 0.2], radius: 0.1}}": f"[0].sphere: {OUTSIDE}",
    "{sphere: {centre: [1.09, 0.2, 0.59], radius: 0.12}}": f"[0].sphere: {OUTSIDE}",
    "{cylinder: {centre: [0, 0, -1], axis: [1, 1, 0], radius: 0.9}}": f"[0].cylinder: {OUTSIDE}",
    f"{{{BALL}, name: a}}, {{{BALL}, name: b}}, {{{BALL}, name: a}}": (
        "[2].name: another obstacle is called a in tables too; take another name (got 'a')"
    ),
    "{wall: no-slip}": (
        "[0]: a key is missing; give exactly one of sphere, box, cylinder, mesh, mask and python"
    ),
    "{sphere: {centre: [0, 0, .inf], radius: 1}}": (
        "[0].sphere.centre: must be a list of three numbers from -1e6 to 1e6, along x, y and z "
        "(got [0, 0, inf])"
    ),
    "{sphere: {centre: [0, 0, 0], radius: 0}}": "[0].sphere.radius: must be greater than 0 (got 0)",
    "{spere: {centre: [0, 0, 0], radius: 1}}": "[0].spere: unknown key; did you mean 'sphere'?",
    "{python: ship}": (
        "[0].python: must be FILE.py:FUNCTION or module:function, or null (got 'ship')"
    ),
    f"{{{BALL}, wall: sticky}}": ("[0].wall: must be one of no-slip, free-slip (got 'sticky')"),
    "{box: {low: [0, 0, 0], size: [1, 1, 1]}}": (
        "[0].box.size: cannot be given together with low; give at most one of low and size"
    ),
    "{box: {low: [0, 0, 0], high: [1, 1, 0]}}": (
        "[0].box.high: must be greater than low along each axis (got [1, 1, 0])"
    ),
    "{box: {centre: [0, 0, 0], size: [1, 1, 0]}}": (
        "[0].box.size: must be greater than 0 along each axis (got [1, 1, 0])"
    ),
    "{cylinder: {start: [0, 0, 0], end: [0, 0, 0], radius: 1}}": (
        "[0].cylinder.end: must differ from start (got [0, 0, 0])"
    ),
    "{cylinder: {centre: [0, 0, 0], axis: [0, 0, 0], radius: 1}}": (
        "[0].cylinder.axis: must not be 0 along all axes (got [0, 0, 0])"
    ),
}


@pytest.mark.parametrize("text", BAD)
def test_a_fault_says_where_and_what(text):
    (found,) = faults_of(text)
    assert found.startswith(BAD[text])


def test_distances_are_those_of_the_section():
    found = obstacle_of("{box: {low: [0.25, 0.25, 0.25], high: [0.5, 0.375, 0.375]}}")
    points = np.array([[0.0, 0.3, 0.3], [0.375, 0.3125, 0.3125]])
    np.testing.assert_allclose(found.signed_distance(points, 0.0), [0.25, -0.0625], 0.0, 1e-15)


# --- files ----------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return the folder of a configuration, which is not the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "input").mkdir()
    return tmp_path / "input"


def loaded(folder, text):
    """Return the sections of a file in a folder."""
    (folder / "x.yaml").write_text(f"model: flow\nobstacles: [{text}]\n")
    config = loader.load("input/x.yaml", models=MODELS)
    assert loader.loads(dump(config), "stored.yaml", models=MODELS) == config
    hash(config.obstacles)
    return config.obstacles


def faults_in_files(folder, text):
    sections = loaded(folder, text)
    with pytest.raises(InputError) as caught:
        obstacles_of(sections, CELLS, ALONG_Y)
    return str(caught.value).replace(f"{folder}/", "").split("\n")


def test_a_mesh(folder):
    write_stl(folder / "cube.stl", cube())
    text = "{mesh: cube.stl, velocity: [1, 0, 0]}, "
    text += "{mesh: {file: cube.stl, scale: 0.25, offset: [0.5, 0.25, 0.125]}, wall: free-slip}"
    whole, placed = obstacles_of(loaded(folder, text), CELLS)
    assert whole.velocity == (1.0, 0.0, 0.0)
    assert placed.wall == "free-slip"
    assert placed.middle == (0.625, 0.375, 0.25)


def test_files_that_are_no_obstacle(folder):
    write_stl(folder / "open.stl", cube()[1:])
    write_stl(folder / "cube.stl", cube())
    text = "{mesh: none.stl}, {mesh: open.stl}, {mesh: {file: cube.stl, offset: [0, 0, 0.6]}}, "
    text += "{mesh: {file: cube.stl, offset: [0, 7, 0]}}"
    assert faults_in_files(folder, text) == [
        "obstacles[0].mesh: none.stl cannot be read: No such file or directory",
        "obstacles[1].mesh: open.stl is not closed: 3 of its edges have a triangle on one side "
        "only, or triangles that face opposite ways; close it in the program that made it",
        f"obstacles[2].mesh: {OUTSIDE}",
    ]


def test_a_mask(folder):
    mask = np.zeros((8, 8, 16), bool)
    mask[2:4, 3:5, 8:] = True
    np.save(folder / "mask.npy", mask)
    (found,) = obstacles_of(loaded(folder, "{mask: mask.npy, name: block}"), CELLS)
    assert found.name == "block"
    expected = Box.between((0.5, 3 / 16, 2 / 16), (1.0, 5 / 16, 4 / 16))
    points = np.random.default_rng(2).random((50, 3))
    np.testing.assert_allclose(found.distance(points), expected.distance(points), 0.0, 1e-14)


def test_a_mask_of_another_grid(folder):
    np.save(folder / "mask.npy", np.ones((16, 8, 8)))
    assert faults_in_files(folder, "{mask: mask.npy}") == [
        "obstacles[0].mask: mask.npy has the shape (16, 8, 8); the grid has (nz, ny, nx) = "
        "(8, 8, 16)"
    ]


SHAPES = """
from hybrid_nbody.fluid.obstacles import Sphere

def ball():
    return Sphere((0.5, 0.25, 0.25), 0.1, name="own")

def floor(points):
    return points[:, 2] - 0.1

def far(points):
    return points[:, 2] + 0.1

def rising(points, time):
    return points[:, 2] - 0.1 * time

def broken(points):
    return points
"""


def test_functions_by_file_and_by_module(folder):
    (folder / "shapes.py").write_text(SHAPES)
    text = "{python: 'shapes:ball', wall: free-slip}, {python: 'shapes.py:floor', name: floor}, "
    text += "{python: 'shapes:rising'}"
    sections = loaded(folder, text)
    assert sections[0].python == f"{folder}/shapes.py:ball"
    ball, floor, rising = obstacles_of(sections, CELLS)
    assert ball == Sphere((0.5, 0.25, 0.25), 0.1, name="own", wall="free-slip")
    points = np.array([[0.5, 0.25, 0.3]])
    np.testing.assert_allclose(floor.signed_distance(points, 0.0), [0.2], 0.0, 1e-15)
    assert floor.name == "floor"
    assert floor.middle == (0.5, 0.25, 0.25)
    np.testing.assert_allclose(rising.velocity_at(points, 1.0), [[0.0, 0.0, 0.1]], 0.0, 1e-9)


def test_functions_that_are_no_obstacle(folder):
    (folder / "shapes.py").write_text(SHAPES)
    names = ("shapes:far", "shapes:broken", "shapes:ship", "absent:ship")
    text = ", ".join(f"{{python: '{name}'}}" for name in names)
    assert faults_in_files(folder, text) == [
        f"obstacles[0].python: {OUTSIDE}",
        "obstacles[1].python: shapes.py:broken returned the shape (2, 3) for 2 points; must be one "
        "signed distance for each",
        "obstacles[2].python: shapes.py:ship has no function ship; it has: ball, floor, far, "
        "rising, broken",
        "obstacles[3].python: absent.py cannot be read: No such file or directory",
    ]
