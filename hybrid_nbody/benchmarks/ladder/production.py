"""The kernels of a run as the last rung of each ladder, on either backend."""

from hybrid_nbody.nbody.forces.sources import given_order, spatial_order
from hybrid_nbody.nbody.kernels import make_kernels, make_symmetric_kernels
from hybrid_nbody.nbody.kernels.contract import PairForce
from hybrid_nbody.nbody.kernels.gpu.exact_sums import is_applicable
from hybrid_nbody.nbody.kernels.precision import PRECISIONS
from hybrid_nbody.nbody.state import make_state, set_order


class ProductionRun:
    """A step by the kernels that runs use; methods as in `hybrid_nbody.benchmarks.ladder.cpu_rungs.LoopRun`.

    Parameters
    ----------
    backend : Backend
    precision : {"single", "mixed", "double"}
    problem : Problem
    symmetric : bool, optional
        Whether each pair is computed once; by default where runs would do so for such bodies.
    **options
        More arguments of the twin's ``Kernels``, such as ``tuning``.
    """

    divisible = False

    def __init__(self, backend, precision, problem, symmetric=None, **options):
        self.backend = backend
        self.precision = precision
        self.problem = problem
        number = problem.number
        self.state = make_state(backend, slice(0, number), problem.mass.astype("f8"))
        local = PRECISIONS[precision].local
        order = spatial_order(problem.position.astype("f8")) if local else given_order(number)
        set_order(backend, self.state, order)
        if symmetric is None:
            mass = problem.mass.astype("f8")
            symmetric = is_applicable([backend.kind], precision, mass, problem.softening)
        make = make_symmetric_kernels if symmetric else make_kernels
        pair_force = PairForce(precision, problem.softening)
        self.kernels = make(backend, self.state, pair_force, **options)
        self.restart()

    def restart(self):
        """Go back to the bodies at rest."""
        self.state.position[:] = self.backend.upload(self.problem.position.astype("f8"))
        self.state.velocity[:] = 0

    def force(self):
        """Compute the accelerations of all bodies."""
        self.kernels.pack(self.state)
        self.kernels.accelerations(self.state)

    def step(self, targets):
        """Do a step of all bodies."""
        self.force()
        self.kernels.kick(self.state, self.problem.dt)
        self.kernels.drift(self.state, self.problem.dt)

    def interactions(self, targets):
        """Return the interactions of a step."""
        return self.problem.number**2

    def result(self):
        """Return positions and velocities, (N, 3) arrays."""
        return self.backend.download(self.state.position), self.backend.download(
            self.state.velocity
        )
