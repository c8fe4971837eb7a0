"""Bodies, backends and gravity for the tests of the N-body model."""

import numpy as np
from support.ranks import transport_of

from hybrid_nbody.nbody.bodies import Bodies
from hybrid_nbody.nbody.forces.direct import Gravity
from hybrid_nbody.nbody.forces.ring import RingGravity
from hybrid_nbody.nbody.forces.symmetric import gravity_for
from hybrid_nbody.nbody.initial_conditions import plummer
from hybrid_nbody.nbody.model import NBodyModel
from hybrid_nbody.nbody.state import make_state
from hybrid_nbody.parallel.exchange import AllgatherExchange, RingExchange
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


def make_gravity(backend, bodies, precision="double", softening=0.0, G=1.0, own=None):
    """Return started gravity, of the kind that a run has, on `bodies`, whose targets are `own` (all by default)."""
    number = len(bodies)
    make = Gravity if own else gravity_for([backend.kind], precision, bodies.mass, softening)
    own = own or slice(0, number)
    state = make_state(backend, own, bodies.mass)
    state.position[:] = backend.upload(bodies.position)
    exchange = AllgatherExchange(None, Partition.equal(number, 1), 0)
    gravity = make(backend, exchange, state, precision, softening, G, Timings())
    gravity.start()
    return gravity


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
    gravity=None,
):
    """Return a model at its initial state, its bodies shared over the ranks of `communicator`."""
    backend = backend or make_backend("cpu")
    weights = weights or [1.0] * communicator.size
    partition = Partition.weighted(len(bodies), weights)
    joined = exchange(
        transport or transport_of(backend, communicator), partition, communicator.rank
    )
    share = bodies.share(joined.own)
    chosen = gravity_for(communicator.gather(backend.kind), precision, bodies.mass, softening)
    gravity = gravity or (RingGravity if issubclass(exchange, RingExchange) else chosen)
    physics = {
        "precision": precision,
        "softening": softening,
        "G": 1.0,
        "gravity": gravity,
        "accuracy": accuracy,
    }
    model = NBodyModel(
        backend, communicator, joined, bodies.mass, share.id, integrator, dt, **physics
    )
    model.begin(share)
    return model


def whole(model, name):
    """Return all rows of a field on every rank."""
    field = model.fields()[name]
    return np.concatenate(model.communicator.gather(field.host(0, field.rows)))
