"""``kind: python:module:function`` is the same as a path and a function."""

import json
import sys

import pytest
from support.config_texts import config_of, faults_of, in_folder

__all__ = ["config_of", "faults_of", "in_folder"]

SHORT = "bodies: {kind: python:parts.spiral:arms, n: 5}"
LONG = "bodies: {kind: python, path: parts/spiral.py, function: arms, n: 5}"


@pytest.mark.parametrize(
    "short, long",
    [
        (SHORT, LONG),
        (
            f"gravity: {{external: [{{kind: python:parts.spiral:wind, parameters: [{1}]}}]}}",
            "gravity: {external: [{kind: python, path: parts/spiral.py, function: wind, "
            "parameters: [1]}]}",
        ),
        (SHORT.replace("{", "[{").replace("}", "}]"), LONG.replace("{", "[{").replace("}", "}]")),
    ],
)
def test_both_spellings_are_the_same(config_of, in_folder, short, long):
    (in_folder / "parts").mkdir()
    (in_folder / "parts/spiral.py").touch()
    assert config_of(short) == config_of(long)


def test_an_installed_module_is_found(config_of):
    bodies = config_of("bodies: {kind: python:json.decoder:arms, n: 5}").bodies
    assert bodies.path == sys.modules["json.decoder"].__file__
    assert json.decoder.__file__ == bodies.path


def test_a_module_beside_the_file_comes_before_an_installed_one(config_of, in_folder):
    (in_folder / "colorsys.py").touch()
    bodies = config_of("bodies: {kind: python:colorsys:arms, n: 5}").bodies
    assert bodies.path == str(in_folder / "colorsys.py")


def test_a_module_that_is_nowhere_is_a_file_that_is_missing(config_of, in_folder):
    bodies = config_of("bodies: {kind: python:no.where:arms, n: 5}").bodies
    assert bodies.path == str(in_folder / "no/where.py")


@pytest.mark.parametrize(
    "text", ["kind: python:spiral, n: 5", "kind: python:spiral:arms, path: a.py, n: 5"]
)
def test_half_a_spelling_is_no_kind(faults_of, text):
    (line,) = faults_of(f"bodies: {{{text}}}")
    assert "bodies.kind: must be" in line
