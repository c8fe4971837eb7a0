"""Short spellings of functions of Python, spelled out with their files.

``kind: python:module:function`` is ``kind: python`` with a path and a function; ``python:
module:function`` is ``python: file.py:function``.
"""

import importlib.util
import os.path
import re
from typing import Any

SHORT = re.compile(r"python:([\w.]+):(\w+)")
NAME = re.compile(r"([\w.]+):(\w+)")
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
        return {key: _spelled_out_at(key, value, folder) for key, value in data.items()}
    named = {"kind": "python", "path": _file_of(found[1], folder), "function": found[2]}
    return {**data, **named}


def _spelled_out_at(key: Any, value: Any, folder: str) -> Any:
    """Return the value of a key with every short spelling in it written out."""
    found = NAME.fullmatch(value) if key == "python" and isinstance(value, str) else None
    if found is None or found[1].endswith(".py"):
        return spelled_out(value, folder)
    return f"{_file_of(found[1], folder)}:{found[2]}"


def _file_of(module: str, folder: str) -> str:
    """Return the source file of a module: in the folder, installed, or where it is expected."""
    beside = f"{module.replace('.', '/')}.py"
    if os.path.exists(os.path.join(folder, beside)):
        return beside
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        spec = None
    origin = spec.origin if spec else None
    return origin if origin and origin.endswith(".py") else beside
