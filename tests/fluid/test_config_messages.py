"""The message of each fault in the configuration of a fluid."""

import pytest
from support.configs import loads
from support.fluid_texts import (
    BOUNDARY,
    BOX,
    CARRY,
    CELLS,
    EVENT_KEYS,
    FIELDS,
    FOR_BODIES,
    OF_CHANGE,
    OMEGA,
    ONLY_STAGGERED,
    STEPS,
    VECTOR,
    WITHOUT,
    event,
    faults_of,
)

from hybrid_nbody.config.loader import ConfigError

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
        "1: solver.method: must be one of lexicographic, red-black, sor, multigrid, "
        "conjugate-gradients; did you mean 'red-black'? (got 'redblack')"
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
    "grid: {cells: [10, 10, 10]}\ntime: {dt: 1e20, steps: 10}": (
        "2: time.dt: must be at least 1e-16 and at most 1e+14 on this grid, for float32 to hold "
        "squares of speeds; take another unit of time, or write fluid.dtype: float64 (got 1e+20)"
    ),
    "time: {dt_max: 1e-200, cfl: 2, steps: 10}\nfluid: {dtype: float64}": (
        "1: time.dt_max: must be at least 1e-141 and at most 1e+139 on this grid, for float64 to "
        "hold squares of speeds; take another unit of time (got 1e-200)"
    ),
    "grid: {cells: 16}\nfluid: {viscosity: 1e300}\ntime: {dt: 0.01, steps: 9}": (
        "2: fluid.viscosity: must be at most 3e+14 in magnitude, for float32 to hold squares; or "
        "write fluid.dtype: float64 (got 1e+300)"
    ),
    "fluid: {dtype: float64, viscosity: 1e150}\ngrid: {cells: 10}\ntime: {dt: 1, steps: 9}": (
        "1: fluid.viscosity: must be at most 1e+138 in magnitude, for float64 to hold squares (got "
        "1e+150)"
    ),
    "obstacles: [{sphere: {centre: [0.5, 0.5, 1e160], radius: 0.1}}]": (
        "1: obstacles[0].sphere.centre: must be a list of three numbers from -1e6 to 1e6, along x, "
        "y and z (got [0.5, 0.5, 1e+160])"
    ),
    "time: {dt: 0.1, steps: 10, integrator: leapfrog}": (
        "1: time.integrator: unknown key; allowed: dt, end, steps, wall_limit, cfl, dt_max"
    ),
    "seed: 1": (
        "1: seed: unknown key; allowed: model, title, grid, fluid, obstacles, solver, sources, "
        "time, compute, output"
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
    "output: {fields: [pressure]}\nfluid: {grid: collocated}": (
        f"1: output.fields: pressure {ONLY_STAGGERED} (got ['pressure'])"
    ),
    "output: {fields: [densty]}": (
        "1: output.fields: densty: no such field; did you mean 'density'? there are density, "
        "velocity, pressure (got ['densty'])"
    ),
    "time: {dt: 1, steps: 10, cfl: 2}\nfluid: {grid: collocated}": (
        f"1: time.cfl: {ONLY_STAGGERED} (got 2.0)"
    ),
    "fluid: {grid: collocated, scalars: [{name: heat}]}": (
        f"1: fluid.scalars: {ONLY_STAGGERED} (got ['heat'])"
    ),
    "fluid: {grid: collocated, boundary: {x+: {moving: [0, 1, 0]}}}": (
        f"1: fluid.boundary: a face with a condition of its own {ONLY_STAGGERED}"
    ),
    "fluid: {grid: collocated}\nsolver: {method: conjugate-gradients}": (
        f"2: solver.method: {ONLY_STAGGERED} (got 'conjugate-gradients')"
    ),
    "fluid: {grid: staggered, projection: course}": (
        "1: fluid.projection: course is for the collocated grid; write fluid.grid: collocated "
        "(got 'course')"
    ),
    "fluid: {grid: staggered, scalars: [{name: heat}, {name: heat}]}": (
        "1: fluid.scalars[1].name: is the name of two scalars (got 'heat')"
    ),
    "fluid: {grid: staggered, scalars: [{name: velocity}]}": (
        "1: fluid.scalars[0].name: must be a word of letters, digits and underscores other than "
        "density, velocity, pressure, top, u, v, w, u_before, v_before, w_before, speed, "
        "vorticity, divergence, solid, step, time, x, y, z, inflow, profile (got 'velocity')"
    ),
    event("step: 1, scalar: {name: heat, value: 1}"): (
        "1: sources.events[0].scalar.name: no such field; declare it in fluid.scalars (got 'heat')"
    ),
    "fluid: {grid: staggered, boundary: {x-: {inflow: [1, 0, 0], heat: 1}, x+: outflow}}": (
        "1: fluid.boundary.x-.heat: no such field; the fluid has the scalars density (got 1.0)"
    ),
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
    ): "1: sources.events[0]: a key is missing; give exactly one of density, velocity and scalar",
    event("step: 1, density: 1, velocity: [0, 0, 1]"): (
        "1: sources.events[0].velocity: cannot be given together with density; give exactly one "
        "of density, velocity and scalar"
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
        "1: solver.omega: multigrid has no relaxation factor; leave it at auto (got 1.5)"
    ),
    "solver: {tolerance: 1e-7}": (
        "1: solver.tolerance: must be 0 or at least 1.2e-07, the rounding of float32, where "
        f"{OF_CHANGE} (got 1e-07)"
    ),
    "solver: {criterion: residual, tolerance: 1e-16}\nfluid: {dtype: float64}": (
        "1: solver.tolerance: must be 0 or at least 2.2e-16, the rounding of float64, where "
        f"{OF_CHANGE} (got 1e-16)"
    ),
    "solver: {criterion: change, tolerance: 1e-39}": (
        "1: solver.tolerance: must be 0 or at least 1.2e-38, the smallest change that float32 "
        "can tell (got 1e-39)"
    ),
    f"{CARRY}fluid: {{advection: maccormack}}": (
        f"2: fluid.advection: must be semi-lagrangian {WITHOUT} (got 'maccormack')"
    ),
    f"{CARRY}fluid: {{conserve: true}}": (
        "2: fluid.conserve: must be false with sources.carry_over, which adds density at each "
        "step (got true)"
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
        f"x.yaml:3: sources.events[0]: {without} density, velocity and scalar",
        f"x.yaml:3: sources.events[0].stp: {unknown}",
        f"x.yaml:4: sources.events[1]: {without} density, velocity and scalar",
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
