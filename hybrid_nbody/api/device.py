"""The arrays of bodies on the device where they are computed."""

from typing import Any, Protocol

import numpy as np

from hybrid_nbody.api.checks import AttributeInputError
from hybrid_nbody.backends.base import Array


class _Begins(Protocol):
    """A simulation whose bodies can be set."""

    @property
    def model(self) -> Any: ...

    def begin(self, positions: Any, velocities: Any, call: str = ...) -> None: ...


class DeviceArrays:
    """This rank's arrays, in place: CuPy arrays on a GPU, NumPy arrays elsewhere.

    They are valid until the next step: ask for them again after it. After writing into `positions`
    or `velocities`, call `changed` before the next step.

    Parameters
    ----------
    simulation : Simulation
        Of bodies.

    Raises
    ------
    InputError
        If its model has no bodies.
    """

    def __init__(self, simulation: _Begins) -> None:
        if not hasattr(type(simulation.model), "bodies"):
            raise AttributeInputError("device: this model has no bodies")
        self._simulation = simulation

    @property
    def positions(self) -> Array:
        """Return the positions of this rank's bodies, (n, 3) float64."""
        return self._bodies().position

    @property
    def velocities(self) -> Array:
        """Return the velocities of this rank's bodies, (n, 3) float64."""
        return self._bodies().velocity

    @property
    def accelerations(self) -> Array:
        """Return the accelerations of this rank's bodies at the last force, (n, 3) float64."""
        return self._bodies().acceleration

    def _bodies(self) -> Any:
        """Return the bodies once all steps are done, for work on other streams, too."""
        model = self._simulation.model
        bodies = model.bodies
        model.backend.synchronize()
        return bodies

    def changed(self) -> None:
        """Go on from what has been written into the arrays; all ranks call together."""
        download = self._simulation.model.backend.download
        positions = np.array(download(self.positions))
        velocities = np.array(download(self.velocities))
        self._simulation.begin(positions, velocities, call="device.changed")
