"""What a run asks of a grid: its memory, its kernels, the model on it."""

from typing import Protocol

from hybrid_nbody.backends.base import Backend
from hybrid_nbody.fluid import config as asked
from hybrid_nbody.fluid.frames import Frames
from hybrid_nbody.fluid.sources import Event
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.exchange.halo import HaloExchange
from hybrid_nbody.simulation.model import Model

DTYPES = {"float32": "f4", "float64": "f8"}
"""For each value of ``fluid.dtype`` the type of NumPy."""


class Scheme(Protocol):
    """A grid as a configuration asks for it."""

    @property
    def periodic(self) -> bool:
        """Return whether z is periodic."""

    @property
    def arrays(self) -> int:
        """Return the arrays of the grid that a rank holds."""

    @property
    def saved_arrays(self) -> int:
        """Return the arrays of the grid in a checkpoint."""

    def check(self) -> None:
        """Read the files that the fluid needs before anything is made.

        Raises
        ------
        InputError
            If one is missing or wrong.
        """

    def rank_bytes(self, planes: int) -> int:
        """Return the bytes that a rank holds for some planes."""

    def complete_bytes(self, message_cells: int) -> int:
        """Return the bytes of coarse grids that each of several ranks keeps complete.

        Parameters
        ----------
        message_cells : int
            Of the device: the most cells of such a grid.
        """

    def compile(self, device: Backend, mixed: bool) -> None:
        """Compile the kernels that a run needs on a device.

        Parameters
        ----------
        device : Backend
        mixed : bool
            Whether ranks compute on several kinds of devices.
        """

    def speeds(self, device: Backend, communicator: Communicator, mixed: bool) -> list[float]:
        """Return the speed of each rank, measured briefly; collective."""

    def model(self, device: Backend, halo: HaloExchange, events: list[Event], mixed: bool) -> Model:
        """Return a fluid at rest."""


def frames_of(output: asked.FluidOutput) -> Frames:
    """Return what a run writes of a frame."""
    planes = None if output.planes is None else tuple(sorted(output.planes))
    return Frames(output.fields, output.stride, planes)
