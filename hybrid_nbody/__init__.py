"""Gravity between bodies and stable fluids, from a laptop to a cluster of GPUs.

``hybrid_nbody.run(path)`` runs a configuration as the command line does, and
``hybrid_nbody.open_run(path)`` opens the output of a run for analysis; that needs neither MPI nor a
GPU. ``hybrid_nbody.Simulation`` is a simulation in memory, for scripts and notebooks, and
``hybrid_nbody.Systems`` many small ones side by side; ``escaped``,
``closest`` and ``energy_error`` are conditions at which it stops.
"""

from typing import TYPE_CHECKING

__version__ = "0.2.0"

__all__ = [
    "Simulation",
    "Systems",
    "__version__",
    "closest",
    "energy_error",
    "escaped",
    "open_run",
    "run",
]

if TYPE_CHECKING:
    from hybrid_nbody.api import Simulation, Systems, closest, energy_error, escaped, run
    from hybrid_nbody.files.run import open_run
else:

    def __dir__():
        return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})

    def __getattr__(name):
        """Load what is public on first use, so that ``import hybrid_nbody`` stays light."""
        if name == "open_run":
            from hybrid_nbody.files.run import open_run

            return open_run
        if name in __all__:
            from hybrid_nbody import api

            return getattr(api, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
