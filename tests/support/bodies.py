"""Bodies, backends and forces for the tests of the N-body model."""

import numpy as np
from support.ranks import this_rank, transport_of

from hybrid_nbody.nbody.bodies import Bodies
from hybrid_nbody.nbody.forces.base import ForceSetup
from hybrid_nbody.nbody.forces.registry import make_direct
from hybrid_nbody.nbody.initial_conditions import plummer
from hybrid_nbody.nbody.integrators.base import IntegratorSetup
from hybrid_nbody.nbody.integrators.registry import INTEGRATORS
from hybrid_nbody.nbody.kernels.contract import PairForce
from hybrid_nbody.nbody.kernels.units import measured
from hybrid_nbody.nbody.model import NBodyModel
from hybrid_nbody.parallel.exchange.allgather import AllgatherExchange
from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.simulation.timings import Timings


def make_backend(name, threads=1, local_rank=0):
    """Return a backend by name; ranks take the GPUs in turn."""
    if name == "cpu":
        from hybrid_nbody.backends.cpu import CpuBackend

        return CpuBackend(threads)
    from hybrid_nbody.backends.gpu import GpuBackend, visible_gpus

    return GpuBackend(local_rank % len(visible_gpus()))


def clustered(n=4096, clusters=16, seed=5):
    """Return bodies in tight clusters far apart: each a cusp of radius 1e-3 in a box of width 2."""
    random = np.random.default_rng(seed)
    centres = random.uniform(-1, 1, (clusters, 3))
    direction = random.standard_normal((n, 3))
    direction /= np.linalg.norm(direction, axis=1)[:, None]
    radius = 1e-3 * random.uniform(0, 1, n) ** 1.5
    position = centres[random.integers(0, clusters, n)] + radius[:, None] * direction
    return Bodies(position, np.zeros((n, 3)), random.uniform(0.5, 1.5, n) / n)


SETS = {"plummer": lambda: plummer(4096, seed=2), "clustered": clustered}


class WholeExchange(AllgatherExchange):
    """Nothing is exchanged: all positions are known here, and `own` are the targets."""

    def __init__(self, number, own):
        super().__init__(None, Partition.equal(number, 1), 0)
        self.own = own


def law_of(bodies, precision, softening=0.0, G=1.0):
    """Return the pair force of a run of some bodies: in their units."""
    units = measured(bodies.position, bodies.velocity, bodies.mass, softening, G)
    return PairForce(precision, softening, G, units)


def make_gravity(backend, bodies, precision="double", softening=0.0, G=1.0, own=None):
    """Return a started direct sum, as a run has it, at the bodies `own` (all by default)."""
    number = len(bodies)
    setup = ForceSetup(
        backend=backend,
        communicator=this_rank(),
        exchange=WholeExchange(number, own or slice(0, number)),
        own_mass=bodies.mass[own or slice(0, number)],
        all_masses=lambda: bodies.mass,
        pair_force=law_of(bodies, precision, softening, G),
        backends=(backend.name,),
        ring_order=own is not None,
        timings=Timings(),
    )
    force = make_direct(setup)
    if own is not None:
        force.sorter = None  # sorts on a rank that owns every body, which this one does not
    force.state.position[:] = backend.upload(bodies.position)
    force.start()
    return force


def make_model(
    bodies,
    dt,
    communicator,
    backend=None,
    integrator="leapfrog",
    precision="double",
    softening=0.0,
    weights=None,
    exchange=AllgatherExchange,
    transport=None,
    accuracy=0.01,
    make_force=make_direct,
):
    """Return a model at its initial state, its bodies shared over the ranks of `communicator`."""
    backend = backend or make_backend("cpu")
    weights = weights or [1.0] * communicator.size
    partition = Partition.weighted(len(bodies), weights)
    transport = transport or transport_of(backend, communicator)
    joined = exchange(transport, partition, communicator.rank)
    share = bodies.share(joined.own)
    timings = Timings()
    setup = ForceSetup(
        backend=backend,
        communicator=communicator,
        exchange=joined,
        own_mass=share.mass,
        all_masses=lambda: bodies.mass,
        pair_force=law_of(bodies, precision, softening),
        backends=tuple(communicator.gather(backend.name)),
        ring_order=False,
        timings=timings,
    )
    stepping = IntegratorSetup(backend, communicator, share.id, dt, accuracy, timings)
    kind = INTEGRATORS[integrator]
    model = NBodyModel(setup, share.id, make_force(setup), kind.make(stepping), dt)
    model.begin(share)
    return model


def whole(model, name):
    """Return all rows of a field on every rank."""
    field = model.fields()[name]
    return np.concatenate(model.communicator.gather(field.host(0, field.rows)))
