"""The differences of one quantity between two runs, over time."""

from dataclasses import dataclass

import numpy as np

from hybrid_nbody.files.views import Array


@dataclass
class Series:
    """The differences of one quantity over time.

    Attributes
    ----------
    name, units : str
        The quantity.
    time : ndarray
        (M,) float64, the times that both runs have.
    largest, rms : ndarray
        (M,) float64: at each time the largest difference in size, and the root of the mean square,
        over rows or cells and components, in `units`.
    scale : float
        The largest value in size of the first run, at those times.
    """

    name: str
    units: str
    time: Array
    largest: Array
    rms: Array
    scale: float

    @property
    def worst(self) -> int:
        """Return the index of the largest difference; of the first NaN, if there is one."""
        return int(np.argmax(np.where(np.isnan(self.largest), np.inf, self.largest)))

    @property
    def overall_rms(self) -> float:
        """Return the rms over all times."""
        return float(np.sqrt(np.mean(self.rms**2)))
