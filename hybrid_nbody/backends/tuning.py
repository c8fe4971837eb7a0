"""What was measured to be fastest on a device, kept for later runs in the user's cache.

Only speed depends on it. A file that is missing or unreadable is as good as none.
"""

import json
import os
import re
import tempfile
from pathlib import Path


def tuning_file(device: str) -> Path:
    """Return where the measurements of a model of device are kept."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or _home() / ".cache")
    return (
        cache
        / "hybrid_nbody"
        / f"tuning-{re.sub(r'[^A-Za-z0-9]+', '-', device).strip('-').lower()}.json"
    )


def _home() -> Path:
    """Return the home folder, or that of temporary files for a user who has none, as in some containers."""
    try:
        return Path.home()
    except RuntimeError:
        return Path(tempfile.gettempdir())


def load(device: str, name: str) -> dict | None:
    """Return what `store` kept under `name` for a model of device, or None."""
    found = _read(tuning_file(device)).get(name)
    return found if isinstance(found, dict) else None


def store(device: str, name: str, values: dict) -> Path:
    """Keep `values` under `name` for a model of device; return the file.

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


def _read(path: Path) -> dict:
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}
