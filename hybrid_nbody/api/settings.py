"""Values that take the place of those of a configuration."""

import json
from collections.abc import Mapping
from typing import Any


def as_set(overrides: Mapping[str, Any] | None) -> list[str]:
    """Return values by their dotted keys as ``--set`` takes them."""
    return [f"{key}={json.dumps(value)}" for key, value in (overrides or {}).items()]
