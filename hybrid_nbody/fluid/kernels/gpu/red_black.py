"""A red-black solve on a GPU: the grid kept in its multiprocessors, or passes over it, which several GPUs share."""

import numpy as np

from hybrid_nbody.fluid.kernels.gpu.layout import FOLDER, LONGEST_PASS
from hybrid_nbody.fluid.kernels.gpu.peers import neighbours_of
from hybrid_nbody.fluid.kernels.gpu.resident_boxes import boxes_of
from hybrid_nbody.fluid.kernels.gpu.tiling import tiling_of

COPY_BLOCKS = 1056
COPY_THREADS = 256

ROOM_ALIGNMENT = 256
"""Bytes: what lies in lent memory begins at a multiple of them, as what is allocated does."""


def fastest(kernels) -> "Residence | Passes":
    """Return how the kernels' GPU best relaxes the kernels' planes."""
    facts = kernels.backend.facts()
    slab = kernels.slab
    boxes = (
        boxes_of(slab, kernels.dtype, facts)
        if slab.complete and facts["cooperative_launch"]
        else None
    )
    return Residence(kernels, boxes) if boxes else Passes(kernels)


class Residence:
    """Solves of one kernel each: every block of threads keeps a box of the grid in its multiprocessor.

    Parameters
    ----------
    kernels : hybrid_nbody.fluid.kernels.gpu.kernels.Kernels
    boxes : hybrid_nbody.fluid.kernels.gpu.resident_boxes.Boxes
    """

    def __init__(self, kernels, boxes):
        self.kernels = kernels
        self.boxes = boxes
        source = FOLDER / "red_black_resident.cu"
        self.module = kernels.compile(source, boxes.macros, cooperative=True)
        self.memory = boxes.memory(kernels.dtype)
        self.module.allow_shared_memory("relax", self.memory)
        self.barrier = kernels.backend.zeros(2, "u8")

    def relax(self, x, b, equation, iterations, room, halo):
        """Queue a solve.

        Parameters
        ----------
        x, b : array by colour
            Unknowns, renewed in place with their halo planes, and right-hand side.
        equation : tuple
            Numbers of the working type: own, neighbour and the three signs of the stencil, the
            inverse of its diagonal, and the tolerance of the largest change; if that is less than 0
            nothing meets it.
        iterations : int
            At most so many.
        room : flat array or None
            Not needed.
        halo : HaloExchange or None
            Fills the halo planes.
        """
        arguments = np.int32(iterations), x, b, *equation, self.barrier, self.kernels.control
        grid = (self.boxes.number,)
        self.module.launch_grid("relax", grid, (self.boxes.threads,), arguments, self.memory)
        if halo:
            halo.fill(*x)


class Passes:
    """Solves by passes over the grid, of several iterations each, into other colours and back (``red_black_tiles.cu``).

    Parameters
    ----------
    kernels : hybrid_nbody.fluid.kernels.gpu.kernels.Kernels
    longest : int
        Most iterations of a pass.
    """

    def __init__(self, kernels, longest: int = LONGEST_PASS):
        self.kernels = kernels
        self.spare = None
        self.neighbours = None
        facts = kernels.backend.facts()
        slab = kernels.slab
        upload = kernels.backend.upload
        multiprocessors = facts["multiprocessors"]
        tilings = {
            count: tiling_of(slab, kernels.dtype, count, facts) for count in range(1, longest + 1)
        }
        self.tilings = {count: tiling for count, tiling in tilings.items() if tiling}
        self.cuts = {
            c: upload(tiling.cuts(slab, c, multiprocessors)) for c, tiling in self.tilings.items()
        }
        self.modules = {count: self._compile(count) for count in self.tilings}
        self.longest = max(self.tilings)
        self.helpers = {
            c: tiling.helpers(slab, c, multiprocessors) for c, tiling in self.tilings.items()
        }

    def _compile(self, count):
        """Return the kernels of passes of `count` iterations."""
        tiling = self.tilings[count]
        module = self.kernels.compile(FOLDER / "red_black_tiles.cu", tiling.macros(count))
        for name in ("relax", "redo") if count == 1 else ("relax",):
            module.allow_shared_memory(name, tiling.memory(self.kernels.dtype))
        return module

    def relax(self, x, b, equation, iterations, room, halo):
        """Queue a solve: passes, and a part of the last again if that did too many iterations.

        Parameters as in `Residence.relax`; if colours do not fit into `room`, the first call makes
        some to work in.
        """
        neighbours = self.neighbours = self.neighbours or self._meet_neighbours(halo)
        spare = self._spare_colours(room)
        longest = self.longest
        previous = 0
        watched = equation[-1] >= 0
        counts = [longest] * (iterations // longest) + [1] * (iterations % longest)
        neighbours.begin(x, b, spare, room, counts)
        for number, count in enumerate(counts):
            source, target = (spare, x) if number % 2 else (x, spare)
            neighbours.before(source, number)
            self._pass(count, number, previous, target, (x, spare, b), equation)
            neighbours.after(target, number, self.helpers[count], watched)
            previous = count
        done = map(np.int32, (len(counts), previous, iterations))
        self.kernels.single("red_black", "settle", *done, self.kernels.control)
        for number in range(longest - 1 if watched else 0):
            self._launch("redo", 1, self._grid(1), (number, x, spare, b), equation)
        arguments = x, spare, self.kernels.control
        threads = COPY_BLOCKS * COPY_THREADS
        self.kernels.modules["red_black"].launch("bring_home", threads, COPY_THREADS, *arguments)
        neighbours.end(x, watched)

    def _meet_neighbours(self, halo):
        """Return how the planes of others are seen; all ranks do passes of as many iterations, whatever their GPUs."""
        neighbours = neighbours_of(self.kernels, halo)
        if not self.kernels.slab.complete:
            self.longest = min(halo.communicator.gather(self.longest))
        return neighbours

    def _pass(self, count, number, previous, target, arrays, equation):
        """Launch a pass to `target`, with a row of blocks more if its first planes are to be shown meanwhile."""
        ahead, (across, rows) = (
            self.neighbours.ahead(target, number, self.helpers[count]),
            self._grid(count),
        )
        grid = across, rows + (ahead["helpers"].item() > 0)
        self._launch("relax", count, grid, (number, previous, *arrays), equation, ahead)

    def _launch(self, name, count, grid, arrays, equation, *more):
        """Launch a kernel that passes over the grid, `count` iterations at once; whole numbers before the arrays."""
        words = (np.int32(word) if isinstance(word, int) else word for word in arrays)
        tiling = self.tilings[count]
        arguments = *words, self.cuts[count], *equation, self.kernels.control, *more
        memory = tiling.memory(self.kernels.dtype)
        self.modules[count].launch_grid(name, grid, (tiling.threads,), arguments, memory)

    def _grid(self, count):
        """Return the blocks that have tiles: beside each other in x, and rows of them."""
        return self.tilings[count].number(self.kernels.slab, count)[0], len(self.cuts[count]) - 1

    def _spare_colours(self, room):
        """Return colours to work in: always in the same place of the room, or our own if they do not fit."""
        shape = self.kernels.shape_of_colours
        if room is not None:
            size = int(np.prod(shape))
            start = -room.data.ptr % ROOM_ALIGNMENT // room.dtype.itemsize
            if start + size <= room.size:
                return room[start : start + size].reshape(shape)
        if self.spare is None:
            self.spare = self.kernels.colours()
        return self.spare
