"""How YAML is read: numbers as people write them, and nothing that hides, expands or runs."""

import math

import pytest

from hybrid_nbody.config.faults import Location
from hybrid_nbody.config.yaml_text import read, write

VALUES = {
    "1e-3": 1e-3,
    "1E5": 1e5,
    "-1.5e+2": -150.0,
    ".5": 0.5,
    "1.": 1.0,
    "+.5": 0.5,
    "1.e2": 100.0,
    "010": 10,
    "-7": -7,
    ".inf": math.inf,
    "-.inf": -math.inf,
    "true": True,
    "false": False,
    "null": None,
    "~": None,
    "": None,
    "off": "off",
    "yes": "yes",
    "No": "No",
    "True": "True",
    "1:30": "1:30",
    "190:20:30": "190:20:30",
    "2001-01-01": "2001-01-01",
    "0x10": "0x10",
    "0b1": "0b1",
    "0o7": "0o7",
    "1_000": "1_000",
    "1e": "1e",
    ".": ".",
    "e5": "e5",
    "<<": "<<",
    "=": "=",
    "'1e-3'": "1e-3",
    '"true"': "true",
    "9" * 301: "9" * 301,
}


def tree_of(text):
    return read(text, lambda line: Location.in_file("x.yaml", line))


@pytest.mark.parametrize("text", VALUES)
def test_a_scalar_is_read_as_a_person_means_it(text):
    value = tree_of(f"key: {text}").data["key"]
    assert value == VALUES[text]
    assert type(value) is type(VALUES[text])


def test_not_a_number_is_a_float():
    assert math.isnan(tree_of("key: .NaN").data["key"])


@pytest.mark.parametrize(
    "text", [text for text in VALUES.values() if isinstance(text, str)] + ["", " a", "a: b", "#"]
)
def test_text_that_looks_like_something_else_is_written_so_that_it_stays_text(text):
    assert tree_of(write({"key": text})).data == {"key": text}


def test_each_value_knows_its_line():
    tree = tree_of("# head\na:\n  b: [1,\n      2]\n  c: {d: 1}\n")
    assert {path: location.line for path, location in tree.locations.items()} == {
        (): 2,
        ("a",): 2,
        ("a", "b"): 3,
        ("a", "b", 0): 3,
        ("a", "b", 1): 4,
        ("a", "c"): 5,
        ("a", "c", "d"): 5,
    }


REFUSED = {
    "seed: 1\ntitle: a\nseed: 2": [
        "3: seed: duplicate key, first given in line 1; keep one of them"
    ],
    "gravity:\n  G: 1\n  G: 1": [
        "3: gravity.G: duplicate key, first given in line 2; keep one of them"
    ],
    "seed: 1\n'seed': 2": ["2: seed: duplicate key, first given in line 1; keep one of them"],
    "title: !!python/object:os.system x": [
        (
            "1: title: tags such as 'tag:yaml.org,2002:python/object:os.system' are not allowed; "
            "write the plain value"
        )
    ],
    "seed:\n  !!python/object/apply:os.system ['true']": [
        (
            "2: seed: tags such as 'tag:yaml.org,2002:python/object/apply:os.system' are not "
            "allowed; write the plain value"
        )
    ],
    "seed: !!int '3'": [
        "1: seed: tags such as 'tag:yaml.org,2002:int' are not allowed; write the plain value"
    ],
    "gravity: {G: ! 3}": ["1: gravity.G: tags such as '!' are not allowed; write the plain value"],
    "compute: {balance: [1, !x 2]}": [
        "1: compute.balance[1]: tags such as '!x' are not allowed; write the plain value"
    ],
    "gravity: &g {G: 2}\ncompute: *g": [
        "2: compute: aliases such as *g are not allowed; write the value out"
    ],
    "? [a, b]\n: 1": ["1: a key must be a plain word"],
    "? !!str a\n: 1": ["1: a key must be a plain word"],
    "<<: {seed: 3}": [
        (
            "1: <<: unknown key; allowed: model, title, units, seed, bodies, centred, gravity, "
            "time, stop, activity_map, compute, output"
        )
    ],
    "seed: [1": [
        "2: cannot be read as YAML: expected ',' or ']', but got ':' "
        "(while parsing a flow sequence that begins in line 1)"
    ],
    "gravity:\n\tG: 1": [
        "2: cannot be read as YAML: a value cannot begin with a tab; indent with spaces"
    ],
    "seed: 1: 2": ["1: cannot be read as YAML: mapping values are not allowed here"],
    "seed: @3": [
        "1: cannot be read as YAML: a value cannot begin with '@'; put the text in quotes"
    ],
    "seed: 1\n---\nseed: 2": [
        "2: cannot be read as YAML: a second document begins here; only one is allowed"
    ],
    "seed: 1\n\n\x00": ["3: holds the control character U+0000; only text is allowed"],
    "title: a\x1b[31m": ["1: holds the control character U+001B; only text is allowed"],
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_hides_or_runs_something_is_refused(faults_of, text):
    assert faults_of(text) == [f"x.yaml:{line}" for line in REFUSED[text]]


def test_an_alias_bomb_of_ten_levels_is_refused_without_expanding_it(faults_of):
    levels = ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 11)]
    lines = faults_of("\n".join(levels))
    unknown = (
        "unknown key; allowed: model, title, units, seed, bodies, centred, gravity, time, stop, "
        "activity_map, compute, output"
    )
    assert sorted(lines) == sorted(
        ["x.yaml:2: a1[0]: aliases such as *a0 are not allowed; write the value out"]
        + [f"x.yaml:{n + 1}: a{n}: {unknown}" for n in range(11)]
    )


@pytest.mark.parametrize(
    "nested", ["[" * 100_000, "{a: " * 40_000, "\n".join(" " * n + "a:" for n in range(500))]
)
def test_deep_nesting_is_a_message_and_not_a_crash(faults_of, nested):
    (line,) = faults_of(f"seed:\n {nested}")
    assert line.endswith("cannot be read as YAML: nested deeper than 20 levels")


@pytest.mark.parametrize(
    "text", ['title: "\\UFFFFFFFF"', f"%YAML {'9' * 5000}.1\n---\na: 1", 'title: "\\q"', "a: 'b"]
)
def test_text_that_the_parser_stumbles_over_is_a_message(faults_of, text):
    (line,) = faults_of(text)
    assert "cannot be read as YAML" in line


def test_a_broken_character_in_a_title_is_refused(faults_of):
    (line,) = faults_of('title: "\\uD800"')
    assert line.startswith("x.yaml:1: title: must be one line of text")


def test_a_value_that_could_not_be_read_is_reported_once(faults_of):
    assert len(faults_of("time: !!map {dt: -1}")) == 1
    assert len(faults_of("bodies: {kind: !x plummer, n: 1}")) == 1
    assert len(faults_of("time: {dt: !x 1, end: 1}")) == 1
    assert len(faults_of("time: {dt: 1, end: !x 1}")) == 1
    assert len(faults_of("seed: [1, !x 2]")) == 1
    assert len(faults_of("compute: {balance: [!x 2]}")) == 1
