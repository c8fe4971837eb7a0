"""Sums by a tree on one rank, without MPI."""

import numpy as np
from support.bodies import make_backend

from hybrid_nbody.nbody.forces.tree.devices import TreeOnDevices
from hybrid_nbody.nbody.forces.tree.distribution import DistributedTree
from hybrid_nbody.nbody.forces.tree.travel import Travels
from hybrid_nbody.nbody.kernels import make_device_tree, make_tree_sums
from hybrid_nbody.nbody.step_timer import NullTimer
from hybrid_nbody.parallel.partition import Partition


class OneRank:
    """A communicator of one rank."""

    rank = 0
    size = 1
    on_several_nodes = False

    def any(self, flag):
        return flag

    def same(self, values):
        return values

    minimum = maximum = sum = concatenate = same


class NoExchange:
    """The exchange of one rank."""

    transport = None

    def __init__(self, number):
        self.partition = Partition.equal(number, 1)
        self.own = slice(0, number)


class SumsOfBodies:
    """Sums over bodies of given masses."""

    def accelerations(self, position, last):
        """Return the accelerations, `last` being the lengths of the last ones or None."""
        return self._sums(self._bodies(position, last), potentials=False)

    def potentials(self, position, last):
        return self._sums(self._bodies(position, last), potentials=True)[:, 0]

    def _bodies(self, position, last):
        known = [] if last is None else [last]
        return np.column_stack([position, self.mass, *known])


class TreeOfOneRank(SumsOfBodies):
    """Sums by a tree on CPU threads."""

    def __init__(self, expansion, eps2, mass):
        backend = make_backend("cpu")
        self.mass = mass
        self.sums = make_tree_sums(backend, expansion, eps2, float(mass.sum()))
        ranks = (OneRank(), NoExchange(len(mass)))
        self.tree = DistributedTree(
            self.sums, Travels(self.sums, expansion.capacity, backend, *ranks)
        )

    def _sums(self, bodies, potentials):
        return self.tree.sums(bodies, potentials, NullTimer())


class TreeOfOneDevice(SumsOfBodies):
    """Sums by a tree on a GPU."""

    def __init__(self, expansion, eps2, mass):
        self.backend = make_backend("gpu")
        self.mass = mass
        self.expansion = expansion
        tree = make_device_tree(self.backend, expansion, eps2, float(mass.sum()))
        ranks = (self.backend, OneRank(), NoExchange(len(mass)))
        self.tree = TreeOnDevices(tree, Travels(tree, expansion.capacity, *ranks))

    def _sums(self, bodies, potentials):
        return self.backend.download(
            self.tree.sums(self.backend.upload(bodies), potentials, NullTimer())
        )
