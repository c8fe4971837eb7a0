"""What a tree on devices offers: every rank knows all cells, and its own and nearby bodies."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Array
from hybrid_nbody.nbody.kernels.cube import Cube
from hybrid_nbody.nbody.kernels.parts import Parts
from hybrid_nbody.nbody.kernels.share import Share
from hybrid_nbody.nbody.step_timer import Timer
from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.parallel.transport.peer_barrier import Addresses

MOST_BOUNDS = 2048
"""Bounds between which keys are counted, at most."""

Counted = Callable[[], NDArray[np.int64]]
"""Waits for counts on their way to the host, and returns them."""


class WantedBodies(NamedTuple):
    """The bodies of nearby leaves that ranks want of each other.

    Attributes
    ----------
    wanted : (S, C) array of uint8
        Which cells each rank wants.
    ends : (2 S C,) array of int32
        Where the bodies of a cell end among those that this rank sends to each, and then among
        those that it gets of each.
    counted : callable
        Waits for how many it sends to each rank and gets from it, (2 S,).
    """

    wanted: Array
    ends: Array
    counted: Counted


class BodyMessages(NamedTuple):
    """Bodies of nearby leaves that ranks send each other.

    Attributes
    ----------
    sent, places : list of (m, …) and of (k, …) arrays
        What this rank sends, and where to put what it gets, in the order of the other ranks:
        several numbers of each body in each array.
    sent_counts, counts : (S,) arrays of int64
        How many it sends to each rank and gets from it.
    """

    sent: list[Array]
    places: list[Array]
    sent_counts: NDArray[np.int64]
    counts: NDArray[np.int64]


class TreeShare(Protocol):
    """A rank's share of the sums by a tree that each device of a host has whole; collective.

    For each force `collect`, `add_up` and `gather` are called, in this order.
    """

    def cut(self, cuts: NDArray[np.int64]) -> None:
        """Let the shares of the next forces begin at the leaves that hold some bodies.

        `cuts` are their places along the curve, (S + 1,), ascending from 0 to the number of all.
        """

    def collect(self, bodies: Array) -> None:
        """Share the bodies of this rank with the others; they are those of `count_cells`."""

    def add_up(self, potentials: bool) -> None:
        """Sum over all bodies at those of this rank's share."""

    def gather(self, potentials: bool) -> Array:
        """Return the sums at this rank's bodies, until the next call; see `sums_alone`."""

    def work(self, pieces: int) -> NDArray[np.float64]:
        """Return the work for this rank's share in each piece of the curve, after a force.

        Pieces have the same number of bodies each, but for the last ones, which may have none.
        """


class DeviceTree(Protocol):
    """Sums over all bodies by a tree of cells, on the device of each rank, in units of the kernels.

    A rank that is alone asks for `sums_alone`, the ranks of one host may ask for `share`. Others
    sum the forces on the bodies of their shares, of a tree of which none has all bodies:
    the methods from `count_cells` on are called in the order of their definition for each force,
    `cell_rows` and `add_cells` as often as there are pieces; none talks to other ranks.
    """

    levels: int
    """Levels of cells, that of the root included."""

    def sums_alone(self, bodies: Array, potentials: bool) -> Array:
        """Return the sums over bodies that are all of this rank, until the next call.

        `bodies` are those of `count_cells`, the sums those of `sums`; they are NaN if one of the
        coordinates is not finite.
        """

    def share(self, memory: Addresses, partition: Partition, rank: int) -> TreeShare:
        """Return this rank's share of a tree that each device of a host has whole; collective.

        `memory` is that of all ranks' devices, `partition` that of the bodies.
        """

    def watch(self, timer: Timer | None) -> None:
        """Let a timer record the phases of `sums_alone` from here on; None ends that.

        They are ``sort``, ``tree``, ``lists``, ``far``, ``near`` and ``rest``, what comes before.
        """

    def fill_rows(
        self, position: Array, acceleration: Array, units: tuple[float, float], rows: Array
    ) -> None:
        """Fill the rows of bodies; see `tree_contract.TreeSums.fill_rows`."""

    def set_accelerations(self, sums: Array, unit: float, acceleration: Array) -> None:
        """Fill accelerations; see `tree_contract.TreeSums.set_accelerations`."""

    def box(self, bodies: Array) -> Callable[[], NDArray[np.float64]]:
        """Begin to find the lowest and highest coordinates of one or more bodies.

        What is returned waits for them, (2, 3). They are not finite if one of the coordinates is
        not.
        """

    def curve(self, bodies: Array, cube: Cube, words: int) -> Any:
        """Return the order of bodies along the curve; see `tree_contract.TreeSums.curve`."""

    def taken(self, rows: Array, order: Array) -> Array:
        """Return rows in an order; see `tree_contract.TreeSums.taken`."""

    def put_back(self, rows: Array, order: Array) -> Array:
        """Return rows as they were before; see `tree_contract.TreeSums.put_back`."""

    def ties(self, curve: Any) -> Array:
        """Return whether a body and the next share a key; see `tree_contract.TreeSums.ties`."""

    def keys(self, bodies: Array, cube: Cube) -> Array:
        """Return the keys of bodies, (n,) of uint64."""

    def count_between(self, keys: Array, bounds: NDArray[np.uint64]) -> Counted:
        """Begin to count the keys from each bound, of which the first is 0, to the next.

        There are `MOST_BOUNDS` bounds at most. What is returned waits for the counts.
        """

    def split(self, keys: Array, cuts: NDArray[np.uint64]) -> Array:
        """Return the order of keys by the cuts that they lie between, (n,) of int.

        A key that equals a cut lies behind it; keys between the same cuts stay in their order.
        """

    def deepest_level(self, curve: Any) -> int:
        """Return the level below the root on which a cell may hold any number of bodies."""

    def child_bounds(
        self, curve: Any, first: NDArray[np.int32], last: NDArray[np.int32], level: int
    ) -> NDArray[np.int32]:
        """Return where the octants of cells begin; see `tree_contract.TreeSums.child_bounds`."""

    def is_crowded(self, curve: Any, parts: Parts) -> bool:
        """Return whether keys of two words are needed."""

    def count_cells(self, bodies: Array, curve: Any, cube: Cube, share: Share) -> NDArray[np.int64]:
        """Return how many cells of each level start at the bodies of a share, (L,).

        `bodies` are positions and masses, (n, 4), and the lengths of their last accelerations in a
        fifth column once there are any, in any order; `curve` sorts them.
        """

    def make_cells(self, counts: NDArray[np.int64]) -> None:
        """Make this rank's cells; `counts` are those of `count_cells` on all ranks, (S, L)."""

    def cell_rows(self, some: slice) -> Array:
        """Return some of the cells that start on this rank, a row of bytes each.

        `some` has both ends: from which to which of them, level by level and along the curve.
        """

    def add_cells(self, rows: Array) -> None:
        """Take rows of `cell_rows` of other ranks, in any order."""

    def link_cells(self) -> None:
        """Link the cells of all ranks, once they are all here."""

    def find_sources(self) -> None:
        """Find the distant and the nearby sources of this rank's cells.

        What follows is of use only if `found_all` says so; else the sources are to be found again.
        """

    def found_all(self) -> bool:
        """Return whether there was memory for all sources; provide it if not."""

    def wanted(self, ranks: int) -> Array:
        """Return which leaves of other ranks are nearby, in this rank's row of an array of all.

        The array has a byte for every cell in the row of each rank; others are filled there.
        """

    def find_expansions(self) -> None:
        """Find the expansions of distant sources about the cells that accept these."""

    def count_messages(self, wanted: Array) -> WantedBodies:
        """Begin to count the bodies that ranks send each other, for what each of them wants."""

    def hand_down_expansions(self) -> None:
        """Add the expansions of cells to those of their children."""

    def messages(self, wanted: WantedBodies) -> BodyMessages:
        """Return the bodies that ranks send each other, once they are counted."""

    def evaluate_expansions(self, potentials: bool) -> None:
        """Find the sums over distant sources at the bodies."""

    def sums(self, potentials: bool) -> Array:
        """Add those over nearby bodies, and return the sums in the order that bodies came in.

        They are those of m d / r^3, (n, 3), or of m / r, (n, 1).
        """

    def work(self) -> Array:
        """Return the work for each body, (n, 1), in the same order."""
