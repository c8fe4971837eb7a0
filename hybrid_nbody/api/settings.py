"""Values of a configuration that a person gives as objects of Python."""

import json
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import numpy as np

from hybrid_nbody.api.functions import with_sources
from hybrid_nbody.errors import InputError


def as_set(overrides: Mapping[str, Any] | None) -> list[str]:
    """Return values by their dotted keys as ``--set`` takes them."""
    return [f"{key}={as_json(value)}" for key, value in (overrides or {}).items()]


def as_json(value: Any) -> str:
    """Return a value as text that YAML reads: arrays as lists, functions as their source.

    Raises
    ------
    InputError
        If it holds what cannot stand in a file.
    """
    return json.dumps(with_sources(value), default=_plain)


def _plain(value: Any) -> Any:
    """Return what stands for an object that JSON does not know."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, PurePath):
        return str(value)
    kind = type(value).__name__
    raise InputError(f"a configuration cannot hold {value!r}, of type {kind}; give numbers or text")
