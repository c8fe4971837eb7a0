"""A short run of the kernels of a tree, to compile them before time counts."""

import numpy as np

from hybrid_nbody.backends.base import Backend
from hybrid_nbody.nbody.forces.tree.parts import PartFinder
from hybrid_nbody.nbody.kernels import expansion_of, make_device_tree, make_tree_sums
from hybrid_nbody.nbody.kernels.contract import PairForce
from hybrid_nbody.nbody.kernels.cube import cube_around
from hybrid_nbody.parallel.partition import Partition

BODIES = 200
"""Enough for a tree of some levels."""


def compile_tree(backend: Backend, pair_force: PairForce, accuracy: float) -> None:
    """Run every kernel of a tree once, as one rank of one.

    Parameters
    ----------
    backend : Backend
    pair_force : PairForce
    accuracy : float
        The rms error of accelerations over their rms.
    """
    expansion = expansion_of(backend, accuracy, pair_force.precision)
    if not backend.shares_host_memory:  # its kernels are compiled as they are made
        make_device_tree(backend, expansion, pair_force.eps2, 1.0)
        return
    tree = make_tree_sums(backend, expansion, pair_force.eps2, 1.0)
    sample = np.random.default_rng(0).uniform(-1, 1, (BODIES, 4))
    sample[:, 3] = 1 / BODIES  # masses
    bodies = backend.upload(sample)
    cube = cube_around(sample[:, :3].min(axis=0), sample[:, :3].max(axis=0))
    curve = tree.curve(bodies[:, :3], cube, 1)
    finder = PartFinder(tree, curve, backend, lambda counts: counts)
    finder.find(expansion.capacity)
    parts, _ = finder.shared_out(backend.xp.ones(BODIES, np.int64), Partition.equal(BODIES, 1))
    tree.grow(bodies[curve.order], curve, cube, parts, 0)
    tree.set_parts(tree.part_rows())
    tree.sums(potentials=False)
    tree.add([(0, tree.essential(0, tree.target_rows()))])
    backend.synchronize()
