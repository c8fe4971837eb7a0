"""The stages of a step carried out by kernels on the bodies of one rank that owns all of them."""

from hybrid_nbody.nbody.kernels.contract import Kernels
from hybrid_nbody.nbody.state import State


class KernelActions:
    """The actions of `StepPlan.perform`, carried out by kernels.

    Parameters
    ----------
    kernels : Kernels
    state : State
        Changed in place; this rank owns every body.
    """

    def __init__(self, kernels: Kernels, state: State) -> None:
        self.kernels = kernels
        self.state = state

    def force(self) -> None:
        """Compute the accelerations: a = a(x)."""
        self.kernels.pack(self.state)
        self.kernels.accelerations(self.state)

    def kick(self, duration: float) -> None:
        """Change velocities: v += a `duration`."""
        self.kernels.kick(self.state, duration)

    def drift(self, duration: float) -> None:
        """Change positions: x += v `duration`."""
        self.kernels.drift(self.state, duration)
