"""The ghosts behind the faces of the grid on CPU threads: ``sign * cell + offset``.

The neighbours of all cells are computed alike: one that is a cell has a sign of 1 and no offset.
Where no face has an offset, compiled code adds none: a kernel is compiled once for `Signs` and,
where it is called with them, once for `SignsAndOffsets`.

Sweeps and residuals need signs alone, since the offsets of a linear system belong to its right-hand
side (`impose` in ``linear_systems.py``).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

from hybrid_nbody.backends.simd import broadcast
from hybrid_nbody.fluid.grid import Ghosts
from hybrid_nbody.fluid.kernels.cpu.layout import inlined

X_LOW, X_HIGH, Y_LOW, Y_HIGH, Z_LOW, Z_HIGH = range(6)
"""The faces in the order of `hybrid_nbody.fluid.grid.FACES`."""


class Signs(NamedTuple):
    """The ghosts of a field none of which has an offset: their signs, in the working type."""

    x_low: Any
    x_high: Any
    y_low: Any
    y_high: Any
    z_low: Any
    z_high: Any


class SignsAndOffsets(NamedTuple):
    """The ghosts of a field: signs and offsets in the working type.

    They stand side by side since loops over planes on several threads take no nested tuples.
    """

    x_low: Any
    x_high: Any
    y_low: Any
    y_high: Any
    z_low: Any
    z_high: Any
    x_low_offset: Any
    x_high_offset: Any
    y_low_offset: Any
    y_high_offset: Any
    z_low_offset: Any
    z_high_offset: Any


Images = Signs | SignsAndOffsets


def make_images(ghosts: Ghosts, number) -> Images:
    """Return the ghosts of a field for compiled code.

    ``number(value)`` converts to the working type.
    """
    signs = [number(sign) for sign in ghosts.signs]
    if not any(ghosts.offsets):
        return Signs(*signs)
    return SignsAndOffsets(*signs, *(number(offset) for offset in ghosts.offsets))


def make_image_table(fields: Sequence[Ghosts], dtype: np.dtype) -> np.ndarray:
    """Return the ghosts of several fields: (n, 6) signs, or (n, 2, 6) signs and offsets."""
    signs = np.array([ghosts.signs for ghosts in fields], dtype)
    offsets = np.array([ghosts.offsets for ghosts in fields], dtype)
    return np.stack([signs, offsets], axis=1) if offsets.any() else signs


class Image(NamedTuple):
    """The value of a neighbour, given by that of a cell.

    Attributes
    ----------
    sign : float
    offset : float or None
        None if no face of the field has one.
    """

    sign: Any
    offset: Any


# ---- With an offset, or without ------------------------------------------------------------------


def image_of(images, face):
    """Return the `Image` of a face, which is a constant."""


def image_in(table, field, face):
    """Return the `Image` of a face of a field in a table of `make_image_table`."""


def _plus(value, offset):
    """Return ``value + offset``, or the value itself if the offset is None."""


def _scaled(offset, factor):
    """Return ``offset * factor``, or None if the offset is None."""


def _vector(offset):
    """Return a vector of offsets, or None if the offset is None."""


JIT_OPTIONS = {"forceinline": True, "error_model": "numpy"}


def _is_none(offset) -> bool:
    return isinstance(offset, types.NoneType)


@overload(image_of, jit_options=JIT_OPTIONS, prefer_literal=True)
def _compile_image_of(images, face):
    sign = face.literal_value
    offset = sign + len(Signs._fields)
    if len(images) == len(Signs._fields):
        return lambda images, face: Image(images[sign], None)
    return lambda images, face: Image(images[sign], images[offset])


@overload(image_in, jit_options=JIT_OPTIONS)
def _compile_image_in(table, field, face):
    if table.ndim == 2:
        return lambda table, field, face: Image(table[field, face], None)
    return lambda table, field, face: Image(table[field, 0, face], table[field, 1, face])


@overload(_plus, jit_options=JIT_OPTIONS)
def _compile_plus(value, offset):
    if _is_none(offset):
        return lambda value, offset: value
    return lambda value, offset: value + offset


@overload(_scaled, jit_options=JIT_OPTIONS)
def _compile_scaled(offset, factor):
    if _is_none(offset):
        return lambda offset, factor: None
    return lambda offset, factor: offset * factor


@overload(_vector, jit_options=JIT_OPTIONS)
def _compile_vector(offset):
    if _is_none(offset):
        return lambda offset: None
    return lambda offset: broadcast(offset)


# ---- Ghosts --------------------------------------------------------------------------------------


@inlined
def ghost(cell, image):
    """Return the ghost of a cell."""
    return _plus(image.sign * cell, image.offset)


@inlined
def ghost_vector(cells, image):
    """Return the ghosts of LANES cells."""
    return _plus(broadcast(image.sign) * cells, _vector(image.offset))


@inlined
def cell_image(image):
    """Return the image of a neighbour that is a cell itself, as if no face lay between."""
    one = type(image.sign)(1)
    return Image(one, _scaled(image.offset, one - one))


@inlined
def image_if(is_ghost, image):
    """Return the image of a neighbour, which is a ghost or a cell."""
    return image if is_ghost else cell_image(image)


@inlined
def compose(outer, inner):
    """Return the image of a ghost of ghosts, at an edge or a vertex of the grid."""
    sign = outer.sign * inner.sign
    return Image(sign, _plus(_scaled(inner.offset, outer.sign), outer.offset))


class FaceImages(NamedTuple):
    """The images of a field behind the six faces."""

    x_low: Image
    x_high: Image
    y_low: Image
    y_high: Image
    z_low: Image
    z_high: Image


@inlined
def images_of(table, field):
    """Return the `FaceImages` of a field in a table of `make_image_table`.

    Before a loop, not in it: a loop that reads a table while it stores cells is not vectorised.
    """
    return FaceImages(
        image_in(table, field, X_LOW),
        image_in(table, field, X_HIGH),
        image_in(table, field, Y_LOW),
        image_in(table, field, Y_HIGH),
        image_in(table, field, Z_LOW),
        image_in(table, field, Z_HIGH),
    )
