"""The fluid kernels on CPU threads (Numba).

Loops are compiled in the other modules of this package, each for one part of a step. Here arguments
are brought into the working type, and fields are flattened.
"""

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np

from hybrid_nbody.backends.cpu import CpuBackend
from hybrid_nbody.fluid.grid import FACES, SCALAR, Ghosts, Slab
from hybrid_nbody.fluid.kernels.colour_contract import First
from hybrid_nbody.fluid.kernels.contract import Array, Flow, Source, Velocity
from hybrid_nbody.fluid.kernels.cpu import (
    advection,
    boxes,
    budget,
    colours,
    forces,
    ghosts,
    red_black,
    reductions,
    regions,
)
from hybrid_nbody.fluid.kernels.cpu.boundary import make_image_table, make_images
from hybrid_nbody.fluid.kernels.cpu.linear_systems import LinearSystems


def flat(*arrays: Array) -> tuple[Array, ...]:
    """Return views of arrays as compiled loops index them."""
    return tuple([array.reshape(-1) for array in arrays])


class Kernels(LinearSystems):
    """The operations on the fields of one rank's planes; see the contract for each.

    Parameters are those of `LinearSystems`.
    """

    def __init__(self, backend: CpuBackend, slab: Slab, dtype: str):
        super().__init__(backend, slab, dtype)
        self.box = ghosts.make_box(slab)
        self.copies = np.zeros(0, self.dtype)
        self.images = functools.cache(functools.partial(make_images, number=self.number))
        components = slab.velocity_ghosts
        normal = Ghosts(*(components[face // 2][face] for face in range(len(FACES))))
        self.normal_images = self.images(normal)
        self.image_table = make_image_table([*components, SCALAR], self.dtype)

    def field(self) -> Array:
        """See `Kernels`."""
        return np.zeros(self.slab.shape, self.dtype)

    def fill(self, array: Array, value: float) -> None:
        """See `Kernels`."""
        array.fill(value)

    # ---- Fields and colours ----

    def split(self, field: Array, by_colour: Array) -> None:
        """See `Kernels`."""
        colours.split(*flat(field, by_colour), self.grid)

    def split_twice(self, field: Array, first: Array, second: Array) -> None:
        """See `Kernels`."""
        self.split(field, first)
        red_black.copy(*flat(first, second), self.grid)

    def split_carried(
        self, field: Array, factor: float, carried: Array, b: Array, x: Array
    ) -> None:
        """See `Kernels`."""
        fields = flat(field, carried)
        colours.split_carried(*fields, self.number(factor), *flat(b, x), self.grid)

    def clear(self, by_colour: Array) -> None:
        """See `Kernels`."""
        colours.clear(*flat(by_colour), self.grid)

    def merge(self, by_colour: Array, field: Array) -> None:
        """See `Kernels`."""
        colours.merge(*flat(by_colour, field), self.grid)

    # ---- Elements of a box ----

    def split_spread(self, field: Array, first: First, ratio: float, b: Array) -> None:
        """See `ColourKernels`."""
        frame = boxes.frame_of(field, first)
        boxes.split_spread(*flat(field), self.number(ratio), *flat(b), frame, self.grid)

    def split_divergence(
        self, velocity: tuple[Array, Array, Array], first: First, factor: float, b: Array
    ) -> None:
        """See `ColourKernels`."""
        frame = boxes.frame_of(velocity[0], first)
        numbers = self.number(factor), *flat(b)
        boxes.split_divergence(flat(*velocity), *numbers, frame, self.grid)

    def merge_into(self, by_colour: Array, field: Array, first: First) -> None:
        """See `ColourKernels`."""
        frame = boxes.frame_of(field, first)
        boxes.merge_into(*flat(by_colour, field), frame, self.grid)

    def merge_onto(self, by_colour: Array, field: Array, first: First) -> None:
        """See `ColourKernels`."""
        frame = boxes.frame_of(field, first)
        boxes.merge_onto(*flat(by_colour, field), frame, self.grid)

    # ---- Projection and forces ----

    def divergence(self, velocity: Velocity, factor: float, by_colour: Array) -> None:
        """See `Kernels`."""
        fields = flat(*velocity)
        factor = self.number(factor)
        colours.divergence(fields, self.normal_images, factor, *flat(by_colour), self.grid)

    def subtract_gradient(self, velocity: Velocity, pressure: Array, factor: float) -> None:
        """See `Kernels`."""
        fields = flat(*velocity)
        colours.subtract_gradient(fields, *flat(pressure), self.number(factor), self.grid)

    def buoyancy(self, velocity: Velocity, density: Array, factors: Sequence[float]) -> None:
        """See `Kernels`."""
        for component, factor in zip(velocity, factors, strict=True):
            forces.add_multiples(component, self.number(factor), density, self.grid)

    def curl_length(self, velocity: Velocity, out: Array) -> None:
        """See `Kernels`."""
        per_length = self.number(0.5 / self.slab.spacing)
        forces.curl_length(tuple(velocity), self.image_table, per_length, out, self.grid)

    def confine(self, velocity: Velocity, length: Array, strength: float, out: Velocity) -> None:
        """See `Kernels`."""
        factors = forces.Factors(
            per_length=self.number(0.5 / self.slab.spacing),
            strength=self.number(strength * self.slab.spacing),
        )
        forces.confine(tuple(velocity), length, self.image_table, factors, tuple(out), self.grid)

    # ---- Advection ----

    def advect(self, source: Source, out: Array, flow: Flow, scratch: Array | None = None) -> None:
        """See `Kernels`."""
        origin = self.slab.first - source.depth
        (copy,) = self._with_ghosts((source.cells,), origin, source.ghosts, scratch)
        velocity = flat(*flow.velocity)
        advection.advect(copy, origin, *flat(out), velocity, self.number(-flow.scale), self.box)

    def advect_velocity(self, out: Velocity, flow: Flow, scratch: Array | None = None) -> None:
        """See `Kernels`."""
        fields = zip(flow.velocity, self.slab.velocity_ghosts, out, strict=True)
        for cells, field_ghosts, target in fields:
            self.advect(Source(cells, 1, field_ghosts), target, flow, scratch)

    def correct(
        self, source: Source, forward: Array, out: Array, flow: Flow, scratch: Array | None = None
    ) -> None:
        """See `Kernels`."""
        origin = self.slab.first - source.depth
        fields = source.cells, forward
        copies = self._with_ghosts(fields, origin, source.ghosts, scratch)
        velocity = flat(*flow.velocity)
        scale = self.number(-flow.scale)
        advection.correct(copies, flat(*fields), origin, *flat(out), velocity, scale, self.box)

    def _with_ghosts(
        self, fields: tuple[Array, ...], origin: int, field_ghosts: Ghosts, scratch: Array | None
    ) -> tuple[Array, ...]:
        """Return flat copies of fields with ghosts, in scratch memory if they fit."""
        shape = ghosts.ghosted_shape(fields[0])
        copies = self._memory((len(fields), *shape), scratch)
        for field, copy in zip(fields, copies, strict=True):
            ghosts.fill_ghosted(field, origin, copy, self.images(field_ghosts), self.box)
        return flat(*copies)

    def _memory(self, shape: tuple[int, ...], scratch: Array | None) -> Array:
        """Return an array in scratch memory, or else in memory of our own, which is kept."""
        size = math.prod(shape)
        if scratch is None or scratch.size < size:
            if self.copies.size < size:
                self.copies = np.zeros(size, self.dtype)
            scratch = self.copies
        return scratch[:size].reshape(shape)

    # ---- The budget of a field ----

    def sum_changes(self, before: Array, after: Array, sums: Array) -> None:
        """See `Kernels`."""
        budget.sum_changes(before, after, sums)

    def update_budget(self, sums: Array, record: Array) -> None:
        """See `Kernels`."""
        budget.update_budget(sums, record)

    def scale_changes(self, before: Array, after: Array, record: Array, sums: Array) -> None:
        """See `Kernels`."""
        cuts = (self.number(record[budget.CUT_GAINS]), self.number(record[budget.CUT_LOSSES]))
        budget.scale_changes(before, after, *cuts, sums)

    # ---- Sources ----

    def add_box(self, field: Array, box: Sequence[int], value: float) -> None:
        """See `Kernels`."""
        regions.box_of(field, self.slab, box)[...] += self.number(value)

    def set_box(self, field: Array, box: Sequence[int], value: float) -> None:
        """See `Kernels`."""
        regions.box_of(field, self.slab, box)[...] = value

    def add_sphere(
        self, field: Array, centre: Sequence[float], radius: float, value: float
    ) -> None:
        """See `Kernels`."""
        for plane, inside in regions.sphere_of(field, self.slab, centre, radius):
            plane[inside] += self.number(value)

    def set_sphere(
        self, field: Array, centre: Sequence[float], radius: float, value: float
    ) -> None:
        """See `Kernels`."""
        for plane, inside in regions.sphere_of(field, self.slab, centre, radius):
            plane[inside] = value

    # ---- Sums ----

    def largest(self, array: Array) -> float:
        """See `Kernels`."""
        result = np.empty(self.slab.planes, self.dtype)
        reductions.largest_per_plane(array, result)
        return float(result.max())

    def largest_later(self, array: Array) -> Callable[[], float]:
        """Return a function that returns the largest absolute value, which is found here."""
        value = self.largest(array)
        return lambda: value

    def plane_sums(self, field: Array) -> np.ndarray:
        """See `Kernels`."""
        return self._plane_sums(field, False, False)

    def plane_sums_with_ghosts(self, field: Array) -> np.ndarray:
        """See `Kernels`."""
        periodic_x, periodic_y, _ = self.slab.periodic
        return self._plane_sums(field, not periodic_x, not periodic_y)

    def _plane_sums(self, field: Array, walled_x: bool, walled_y: bool) -> np.ndarray:
        result = np.empty(self.slab.planes)
        reductions.plane_sums(field, walled_x, walled_y, result)
        return result

    def plane_squares(self, *fields: Array) -> np.ndarray:
        """See `Kernels`."""
        result = np.zeros(self.slab.planes)
        for field in fields:
            reductions.add_plane_squares(field, result)
        return result
