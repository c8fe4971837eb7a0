"""The lowest versions that the tests run with are those that the package allows."""

import configparser
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]


def requirements(text):
    """Return the requirements in lines, by name."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {found.name: found.specifier for found in map(Requirement, lines)}


def test_lowest_versions_are_the_lower_bounds():
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    allowed = requirements(setup["options"]["install_requires"])
    tested = requirements((ROOT / "run_scripts" / "lowest.txt").read_text())
    assert tested.keys() == allowed.keys()
    for name, versions in allowed.items():
        (lowest,) = [one.version for one in versions if one.operator == ">="]
        assert tested[name].contains(lowest), name
