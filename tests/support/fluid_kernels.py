"""Slabs and fields for the tests of the CPU's fluid kernels."""

import numpy as np
from support.bodies import make_backend

from hybrid_nbody.fluid.grid import Boundary, Ghost, Ghosts, Slab
from hybrid_nbody.fluid.kernels import make_kernels as make_slab_kernels

FREE = Boundary.of_axes(("free-slip",) * 3)
STUCK = Boundary.of_axes(("no-slip",) * 3)
AROUND = Boundary.of_axes(("periodic",) * 3)
MIXED = Boundary.of_axes(("periodic", "no-slip", "free-slip"))
TURNED = Boundary.of_axes(("free-slip", "no-slip", "periodic"))
CASES = [
    ((7, 5, 4), FREE),
    ((33, 3, 17), STUCK),
    ((32, 4, 5), FREE),
    ((3, 3, 3), STUCK),
    ((8, 6, 10), AROUND),
    ((34, 5, 3), MIXED),
    ((35, 4, 6), TURNED),
]
BOUNDS = {"f8": {"rtol": 1e-12, "atol": 1e-11}, "f4": {"rtol": 2e-5, "atol": 3e-5}}
INSIDE = slice(1, -1)


def make_kernels(slab, dtype="f8", threads=1):
    """Return the kernels of a slab; by default of one thread, since tests share the cores."""
    return make_slab_kernels(make_backend("cpu", threads), slab, dtype)


whole = Slab.whole


def ghosts_of_signs(x, y, z):
    """Return ghosts without offset whose sign is that of an axis, the same at both its ends."""
    return Ghosts(*(Ghost(sign) for sign in (x, x, y, y, z, z)))


def relax(kernels, x, b, solve, scratch=None):
    """Solve in passes on a rank that owns all planes; halo planes are left as they are."""
    passes = kernels.begin_passes(x, b, solve, scratch)
    for step in passes.passes:
        passes.run(step)
    passes.finish()


def cut(cells, boundary, parts):
    edges = [cells[2] * part // parts for part in range(parts + 1)]
    return [
        Slab(cells, boundary, low, high - low) for low, high in zip(edges, edges[1:], strict=False)
    ]


def random_fields(slab, number, dtype="f8", seed=3):
    random = np.random.default_rng(seed)
    return [random.standard_normal(slab.shape).astype(dtype) for _ in range(number)]


def insides(fields):
    return [field[INSIDE].astype("f8") for field in fields]


def coloured(kernels, field):
    """Return a field by colour; padding and halos are NaN, which must not matter."""
    colours = kernels.colours()
    colours.fill(np.nan)
    kernels.split(field, colours)
    return colours


def merged(kernels, colours):
    field = kernels.field()
    kernels.merge(colours, field)
    return field[INSIDE]


def exchange(slabs, arrays):
    """Fill the halo planes of arrays whose leading axis is z from the neighbouring slabs."""
    number, around = len(slabs), slabs[0].periodic[2]
    for rank, array in enumerate(arrays):
        if rank > 0 or around:
            array[0] = arrays[(rank - 1) % number][slabs[rank - 1].planes]
        if rank + 1 < number or around:
            array[-1] = arrays[(rank + 1) % number][1]


def parts_of(field, slabs):
    """Return the interior of a field by slabs, without halos filled."""
    parts = [np.full(slab.shape, np.nan, field.dtype) for slab in slabs]
    for part, slab in zip(parts, slabs, strict=True):
        part[INSIDE] = field[1 + slab.first : 1 + slab.first + slab.planes]
    return parts
