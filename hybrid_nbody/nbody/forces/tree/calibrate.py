"""A short run of the kernels of a tree, to compile them before time counts."""

from functools import partial

import numpy as np

from hybrid_nbody.backends.base import Backend
from hybrid_nbody.backends.precompile import can_help, helped
from hybrid_nbody.nbody.forces.tree.parts import PartFinder
from hybrid_nbody.nbody.kernels import expansion_of, make_device_tree, make_tree_sums
from hybrid_nbody.nbody.kernels.contract import PairForce
from hybrid_nbody.nbody.kernels.cube import cube_around
from hybrid_nbody.nbody.kernels.expansions import Expansion
from hybrid_nbody.nbody.kernels.parts import CELL, Parts
from hybrid_nbody.nbody.kernels.tree_contract import TreeSums

BODIES = 200
"""Enough for a tree of some levels."""

Settings = tuple[Expansion, float]
"""Expansions, and the softening length squared."""

CUBE = cube_around(np.full(3, -1.0), np.ones(3))
"""Around them."""


def compile_tree(backend: Backend, pair_force: PairForce, accuracy: float) -> None:
    """Run every kernel of a tree once, as one rank of one.

    Where a helper can compile those that grow a tree, this process compiles the walk meanwhile,
    which takes as long as all others.

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
    settings = (expansion, pair_force.eps2)
    if can_help(backend):
        with helped(partial(grow_sample, settings=settings)):
            walk_without_bodies(backend, settings)
    tree = grow_sample(backend, settings)
    tree.sums(potentials=False)
    tree.add([(0, tree.essential(0, tree.target_rows()))])
    backend.synchronize()


def walk_without_bodies(backend: Backend, settings: Settings) -> None:
    """Walk the tree of a rank that has no bodies: its kernel sees arrays of all kinds."""
    tree = make_tree_sums(backend, *settings, mass=1.0)
    none = backend.zeros((0, 4), "f8")
    root = np.zeros(1, np.int64)
    parts = Parts(np.ones(1, CELL), root, owners=root)
    tree.grow(none, tree.curve(none, CUBE, 1), CUBE, parts, rank=1)
    tree.sums(potentials=False)


def grow_sample(backend: Backend, settings: Settings) -> TreeSums:
    """Return the tree of some bodies."""
    expansion, _ = settings
    tree = make_tree_sums(backend, *settings, mass=1.0)
    sample = np.random.default_rng(0).uniform(-1, 1, (BODIES, 4))
    sample[:, 3] = 1 / BODIES  # masses
    bodies = backend.upload(sample)
    tree.box(bodies)
    none = backend.zeros((0, 3), "f8")
    tree.fill_rows(none, none, (1.0, 1.0), backend.zeros((0, 5), "f8"))
    sums = backend.zeros((2, 4), "f8")[:, :3]  # with gaps, as those of a force
    tree.set_accelerations(sums, 1.0, backend.zeros((2, 3), "f8"))
    curve = tree.curve(bodies, CUBE, 1)
    tree.put_back(tree.taken(bodies, curve.order), curve.order)
    finder = PartFinder(tree, curve, backend, lambda counts: counts)
    finder.find(expansion.capacity)
    tree.grow(bodies, curve, CUBE, finder.all_of_one_rank(), 0)
    tree.set_parts(tree.part_rows())
    return tree
