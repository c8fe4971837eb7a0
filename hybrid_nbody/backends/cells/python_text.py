"""The source of compiled loops for CPU threads."""

import ast

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
                {name}({call})
""",
    "of_colour": """
    for k in range(k0, k1):
        for j in range(j0, j1):
            for i in range(i0 + ((k + j + i0 + parity) & 1), i1, 2):
                {name}({call})
""",
    "plane_sum": """
    for k in range(k0, k1):
        sum_ = 0.0
        for j in range(j0, j1):
            for i in range(i0, i1):
                sum_ += {name}({call})
        found[k] = sum_
""",
    "plane_largest": """
    for k in range(k0, k1):
        largest_ = real(0.0)
        for j in range(j0, j1):
            for i in range(i0, i1):
                value = {name}({call})
                largest_ = value if not value <= largest_ else largest_
        found[k] = largest_
""",
}

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
    statements = [ast.unparse(ast.fix_missing_locations(node)) for node in function.body]
    body = "\n".join(_indented(statement) for statement in statements)
    return FUNCTION.format(name=function.name, arguments=arguments, body=body)


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.split("\n"))


def _loop(function: CellFunction) -> str:
    given = list(function.parameters)[3:]
    call = ", ".join((*DIMENSIONS, "k", "j", "i", *given))
    found = ["found"] if function.role in WITH_RESULTS else []
    return LOOP.format(
        name=function.name,
        arguments=", ".join((*DIMENSIONS, *found, *given)),
        body=BODIES[function.role].strip().format(name=function.name, call=call),
    )
