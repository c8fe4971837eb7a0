"""Functions of a cell, written once in Python, compiled for CPU threads and for CUDA.

A module of cells holds plain functions, such as ::

    @over_cells
    def divergence(k: Int, j: Int, i: Int, u: Cells, factor: Real, out: Cells) -> None:
        out[k, j, i] = factor * (u[k, j, i + 1] - u[k, j, i])

The first three arguments are the indices of a cell in arrays (planes, rows, columns); `rows` and
`columns` are those of `Cells`, `table_rows` and `table_columns` those of a `Table`. A `Program`
compiles the functions of some modules for a backend and calls one for all cells of a region.
Functions without a decorator are called by others.

They may assign to names and to elements of arrays, branch, loop over a `range`, and call each other
and ``min``, ``max``, ``sqrt``, ``fabs``, ``exp`` and ``int(floor(x))``. Numbers of type float are
of the working type, float32 or float64, on both devices. ``//`` and ``%`` are for whole numbers
that are not negative.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any, Protocol, TypeVar

from hybrid_nbody.backends.base import Array, Backend
from hybrid_nbody.backends.cells.translation import CellFunction

Cells = Any
"""An array (planes, rows, columns) of the working type; all of a call have equal rows, columns."""

Table = Any
"""An array (n, rows, columns) of the working type, with rows and columns of its own."""

Real = float
"""A number of the working type."""

Int = int
"""A whole number."""

Total = Any
"""What `Program.total_of` returned: to a function of a cell, a number of the working type."""

rows = columns = table_rows = table_columns = 0
"""Numbers that functions of a cell may use: of the arrays that they were given."""

Region = tuple[int, int, int, int, int, int]
"""The cells of a call: k from the first number to the second, excluded, then j, then i."""

Reduction = tuple[Any, ...]
"""The name of a function, a `Region` and arguments, for a call whose results are reduced."""

Function = TypeVar("Function", bound=Callable[..., Any])


def over_cells(function: Function) -> Function:
    """Mark a function that is called for every cell of a region, in any order."""
    return function


def over_rows(function: Function) -> Function:
    """Mark the same, for short functions that change elements in place, or set them from a few.

    The threads of a block on a GPU lie along rows: a tenth to a third faster for these, but slower
    for long functions, which share more of what they read with threads above and beside them.
    """
    return function


def over_columns(function: Function) -> Function:
    """Mark the same, for short functions that set another array from a cell and its neighbours.

    On GPUs a thread takes several planes of a large region: a fifth faster for these, but slower
    for long functions, and for those that change elements in place.
    """
    return function


def of_colour(function: Function) -> Function:
    """Mark a function that is called for the cells of one colour of a region, in any order.

    They are those where k + j + i + parity is even.
    """
    return function


def plane_sum(function: Function) -> Function:
    """Mark a function whose results are summed over each plane of a region, in float64."""
    return function


def plane_largest(function: Function) -> Function:
    """Mark a function whose largest result on each plane is wanted; no result is less than 0."""
    return function


def in_sequences(function: Function) -> Function:
    """Mark a function that is also called within `Program.sequence`: it returns nothing."""
    return function


class Program(Protocol):
    """The functions of some modules, compiled for a device.

    Attributes
    ----------
    functions : mapping of CellFunction
        By name; see `hybrid_nbody.backends.cells.translation`.
    """

    functions: Mapping[str, CellFunction]

    def compile(self, names: Sequence[str], width: int) -> None:
        """Compile functions before they are called, where they are not compiled already.

        Parameters
        ----------
        names : sequence of str
        width : int
            Cells along x of the regions that they will be called for.
        """

    def run(self, name: str, region: Region, *arguments: Any, parity: int = 0) -> None:
        """Call a function for the cells of a region; on a GPU it is queued.

        Parameters
        ----------
        name : str
        region : tuple of int
        *arguments : array or number
            What follows the three indices.
        parity : int
            Of the cells of a colour.
        """

    def reduce(self, name: str, region: Region, *arguments: Any) -> Array:
        """Return the sum, or the largest result, of every plane of a region: float64, host."""

    def reduce_each(self, *calls: Reduction) -> list[Array]:
        """Return what `reduce` returns for each of some calls; its host waits for a GPU once."""

    def reduce_ahead(self, *calls: Reduction) -> Callable[[], list[Array]]:
        """Queue what `reduce_each` does, and return what waits for that and returns its results.

        One may be under way at a time, and other calls meanwhile.
        """

    def plane_sums(self, call: Reduction, own: slice, number: int) -> Array:
        """Queue sums over the planes of a region, into an array for those of all ranks.

        Parameters
        ----------
        call : Reduction
            Of a function whose results are summed.
        own : slice
            The planes of the region, of all.
        number : int
            Of all planes.

        Returns
        -------
        (number, n) array of float64
            Some numbers of each plane, which `total_of` adds; those of other planes are undefined.
        """

    def total_of(self, sums: Array) -> Total:
        """Queue the sum of what `plane_sums` found of all planes.

        Parameters
        ----------
        sums : (number, n) array of float64
            On the device, or on the host.
        """

    def sequence(self) -> AbstractContextManager[None]:
        """Let a GPU do all calls within as one launch of a single block.

        For functions marked by `in_sequences` and a few thousand cells each, whose launches would
        take longer than their work.
        """


def make_program(
    backend: Backend,
    modules: Sequence[ModuleType],
    dtype: str,
    loops: Mapping[str, str] | None = None,
) -> Program:
    """Return the functions of modules, compiled for a backend.

    Parameters
    ----------
    backend : Backend
    modules : sequence of module
        Callees before callers.
    dtype : {"f4", "f8"}
        The working type.
    loops : mapping of str to str, optional
        For the name of a backend, a module of loops that stand in for those of some functions: for
        `NAME` there is ``run_NAME``, for rows of at least ``LEAST`` cells.
    """
    device = importlib.import_module(f"{__name__}.{backend.name}")
    own = (loops or {}).get(backend.name)
    faster = [importlib.import_module(own)] if own else []
    program: Program = device.Program(backend, modules, dtype, *faster)
    return program
