"""The settings that were measured to be fastest on a device, kept in the user's cache.

Only speed depends on them. A file that is missing or damaged is ignored.
"""

import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any

Settings = dict[str, Any]
"""Settings by name, as JSON holds them."""


def tuning_file(device: str) -> Path:
    """Return the file with the settings of a model of device."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or _home() / ".cache")
    name = re.sub(r"[^A-Za-z0-9]+", "-", device).strip("-").lower()
    return cache / "hybrid_nbody" / f"tuning-{name}.json"


def _home() -> Path:
    """Return the home folder, or that of temporary files for a user without one."""
    try:
        return Path.home()
    except RuntimeError:
        return Path(tempfile.gettempdir())


def load(device: str, name: str) -> Settings | None:
    """Return the settings that `store` kept under `name` for a model of device, or None."""
    found = _read(tuning_file(device)).get(name)
    return found if isinstance(found, dict) else None


def store(device: str, name: str, values: Settings) -> Path:
    """Keep settings under `name` for a model of device; return the file.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    path = tuning_file(device)
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = _read(path) | {name: values}
    beside = path.with_suffix(f".{os.getpid()}")
    try:
        beside.write_text(json.dumps(whole, indent=2) + "\n")
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    return path


def _read(path: Path) -> Settings:
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}
