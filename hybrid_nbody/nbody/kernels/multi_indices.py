"""The multi-indices of Cartesian expansions, as tables that kernels loop over.

A potential of bodies in a cell about its centre z, seen from a distant point, follows from the
multipoles ``M_b = sum m (y - z)^b / b!`` and the derivatives ``D_n`` of the Green's function
``1 / sqrt(r^2 + eps^2)``; in the neighbourhood of the centre of another cell, at R from the first,
it is ``sum L_a x^a / a!`` with ``L_a = sum_b (-1)^|b| M_b D_(a + b)(R)``, cut off where
``|a| + |b|`` exceeds the order (Dehnen, Comput. Astrophys. Cosmol. 1:1, 2014, eq. 3). The Green's
function need not be harmonic, so softening is exact.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

MultiIndex = tuple[int, int, int]


def number_of_terms(order: int) -> int:
    """Return the number of multi-indices of at most that order."""
    return math.comb(order + 3, 3)


def multi_indices(order: int) -> list[MultiIndex]:
    """Return all multi-indices of at most that order, the lower orders first."""
    return [
        (i, j, n - i - j)
        for n in range(order + 1)
        for i in range(n, -1, -1)
        for j in range(n - i, -1, -1)
    ]


@dataclass(frozen=True)
class Shift:
    """The terms of a shift of an expansion to another centre.

    Term k adds the coefficient `source` times the monomial `power` of the shift, divided by the
    factorial of its multi-index, to the coefficient `target`.

    Attributes
    ----------
    source, power : (K,) array of int32
        Sorted by the target.
    starts : (terms + 1,) array of int32
        First term of each target.
    """

    source: NDArray[np.int32]
    power: NDArray[np.int32]
    starts: NDArray[np.int32]


@dataclass(frozen=True)
class Indices:
    """The tables of expansions of one order; n is the number of multi-indices.

    Attributes
    ----------
    order : int
    all : list of tuple of int
        The multi-indices, the lower orders first.
    orders : (n,) array of int32
        The sum of each multi-index.
    factorials : (n,) array of float64
    parent, axis : (n,) array of int32
        A multi-index is its parent with one more along an axis; that of the first has no meaning.
    shift : Shift
        Of multipoles to another centre.
    gradient : (m, 3) array of int32
        The multi-indices of less than the order, with one more along each axis.
    norms : (n,) array of float64
        Weights of squared multipoles in the power of an order.
    """

    order: int
    all: list[MultiIndex]
    orders: NDArray[np.int32]
    factorials: NDArray[np.float64]
    parent: NDArray[np.int32]
    axis: NDArray[np.int32]
    shift: Shift
    gradient: NDArray[np.int32]
    norms: NDArray[np.float64]


@cache
def indices_of(order: int) -> Indices:
    """Return the tables of expansions of an order."""
    indices = multi_indices(order)
    factorials = np.array([math.prod(map(math.factorial, index)) for index in indices], float)
    parents = [_lowered(index) for index in indices]
    number = {index: k for k, index in enumerate(indices)}
    orders = [sum(index) for index in indices]
    return Indices(
        order=order,
        all=indices,
        orders=np.array(orders, np.int32),
        factorials=factorials,
        parent=np.array([number[parent] for parent, _ in parents], np.int32),
        axis=np.array([axis for _, axis in parents], np.int32),
        shift=_shift(indices, number),
        gradient=np.array(
            [[number[raised(index, axis)] for axis in range(3)] for index in indices
             if sum(index) < order],
            np.int32,
        ).reshape(-1, 3),
        norms=np.array([math.factorial(n) for n in orders]) * factorials,
    )  # fmt: skip


def _lowered(index: MultiIndex) -> tuple[MultiIndex, int]:
    """Return a multi-index with one less along an axis, and the axis."""
    for axis in range(3):
        if index[axis]:
            return raised(index, axis, -1), axis
    return index, 0


def raised(index: MultiIndex, axis: int, by: int = 1) -> MultiIndex:
    """Return a multi-index with more along an axis."""
    i, j, k = (value + by * (axis == place) for place, value in enumerate(index))
    return i, j, k


def _shift(indices: list[MultiIndex], number: dict[MultiIndex, int]) -> Shift:
    """Return the terms of a shift: of every multi-index that is nowhere above the target."""
    source = []
    power = []
    starts = [0]
    for target in indices:
        for index in indices:
            i, j, k = (a - b for a, b in zip(target, index, strict=True))
            if min(i, j, k) >= 0:
                source.append(number[index])
                power.append(number[i, j, k])
        starts.append(len(source))
    return Shift(*(np.array(values, np.int32) for values in (source, power, starts)))
