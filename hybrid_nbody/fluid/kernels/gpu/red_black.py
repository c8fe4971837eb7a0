"""A red-black solve on a GPU: the grid kept in its multiprocessors, or passes over it, which several GPUs share."""

import numpy as np

from hybrid_nbody.fluid.kernels.contract import Pass
from hybrid_nbody.fluid.kernels.gpu.layout import FOLDER, LONGEST_PASS
from hybrid_nbody.fluid.kernels.gpu.peers import NO_PUSH
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

    longest = 1

    def begin(self, x, b, numbers, solve, scratch):
        """Return a solve of one pass; parameters as in `Passes.begin`."""
        return ResidentSolve(self, x, b, numbers, solve)


class ResidentSolve:
    """A solve of one kernel; parameters and methods as in `PassSolve`."""

    def __init__(self, residence, x, b, numbers, solve):
        self.residence = residence
        self.x = x
        self.b = b
        self.numbers = numbers
        self.solve = solve
        self.passes = [Pass(0, solve.max_iterations, x, x)]

    def run(self, step):
        """Queue the solve."""
        kernels = self.residence.kernels
        words = np.int32(step.iterations), self.x, self.b, *self.numbers
        arguments = *words, self.residence.barrier, kernels.control
        boxes = self.residence.boxes
        grid = (boxes.number,)
        memory = self.residence.memory
        self.residence.module.launch_grid("relax", grid, (boxes.threads,), arguments, memory)

    def changed(self, step):
        """Return no flags: a rank that owns all planes has nobody to tell."""
        return self.residence.kernels.control[:0]

    def finish(self):
        """Do nothing: the kernel has stored and counted the solution."""


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

    def begin(self, x, b, numbers, solve, scratch):
        """Return a solve in passes.

        Parameters
        ----------
        x, b : array by colour
            Unknowns, updated in place, and right-hand side.
        numbers : tuple
            Numbers of the working type: own, neighbour and the three signs of the stencil, the
            inverse of its diagonal, and the tolerance of the largest change; if that is less than 0
            nothing meets it.
        solve : Solve
        scratch : flat array or None
            If colours do not fit into it, the first call makes some to work in.
        """
        return TiledSolve(self, x, b, numbers, solve, scratch)

    def launch_pass(self, step, previous, arrays, numbers, push):
        """Launch a pass, with a row of blocks more if its first planes are to be pushed meanwhile."""
        across, rows = self._grid(step.iterations)
        grid = across, rows + (push["helpers"].item() > 0)
        words = step.index, previous, *arrays
        self._launch("relax", step.iterations, grid, words, numbers, push)

    def finish(self, counts, arrays, numbers, solve):
        """Do a part of the last pass again if that did too many iterations, and bring the solution to x."""
        x, spare, b = arrays
        previous = counts[-1] if counts else 0
        done = map(np.int32, (len(counts), previous, solve.max_iterations))
        self.kernels.single("red_black", "settle", *done, self.kernels.control)
        for number in range(self.longest - 1 if solve.watched else 0):
            self._launch("redo", 1, self._grid(1), (number, x, spare, b), numbers)
        arguments = x, spare, self.kernels.control
        threads = COPY_BLOCKS * COPY_THREADS
        self.kernels.modules["red_black"].launch("bring_home", threads, COPY_THREADS, *arguments)

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

    def spare_colours(self, room):
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


class TiledSolve:
    """A solve in passes to other colours and back; parameters as in `Passes.begin`, methods as in `PassSolve`.

    Attributes
    ----------
    early_push : callable
        ``early_push(step)`` returns what some blocks of a pass push to other ranks before it ends:
        an argument of its kernel.
    """

    def __init__(self, tiles, x, b, numbers, solve, scratch):
        self.tiles = tiles
        self.x = x
        self.b = b
        self.spare = tiles.spare_colours(scratch)
        self.scratch = scratch
        self.numbers = numbers
        self.solve = solve
        self.early_push = lambda step: NO_PUSH
        longest = tiles.longest
        more = solve.max_iterations % longest
        self.counts = [longest] * (solve.max_iterations // longest) + [1] * more
        arrays = x, self.spare
        self.passes = [
            Pass(index, count, arrays[index % 2], arrays[1 - index % 2])
            for index, count in enumerate(self.counts)
        ]

    def helpers(self, step):
        """Return the blocks of a pass that push planes before it ends."""
        return self.tiles.helpers[step.iterations]

    def run(self, step):
        """Queue a pass."""
        previous = self.counts[step.index - 1] if step.index else 0
        arrays = self.x, self.spare, self.b
        self.tiles.launch_pass(step, previous, arrays, self.numbers, self.early_push(step))

    def changed(self, step):
        """Return the flags of the iterations of a pass."""
        return self.tiles.kernels.flags(step.index, step.iterations)

    def finish(self):
        """Queue what is left to do after the last pass."""
        arrays = self.x, self.spare, self.b
        self.tiles.finish(self.counts, arrays, self.numbers, self.solve)
