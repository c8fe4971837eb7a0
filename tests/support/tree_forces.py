"""Forces by trees on several ranks, and models that have taken some steps under them."""

from dataclasses import replace

from support.bodies import make_model

from hybrid_nbody.nbody.forces.tree.force import TreeForce

ACCURACY = 3e-3
"""Of the expansions that other tests compile."""


def make_force(setup):
    return TreeForce(replace(setup, accuracy=ACCURACY))


class AsOnHosts(TreeForce):
    """A force that lets bodies stay on the ranks of their parts, as if each had a host."""

    def let_bodies_stay(self):
        self.tree.travels.may_settle = self.tree.communicator.size > 1


def make_settling_force(setup):
    return AsOnHosts(replace(setup, accuracy=ACCURACY))


def moved(bodies, communicator, **options):
    """Return a model that has taken some steps."""
    options = {"precision": "single", "softening": 0.05, "make_force": make_force} | options
    model = make_model(bodies, 1e-2, communicator, **options)
    model.advance(5)
    return model
