"""How bodies get to the ranks of their parts, with a stand-in for their devices."""

import numpy as np
import pytest
from support.bodies import make_backend
from support.ranks import communicator

from hybrid_nbody.nbody.forces.tree import devices, resharing
from hybrid_nbody.nbody.forces.tree.devices import TreeOnDevices
from hybrid_nbody.nbody.forces.tree.travel import Travels
from hybrid_nbody.nbody.initial_conditions import plummer
from hybrid_nbody.nbody.kernels.cpu.tree.cells import child_bounds, deepest_level
from hybrid_nbody.nbody.kernels.cpu.tree.curve import LEVELS, curve_through
from hybrid_nbody.parallel.exchange.allgather import AllgatherExchange
from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.parallel.transport.host import HostTransport

__all__ = ["communicator"]

pytestmark = pytest.mark.mpi(min_size=2)

CAPACITY = 16


class CurveOnHost:
    """What a `DeviceTree` knows of the curve, on the host."""

    levels = LEVELS + 1

    def box(self, bodies):
        position = bodies[:, :3]
        return lambda: np.stack([position.min(axis=0), position.max(axis=0)])

    def curve(self, bodies, cube, words):
        return curve_through(np.ascontiguousarray(bodies[:, :3]), cube, words)

    def taken(self, rows, order):
        return rows[order]

    def put_back(self, rows, order):
        places = np.empty_like(rows)
        places[order] = rows
        return places

    def ties(self, curve):
        return np.diff(curve.keys[0]) == 0

    def keys(self, bodies, cube):
        curve = self.curve(bodies, cube, 1)
        keys = np.empty(len(bodies), np.uint64)
        keys[curve.order] = curve.keys[0]
        return keys

    def count_between(self, keys, bounds):
        return lambda: np.diff(np.searchsorted(np.sort(keys), bounds))

    def split(self, keys, cuts):
        return np.argsort(np.searchsorted(cuts, keys, side="right"), kind="stable")

    def deepest_level(self, curve):
        return deepest_level(curve.keys)

    def child_bounds(self, curve, first, last, level):
        return child_bounds(first, last, level, curve.keys)

    def is_crowded(self, curve, parts):
        return False


class CellsOnHost:
    """Cells of a rank as numbers, and those of other ranks as they arrive."""

    def __init__(self, rank, number):
        self.own = 1000 * rank + np.arange(number)
        self.arrived = []
        self.linked = None

    def cell_rows(self, some):
        return self.own[some].view("u1").reshape(-1, self.own.itemsize)

    def add_cells(self, rows):
        self.arrived += rows.reshape(-1).view(self.own.dtype).tolist()

    def link_cells(self):
        self.linked = len(self.arrived)


class Bodies:
    """Bodies of this rank, and the tree that sends them."""

    def __init__(self, communicator, number, weights):
        backend = make_backend("cpu")
        partition = Partition.weighted(number, weights)
        transport = HostTransport(backend, communicator)
        exchange = AllgatherExchange(transport, partition, communicator.rank)
        ranks = (backend, communicator, exchange)
        tree = CurveOnHost()
        self.communicator = communicator
        self.own = exchange.own
        self.tree = TreeOnDevices(tree, Travels(tree, CAPACITY, *ranks))

    def sent(self, position):
        """Send the bodies at positions, which all ranks know; check where they are, and return."""
        rows = np.column_stack([position, np.arange(len(position)), np.ones(len(position))])
        found = self.tree.send(rows[self.own])
        assert found is not None
        travel, cube = found
        arrived = self.communicator.gather(travel.rows)
        np.testing.assert_array_equal(np.sort(np.concatenate(arrived)[:, 3]), rows[:, 3])
        keys = [self.tree.tree.keys(some, cube) for some in arrived]
        filled = [some for some in keys if len(some)]
        for before, after in zip(filled[:-1], filled[1:], strict=True):
            assert before.max() < after.min()  # shares lie one behind the other
        sizes = travel.parts.cells["size"][travel.parts.parts]
        owners = travel.parts.owners
        numbers = np.bincount(owners, weights=sizes, minlength=self.communicator.size)
        np.testing.assert_array_equal(numbers, [len(some) for some in keys])
        back = self.tree.travels.returned(travel.rows[:, 3:4].copy(), travel, False)
        np.testing.assert_array_equal(back[:, 0], rows[self.own, 3])
        self.tree.resharing.go_on()
        return travel


def test_bodies_that_stay_are_in_the_order_of_their_rows_and_come_home(communicator):
    """Some are at the same place, and come from several ranks to it."""
    bodies = Bodies(communicator, 200, weights_of(communicator, False))
    travels = bodies.tree.travels
    travels.may_settle = True
    chance = np.random.default_rng(5)
    bodies.sent(chance.random((200, 3)))
    numbers = np.arange(bodies.own.start, bodies.own.stop, dtype=float)[:, None]
    travels.costs = numbers[:, 0].astype("i8") + 1
    (held,) = travels.settle([numbers])
    np.testing.assert_array_equal(held[:, 0], travels.numbers)
    np.testing.assert_array_equal(travels.costs, travels.numbers + 1)
    places = chance.random((5, 3))[chance.integers(0, 5, 200)]
    rows = np.column_stack([places[travels.numbers], travels.numbers, np.ones(len(held))])
    travel, cube = bodies.tree.send(rows)
    assert travels.share_away > 0.2
    arrived = travel.rows[travel.curve.order]
    keys = bodies.tree.tree.keys(arrived, cube)
    np.testing.assert_array_equal(np.lexsort([arrived[:, 3], keys]), np.arange(len(arrived)))
    (home,) = travels.bring_home([held])
    np.testing.assert_array_equal(home, numbers)
    np.testing.assert_array_equal(travels.costs, numbers[:, 0] + 1)


@pytest.mark.parametrize("piece", [1000, 7, 1])
def test_all_cells_of_other_ranks_arrive_in_pieces(communicator, monkeypatch, piece):
    monkeypatch.setattr(devices, "CELLS_OF_A_PIECE", piece)
    numbers = np.array([13, 0, 50, 29])[: communicator.size]
    bodies = Bodies(communicator, 10, weights_of(communicator, False))
    cells = [CellsOnHost(rank, number) for rank, number in enumerate(numbers)]
    tree = bodies.tree
    tree.tree = cells[communicator.rank]
    tree._tell_cells(numbers)
    others = [cell.own for rank, cell in enumerate(cells) if rank != communicator.rank]
    expected = np.concatenate(others)
    np.testing.assert_array_equal(np.sort(tree.tree.arrived), expected)
    assert tree.tree.linked == len(expected)


def weights_of(communicator, empty):
    """Return equal shares, or some of which the first is empty."""
    return [float(rank > 0 or not empty) for rank in range(communicator.size)]


@pytest.mark.parametrize("empty", [False, True])
def test_bodies_travel_to_the_same_places_again(communicator, empty):
    position = plummer(3000, seed=5).position
    bodies = Bodies(communicator, len(position), weights_of(communicator, empty))
    first = [bodies.sent(position).cuts for _ in range(resharing.FIRST_FORCES)]
    later = [bodies.sent(position * (1 + 1e-6 * k)).cuts for k in range(3)]
    assert later == [first[-1]] * 3


def test_they_get_there_where_the_cube_around_them_changes(communicator):
    position = plummer(3000, seed=5).position
    bodies = Bodies(communicator, len(position), weights_of(communicator, False))
    for force in range(8):
        bodies.sent(position * 1.5**force)


def test_they_get_there_where_leaves_come_to_lie_across_the_places(communicator):
    """More and more bodies leave the middle, where the places are, for two corners."""
    position = plummer(200, seed=5).position
    bodies = Bodies(communicator, len(position), weights_of(communicator, False))
    gone = [2] * resharing.FIRST_FORCES + list(range(2, 200, 20))
    cuts = []
    for number in gone:
        moved = position.copy()
        moved[:number] = 50.0
        moved[:number:2] = -50.0
        cuts.append(bodies.sent(moved).cuts)
    assert len(gone) < resharing.LEAST_FORCES  # work is not shared out for the bodies that leave
    assert cuts[-1] != cuts[resharing.FIRST_FORCES]


def test_work_is_shared_out_where_bodies_go_from_share_to_share(communicator, monkeypatch):
    monkeypatch.setattr(resharing, "LEAST_FORCES", 2)
    position = plummer(3000, seed=5).position
    bodies = Bodies(communicator, len(position), weights_of(communicator, False))
    due = []
    for force in range(12):
        moved = np.clip(position + [0.1 * force, 0.0, 0.0], -40, 40)
        moved[:2] = [-40.0] * 3, [40.0] * 3  # the cube stays
        due.append(bodies.tree.resharing.is_due)
        bodies.sent(moved)
    assert any(due[resharing.FIRST_FORCES :])


def test_nothing_is_sent_where_a_coordinate_of_any_rank_is_not_finite(communicator):
    position = plummer(3000, seed=5).position
    bodies = Bodies(communicator, len(position), weights_of(communicator, False))
    for force in range(resharing.FIRST_FORCES + 2):
        bodies.sent(position)
        broken = position.copy()
        broken[force, 1] = np.nan
        assert bodies.tree.send(np.column_stack([broken, broken])[bodies.own]) is None
    bodies.sent(position)
