"""The source of compiled loops for CPU threads."""

import ast
from collections.abc import Sequence
from textwrap import indent

from hybrid_nbody.backends.cells.translation import DIMENSIONS, CellFunction

HEADER = '''"""Generated: loops over cells."""

from math import exp, fabs, floor, sqrt

from numba import njit
from numpy import {dtype} as real, uint64 as at

from hybrid_nbody.backends.threads import on_threads

# no references to arrays are counted
inner = dict(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False)
called = njit(forceinline=True, **inner)
planes = njit(**inner)
loop = njit(cache=True, error_model="numpy", nogil=True, _nrt=False)
'''

FUNCTION = """
@called
def {name}({arguments}):
{body}
"""

LOOP = """
@planes
def planes_{name}(k0, k1, j0, j1, i0, i1, parity, {arguments}):
    {body}

@loop
def run_{name}(k0, k1, j0, j1, i0, i1, parity, {arguments}):
    on_threads(planes_{name}, k0, k1, (j0, j1, i0, i1, parity, {arguments}))
"""

BODIES = {
    "over_cells": """
    for k in range(k0, k1):
        for j in range(j0, j1):
            for i in range(i0, i1):
{cell}
""",
    "of_colour": """
    for k in range(k0, k1):
        for j in range(j0, j1):
            for i in range(i0 + ((k + j + i0 + parity) & 1), i1, 2):
{cell}
""",
    "plane_sum": """
    for k in range(k0, k1):
        sum_ = 0.0
        for j in range(j0, j1):
            for i in range(i0, i1):
{cell}
                sum_ += value_
        found[k] = sum_
""",
    "plane_largest": """
    for k in range(k0, k1):
        largest_ = real(0.0)
        for j in range(j0, j1):
            for i in range(i0, i1):
{cell}
                if not value_ <= largest_ and largest_ == largest_:  # NaN stays
                    largest_ = value_
        found[k] = largest_
""",
}
BODIES["over_rows"] = BODIES["over_columns"] = BODIES["over_cells"]  # no difference on CPUs

LOOP_NAMES = {"k0", "k1", "j0", "j1", "i0", "i1", "parity", "found", "sum_", "largest_", "value_"}

INDENT = 16 * " "
"""That of what is done for a cell."""

WITH_RESULTS = ("plane_sum", "plane_largest")
"""Roles whose loops fill an array, an element for each plane."""


def python_source(functions: dict[str, CellFunction], dtype: str) -> str:
    """Return a module with a loop for every function that has a role."""
    name = {"f4": "float32", "f8": "float64"}[dtype]
    parts = [HEADER.format(dtype=name)]
    for function in functions.values():
        parts.append(_function(function))
        if function.role:
            parts.append(_loop(function))
    return "".join(parts)


def _function(function: CellFunction) -> str:
    arguments = ", ".join((*DIMENSIONS, *function.parameters))
    body = indent(_text(function.body), "    ")
    return FUNCTION.format(name=function.name, arguments=arguments, body=body)


def _text(statements: Sequence[ast.stmt]) -> str:
    return "\n".join(ast.unparse(ast.fix_missing_locations(node)) for node in statements)


def _loop(function: CellFunction) -> str:
    given = list(function.parameters)[3:]
    found = ["found"] if function.role in WITH_RESULTS else []
    return LOOP.format(
        name=function.name,
        arguments=", ".join((*DIMENSIONS, *found, *given)),
        body=BODIES[function.role].strip().format(cell=indent(_cell(function), INDENT)),
    )


def _cell(function: CellFunction) -> str:
    """Return what a loop does for a cell: the body of the function, where it ends at its end.

    A call would do the same; but it is a function more to compile, a third of the time.
    """
    target = "value_ = " if function.role in WITH_RESULTS else ""
    last = function.body[-1]
    result = last.value if isinstance(last, ast.Return) else None
    steps = function.body[:-1] if isinstance(last, ast.Return) else function.body
    if not _fits_into_loop(function, steps):
        return f"{target}{_call(function)}"
    return _text(steps) + (f"\n{target}{ast.unparse(result)}" if result else "")


def _fits_into_loop(function: CellFunction, steps: Sequence[ast.stmt]) -> bool:
    """Return whether statements can stand in a loop: none leaves it, and names stay apart."""
    leaves = any(isinstance(node, ast.Return) for step in steps for node in ast.walk(step))
    return not leaves and not LOOP_NAMES & function.variables.keys()


def _call(function: CellFunction) -> str:
    return f"{function.name}({', '.join((*DIMENSIONS, *function.parameters))})"
