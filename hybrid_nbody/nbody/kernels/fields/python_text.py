"""From functions of scalars to a module of Python that fills the values of their sum for bodies.

A module in a file of its own is compiled once: Numba keeps what it made of it. Numbers of the
module in which a function stands are written into it.
"""

import ast
import inspect
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from hybrid_nbody.nbody.kernels.fields.field import FieldFunction
from hybrid_nbody.nbody.kernels.fields.translation import ARGUMENTS

AXES = 3

HEADER = '''"""Generated: the sum of external fields at bodies."""

import math

from numba import njit, prange

called = njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
'''

FILL = """

@njit(cache=True, error_model="numpy", parallel=True)
def fill(position, velocity, mass, time, numbers, values):
    for i in prange(len(mass)):
        moving = (velocity[i, 0], velocity[i, 1], velocity[i, 2])
        ax = ay = az = phi = 0.0
{calls}
        values[i, 0] = ax
        values[i, 1] = ay
        values[i, 2] = az
        values[i, 3] = phi
"""

CALL = """\
        about = (position[i, 0] - numbers[{x}], position[i, 1] - numbers[{y}],
                 position[i, 2] - numbers[{z}])
        x, y, z, more = field_{place}(about, moving, mass[i], time, ({parameters}))
        ax += x
        ay += y
        az += z
        phi += more"""


def python_source(functions: Sequence[tuple[FieldFunction, int]]) -> str:
    """Return a module with ``fill(position, velocity, mass, time, numbers, values)``.

    Parameters
    ----------
    functions : sequence of (FieldFunction, int)
        Functions, which can be translated, and the numbers of their parameters.
    """
    parts = [HEADER]
    calls = []
    start = 0
    for place, (function, parameters) in enumerate(functions):
        parts.append(f"\n\n@called\n{_definition(function, place)}\n")
        calls.append(_call(place, start, parameters))
        start += AXES + parameters
    return "".join([*parts, FILL.format(calls="\n".join(calls))])


def _call(place: int, start: int, parameters: int) -> str:
    """Return the lines that add a field, whose numbers begin at `start`."""
    x, y, z = range(start, start + AXES)
    first = start + AXES
    given = "".join(f"numbers[{number}], " for number in range(first, first + parameters))
    return CALL.format(place=place, x=x, y=y, z=z, parameters=given.rstrip())


def _definition(function: FieldFunction, place: int) -> str:
    """Return the source of a function by another name, without what surrounds it."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(tree, ast.FunctionDef)  # what can be translated is one
    tree.name = f"field_{place}"
    tree.decorator_list = []
    tree.returns = None
    for argument in tree.args.args:
        argument.annotation = None
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    local = {name.id for name in names if isinstance(name.ctx, ast.Store)} | set(ARGUMENTS)
    numbers = {key: x for key, x in function.__globals__.items() if _is_number(x)}
    known = {key: x for key, x in numbers.items() if key not in local}
    return ast.unparse(ast.fix_missing_locations(_Numbers(known).visit(tree)))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class _Numbers(ast.NodeTransformer):
    """Puts numbers in the place of names."""

    def __init__(self, numbers: Mapping[str, float]) -> None:
        self.numbers = numbers

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Return the number of a name, or the name."""
        if node.id not in self.numbers:
            return node
        return ast.Constant(float(self.numbers[node.id]))
