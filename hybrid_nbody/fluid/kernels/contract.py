"""The contract of the fluid kernels: what ``cpu/`` and ``gpu/`` provide, and what they are given.

A field is an array (planes + 2, ny, nx) of a slab. Colours are a field taken apart into its two
colours, array[0] with x + y + z even and array[1] with x + y + z odd, whose rows may be padded.

Kernels never exchange anything between ranks. Solvers fill halo planes: between sweeps, or passes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from hybrid_nbody.backends.base import Array, Backend
from hybrid_nbody.fluid.grid import Ghosts, Slab
from hybrid_nbody.fluid.kernels.colour_contract import ColourKernels
from hybrid_nbody.fluid.stencil import Factors, Stencil

CHANGES = ("gained", "lost", "size", "rest")
"""What is summed of every plane of a field that changes, float64: what cells gained, what cells
lost, their absolute values before, and the sum of the changes that remain after a correction."""

BUDGET = ("cut_gains", "cut_losses", "left", "made")
"""The record of a budget, float64: the parts of all gains and of all losses to take back, what was
not yet taken back, and the sum over steps of what the field gained relative to its size."""


class Velocity(NamedTuple):
    """Three fields, one for each component."""

    u: Array
    v: Array
    w: Array


class Flow(NamedTuple):
    """The flow that carries a field.

    Attributes
    ----------
    velocity : Velocity
    scale : float
        Cells that a velocity of 1 moves in a step.
    """

    velocity: Velocity
    scale: float


class Source(NamedTuple):
    """The field that a flow carries.

    Attributes
    ----------
    cells : (m, ny, nx) array
        All planes that traces can reach.
    depth : int
        Planes of `cells` below the slab, and above it; 1 for a field.
    ghosts : Ghosts
    """

    cells: Array
    depth: int
    ghosts: Ghosts


@dataclass(frozen=True)
class Solve:
    """A solve by red-black Gauss-Seidel iterations whose ghosts are those before each iteration.

    Attributes
    ----------
    equation : Stencil
    tolerance : float
        The solve ends after an iteration in which no cell changes by more; if it is less than 0,
        all iterations are done.
    max_iterations : int
    from_zero : bool
        Whether the first guess is 0 everywhere, whatever the solution's colours hold before.
    """

    equation: Stencil
    tolerance: float
    max_iterations: int
    from_zero: bool = False

    @property
    def watched(self) -> bool:
        """Return whether the solve may end before its last iteration."""
        return self.tolerance >= 0


class Relaxation(NamedTuple):
    """A sweep over the cells of one colour.

    Attributes
    ----------
    equation : Stencil
    factors : Factors
        The change of a cell over its residual.
    tolerance : float
        Larger changes are noted.
    """

    equation: Stencil
    factors: Factors
    tolerance: float


class Pass(NamedTuple):
    """Some iterations of a solve in one pass over the grid.

    Attributes
    ----------
    number : int
        Its index among the passes of the solve.
    iterations : int
    source : array by colour or None
        The solution before it; None if that is 0, whatever arrays hold.
    target : array by colour
        The solution after it; that may be the same array.
    """

    number: int
    iterations: int
    source: Array | None
    target: Array


class PassSolve(Protocol):
    """A solve that is carried out pass by pass.

    The caller runs all passes in their order and then calls `finish`. Between them it provides the
    planes of other ranks, as `PassHalo` in `hybrid_nbody.fluid.solvers.halos` describes.

    Attributes
    ----------
    x, b : array by colour
        Solution and right-hand side.
    solve : Solve
    passes : sequence of Pass
    """

    x: Array
    b: Array
    solve: Solve
    passes: Sequence[Pass]

    def run(self, step: Pass) -> None:
        """Do a pass; on a GPU it is queued."""

    def changed(self, step: Pass) -> Array:
        """Return flags, int32, one an iteration of a pass that was run: not 0 if a cell changed.

        The caller replaces each by its maximum over the ranks before the next pass.
        """

    def finish(self) -> None:
        """Leave the solution in `x`, and add the solve to the statistics."""


class PeerMemory(Protocol):
    """The memory of other ranks' devices, mapped on this one."""

    def addresses(self, array: Array) -> Sequence[int]:
        """Return where each rank has what this rank has in `array`; collective."""


class PeerPlanes(Protocol):
    """Planes pushed into the memory of neighbouring ranks, and a device-side barrier."""

    def begin(self, solve: PassSolve) -> None:
        """Push the outermost planes of what the first pass of a solve reads, before that."""

    def after(self, step: Pass) -> None:
        """Push what the next pass needs of the target of a pass; combine the flags of all ranks."""


class Kernels(ColourKernels, Protocol):
    """The operations on the fields of one rank's planes.

    Attributes
    ----------
    backend : Backend
        The device.
    slab : Slab
        The planes.
    dtype : numpy.dtype
        The working type.
    changed : (1,) array of int32
        Not 0 if a sweep of this iteration changed a cell by more than its tolerance.
    passes_allowed : bool
        Whether `begin_passes` can solve on these planes; if not, solves are done by single sweeps.
    longest_pass : int
        Most iterations of a pass. The solver lowers it to that of the slowest rank.
    pass_depth : int
        Planes of b beyond each end of the slab that passes read.
    relaxes_in_order : bool
        Whether there is `relax_lexicographic`.
    colours_shape : tuple of int
    """

    slab: Slab
    dtype: np.dtype
    changed: Array
    longest_pass: int
    colours_shape: tuple[int, ...]

    @property
    def backend(self) -> Backend:
        """See above."""

    @property
    def passes_allowed(self) -> bool:
        """See above."""

    @property
    def pass_depth(self) -> int:
        """See above."""

    @property
    def relaxes_in_order(self) -> bool:
        """See above."""

    # --- arrays ---

    def field(self) -> Array:
        """Return a field of zeros."""

    def colours(self, *number: int) -> Array:
        """Return colours that are zero, or a number of them in one array."""

    def fill(self, array: Array, value: float) -> None:
        """Fill a field, halo planes included, or colours with zeros: padding stays zero."""

    # --- linear systems ---

    def impose(self, equation: Stencil, b: Array) -> None:
        """Add the offsets of the equation's ghosts to the right-hand side of the cells at walls."""

    def begin_passes(self, x: Array, b: Array, solve: Solve, scratch: Array | None) -> PassSolve:
        """Return a solve in passes, ready for the first one.

        Parameters
        ----------
        x, b : array by colour
            First guess, which is not read if the solve is from zero and becomes the solution, and
            right-hand side.
        solve : Solve
        scratch : flat array or None
            Memory of the working type, two fields long, that is free until the solve is finished.
        """

    def peer_planes(
        self, memory: PeerMemory, rank: int, planes: Sequence[int]
    ) -> PeerPlanes | None:
        """Return how passes write into other ranks' memory; None if a slab is too thin for it.

        Collective. `planes` are those of all ranks.
        """

    def begin_solve(self) -> None:
        """Begin a solve by single sweeps."""

    def sweep(self, colour: int, x: Array, b: Array, relaxation: Relaxation) -> None:
        """Relax the cells of one colour; the halo planes of the other one are valid.

        Does nothing once the solve is done; else it notes larger changes in `changed`.
        """

    def end_iteration(self) -> None:
        """End an iteration after both sweeps: the solve is done if `changed` is zero."""

    def stopped(self) -> bool:
        """Return whether the solve is known to be done before its last iteration."""

    def end_solve(self) -> None:
        """Add the solve to the statistics."""

    def relax_lexicographic(self, x: Array, b: Array, equation: Stencil, iterations: int) -> None:
        """Relax the cells of a field in lexicographic order, on one thread of one rank.

        Raises
        ------
        NotImplementedError
            Unless `relaxes_in_order`: on a GPU each cell would wait for the one before it.
        """

    def residual(self, x: Array, b: Array, equation: Stencil) -> float:
        """Return the largest residual of this rank's cells."""

    def exceeds(self, x: Array, b: Array, equation: Stencil, limit: Array) -> None:
        """Note in `changed` whether a residual is larger than ``limit[0]``."""

    def statistics(self) -> dict[str, int]:
        """Return the numbers of solves, of their iterations, and of solves that ended early."""

    def reset_statistics(self) -> None:
        """Count from zero."""

    # --- parts of a step ---

    def divergence(self, velocity: Velocity, factor: float, colours: Array) -> None:
        """Store `factor` times the sum of the central differences f[i + 1] - f[i - 1] by colour."""

    def subtract_gradient(self, velocity: Velocity, pressure: Array, factor: float) -> None:
        """Subtract `factor` times the central differences of the pressure, given by colour."""

    def buoyancy(self, velocity: Velocity, density: Array, factors: Sequence[float]) -> None:
        """Add `factors` times the density to the components of the velocity."""

    def curl_length(self, velocity: Velocity, out: Array) -> None:
        """Fill `out` with the length of the vorticity."""

    def confine(self, velocity: Velocity, length: Array, strength: float, out: Velocity) -> None:
        """Fill `out` with the velocity and the force of vorticity confinement on it.

        The force is ``strength * h * (N x curl u)``, N the unit gradient of `length`.
        """

    def advect(self, source: Source, out: Array, flow: Flow, scratch: Array | None = None) -> None:
        """Fill `out` with what a flow carries to each cell.

        `scratch` is flat memory that is free meanwhile.
        """

    def advect_velocity(self, out: Velocity, flow: Flow, scratch: Array | None = None) -> None:
        """Fill `out` with what a flow carries of its own velocity.

        No departure point lies beyond a halo plane.
        """

    def correct(
        self, source: Source, forward: Array, out: Array, flow: Flow, scratch: Array | None = None
    ) -> None:
        """Fill `out` with the MacCormack scheme's correction of `forward`.

        `forward` is what `advect` made of `source`, on the same planes.
        """

    # --- the budget of a field ---

    def sum_changes(self, before: Array, after: Array, sums: Array) -> None:
        """Store the first three `CHANGES` of every plane of this rank in the rows of `sums`."""

    def update_budget(self, sums: Array, record: Array) -> None:
        """Bring the record of a budget up to date with the sums of the planes of all ranks."""

    def scale_changes(self, before: Array, after: Array, record: Array, sums: Array) -> None:
        """Take back parts of gains or losses, as the record says; store the last of `CHANGES`."""

    # --- sources ---

    def add_box(self, field: Array, box: Sequence[int], value: float) -> None:
        """Add to the cells of a box (x0, x1, y0, y1, z0, z1), half-open, in global cells."""

    def set_box(self, field: Array, box: Sequence[int], value: float) -> None:
        """Set the cells of a box."""

    def add_sphere(
        self, field: Array, centre: Sequence[float], radius: float, value: float
    ) -> None:
        """Add to the cells whose centres lie within `radius` of `centre`, in global cells."""

    def set_sphere(
        self, field: Array, centre: Sequence[float], radius: float, value: float
    ) -> None:
        """Set the cells of a sphere."""

    # --- sums ---

    def largest(self, array: Array) -> float:
        """Return the largest absolute value of this rank's cells of a field."""

    def largest_later(self, array: Array) -> Callable[[], float]:
        """Return a function that waits for the largest absolute value."""

    def largest_into(self, colours: Array, factor: float, limit: Array) -> None:
        """Store `factor` times the largest absolute value in ``limit[0]``."""

    def plane_sums(self, field: Array) -> np.ndarray:
        """Return the sum of every plane, float64."""

    def plane_sums_with_ghosts(self, field: Array) -> np.ndarray:
        """Return sums in which a cell at a wall of x or y counts twice, at both four times."""

    def plane_squares(self, *fields: Array) -> np.ndarray:
        """Return the sum over fields of the squares of every plane."""
