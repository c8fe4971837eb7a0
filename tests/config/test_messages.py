"""Each kind of bad input, with the exact message that a person reads."""

import pytest
from support.configs import loads

from hybrid_nbody.config.loader import ConfigError

KINDS = (
    "plummer, uniform-sphere, cold-sphere, random-box, random-square, two-body, figure-eight, "
    "lagrange-triangle, hernquist, nfw, king, galaxy, binaries, solar-system, file, python"
)
KEYS = (
    "model, title, units, seed, bodies, centred, gravity, time, stop, activity_map, compute, output"
)
TIME_KEYS = "dt, end, steps, wall_limit, integrator, accuracy, max_energy_error"
BACKENDS = "auto, cpu, gpu, hybrid or a list of cpu, gpu and hybrid, one per rank"
WEIGHTS = "auto, equal, measured or a list of numbers, each at least 0 and not all 0"
DURATION = "a duration greater than 0 such as 2h30m, 90s, 1d or 3600 (seconds), or null"
A_LINE = "one line of text, in quotes if it looks like a number"

MESSAGES = {
    # numbers out of range
    "time: {dt: -0.1, end: 1}": "1: time.dt: must be greater than 0 (got -0.1)",
    "time: {dt: 0, end: 1}": "1: time.dt: must be greater than 0 (got 0)",
    "time: {dt: 0.1, steps: 0}": "1: time.steps: must be at least 1 (got 0)",
    "time: {dt: 0.1, steps: 1e16}": "1: time.steps: must be at most 1e15 (got 1e+16)",
    "time: {dt: 1e-300, end: 1}": "1: time.end: must be at most 1e15 steps of time.dt away (got 1)",
    ("time: {dt: 0.1, end: 1, max_energy_error: 0}"): (
        "1: time.max_energy_error: must be greater than 0 (got 0)"
    ),
    "bodies: {kind: plummer, n: 0}": "1: bodies.n: must be at least 1 (got 0)",
    "bodies: {kind: cold-sphere, n: 1e10}": "1: bodies.n: must be at most 1e9 (got 10000000000.0)",
    ("bodies: {kind: two-body, eccentricity: 1}"): (
        "1: bodies.eccentricity: must be less than 1 (got 1)"
    ),
    ("bodies: {kind: two-body, eccentricity: -0.1}"): (
        "1: bodies.eccentricity: must be at least 0 (got -0.1)"
    ),
    ("bodies: {kind: two-body, masses: [1, 0]}"): (
        "1: bodies.masses[1]: must be greater than 0 (got 0)"
    ),
    ("bodies: {kind: uniform-sphere, n: 2, virial_ratio: -1}"): (
        "1: bodies.virial_ratio: must be at least 0 (got -1)"
    ),
    "gravity: {softening: -1e-3}": "1: gravity.softening: must be at least 0 (got -0.001)",
    "gravity: {G: 0}": "1: gravity.G: must be greater than 0 (got 0)",
    "seed: -1": "1: seed: must be at least 0 (got -1)",
    ("output: {checkpoint: {every_steps: 5, keep: 0}}"): (
        "1: output.checkpoint.keep: must be at least 1 (got 0)"
    ),
    ("output: {trajectory: {every_steps: 0}}"): (
        "1: output.trajectory.every_steps: must be at least 1 (got 0)"
    ),
    ("output: {diagnostics: {every_time: 0.0}}"): (
        "1: output.diagnostics.every_time: must be greater than 0 (got 0.0)"
    ),
    # components
    "bodies: [{kind: plummer, n: 2, mass: -1}]": (
        "1: bodies[0].mass: must be greater than 0 (got -1)"
    ),
    "bodies: [{kind: figure-eight}, {kind: plummer}]": (
        "1: bodies[1].n: is missing; must be a whole number, at least 1 and at most 1e9"
    ),
    "bodies: [{kind: figure-eight, name: a}, {kind: two-body, name: a}]": (
        "1: bodies[1].name: is the name of bodies[0] already; give each component its own (got 'a')"
    ),
    "bodies: [{kind: two-body, masses: [1, 0]}]": (
        "1: bodies[0].masses[1]: must be greater than 0 (got 0)"
    ),
    "bodies: [{kind: two-body, offset: [1, 2]}]": (
        "1: bodies[0].offset: must be a list of three numbers (got [1, 2])"
    ),
    "bodies: [{kind: two-body, velocity: [1, 2, fast]}]": (
        "1: bodies[0].velocity[2]: must be a number (got 'fast')"
    ),
    "bodies: [{kind: two-body, rotatoin: [1, 2, 3]}]": (
        "1: bodies[0].rotatoin: unknown key; did you mean 'rotation'? allowed: kind, name, seed, "
        "rotation, offset, velocity, masses, semi_major_axis, eccentricity"
    ),
    "bodies: [{kind: figure-eight}, {kind: plumer, n: 1}]": (
        f"1: bodies[1].kind: must be one of {KINDS}; did you mean 'plummer'? (got 'plumer')"
    ),
    "bodies: [{n: 1}]": f"1: bodies[0].kind: is missing; must be one of {KINDS}",
    "bodies: []": (
        "1: bodies: must be a mapping with the key kind and the keys of that kind, or a list of "
        "such mappings (got [])"
    ),
    "bodies: {kind: galaxy, n: 1}": "1: bodies.n: must be at least 2 (got 1)",
    "bodies: {kind: galaxy, n: 9, disc_mass: 1}": (
        "1: bodies.disc_mass: must be less than 1 (got 1)"
    ),
    "bodies: {kind: king, n: 9, central_potential: 16}": (
        "1: bodies.central_potential: must be at most 15 (got 16)"
    ),
    "bodies: {kind: binaries, n: 3, semi_major_axes: [1, 2]}": (
        "1: bodies.n: must be even, two for each binary (got 3)"
    ),
    "bodies: {kind: binaries, n: 4, semi_major_axes: [2, 1]}": (
        "1: bodies.semi_major_axes: must be the smaller one first, then the larger one (got [2, 1])"
    ),
    # numbers that are none
    "gravity: {G: .inf}": "1: gravity.G: must be a number, greater than 0 (got inf)",
    "gravity: {G: 1e999}": "1: gravity.G: must be a number, greater than 0 (got inf)",
    "gravity: {softening: .nan}": "1: gravity.softening: must be a number, at least 0 (got nan)",
    # wrong types
    "time: {dt: fast, end: 1}": "1: time.dt: must be a number, greater than 0 (got 'fast')",
    "time: {dt: true, end: 1}": "1: time.dt: must be a number, greater than 0 (got true)",
    "time: {dt: null, end: 1}": "1: time.dt: must be a number, greater than 0 (got null)",
    "time: {dt: 0.1, end: [1]}": "1: time.end: must be a number, greater than 0, or null (got [1])",
    ("bodies: {kind: plummer, n: '4'}"): (
        "1: bodies.n: must be a whole number, at least 1 and at most 1e9 (got '4')"
    ),
    ("bodies: {kind: plummer, n: 1.5}"): (
        "1: bodies.n: must be a whole number, at least 1 and at most 1e9 (got 1.5)"
    ),
    ("bodies: {kind: plummer, n: true}"): (
        "1: bodies.n: must be a whole number, at least 1 and at most 1e9 (got true)"
    ),
    "bodies: {kind: two-body, masses: 1}": (
        "1: bodies.masses: must be a list of two numbers, each greater than 0 (got 1)"
    ),
    "bodies: {kind: two-body, masses: [1]}": (
        "1: bodies.masses: must be a list of two numbers, each greater than 0 (got [1])"
    ),
    "bodies: {kind: two-body, masses: [1, 2, 3]}": (
        "1: bodies.masses: must be a list of two numbers, each greater than 0 (got [1, 2, 3])"
    ),
    ("bodies: {kind: two-body, masses: [1, two]}"): (
        "1: bodies.masses[1]: must be a number (got 'two')"
    ),
    "bodies: [plummer]": (
        "1: bodies[0]: must be a mapping with the key kind and the keys of that kind, or a list of "
        "such mappings (got 'plummer')"
    ),
    ("gravity: 9.81"): (
        "1: gravity: must be a mapping of the keys G, softening, solver, precision, external, "
        "accuracy (got 9.81)"
    ),
    "gravity: {external: [{kind: bulge, mass: 1}]}": (
        "1: gravity.external[0].kind: must be one of uniform, point-mass, plummer, hernquist, nfw, "
        "logarithmic, miyamoto-nagai, bar, python (got 'bulge')"
    ),
    "gravity: {external: [{kind: plummer, mass: 1}]}": (
        "1: gravity.external[0].scale: is missing; must be a number, greater than 0"
    ),
    ("gravity:"): (
        "1: gravity: must be a mapping of the keys G, softening, solver, precision, external, "
        "accuracy (got null)"
    ),
    "output: {trajectory: 5}": (
        "1: output.trajectory: must be a mapping of the keys every_steps, every_time, fields, "
        "precision, every_body, ids, or null (got 5)"
    ),
    "output: {trajectory: {every_steps: 1, fields: [mass]}}": (
        "1: output.trajectory.fields: must be a list of position and velocity, or of one of them "
        "(got ['mass'])"
    ),
    "output: {trajectory: {every_steps: 1, fields: []}}": (
        "1: output.trajectory.fields: must be a list of position and velocity, or of one of them "
        "(got [])"
    ),
    "output: {trajectory: {every_steps: 1, precision: half}}": (
        "1: output.trajectory.precision: must be one of float32, float64 (got 'half')"
    ),
    "output: {trajectory: {every_steps: 1, every_body: 0}}": (
        "1: output.trajectory.every_body: must be at least 1 (got 0)"
    ),
    "output: {trajectory: {every_steps: 1, ids: [1, 1]}}": (
        "1: output.trajectory.ids: must be a list of different whole numbers, or null (got [1, 1])"
    ),
    "output: {trajectory: {every_steps: 1, ids: [3, 8, 9]}}": (
        "1: output.trajectory.ids[1]: no body has this id; the 8 bodies have the ids 0 to 7 (got 8)"
    ),
    "output: {trajectory: {every_steps: 1, ids: [1], every_body: 2}}": (
        "1: output.trajectory.every_body: cannot be given together with ids; "
        "give at most one of every_body and ids"
    ),
    "title: 2026": f"1: title: must be {A_LINE} (got 2026)",
    'title: "two\\nlines"': f"1: title: must be {A_LINE} (got 'two\\nlines')",
    'title: "\\e[31mred"': f"1: title: must be {A_LINE} (got '\\x1b[31mred')",
    ("output: {directory: ''}"): (
        "1: output.directory: must be the name of a file or folder, in one line (got '')"
    ),
    'bodies: {kind: file, path: "a\\0b"}': (
        "1: bodies.path: must be the name of a file or folder, in one line (got 'a\\x00b')"
    ),
    # words
    "gravity: {precision: duoble}": (
        "1: gravity.precision: must be one of single, mixed, double; did you mean 'double'? (got "
        "'duoble')"
    ),
    "gravity: {solver: tree}": "1: gravity.solver: must be one of direct, fmm, auto (got 'tree')",
    ("compute: {backend: GPU}"): (
        f"1: compute.backend: must be {BACKENDS}; did you mean 'gpu'? (got 'GPU')"
    ),
    ("compute: {backend: [gpu, auto]}"): (
        f"1: compute.backend: must be {BACKENDS} (got ['gpu', 'auto'])"
    ),
    "model: n-body": "1: model: must be one of nbody, fluid; did you mean 'nbody'? (got 'n-body')",
    "model: smoke": "1: model: must be one of nbody, fluid (got 'smoke')",
    "model: 3": "1: model: must be one of nbody, fluid (got 3)",
    ("bodies: {kind: plumer, n: 3}"): (
        f"1: bodies.kind: must be one of {KINDS}; did you mean 'plummer'? (got 'plumer')"
    ),
    "bodies: {kind: [file]}": f"1: bodies.kind: must be one of {KINDS} (got ['file'])",
    # threads, weights and durations
    ("compute: {threads: 0}"): (
        "1: compute.threads: must be auto or a whole number, at least 1 and at most 1024 (got 0)"
    ),
    "compute: {threads: 100000}": (
        "1: compute.threads: must be auto or a whole number, at least 1 and at most 1024 "
        "(got 100000)"
    ),
    ("compute: {threads: 1.5}"): (
        "1: compute.threads: must be auto or a whole number, at least 1 and at most 1024 (got 1.5)"
    ),
    "compute: {threads: atuo}": (
        "1: compute.threads: must be auto or a whole number, at least 1 and at most 1024; "
        "did you mean 'auto'? (got 'atuo')"
    ),
    "compute: {balance: [1, -1]}": "1: compute.balance[1]: must be at least 0 (got -1)",
    "compute: {balance: [1, x]}": "1: compute.balance[1]: must be a number (got 'x')",
    "compute: {balance: [.inf, 1]}": "1: compute.balance[0]: must be finite (got inf)",
    "compute: {balance: [0, 0]}": (
        "1: compute.balance: the sum of the weights must be finite and greater than 0 (got [0, 0])"
    ),
    ("compute: {balance: []}"): (
        "1: compute.balance: the sum of the weights must be finite and greater than 0 (got [])"
    ),
    "compute: {balance: [1e308, 1e308]}": (
        "1: compute.balance: the sum of the weights must be finite and greater than 0 (got "
        "[1e+308, 1e+308])"
    ),
    "compute: {balance: 1}": f"1: compute.balance: must be {WEIGHTS} (got 1)",
    "compute: {balance: mesured}": (
        f"1: compute.balance: must be {WEIGHTS}; did you mean 'measured'? (got 'mesured')"
    ),
    ("time: {dt: 0.1, end: 1, wall_limit: 2 hours}"): (
        f"1: time.wall_limit: must be {DURATION} (got '2 hours')"
    ),
    ("time: {dt: 0.1, end: 1, wall_limit: 30m2h}"): (
        f"1: time.wall_limit: must be {DURATION} (got '30m2h')"
    ),
    "time: {dt: 0.1, end: 1, wall_limit: 0s}": f"1: time.wall_limit: must be {DURATION} (got '0s')",
    "time: {dt: 0.1, end: 1, wall_limit: -5}": f"1: time.wall_limit: must be {DURATION} (got -5)",
    "time: {dt: 0.1, end: 1, wall_limit: ''}": f"1: time.wall_limit: must be {DURATION} (got '')",
    ("time: {dt: 0.1, end: 1, wall_limit: 1:30}"): (
        f"1: time.wall_limit: must be {DURATION} (got '1:30')"
    ),
    # keys
    "gravity: {sofening: 1}": (
        "1: gravity.sofening: unknown key; did you mean 'softening'? allowed: G, softening, "
        "solver, precision, external, accuracy"
    ),
    ("gravity: {g: 1}"): (
        "1: gravity.g: unknown key; did you mean 'G'? allowed: G, softening, solver, precision, "
        "external, accuracy"
    ),
    ("compute: {cpu_share: 1.5}"): (
        "1: compute.cpu_share: must be auto or a number from 0 to 1 (got 1.5)"
    ),
    "compute: {cpu_share: 0.25}": (
        "1: compute.cpu_share: is for backend hybrid; leave it at auto, or take compute.backend: "
        "hybrid (got 0.25)"
    ),
    "compute: {backend: [gpu, cpu], cpu_share: 0}": (
        "1: compute.cpu_share: is for backend hybrid; leave it at auto, or take compute.backend: "
        "hybrid (got 0.0)"
    ),
    "time: {dt: 1, steps: 1, accuracy: 1e-3}": (
        "1: time.accuracy: is for integrator hermite4; leave it at 0.01, or take "
        "time.integrator: hermite4 (got 0.001)"
    ),
    ("time: {dt: 1, steps: 1, integrator: hermite4, accuracy: 2}"): (
        "1: time.accuracy: must be at most 1 (got 2)"
    ),
    "time: {dt: 1, steps: 1, integrator: hermite4, accuracy: 1e-4}": (
        "1: time.accuracy: must be at least 0.001 where forces are of mixed precision, or take "
        "gravity.precision: double (got 0.0001)"
    ),
    "time: {dt: 1, steps: 1, integrator: hermite4}\ncompute: {exchange: ring}": (
        "2: compute.exchange: does not carry the velocities that time.integrator: hermite4 "
        "needs; use allgather or auto (got 'ring')"
    ),
    ("compute: {cpu_share: half}"): (
        "1: compute.cpu_share: must be auto or a number from 0 to 1 (got 'half')"
    ),
    "compute: {gpu_share: 0.5}": (
        "1: compute.gpu_share: unknown key; did you mean 'cpu_share'? allowed: backend, threads, "
        "balance, transport, cpu_share, exchange"
    ),
    "bodies: {kind: figure-eight, n: 3}": (
        "1: bodies.n: unknown key; allowed: kind, name, seed, rotation, offset, velocity"
    ),
    "'a\\nb': 1": f"1: a\\nb: unknown key; allowed: {KEYS}",
    "12: 1": f"1: 12: unknown key; allowed: {KEYS}",
    "time: {end: 1}": "1: time.dt: is missing; must be a number, greater than 0",
    "time:\n  # dt: 1\n  steps: 3": "1: time.dt: is missing; must be a number, greater than 0",
    ("bodies: {kind: plummer}"): (
        "1: bodies.n: is missing; must be a whole number, at least 1 and at most 1e9"
    ),
    "bodies: {kind: random-square, n: 3, dimensions: 3}": "1: bodies.dimensions: must be 2 (got 3)",
    "bodies: {kind: file, path: a, dimensions: 4}": "1: bodies.dimensions: must be 2 or 3 (got 4)",
    "activity_map: {cells: 0}": "1: activity_map.cells: must be at least 1 (got 0)",
    "activity_map: {cells: 5000}": "1: activity_map.cells: must be at most 4096 (got 5000)",
    "activity_map: 4": "1: activity_map: must be a mapping of the keys cells, or null (got 4)",
    "bodies: {n: 5}": f"1: bodies.kind: is missing; must be one of {KINDS}",
    # keys that exclude each other
    "time: {dt: 0.1}": "1: time: a key is missing; give exactly one of end and steps",
    "time:\n  dt: 0.1\n  steps: 5\n  end: 1": (
        "4: time.end: cannot be given together with steps; give exactly one of end and steps"
    ),
    "output:\n  trajectory:\n    every_time: 1\n    every_steps: 2": (
        "4: output.trajectory.every_steps: cannot be given together with every_time; "
        "give exactly one of every_steps and every_time"
    ),
    "output: {checkpoint: {keep: 3}}": (
        "1: output.checkpoint: a key is missing; give exactly one of every_steps and every_time"
    ),
}


@pytest.mark.parametrize("text", MESSAGES)
def test_the_message_names_file_line_key_and_what_is_allowed(faults_of, text):
    assert faults_of(text) == [f"x.yaml:{MESSAGES[text]}"]


def test_missing_sections_are_reported_at_the_head_of_the_file():
    with pytest.raises(ConfigError) as caught:
        loads("# a comment\ntitle: x\n", "x.yaml")
    assert str(caught.value).split("\n") == [
        "x.yaml:2: model: is missing; must be one of nbody, fluid",
        (
            "x.yaml:2: bodies: is missing; must be a mapping with the key kind and the keys of "
            "that kind, or a list of such mappings"
        ),
        f"x.yaml:2: time: is missing; must be a mapping of the keys {TIME_KEYS}",
    ]


def test_all_faults_are_reported_at_once_in_the_order_of_their_lines(faults_of):
    text = """\
model: nbody
output:
  chekpoint: {every_steps: 1}
  directory: 7
bodies:
  kind: two-body
  masses: [1, -1]
  n: 2
time:
  dt: -1
  end: 1
  steps: 0
  wall_limit: soon
gravity: {G: x, softening: x}
"""
    assert [line.split(": ")[:2] for line in faults_of(text, "seed=x", "title=3")] == [
        ["x.yaml:3", "output.chekpoint"],
        ["x.yaml:4", "output.directory"],
        ["x.yaml:7", "bodies.masses[1]"],
        ["x.yaml:8", "bodies.n"],
        ["x.yaml:10", "time.dt"],
        ["x.yaml:12", "time.steps"],  # given together with end
        ["x.yaml:12", "time.steps"],  # less than 1
        ["x.yaml:13", "time.wall_limit"],
        ["x.yaml:14", "gravity.G"],
        ["x.yaml:14", "gravity.softening"],
        ["--set seed=x", "seed"],
        ["--set title=3", "title"],
    ]


def test_a_misspelt_model_does_not_hide_the_other_faults(faults_of):
    assert len(faults_of("model: nbdy\nseed: -1\n")) == 2


def test_many_faults_are_counted_and_not_all_printed(faults_of):
    lines = faults_of("".join(f"key{number}: 1\n" for number in range(70)))
    assert len(lines) == 51
    assert lines[-1] == "… and 20 more faults"


def test_no_message_speaks_of_the_checking_library(faults_of):
    for text in MESSAGES:
        for line in faults_of(text):
            assert not any(
                word in line
                for word in ("Input should", "pydantic", "Value error", "literal", "Traceback")
            )


def test_long_and_strange_values_are_shown_short_and_in_one_line(faults_of):
    (line,) = faults_of(f"gravity: {{G: {'x' * 5000}}}")
    assert line == f"x.yaml:1: gravity.G: must be a number, greater than 0 (got '{'x' * 58}…)"
    (line,) = faults_of(f"gravity: {{G: {'9' * 5000}}}")
    assert line.endswith("(got '" + "9" * 58 + "…)")
