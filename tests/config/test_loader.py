"""Files that are read, files that cannot be, and overrides."""

import os
from pathlib import Path

import pytest
from support.configs import load, loads

from hybrid_nbody.config.loader import ConfigError, dump

MINIMAL = "model: nbody\nbodies: {kind: plummer, n: 8}\ntime: {dt: 0.5, end: 1}\n"
ROOT = Path(__file__).parents[2]


def message(path, *overrides):
    with pytest.raises(ConfigError) as caught:
        load(path, overrides)
    return str(caught.value)


# ---- Files ---------------------------------------------------------------------------------------


def test_the_main_job_loads():
    config = load(ROOT / "input" / "plummer.yaml")
    assert (config.model, config.bodies.kind, config.bodies.n) == ("nbody", "plummer", 8192)
    assert (config.time.dt, config.time.total_steps) == (1e-3, 1000)
    assert config.output.checkpoint.keep == 2


@pytest.mark.parametrize(
    "path", sorted((ROOT / "input").glob("*.yaml")), ids=lambda path: path.name
)
def test_every_example_loads(path):
    assert load(path).title


def test_a_missing_file_names_a_near_one(in_folder):
    (in_folder / "plummer.yaml").write_text(MINIMAL)
    assert message("plumer.yaml") == "plumer.yaml: no such file; did you mean 'plummer.yaml'?"
    assert message("x/plumer.yaml") == "x/plumer.yaml: no such file"
    assert message("") == "'': no such file"


def test_a_directory_is_no_file(in_folder):
    (in_folder / "input").mkdir()
    assert message("input") == "input: is a directory, not a file"
    (in_folder / "input" / "a.yaml").write_text(MINIMAL)
    assert message("input") == "input: is a directory, not a file; did you mean 'input/a.yaml'?"


def test_a_file_without_permission(in_folder, monkeypatch):
    def refuse(*args):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    assert message("x.yaml") == (
        "x.yaml: cannot be read: permission denied; check the rights of the file and its folders"
    )


def test_another_failure_to_read_keeps_its_reason(in_folder):
    (in_folder / "x.yaml").write_text(MINIMAL)
    assert message("x.yaml/y") == "x.yaml/y: cannot be read: Not a directory"
    assert message("a\0b") == "a\\x00b: cannot be read: embedded null byte"


@pytest.mark.parametrize("text", ["", "# only a comment\n", "--- # nothing", "null\n"])
def test_an_empty_file(in_folder, text):
    (in_folder / "x.yaml").write_text(text)
    keys = (
        "model, title, units, seed, bodies, centred, gravity, time, stop, activity_map, compute, "
        "output, grid, fluid, obstacles, solver, sources"
    )
    assert (
        message("x.yaml", "seed=1") == f"x.yaml:1: is empty; must be a mapping of the keys {keys}"
    )


@pytest.mark.parametrize(
    ("text", "shown"), [("- 1\n", "[1]"), ("plummer\n", "'plummer'"), ("3", "3")]
)
def test_a_file_that_is_no_mapping(in_folder, text, shown):
    (in_folder / "x.yaml").write_text(text)
    assert message("x.yaml").startswith(
        f"x.yaml:1: is not a mapping at its top (got {shown}); must be a mapping of"
    )


def test_a_file_that_is_not_utf8_names_the_byte(in_folder):
    content = "model: nbody\ntitle: Système\n".encode("latin-1")
    (in_folder / "x.yaml").write_bytes(content)
    assert (
        message("x.yaml")
        == "x.yaml:2: is not UTF-8 text (byte 0xe8 at offset 24); save the file as UTF-8"
    )
    (in_folder / "x.yaml").write_bytes(b"\xef\xbb\xbf" + content)
    assert (
        message("x.yaml")
        == "x.yaml:2: is not UTF-8 text (byte 0xe8 at offset 27); save the file as UTF-8"
    )
    Path("x.yaml").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\xff")
    assert message("x.yaml") == "x.yaml:1: is not text; a configuration is YAML"


def test_a_file_that_is_too_large(in_folder):
    (in_folder / "x.yaml").write_bytes(b"#" * 200_001)
    assert (
        message("x.yaml")
        == "x.yaml: is larger than 200000 bytes; a configuration is a short YAML file"
    )


@pytest.mark.parametrize(
    "encoded", [MINIMAL.encode("utf-8-sig"), MINIMAL.replace("\n", "\r\n").encode()]
)
def test_files_of_other_systems_are_read(in_folder, encoded):
    (in_folder / "x.yaml").write_bytes(encoded)
    assert load("x.yaml") == loads(MINIMAL, "x.yaml")


def test_control_characters_of_a_file_name_do_not_reach_the_terminal(in_folder):
    assert message("\x1b[31m\udce9.yaml") == "\\x1b[31m\\udce9.yaml: no such file"


# ---- Paths within --------------------------------------------------------------------------------


def test_a_relative_bodies_path_starts_at_the_folder_of_the_yaml_file(in_folder):
    (in_folder / "input").mkdir()
    text = MINIMAL.replace("{kind: plummer, n: 8}", "{kind: file, path: ../b.csv}")
    (in_folder / "input" / "x.yaml").write_text(text)
    config = load("input/x.yaml")
    assert config.bodies.path == str(in_folder / "b.csv")
    os.chdir("input")
    assert loads(dump(config), "config.yaml") == config
    assert loads(text, "checkpoint").bodies.path == "../b.csv"


def test_a_relative_bodies_path_of_an_override_starts_at_the_current_folder(in_folder):
    (in_folder / "input").mkdir()
    (in_folder / "input" / "x.yaml").write_text(MINIMAL)
    assert load("input/x.yaml", ["bodies={kind: file, path: b.csv}"]).bodies.path == str(
        in_folder / "b.csv"
    )


def test_a_tilde_is_the_home_folder(config_of, monkeypatch):
    monkeypatch.setenv("HOME", "/folder/of/ada")
    config = config_of("output: {directory: ~/runs/1}", "bodies={kind: file, path: ~/b.csv}")
    assert (config.output.directory, config.bodies.path) == (
        "/folder/of/ada/runs/1",
        "/folder/of/ada/b.csv",
    )


# ---- Overrides -----------------------------------------------------------------------------------


def test_an_override_replaces_a_key_and_the_last_one_counts(config_of):
    config = config_of(
        "seed: 1", "seed=2", "time.dt=1e-4", "seed=3", "title=a=b", "compute.balance=[1, 0.5]"
    )
    assert (config.seed, config.time.dt, config.title, config.compute.balance) == (
        3,
        1e-4,
        "a=b",
        (1.0, 0.5),
    )


def test_an_override_makes_the_sections_it_needs(config_of):
    config = config_of(
        "output: {trajectory: null}", "output.trajectory.every_time=2", "gravity.softening=0.1"
    )
    assert config.output.trajectory.every_time == 2
    assert config.gravity.softening == 0.1


TWO_COMPONENTS = "bodies: [{kind: plummer, n: 2}, {kind: file, path: b.csv}]"


def test_an_override_names_an_entry_of_a_list_by_its_place(config_of, in_folder):
    bodies = config_of(TWO_COMPONENTS, "bodies[0].n=5", "bodies[1]={kind: figure-eight}").bodies
    assert bodies[0].n == 5
    assert bodies[1].kind == "figure-eight"


def test_files_of_components_start_at_the_folder_of_the_yaml_file(in_folder):
    (in_folder / "input").mkdir()
    (in_folder / "input" / "x.yaml").write_text(
        MINIMAL.replace("bodies: {kind: plummer, n: 8}", TWO_COMPONENTS)
    )
    assert load("input/x.yaml").bodies[1].path == str(in_folder / "input" / "b.csv")
    other = load("input/x.yaml", ["bodies[1].path=c.csv"]).bodies[1].path
    assert other == str(in_folder / "c.csv")


PLACES = {
    "bodies.n=3": "bodies.n: bodies is a list; name one of its entries, such as bodies[0].n",
    "bodies[2].n=3": "bodies[2].n: bodies has 2 entries, counted from 0",
    "time[0]=3": "time[0]: time is not a list",
    "bodies[a].n=3": "must be KEY=VALUE, such as time.dt=1e-3",
}


@pytest.mark.parametrize("override", PLACES)
def test_a_place_that_is_not_in_a_list_is_refused(faults_of, override):
    assert faults_of(TWO_COMPONENTS, override) == [f"--set {override}: {PLACES[override]}"]


def test_an_override_of_the_end_replaces_the_steps_of_the_file(config_of):
    time = config_of("time: {dt: 0.5, steps: 7}", "time.end=2").time
    assert (time.end, time.steps, time.total_steps) == (2, None, 4)
    output = config_of(
        "output: {trajectory: {every_steps: 3}}", "output.trajectory.every_time=0.5"
    ).output
    assert (output.trajectory.every_steps, output.trajectory.every_time) == (None, 0.5)


def test_an_override_with_null_replaces_no_other_key(config_of, faults_of):
    assert config_of("time: {dt: 0.5, end: 7}", "time.steps=null").time.end == 7
    assert faults_of("time: {dt: 0.5, steps: 7}", "time.steps=null") == [
        "x.yaml:1: time: a key is missing; give exactly one of end and steps"
    ]


def test_overrides_that_exclude_each_other(faults_of):
    assert faults_of("seed: 1", "time.steps=3", "time.end=2") == [
        (
            "--set time.end=2: time.end: cannot be given together with steps; give exactly one "
            "of end and steps"
        )
    ]


OVERRIDE_MESSAGES = {
    "time.dt=-1": "time.dt: must be greater than 0 (got -1)",
    "time.dt=": "time.dt: must be a number, greater than 0 (got null)",
    "time.dtt=1": "time.dtt: unknown key; did you mean 'dt'? "
    "allowed: dt, end, steps, wall_limit, integrator, accuracy, max_energy_error",
    "tiem.dt=1": "tiem: unknown key; did you mean 'time'? "
    "allowed: model, title, units, seed, bodies, centred, gravity, time, stop, activity_map, "
    "compute, output",
    "time.dt": "must be KEY=VALUE, such as time.dt=1e-3",
    "=3": "must be KEY=VALUE, such as time.dt=1e-3",
    "time..dt=3": "must be KEY=VALUE, such as time.dt=1e-3",
    f"{'a.' * 5000}b=1": "must be KEY=VALUE, such as time.dt=1e-3",
    "time.dt.x=3": "time.dt.x: there are no keys below time.dt, which holds one value",
    "seed=!!python/object:os.system x": (
        "seed: tags such as 'tag:yaml.org,2002:python/object:os.system' are not allowed; write "
        "the plain value"
    ),
    "seed=[*a, *a]": "seed[0]: aliases such as *a are not allowed; write the value out",
    "seed=[1": "seed: cannot be read as YAML: expected ',' or ']', but got '<stream end>' "
    "(while parsing a flow sequence that begins in line 1)",
    ("bodies={kind: plummer, kind: file, n: 1}"): (
        "bodies.kind: duplicate key, first given in line 1; keep one of them"
    ),
    ("bodies={kind: plummer}"): (
        "bodies.n: is missing; must be a whole number, at least 1 and at most 1e9"
    ),
    "title=\udce9": "title: holds the control character U+DCE9; only text is allowed",
}


@pytest.mark.parametrize("override", OVERRIDE_MESSAGES)
def test_a_fault_of_an_override_names_the_override(faults_of, override):
    label = override.replace("\udce9", "\\udce9")
    label = label if len(label) <= 60 else label[:59] + "…"
    assert faults_of("seed: 1", override) == [f"--set {label}: {OVERRIDE_MESSAGES[override]}"]


def test_a_section_that_an_override_opens_lacks_its_keys_there(faults_of):
    lines = faults_of("bodies: {kind: plummer, n: 2}\ntime:", "time.steps=3")
    assert lines == ["--set time.steps=3: time.dt: is missing; must be a number, greater than 0"]


def test_an_override_of_the_kind_leaves_the_faults_of_the_file_in_their_lines(faults_of):
    assert faults_of("bodies: {kind: plummer, n: 2}", "bodies.kind=two-body") == [
        "x.yaml:1: bodies.n: unknown key; allowed: kind, name, seed, rotation, offset, velocity, "
        "masses, semi_major_axis, eccentricity"
    ]


def test_an_override_repairs_a_bad_value_of_the_file(config_of):
    assert config_of("time: {dt: -1, end: 1}", "time.dt=1").time.dt == 1


def test_what_replaces_an_unreadable_value_is_checked_too(faults_of):
    assert faults_of("seed: !x 3", "seed=-1") == [
        "x.yaml:1: seed: tags such as '!x' are not allowed; write the plain value",
        "--set seed=-1: seed: must be at least 0 (got -1)",
    ]
    assert len(faults_of("compute: !x {}", "compute.threads=0")) == 2


def test_an_unreadable_override_does_not_hide_other_faults(faults_of):
    assert len(faults_of("seed: -1", "title=[", "time.dt=0")) == 3


def test_text_is_named_by_its_source():
    with pytest.raises(
        ConfigError, match=r"^checkpoint-7\.h5:1: seed: must be at least 0 \(got -1\)$"
    ):
        loads("seed: -1\n" + MINIMAL, "checkpoint-7.h5")
    assert loads(MINIMAL, "checkpoint-7.h5", ["seed=4"]).seed == 4
