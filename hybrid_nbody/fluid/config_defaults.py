"""Defaults of a fluid's configuration that depend on other keys, such as its grid."""

from typing import Any

COURSE_SOLVER = {"method": "red-black", "tolerance": 1e-7, "criterion": "change"}
"""Defaults of `solver` where the fluid is projected as the program of the course does it."""

STAGGERED_SOLVER = {"max_iterations": 100}
"""Defaults of `solver` on the staggered grid."""

ONLY_COLLOCATED: tuple[tuple[str, str, tuple[object, ...]], ...] = (
    ("fluid", "projection", ()),
    ("sources", "carry_over", (False,)),
    ("solver", "method", ("multigrid", "conjugate-gradients")),
    ("solver", "criterion", ("residual",)),
)
"""Keys that the collocated grid alone knows, with the values that say nothing of the grid.

`fluid.projection` always does: configurations of before there was a choice hold it.
"""

RELAXATIONS = 20
"""Default of `solver.max_iterations` where a grid is only relaxed."""


def completed(data: Any) -> Any:
    """Return the values of a configuration with the defaults that depend on other keys.

    What is not as the schema wants it stays as it is, for the schema to report.

    Parameters
    ----------
    data : any
        What a file holds; only mappings are looked into.
    """
    if not isinstance(data, dict):
        return data
    data = _with_defaults(data, "fluid", {"grid": _grid(data)})
    if _value(data, "fluid", "grid") == "staggered":
        method = "multigrid" if _is_plain(data) else "conjugate-gradients"
        return _with_defaults(data, "solver", STAGGERED_SOLVER | {"method": method})
    course = _value(data, "fluid", "projection") == "course"
    carried = _value(data, "sources", "carry_over") is True
    if course:
        data = _with_defaults(data, "solver", COURSE_SOLVER)
    if course or carried:
        data = _with_defaults(data, "fluid", {"conserve": False})
    if _value(data, "solver", "method") not in (None, "multigrid"):
        data = _with_defaults(data, "solver", {"max_iterations": RELAXATIONS})
    return data


def _grid(data: dict[Any, Any]) -> str:
    """Return the grid of a configuration that names none."""
    given = ((_value(data, section, key), silent) for section, key, silent in ONLY_COLLOCATED)
    asked = any(value is not None and value not in silent for value, silent in given)
    return "collocated" if asked else "staggered"


def _is_plain(data: dict[Any, Any]) -> bool:
    """Return whether a configuration has neither obstacles nor outlets."""
    boundary = _value(data, "fluid", "boundary")
    faces = list(boundary.values()) if isinstance(boundary, dict) else boundary
    words = faces if isinstance(faces, list) else [faces]
    return not data.get("obstacles") and "outflow" not in words


def _value(data: dict[Any, Any], section: str, key: str) -> Any:
    """Return the value of a key of a section, if it is given."""
    found = data.get(section)
    return found.get(key) if isinstance(found, dict) else None


def _with_defaults(data: dict[Any, Any], name: str, defaults: dict[str, Any]) -> dict[Any, Any]:
    """Return the values with defaults for the keys of a section that are not given."""
    section = data.get(name, {})
    return {**data, name: {**defaults, **section}} if isinstance(section, dict) else data
