"""The scripts that count the style and compare the bits of two checkouts find what they are for."""

import importlib.util
import re

import h5py
import numpy as np
import pytest
from support.command import ROOT


def script(name):
    """Return a script of ``run_scripts/`` as a module."""
    spec = importlib.util.spec_from_file_location(name, f"{ROOT}/run_scripts/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def trajectories(tmp_path):
    """Return two folders with equal trajectories, but for what a clock measured."""
    for number, name in enumerate(("old", "new")):
        (tmp_path / name).mkdir()
        with h5py.File(tmp_path / name / "trajectory.h5", "w") as file:
            file["bodies/position"] = np.linspace(0, 1, 12).reshape(2, 2, 3)
            file["step"] = np.arange(2)
            file["timing/force_seconds"] = np.array([0.1, 0.2 + number])
    return tmp_path / "old", tmp_path / "new"


def test_equal_runs_have_the_same_bits(trajectories):
    assert script("same_bits").differences(*trajectories) == []


def test_the_last_bit_of_one_number_is_found(trajectories):
    with h5py.File(trajectories[1] / "trajectory.h5", "r+") as file:
        value = file["bodies/position"][1, 1, 2]
        file["bodies/position"][1, 1, 2] = np.nextafter(value, 2.0)
    assert script("same_bits").differences(*trajectories) == ["bodies/position"]


def test_minus_zero_is_not_zero(trajectories):
    with h5py.File(trajectories[1] / "trajectory.h5", "r+") as file:
        assert file["bodies/position"][0, 0, 0] == 0.0
        file["bodies/position"][0, 0, 0] = -0.0
    assert script("same_bits").differences(*trajectories) == ["bodies/position"]


def test_a_data_set_that_is_gone_is_found(trajectories):
    with h5py.File(trajectories[1] / "trajectory.h5", "r+") as file:
        del file["step"]
    assert script("same_bits").differences(*trajectories) == ["step"]


BAD_STYLE = """
def crowded(a, b, c, d, e, f, g):
    x, y = a, b
    z = c
    return d if e else f if g else x + y + z


class Thing:
    def method(self, a, b, c, d, e, f):
        return self
"""


def test_figures_of_style_are_counted(tmp_path):
    (tmp_path / "bad.py").write_text(BAD_STYLE + "#" * 101 + "\n")
    rows = dict(script("metrics").table([tmp_path / "bad.py"]))
    assert rows["functions"] == "2"
    assert rows["functions with more than 6 parameters"] == "50.0 %"  # self does not count
    assert rows["parallel assignments"] == "50.0 %"
    assert rows["nested conditional expressions"] == "1"
    assert re.fullmatch(r"\d+\.\d %", rows["lines over 100 columns"])
    assert rows["lines over 100 columns"] != "0.0 %"
