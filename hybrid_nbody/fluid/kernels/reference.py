"""The stable-fluids step in plain NumPy and float64, against which all kernels are tested.

Arrays are (nz, ny, nx) and hold the whole grid; `boundary` and `ghosts` are those of
`hybrid_nbody.fluid.grid`. The method is that of Stam, "Stable Fluids" (SIGGRAPH 1999), on cell
centres.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from hybrid_nbody.fluid.grid import SCALAR, Boundary, Ghost, Ghosts
from hybrid_nbody.fluid.stencil import POISSON, Factors, Stencil, diffusion

AXES = (2, 1, 0)
"""The axis of an array that stands for x, y and z."""

Components = Sequence[np.ndarray]
"""u, v and w."""


def ghost_of(cell: np.ndarray, ghost: Ghost) -> np.ndarray:
    """Return the ghost behind a face of the cells at it."""
    return ghost.sign * cell + ghost.offset


def layers(
    field: np.ndarray, axis: int, boundary: Boundary, ghosts: Ghosts
) -> tuple[np.ndarray, np.ndarray]:
    """Return what lies before the first and behind the last cells along x, y or z (0, 1, 2)."""
    first = np.take(field, [0], AXES[axis])
    last = np.take(field, [-1], AXES[axis])
    if boundary.periodic[axis]:
        return last, first
    return ghost_of(first, ghosts[2 * axis]), ghost_of(last, ghosts[2 * axis + 1])


def padded(field: np.ndarray, boundary: Boundary, ghosts: Ghosts) -> np.ndarray:
    """Return a field with a ghost layer, made along one axis after another."""
    for axis in range(3):
        before, behind = layers(field, axis, boundary, ghosts)
        field = np.concatenate([before, field, behind], AXES[axis])
    return field


def shifted(ghosted: np.ndarray, axis: int, offset: int) -> np.ndarray:
    """Return the neighbours of cells, at `offset` along x, y or z (0, 1, 2), in a padded array."""
    cut = [slice(1, -1)] * 3
    cut[AXES[axis]] = slice(1 + offset, ghosted.shape[AXES[axis]] - 1 + offset)
    return ghosted[tuple(cut)]


def neighbours(
    field: np.ndarray, boundary: Boundary, ghosts: Ghosts, walls: np.ndarray | None = None
) -> np.ndarray:
    """Return the sum of the six neighbours, with ghosts of `walls`, by default of the field."""
    total = np.zeros_like(field)
    for axis in range(3):
        source = field if walls is None or boundary.periodic[axis] else walls
        before, behind = layers(source, axis, boundary, ghosts)
        row = np.concatenate([before, field, behind], AXES[axis])
        number = row.shape[AXES[axis]]
        total = total + np.take(row, range(number - 2), AXES[axis])
        total = total + np.take(row, range(2, number), AXES[axis])
    return total


def difference(field: np.ndarray, axis: int, boundary: Boundary, ghosts: Ghosts) -> np.ndarray:
    """Return the next cell minus the previous one along an axis."""
    ghosted = padded(field, boundary, ghosts)
    return shifted(ghosted, axis, 1) - shifted(ghosted, axis, -1)


# --- linear systems -------------------------------------------------------------------------------


def colour_of(shape: tuple[int, ...]) -> np.ndarray:
    """Return the colour of every cell, 0 where x + y + z is even, else 1."""
    return np.indices(shape).sum(axis=0) % 2


def factors_of_cells(
    shape: tuple[int, ...], boundary: Boundary, factors: Sequence[float]
) -> np.ndarray:
    """Return the factor of every cell: see `hybrid_nbody.fluid.stencil.Factors`."""
    case = np.zeros(shape, int)
    for axis, periodic in enumerate(boundary.periodic):
        if not periodic:
            index = np.indices(shape)[AXES[axis]]
            case += ((index == 0) | (index == shape[AXES[axis]] - 1)) << axis
    return np.array(factors)[case]


def iterate(
    x: np.ndarray, b: np.ndarray, stencil: Stencil, boundary: Boundary, factors: Sequence[float]
) -> tuple[np.ndarray, float]:
    """Do a red-black iteration; return x and its largest change.

    Ghosts behind walls are those before the iteration.
    """
    before = x
    colours = colour_of(x.shape)
    weights = factors_of_cells(x.shape, boundary, factors)
    for colour in (0, 1):
        change = weights * residual(x, b, stencil, boundary, walls=before)
        x = np.where(colours == colour, x + change, x)
    return x, float(np.abs(x - before).max())


def relax(
    x: np.ndarray,
    b: np.ndarray,
    stencil: Stencil,
    boundary: Boundary,
    iterations: int,
    tolerance: float = 0.0,
    factors: Factors | None = None,
) -> tuple[np.ndarray, int]:
    """Return x after red-black iterations, and their number.

    They stop after one in which no cell changes by more than `tolerance`.
    """
    factors = factors or stencil.fixed_ghost_factors
    for done in range(1, iterations + 1):
        x, change = iterate(x, b, stencil, boundary, factors)
        if change <= tolerance:
            return x, done
    return x, iterations


def relax_lexicographic(
    x: np.ndarray, b: np.ndarray, stencil: Stencil, boundary: Boundary, iterations: int
) -> np.ndarray:
    """Return x after Gauss-Seidel iterations in lexicographic order, cell by cell."""
    for _ in range(iterations):
        present = padded(x, boundary, stencil.ghosts)  # its ghosts stay, its cells are updated
        for z, y, c in np.ndindex(x.shape):
            around = sum_of_neighbours(present, z + 1, y + 1, c + 1)
            updated = (b[z, y, c] + stencil.neighbour * around) / stencil.diagonal
            present[z + 1, y + 1, c + 1] = updated
        x = present[1:-1, 1:-1, 1:-1].copy()
    return x


def sum_of_neighbours(ghosted: np.ndarray, k: int, j: int, i: int) -> float:
    """Return the sum of the six neighbours of a cell of a padded array."""
    above_and_below = ghosted[k - 1, j, i] + ghosted[k + 1, j, i]
    around = above_and_below + ghosted[k, j - 1, i] + ghosted[k, j + 1, i]
    return float(around + (ghosted[k, j, i - 1] + ghosted[k, j, i + 1]))


def residual(
    x: np.ndarray,
    b: np.ndarray,
    stencil: Stencil,
    boundary: Boundary,
    walls: np.ndarray | None = None,
) -> np.ndarray:
    """Return the residual of every equation; `walls` as in `neighbours`."""
    around = neighbours(x, boundary, stencil.ghosts, walls)
    return b - stencil.shift * x + stencil.neighbour * (around - 6 * x)


# --- parts of a step ------------------------------------------------------------------------------


def divergence(velocity: Components, boundary: Boundary, factor: float) -> np.ndarray:
    """Return `factor` times the sum of the central differences f[i + 1] - f[i - 1] of (u, v, w)."""
    total = np.zeros_like(velocity[0])
    for axis, component in enumerate(velocity):
        total = total + difference(component, axis, boundary, boundary.velocity_ghosts[axis])
    return factor * total


def gradient(p: np.ndarray, boundary: Boundary, factor: float) -> Components:
    """Return `factor` times the central differences of a scalar along x, y and z."""
    return tuple(factor * difference(p, axis, boundary, SCALAR) for axis in range(3))


def trilinear_terms(
    field: np.ndarray, velocity: Components, scale: float, boundary: Boundary, ghosts: Ghosts
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the values and weights of the 8 cells around each cell's departure point.

    Fluid moves by `scale` times its velocity, in cells. Points beyond a wall are moved to half a
    cell behind the last.
    """
    ghosted = padded(field, boundary, ghosts)
    low = []
    part = []
    for axis, component in enumerate(velocity):
        number = field.shape[AXES[axis]]
        point = np.indices(field.shape)[AXES[axis]] - scale * component
        wraps = boundary.periodic[axis]
        point = point if wraps else np.clip(point, -0.5, number - 0.5)
        floor = np.floor(point).astype(int)
        low.append(np.mod(floor, number) if wraps else floor)
        part.append(point - floor)
    for offset in product((0, 1), repeat=3):
        index = tuple(low[axis] + offset[axis] + 1 for axis in range(3))
        weights = [part[axis] if offset[axis] else 1 - part[axis] for axis in range(3)]
        yield ghosted[index[2], index[1], index[0]], np.prod(weights, axis=0)


def advect(
    field: np.ndarray, velocity: Components, scale: float, boundary: Boundary, ghosts: Ghosts
) -> np.ndarray:
    """Return what the velocity carries to each cell, semi-Lagrangian.

    Traces are straight, and interpolation is trilinear.
    """
    total = np.zeros_like(field)
    for value, weight in trilinear_terms(field, velocity, scale, boundary, ghosts):
        total = total + weight * value
    return total


def advect_maccormack(
    field: np.ndarray, velocity: Components, scale: float, boundary: Boundary, ghosts: Ghosts
) -> np.ndarray:
    """Return the same less half the error of going there and back: MacCormack's scheme.

    The result stays within the values around the departure point.

    Selle, Fedkiw, Kim, Liu & Rossignac, "An Unconditionally Stable MacCormack Method" (J. Sci.
    Comput. 35, 2008).
    """
    forward = advect(field, velocity, scale, boundary, ghosts)
    back = advect(forward, velocity, -scale, boundary, ghosts)
    around = np.array(
        [value for value, _ in trilinear_terms(field, velocity, scale, boundary, ghosts)]
    )
    return np.clip(forward + 0.5 * (field - back), around.min(axis=0), around.max(axis=0))


def curl(velocity: Components, boundary: Boundary, spacing: float) -> Components:
    """Return the vorticity, three components."""

    def change(component: int, axis: int) -> np.ndarray:
        ghosts = boundary.velocity_ghosts[component]
        return difference(velocity[component], axis, boundary, ghosts) / (2 * spacing)

    return tuple(
        change((axis + 2) % 3, (axis + 1) % 3) - change((axis + 1) % 3, (axis + 2) % 3)
        for axis in range(3)
    )


def confinement(
    velocity: Components, boundary: Boundary, spacing: float, strength: float
) -> Components:
    """Return the acceleration of vorticity confinement: ``strength * spacing * (N x curl u)``.

    N is the unit gradient of the length of curl u, or 0 where that does not change.

    Fedkiw, Stam & Jensen, "Visual Simulation of Smoke" (SIGGRAPH 2001).
    """
    vorticity = np.array(curl(velocity, boundary, spacing))
    slope = np.array(gradient(np.sqrt((vorticity**2).sum(axis=0)), boundary, 0.5 / spacing))
    size = np.sqrt((slope**2).sum(axis=0))
    direction = slope / np.where(size > 0, size, 1.0)
    return tuple(strength * spacing * part for part in np.cross(direction, vorticity, axis=0))


# --- a step ---------------------------------------------------------------------------------------


def diffuse(
    field: np.ndarray,
    guess: np.ndarray,
    ratio: float,
    boundary: Boundary,
    ghosts: Ghosts,
    **options: Any,
) -> np.ndarray:
    """Return a field after an implicit step of diffusion, relaxed from a guess.

    `ratio` is dt * diffusivity / h^2.
    """
    return relax(guess, field, diffusion(ratio, ghosts), boundary, **options)[0]


def project(
    velocity: Components, boundary: Boundary, factor: float, **options: Any
) -> tuple[Components, np.ndarray, np.ndarray]:
    """Return the velocity less a gradient, the pressure and the right-hand side of its equation."""
    spacing = 1.0 / max(velocity[0].shape)
    b = divergence(velocity, boundary, -0.5 * spacing)
    p, _ = relax(np.zeros_like(b), b, POISSON, boundary, **options)
    slopes = gradient(p, boundary, factor)
    return tuple(c - slope for c, slope in zip(velocity, slopes, strict=True)), p, b


def step(
    velocity: Components,
    density: np.ndarray,
    dt: float,
    viscosity: float,
    diffusivity: float,
    boundary: Boundary,
    factor: float,
    guess: Callable[[np.ndarray], np.ndarray] = np.copy,
    **options: Any,
) -> tuple[Components, np.ndarray]:
    """Return velocity and density after a step without carry-over.

    `factor` is 0.5 / h for an exact projection; ``guess(field)`` is where the diffusion of a field
    starts.
    """
    cells = max(density.shape)
    ghosts = boundary.velocity_ghosts
    ratio = dt * viscosity * cells**2
    velocity = [
        diffuse(c, guess(c), ratio, boundary, g, **options)
        for c, g in zip(velocity, ghosts, strict=True)
    ]
    velocity, _, _ = project(velocity, boundary, factor, **options)
    velocity = [
        advect(c, velocity, dt * cells, boundary, g) for c, g in zip(velocity, ghosts, strict=True)
    ]
    velocity, _, _ = project(velocity, boundary, factor, **options)
    ratio = dt * diffusivity * cells**2
    density = diffuse(density, guess(density), ratio, boundary, SCALAR, **options)
    return velocity, advect(density, velocity, dt * cells, boundary, SCALAR)
