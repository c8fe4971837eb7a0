"""The stable-fluids step in plain NumPy and float64: slow, and what both twins are tested against.

Arrays are (nz, ny, nx) and hold the whole grid; `boundary` and `parity` are those of
`hybrid_nbody.fluid.grid`. The method is that of Stam, "Stable Fluids" (SIGGRAPH 1999), on cell
centres.
"""

from itertools import product

import numpy as np

from hybrid_nbody.fluid.grid import velocity_parity
from hybrid_nbody.fluid.solvers.stencil import POISSON, SCALAR, diffusion

AXES = (2, 1, 0)
"""The axis of an array that stands for x, y and z."""


def padded(field, boundary, parity):
    """Return `field` with a ghost layer; edges and corners follow from the axes, one after another."""
    for axis, kind, sign in zip(AXES, boundary, parity, strict=True):
        first = np.take(field, [0], axis)
        last = np.take(field, [-1], axis)
        below, above = (last, first) if kind == "periodic" else (sign * first, sign * last)
        field = np.concatenate([below, field, above], axis)
    return field


def shifted(ghosted, axis, offset):
    """Return the neighbours at `offset` cells along x, y or z (0, 1, 2) of the cells of a padded array."""
    cut = [slice(1, -1)] * 3
    cut[AXES[axis]] = slice(1 + offset, ghosted.shape[AXES[axis]] - 1 + offset)
    return ghosted[tuple(cut)]


def neighbours(field, boundary, parity, walls=None):
    """Return the sum of the six neighbours; ghosts behind walls are made of `walls`, by default of the field itself."""
    walls = field if walls is None else walls
    total = 0
    for axis, kind, sign in zip(AXES, boundary, parity, strict=True):
        source, signs = (field, (1, 1)) if kind == "periodic" else (walls, (sign, sign))
        ends = (-1, 0) if kind == "periodic" else (0, -1)
        below, above = (
            s * np.take(source, [end], axis) for s, end in zip(signs, ends, strict=True)
        )
        row = np.concatenate([below, field, above], axis)
        total = total + np.take(row, range(row.shape[axis] - 2), axis)
        total = total + np.take(row, range(2, row.shape[axis]), axis)
    return total


def difference(field, axis, boundary, parity):
    """Return the next cell minus the previous one along an axis."""
    ghosted = padded(field, boundary, parity)
    return shifted(ghosted, axis, 1) - shifted(ghosted, axis, -1)


# --- linear systems -------------------------------------------------------------------------------


def colour_of(shape):
    """Return 0 for cells of the first colour of a red-black iteration, those with x + y + z even, 1 for the others."""
    return np.indices(shape).sum(axis=0) % 2


def factors_of_cells(shape, boundary, factors):
    """Return the factor of every cell: see `hybrid_nbody.fluid.solvers.stencil.Factors`."""
    case = np.zeros(shape, int)
    for axis, kind in enumerate(boundary):
        if kind != "periodic":
            place = np.indices(shape)[AXES[axis]]
            case += ((place == 0) | (place == shape[AXES[axis]] - 1)) << axis
    return np.array(factors)[case]


def iterate(x, b, stencil, boundary, factors):
    """Do a red-black iteration; return x and its largest change.

    Ghosts behind walls are those before the iteration.
    """
    before = x
    colours = colour_of(x.shape)
    for colour in (0, 1):
        change = factors_of_cells(x.shape, boundary, factors) * residual(
            x, b, stencil, boundary, walls=before
        )
        x = np.where(colours == colour, x + change, x)
    return x, np.abs(x - before).max()


def relax(x, b, stencil, boundary, iterations, tolerance=0.0, factors=None):
    """Return x after red-black iterations, and how many were done: they stop after a change of at most `tolerance`."""
    for done in range(1, iterations + 1):
        x, change = iterate(x, b, stencil, boundary, factors or stencil.lagging)
        if change <= tolerance:
            return x, done
    return x, iterations


def relax_in_order(x, b, stencil, boundary, iterations):
    """Return x after lexicographic Gauss-Seidel iterations: cells in the order of memory, one after another."""
    x = x.copy()
    for _ in range(iterations):
        before = padded(x, boundary, stencil.parity)
        present = before.copy()  # its ghosts stay, its cells are renewed
        for z, y, c in np.ndindex(x.shape):
            k = z + 1
            j = y + 1
            i = c + 1
            around = (
                present[k - 1, j, i]
                + present[k + 1, j, i]
                + present[k, j - 1, i]
                + present[k, j + 1, i]
            )
            around += present[k, j, i - 1] + present[k, j, i + 1]
            present[k, j, i] = (b[z, y, c] + stencil.neighbour * around) / stencil.diagonal
        x = present[1:-1, 1:-1, 1:-1].copy()
    return x


def residual(x, b, stencil, boundary, walls=None):
    """Return what is missing in every equation; `walls` as in `neighbours`."""
    around = neighbours(x, boundary, stencil.parity, walls)
    return b - stencil.own * x + stencil.neighbour * (around - 6 * x)


# --- parts of a step ------------------------------------------------------------------------------


def divergence(velocity, boundary, factor):
    """Return `factor` times the sum of the central differences f[i + 1] - f[i - 1] of (u, v, w)."""
    parities = [velocity_parity(boundary, axis) for axis in range(3)]
    return factor * sum(
        difference(velocity[axis], axis, boundary, parities[axis]) for axis in range(3)
    )


def gradient(p, boundary, factor):
    """Return `factor` times the central differences of a scalar along x, y and z."""
    return tuple(factor * difference(p, axis, boundary, SCALAR) for axis in range(3))


def corners(field, velocity, scale, boundary, parity):
    """Return the values and weights of the 8 cells around the point from which each cell's fluid comes.

    Fluid moves by `scale` times its velocity, in cells. Points beyond a wall are moved to half a
    cell behind the last.
    """
    ghosted = padded(field, boundary, parity)
    low = []
    part = []
    for axis, component in enumerate(velocity):
        number = field.shape[AXES[axis]]
        point = np.indices(field.shape)[AXES[axis]] - scale * component
        wraps = boundary[axis] == "periodic"
        point = point if wraps else np.clip(point, -0.5, number - 0.5)
        floor = np.floor(point).astype(int)
        low.append(np.mod(floor, number) if wraps else floor)
        part.append(point - floor)
    for offset in product((0, 1), repeat=3):
        index = tuple(low[axis] + offset[axis] + 1 for axis in range(3))
        weight = np.prod(
            [part[axis] if offset[axis] else 1 - part[axis] for axis in range(3)], axis=0
        )
        yield ghosted[index[2], index[1], index[0]], weight


def advect(field, velocity, scale, boundary, parity):
    """Return what the velocity carries to each cell: linear backtrace, trilinear interpolation (semi-Lagrangian)."""
    return sum(
        weight * value for value, weight in corners(field, velocity, scale, boundary, parity)
    )


def advect_maccormack(field, velocity, scale, boundary, parity):
    """Return the same with half the error of going there and back taken off, within the values around the source.

    Selle, Fedkiw, Kim, Liu & Rossignac, "An Unconditionally Stable MacCormack Method" (J. Sci.
    Comput. 35, 2008).
    """
    forward = advect(field, velocity, scale, boundary, parity)
    back = advect(forward, velocity, -scale, boundary, parity)
    around = np.array([value for value, _ in corners(field, velocity, scale, boundary, parity)])
    return np.clip(forward + 0.5 * (field - back), around.min(axis=0), around.max(axis=0))


def curl(velocity, boundary, spacing):
    """Return the vorticity, three components."""

    def change(component, axis):
        parity = velocity_parity(boundary, component)
        return difference(velocity[component], axis, boundary, parity) / (2 * spacing)

    return tuple(
        change((axis + 2) % 3, (axis + 1) % 3) - change((axis + 1) % 3, (axis + 2) % 3)
        for axis in range(3)
    )


SMALLEST = 1e-20
"""Added to the length of a gradient before it divides."""


def confinement(velocity, boundary, spacing, strength):
    """Return the acceleration of vorticity confinement: strength * spacing * (N x curl u), N the unit grad |curl u|.

    Fedkiw, Stam & Jensen, "Visual Simulation of Smoke" (SIGGRAPH 2001).
    """
    vorticity = np.array(curl(velocity, boundary, spacing))
    slope = np.array(gradient(np.sqrt((vorticity**2).sum(axis=0)), boundary, 0.5 / spacing))
    direction = slope / (np.sqrt((slope**2).sum(axis=0)) + SMALLEST)
    return tuple(strength * spacing * part for part in np.cross(direction, vorticity, axis=0))


# --- a step ---------------------------------------------------------------------------------------


def diffuse(field, guess, ratio, boundary, parity, **options):
    """Return `field` after an implicit step of diffusion, relaxed from `guess`; `ratio` is dt * diffusivity / h^2."""
    return relax(guess, field, diffusion(ratio, parity), boundary, **options)[0]


def project(velocity, boundary, factor, **options):
    """Return the velocity less a gradient, the pressure and the right-hand side of its equation."""
    spacing = 1.0 / max(velocity[0].shape)
    b = divergence(velocity, boundary, -0.5 * spacing)
    p, _ = relax(np.zeros_like(b), b, POISSON, boundary, **options)
    return tuple(c - g for c, g in zip(velocity, gradient(p, boundary, factor), strict=True)), p, b


def step(velocity, density, dt, viscosity, diffusivity, boundary, factor, guess=np.copy, **options):
    """Return velocity and density after a step without carry-over.

    `factor` is 0.5 / h for an exact projection; ``guess(field)`` is where the diffusion of a field
    starts.
    """
    cells = max(density.shape)
    parities = [velocity_parity(boundary, component) for component in range(3)]
    ratio = dt * viscosity * cells**2
    velocity = [
        diffuse(c, guess(c), ratio, boundary, p, **options)
        for c, p in zip(velocity, parities, strict=True)
    ]
    velocity, _, _ = project(velocity, boundary, factor, **options)
    velocity = [
        advect(c, velocity, dt * cells, boundary, p)
        for c, p in zip(velocity, parities, strict=True)
    ]
    velocity, _, _ = project(velocity, boundary, factor, **options)
    density = diffuse(
        density, guess(density), dt * diffusivity * cells**2, boundary, SCALAR, **options
    )
    return velocity, advect(density, velocity, dt * cells, boundary, SCALAR)
