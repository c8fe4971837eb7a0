"""``kind: python:module:function``, spelled out as ``kind: python`` with a path and a function."""

import importlib.util
import os.path
import re
from typing import Any

SHORT = re.compile(r"python:([\w.]+):(\w+)")
NAMED = ("path", "function")
"""Keys that the short spelling stands for."""


def spelled_out(data: Any, folder: str) -> Any:
    """Return the values of a configuration with every short spelling written out.

    Parameters
    ----------
    data : dict, list or scalar
        As `Tree.data`.
    folder : str
        Where files of functions are looked for first; then among installed modules.
    """
    if isinstance(data, list):
        return [spelled_out(entry, folder) for entry in data]
    if not isinstance(data, dict):
        return data
    kind = data.get("kind")
    found = SHORT.fullmatch(kind) if isinstance(kind, str) else None
    if found is None or any(key in data for key in NAMED):
        return {key: spelled_out(value, folder) for key, value in data.items()}
    named = {"kind": "python", "path": _file_of(found[1], folder), "function": found[2]}
    return {**data, **named}


def _file_of(module: str, folder: str) -> str:
    """Return the file of a module: that in a folder, an installed one, or that which lacks."""
    beside = f"{module.replace('.', '/')}.py"
    if os.path.exists(os.path.join(folder, beside)):
        return beside
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        spec = None
    origin = spec.origin if spec else None
    return origin if origin and origin.endswith(".py") else beside
