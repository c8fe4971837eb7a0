"""The contract of what takes the elements of a box out of fields with ghosts, and brings them back.

A `Kernels` keeps elements by colour. Fields with ghosts, of the staggered grid, are arrays (planes,
rows, columns); `first` is where the first element of the box is in them, along z, y and x.
"""

from typing import Protocol

from hybrid_nbody.backends.base import Array

Place = tuple[int, int, int]


class BoxKernels(Protocol):
    """The operations on the elements of a box."""

    def split_spread(self, field: Array, first: Place, ratio: float, b: Array, x: Array) -> None:
        """Store what diffusion changes in a step, ``ratio * Laplacian field``, in b; clear x."""

    def split_divergence(
        self, velocity: tuple[Array, Array, Array], first: Place, factor: float, b: Array, x: Array
    ) -> None:
        """Store `factor` times the difference of the faces of each cell in b; clear x.

        Components are given at the low faces of cells.
        """

    def merge_into(self, colours: Array, field: Array, first: Place) -> None:
        """Set elements of a field to those of colours."""

    def merge_onto(self, colours: Array, field: Array, first: Place) -> None:
        """Add those of colours to elements of a field."""
