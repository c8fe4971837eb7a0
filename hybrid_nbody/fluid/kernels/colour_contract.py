"""The contract of what moves elements between fields and colours.

Solvers keep the elements of a box by colour; see `hybrid_nbody.fluid.kernels.contract`. A field is
an array (planes + 2, ny, nx) of a slab. Those of the staggered grid have ghosts along all axes, and
the elements of a box may be some of theirs alone: `first` is where the first of them is in such an
array (planes, rows, columns), along z, y and x.
"""

from typing import Protocol

from hybrid_nbody.backends.base import Array

First = tuple[int, int, int]


class ColourKernels(Protocol):
    """The operations that store elements by colour, or bring them back."""

    # --- fields of a slab ---

    def split(self, field: Array, colours: Array) -> None:
        """Store a field by colour."""

    def split_twice(self, field: Array, first: Array, second: Array) -> None:
        """Store a field by colour in two arrays."""

    def split_carried(
        self, field: Array, factor: float, carried: Array, b: Array, x: Array
    ) -> None:
        """Store ``field + factor * carried`` by colour in `b`, and `carried` in `x`."""

    def clear(self, colours: Array) -> None:
        """Fill colours with zeros, halo planes included."""

    def merge(self, colours: Array, field: Array) -> None:
        """Fill a field from its colours, halo planes included."""

    # --- fields with ghosts along all axes ---

    def split_spread(self, field: Array, first: First, ratio: float, b: Array) -> None:
        """Store what diffusion changes in a step, ``ratio * Laplacian field``, in b.

        Halo planes of b keep what they hold.
        """

    def split_divergence(
        self, velocity: tuple[Array, Array, Array], first: First, factor: float, b: Array
    ) -> None:
        """Store `factor` times the difference of the faces of each cell in b.

        Components are given at the low faces of cells. Halo planes of b keep what they hold.
        """

    def merge_into(self, colours: Array, field: Array, first: First) -> None:
        """Set elements of a field to those of colours."""

    def merge_onto(self, colours: Array, field: Array, first: First) -> None:
        """Add those of colours to elements of a field."""
