"""Configurations written to a file, and the messages that a faulty one gives."""

import pytest
from support.configs import load

from hybrid_nbody.config.loader import ConfigError

HEAD = "model: nbody\n"
BODIES = "bodies: {kind: plummer, n: 8}\n"
TIME = "time: {dt: 0.5, end: 1}\n"


@pytest.fixture
def in_folder(tmp_path, monkeypatch):
    """Work in an empty folder, so that messages name short paths."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def config_of(in_folder):
    """Return a function that loads a configuration from text, completed by the required sections it
    lacks.
    """

    def load_text(text, *overrides):
        (in_folder / "x.yaml").write_text(completed(text), encoding="utf-8")
        return load("x.yaml", overrides)

    return load_text


@pytest.fixture
def faults_of(config_of):
    """Return a function that gives the lines of the message that a faulty text ends in."""

    def lines(text, *overrides):
        with pytest.raises(ConfigError) as caught:
            config_of(text, *overrides)
        assert caught.value.exit_code == 2
        return str(caught.value).split("\n")

    return lines


def completed(text):
    """Return text followed by the required sections that it lacks: its own lines keep their
    numbers.
    """
    missing = (
        part
        for part in (HEAD, BODIES, TIME)
        if not any(line.startswith(part[:5]) for line in text.split("\n"))
    )
    return text + ("" if text.endswith("\n") else "\n") + "".join(missing)
