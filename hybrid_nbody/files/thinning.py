"""Frames that hold some of the bodies of a run, as its configuration says."""

from collections.abc import Mapping
from typing import Any


def chosen_bodies(config: Mapping[str, Any]) -> str:
    """Return in words which bodies the frames of a run hold; empty for all.

    Parameters
    ----------
    config : mapping
        The configuration that is stored with the run, which may be of any program.
    """
    frames = _section(_section(config, "output"), "trajectory")
    step = frames.get("every_body")
    if isinstance(step, int) and step > 1:
        return f"1 of every {step}"
    return "chosen by id" if frames.get("ids") else ""


def thinned_by(config: Mapping[str, Any]) -> int:
    """Return how many bodies of a run each in its frames stands for, by the configuration."""
    step = _section(_section(config, "output"), "trajectory").get("every_body")
    return step if isinstance(step, int) and step > 1 else 1


def _section(values: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return a section of a configuration; an empty one where there is none."""
    found = values.get(key)
    return found if isinstance(found, Mapping) else {}
