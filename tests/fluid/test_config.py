"""The configuration of a fluid: defaults, what keys become, and the message of each fault."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.configs import load, loads

from hybrid_nbody.config.loader import ConfigError, dump
from hybrid_nbody.fluid.config import FluidConfig

ROOT = Path(__file__).parents[2]
HEAD = "model: fluid\n"
GRID = "grid: {cells: [8, 6, 5]}\n"
TIME = "time: {dt: 0.5, steps: 10}\n"

EVENT_KEYS = "step, steps, density, velocity, cell, box, sphere, mode"
CELLS = "a whole number, at least 3 and at most 4096, or a list of three of them"
BOUNDARY = (
    "one of free-slip, no-slip, periodic, or a list of three of them, for the axes x, y and z"
)
BOX = "a list of three ranges [first, end] of cells, along x, y and z, end not included, or null"
STEPS = (
    "a list of the first and the last step, whole numbers from 0, the last not before the first, "
    "or null"
)
VECTOR = "a list of three numbers, along x, y and z"
OMEGA = "auto or a number greater than 0 and less than 2"
FIELDS = "a list of density and velocity, or of one of them"
WITHOUT = "with sources.carry_over, which is for the totals of a program without it"
FOR_BODIES = (
    "hybrid is for bodies; a rank of a fluid computes on one device: take gpu, or a list with "
    "one backend a rank, such as [gpu, cpu], whose planes are shared out by speed"
)
CARRY = "sources: {carry_over: true}\n"


def completed(text):
    """Return text followed by the required sections that it lacks; its lines keep their numbers."""
    missing = (
        part
        for part in (HEAD, GRID, TIME)
        if not any(line.startswith(part[:5]) for line in text.split("\n"))
    )
    return text + ("" if text.endswith("\n") else "\n") + "".join(missing)


def config_of(text, *overrides):
    return loads(completed(text), "x.yaml", overrides)


def faults_of(text, *overrides):
    """Return the lines of the message that a faulty text ends in."""
    with pytest.raises(ConfigError) as caught:
        config_of(text, *overrides)
    return str(caught.value).split("\n")


def event(text):
    return f"sources: {{events: [{{{text}}}]}}"


# --- what is good ---------------------------------------------------------------------------------


def test_defaults():
    config = config_of("")
    assert config.fluid.model_dump() == {
        "viscosity": 1e-4,
        "diffusion": 1e-4,
        "boundary": ("free-slip",) * 3,
        "dtype": "float32",
        "projection": "exact",
        "advection": "semi-lagrangian",
        "buoyancy": 0.0,
        "gravity": (0.0, -1.0, 0.0),
        "vorticity_confinement": 0.0,
    }
    assert config.solver.model_dump() == {
        "method": "red-black",
        "max_iterations": 20,
        "tolerance": 1e-7,
        "criterion": "change",
        "omega": "auto",
    }
    assert (config.sources.carry_over, config.sources.events, config.sources.file) == (
        False,
        (),
        None,
    )
    assert (config.output.fields, config.output.stride, config.output.planes) == (
        ("density", "velocity"),
        1,
        None,
    )
    assert (config.time.total_steps, config.time.energy_limit) == (10, None)


def test_what_every_default_is_written_as():
    assert (
        dump(config_of(event("step: 3, density: 2")))
        == """\
model: fluid
title: ''
grid:
  cells: [8, 6, 5]
fluid:
  viscosity: 0.0001
  diffusion: 0.0001
  boundary: [free-slip, free-slip, free-slip]
  dtype: float32
  projection: exact
  advection: semi-lagrangian
  buoyancy: 0.0
  gravity: [0.0, -1.0, 0.0]
  vorticity_confinement: 0.0
solver: {method: red-black, max_iterations: 20, tolerance: 1.0e-07, criterion: change, omega: auto}
sources:
  carry_over: false
  events:
  - {step: 3, density: 2.0, mode: set}
  file: null
time: {dt: 0.5, steps: 10, wall_limit: null}
compute: {backend: auto, threads: auto, balance: auto, transport: auto, exchange: auto}
output:
  directory: output/run
  trajectory: {every_steps: 10}
  diagnostics: {every_steps: 10}
  checkpoint: {every_steps: 500, keep: 2}
  fields: [density, velocity]
  stride: 1
  planes: null
"""
    )


@pytest.mark.parametrize(
    ("cells", "centre"), [([42, 84, 168], (20, 41, 83)), ([3, 4, 5], (0, 1, 1))]
)
def test_the_centre_is_cell_n_over_2_counted_from_1(cells, centre):
    assert config_of(f"grid: {{cells: {cells}}}").grid.centre == centre


def test_one_number_of_cells_for_all_axes():
    assert config_of("grid: {cells: 64}").grid.cells == (64, 64, 64)
    assert config_of("", "grid.cells=10").grid.cells == (10, 10, 10)


def test_a_boundary_for_each_axis():
    boundary = config_of("fluid: {boundary: [periodic, no-slip, free-slip]}").fluid.boundary
    assert boundary == ("periodic", "no-slip", "free-slip")
    assert config_of("", "fluid.boundary=no-slip").fluid.boundary == ("no-slip",) * 3


def test_events_know_their_first_and_last_step():
    text = (
        "sources:\n  events:\n    - {step: 3, density: 0}\n    - {steps: [2, 9], velocity: [1, "
        "0, -1], mode: add}"
    )
    single, several = config_of(text).sources.events
    assert (single.first, single.last, single.density, single.velocity, single.mode) == (
        3,
        3,
        0.0,
        None,
        "set",
    )
    assert (several.first, several.last, several.density, several.velocity) == (
        2,
        9,
        None,
        (1.0, 0.0, -1.0),
    )


@pytest.mark.parametrize(
    "text",
    [
        event("step: 9, density: -1, cell: [7, 5, 4]"),
        event("steps: [0, 9], density: 1, box: [[0, 8], [0, 6], [4, 5]]"),
        event("step: 0, velocity: [1, 2, 3], sphere: {centre: [7, 2.5, 0], radius: 100}"),
        "fluid: {boundary: [periodic, periodic, no-slip]}",
        "solver: {method: sor, omega: 1.7}",
        "solver: {method: lexicographic}\nsources: {carry_over: true}",
        "solver: {criterion: residual, tolerance: 1.2e-7}",
        "solver: {criterion: residual, tolerance: 1e-15}\nfluid: {dtype: float64}",
        "solver: {criterion: residual, tolerance: 0}",
        "solver: {tolerance: 1e-300}\nfluid: {dtype: float64}",
        "output: {planes: [4, 0], fields: [velocity], stride: 100}",
    ],
)
def test_what_just_works(text):
    config = config_of(text)
    assert loads(dump(config), "x.yaml") == config
    assert hash(config) == hash(config.model_copy(deep=True))


def test_a_file_of_events_starts_at_the_folder_of_the_configuration(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "input").mkdir()
    (tmp_path / "input" / "x.yaml").write_text(completed("sources: {file: events.txt}"))
    assert load("input/x.yaml").sources.file == str(tmp_path / "input" / "events.txt")
    assert load("input/x.yaml", ["sources.file=a.txt"]).sources.file == str(tmp_path / "a.txt")
    assert load("input/x.yaml", ["sources.file=null"]).sources.file is None


@pytest.mark.parametrize("cells", [42, 84, 168])
def test_the_plumes_have_the_same_twelve_events(cells):
    config, first = (load(ROOT / "input" / f"plume_{number}.yaml") for number in (cells, 42))
    assert config.grid.cells == (cells,) * 3
    assert config.sources == first.sources
    assert [event.step for event in config.sources.events] == [
        0,
        5,
        12,
        20,
        31,
        38,
        46,
        55,
        63,
        71,
        80,
        88,
    ]
    assert sum(event.density or 0 for event in config.sources.events) == 45
    assert (config.fluid.projection, config.sources.carry_over, config.time.total_steps) == (
        "course",
        True,
        100,
    )


# --- what is bad ----------------------------------------------------------------------------------

MESSAGES = {
    "grid: {cells: [2, 84, 84]}": f"1: grid.cells: must be {CELLS} (got [2, 84, 84])",
    "grid: {cells: [84, 84, 5000]}": f"1: grid.cells: must be {CELLS} (got [84, 84, 5000])",
    "grid: {cells: [84, 84]}": f"1: grid.cells: must be {CELLS} (got [84, 84])",
    "grid: {cells: 2}": f"1: grid.cells: must be {CELLS} (got 2)",
    "grid: {cells: true}": f"1: grid.cells: must be {CELLS} (got true)",
    "grid: {cells: '84'}": f"1: grid.cells: must be {CELLS} (got '84')",
    "grid: {}": f"1: grid.cells: is missing; must be {CELLS}",
    "fluid: {viscosity: -1}": "1: fluid.viscosity: must be at least 0 (got -1)",
    "fluid: {buoyancy: up}": "1: fluid.buoyancy: must be a number (got 'up')",
    "fluid: {gravity: [0, -1]}": f"1: fluid.gravity: must be {VECTOR} (got [0, -1])",
    ("fluid: {boundary: slip}"): (
        f"1: fluid.boundary: must be {BOUNDARY}; did you mean 'no-slip'? (got 'slip')"
    ),
    "fluid: {boundary: [no-slip]}": f"1: fluid.boundary: must be {BOUNDARY} (got ['no-slip'])",
    "fluid: {dtype: float16}": (
        "1: fluid.dtype: must be one of float32, float64; did you mean 'float64'? (got 'float16')"
    ),
    "solver: {method: redblack}": (
        "1: solver.method: must be one of lexicographic, red-black, sor, multigrid; did you mean "
        "'red-black'? (got 'redblack')"
    ),
    "solver: {max_iterations: 0}": "1: solver.max_iterations: must be at least 1 (got 0)",
    "solver: {tolerance: -1e-7}": "1: solver.tolerance: must be at least 0 (got -1e-07)",
    "solver: {method: sor, omega: 2}": f"1: solver.omega: must be {OMEGA} (got 2)",
    "solver: {omgea: 1}": (
        "1: solver.omgea: unknown key; did you mean 'omega'? "
        "allowed: method, max_iterations, tolerance, criterion, omega"
    ),
    "sources: {carry_over: 1}": "1: sources.carry_over: must be true or false (got 1)",
    ("sources: {file: ''}"): (
        "1: sources.file: must be the name of a file or folder, in one line, or null (got '')"
    ),
    "sources: {events: smoke}": (
        f"1: sources.events: must be a list of events, each a mapping of the keys {EVENT_KEYS} "
        "(got 'smoke')"
    ),
    ("sources: {events: [3]}"): (
        f"1: sources.events[0]: must be a mapping of the keys {EVENT_KEYS} (got 3)"
    ),
    "time: {dt: 0.1, steps: 10, integrator: leapfrog}": (
        "1: time.integrator: unknown key; allowed: dt, end, steps, wall_limit"
    ),
    "seed: 1": (
        "1: seed: unknown key; allowed: model, title, grid, fluid, solver, sources, time, "
        "compute, output"
    ),
    "compute: {exchange: allgather}": (
        "1: compute.exchange: allgather is for bodies, not for a fluid; leave it at auto (got "
        "'allgather')"
    ),
    "compute: {exchange: all}": "1: compute.exchange: must be one of auto, halo (got 'all')",
    "output: {fields: []}": f"1: output.fields: must be {FIELDS} (got [])",
    ("output: {fields: [density, density]}"): (
        f"1: output.fields: must be {FIELDS} (got ['density', 'density'])"
    ),
    "output: {fields: [pressure]}": f"1: output.fields: must be {FIELDS} (got ['pressure'])",
    "output: {stride: 0}": "1: output.stride: must be at least 1 (got 0)",
    "output: {planes: [1, 1]}": (
        "1: output.planes: must be a list of different whole numbers from 0, or null (got [1, 1])"
    ),
    # events
    event(
        "density: 1"
    ): "1: sources.events[0]: a key is missing; give exactly one of step and steps",
    event(
        "step: 1"
    ): "1: sources.events[0]: a key is missing; give exactly one of density and velocity",
    event("step: 1, density: 1, velocity: [0, 0, 1]"): (
        "1: sources.events[0].velocity: cannot be given together with density; give exactly one "
        "of density and velocity"
    ),
    event("step: 1, density: 1, box: [[0, 1], [0, 1], [0, 1]], cell: [1, 1, 1]"): (
        "1: sources.events[0].cell: cannot be given together with box; give at most one of cell, "
        "box and sphere"
    ),
    event("step: -1, density: 1"): "1: sources.events[0].step: must be at least 0 (got -1)",
    event("steps: [4, 3], density: 1"): f"1: sources.events[0].steps: must be {STEPS} (got [4, 3])",
    event("step: 1, velocity: [.nan, 0, 0]"): (
        f"1: sources.events[0].velocity: must be {VECTOR}, or null (got [nan, 0, 0])"
    ),
    event("step: 1, density: 1, box: [[0, 1], [0, 1], [1, 1]]"): (
        f"1: sources.events[0].box: must be {BOX} (got [[0, 1], [0, 1], [1, 1]])"
    ),
    event(
        "step: 1, density: 1, mode: put"
    ): "1: sources.events[0].mode: must be one of set, add (got 'put')",
    event("stpe: 1, step: 1, density: 1"): (
        f"1: sources.events[0].stpe: unknown key; did you mean 'step'? allowed: {EVENT_KEYS}"
    ),
    event("stp: 3, density: 1"): (
        f"1: sources.events[0].stp: unknown key; did you mean 'step'? allowed: {EVENT_KEYS}"
    ),
    # keys that do not go together
    event("step: 10, density: 1"): (
        "1: sources.events[0].step: lies past the end of the run, whose steps are 0 to 9 (got 10)"
    ),
    event("steps: [9, 10], density: 1"): (
        "1: sources.events[0].steps: lies past the end of the run, whose steps are 0 to 9 (got "
        "[9, 10])"
    ),
    event("step: 1, density: 1, cell: [8, 0, 0]"): (
        "1: sources.events[0].cell: lies outside the grid of 8 x 6 x 5 cells (got [8, 0, 0])"
    ),
    event("step: 1, density: 1, box: [[0, 8], [0, 6], [4, 6]]"): (
        "1: sources.events[0].box: lies outside the grid of 8 x 6 x 5 cells (got [[0, 8], [0, "
        "6], [4, 6]])"
    ),
    event("step: 1, density: 1, sphere: {centre: [0, -1, 0], radius: 2}"): (
        "1: sources.events[0].sphere.centre: lies outside the grid of 8 x 6 x 5 cells (got [0.0, "
        "-1.0, 0.0])"
    ),
    ("output: {planes: [4, 5]}"): (
        "1: output.planes: must lie in the grid, which has the planes 0 to 4 (got [4, 5])"
    ),
    "grid: {cells: [8, 7, 5]}\nfluid: {boundary: periodic}": (
        "1: grid.cells: must be even along periodic axes, so that the colours alternate across "
        "the edge: y, z (got [8, 7, 5])"
    ),
    "fluid: {boundary: [periodic, no-slip, no-slip]}\nsolver: {method: lexicographic}": (
        "2: solver.method: knows no periodic axes; take red-black (got 'lexicographic')"
    ),
    "solver: {method: lexicographic}\ncompute: {backend: gpu}": (
        "1: solver.method: runs on the CPU alone; take red-black, or compute.backend cpu (got "
        "'lexicographic')"
    ),
    "compute: {backend: hybrid}": f"1: compute.backend: {FOR_BODIES} (got 'hybrid')",
    ("compute: {backend: [gpu, hybrid]}"): (
        f"1: compute.backend: {FOR_BODIES} (got ['gpu', 'hybrid'])"
    ),
    ("solver: {omega: 1.5}"): (
        "1: solver.omega: red-black has no relaxation factor; leave it at auto (got 1.5)"
    ),
    "solver: {criterion: residual}": (
        "1: solver.tolerance: must be 0 or at least 1.2e-07, the rounding of float32, where "
        "criterion is residual (got 1e-07)"
    ),
    "solver: {criterion: residual, tolerance: 1e-16}\nfluid: {dtype: float64}": (
        "1: solver.tolerance: must be 0 or at least 2.2e-16, the rounding of float64, where "
        "criterion is residual (got 1e-16)"
    ),
    "solver: {tolerance: 1e-39}": (
        "1: solver.tolerance: must be 0 or at least 1.2e-38, the smallest change that float32 "
        "can tell (got 1e-39)"
    ),
    f"{CARRY}fluid: {{advection: maccormack}}": (
        f"2: fluid.advection: must be semi-lagrangian {WITHOUT} (got 'maccormack')"
    ),
    f"{CARRY}fluid: {{buoyancy: 1}}": f"2: fluid.buoyancy: must be 0.0 {WITHOUT} (got 1.0)",
    (f"{CARRY}fluid: {{vorticity_confinement: 1}}"): (
        f"2: fluid.vorticity_confinement: must be 0.0 {WITHOUT} (got 1.0)"
    ),
}


@pytest.mark.parametrize("text", MESSAGES)
def test_the_message_names_file_line_key_and_what_is_allowed(text):
    assert faults_of(text) == [f"x.yaml:{MESSAGES[text]}"]


def test_a_misspelt_key_hides_no_other_that_is_missing():
    unknown = f"unknown key; did you mean 'step'? allowed: {EVENT_KEYS}"
    without = "a key is missing; give exactly one of"
    text = "sources:\n  events:\n    - {stp: 3}\n    - {colour: 1, step: 1}\n    - {density: 1}"
    assert faults_of(text) == [
        f"x.yaml:3: sources.events[0]: {without} density and velocity",
        f"x.yaml:3: sources.events[0].stp: {unknown}",
        f"x.yaml:4: sources.events[1]: {without} density and velocity",
        f"x.yaml:4: sources.events[1].colour: unknown key; allowed: {EVENT_KEYS}",
        f"x.yaml:5: sources.events[2]: {without} step and steps",
    ]


def test_a_sphere_is_checked_key_by_key():
    assert faults_of(event("step: 1, density: 1, sphere: {radius: 0}")) == [
        f"x.yaml:1: sources.events[0].sphere.centre: is missing; must be {VECTOR}",
        "x.yaml:1: sources.events[0].sphere.radius: must be greater than 0 (got 0)",
    ]


def test_a_fault_of_an_event_names_its_own_line_whatever_an_override_says():
    text = (
        "sources:\n  events:\n    - {step: 1, density: 1}\n    - {step: 4, density: 1, cell: [1, "
        "1, 4]}\n"
    )
    assert faults_of(text, "grid.cells=[4, 4, 4]", "time.steps=4") == [
        (
            "x.yaml:4: sources.events[1].step: lies past the end of the run, whose steps are 0 "
            "to 3 (got 4)"
        ),
        (
            "x.yaml:4: sources.events[1].cell: lies outside the grid of 4 x 4 x 4 cells (got [1, "
            "1, 4])"
        ),
    ]


def test_the_likely_model_is_checked_where_none_is_named():
    with pytest.raises(ConfigError) as caught:
        loads("grid: {cells: [1, 8, 8]}\nfluid: {}\n", "x.yaml")
    assert [line.split(": ")[1] for line in str(caught.value).split("\n")] == [
        "model",
        "grid.cells",
        "time",
    ]


# --- whatever is written --------------------------------------------------------------------------

number = st.floats(-1e6, 1e6)
vectors = st.lists(number, min_size=3, max_size=3)
places = st.sampled_from(
    [
        {},
        {"cell": [1, 2, 3]},
        {"box": [[0, 2], [1, 6], [0, 1]]},
        {"sphere": {"centre": [1.5, 2, 3], "radius": 1.5}},
    ]
)
events = st.builds(
    lambda when, what, where, mode: {**when, **what, **where, "mode": mode},
    st.builds(lambda step: {"step": step}, st.integers(0, 9)) | st.just({"steps": [2, 7]}),
    st.builds(lambda value: {"density": value}, number)
    | st.builds(lambda value: {"velocity": value}, vectors),
    places,
    st.sampled_from(["set", "add"]),
)
configs = st.fixed_dictionaries(
    {
        "model": st.just("fluid"),
        "grid": st.just({"cells": [8, 6, 5]}),
        "time": st.just({"dt": 0.1, "steps": 10}),
        "sources": st.fixed_dictionaries({"events": st.lists(events, max_size=4)}),
        "fluid": st.fixed_dictionaries(
            {},
            optional={
                "viscosity": st.floats(0, 1e3),
                "boundary": st.sampled_from(["no-slip", ["periodic", "periodic", "free-slip"]]),
                "gravity": vectors,
                "buoyancy": number,
            },
        ),
        "output": st.fixed_dictionaries(
            {"planes": st.none() | st.just([3, 1]), "stride": st.integers(1, 9)}
        ),
    }
)


@given(configs)
def test_a_configuration_survives_being_written_and_read(values):
    config = FluidConfig.model_validate(values)
    text = dump(config)
    assert loads(text, "config.yaml") == config
    assert dump(loads(text, "config.yaml")) == text
