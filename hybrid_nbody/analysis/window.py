"""Windows that matplotlib opens on a display."""

import os
from typing import Any

import matplotlib


def can_open() -> bool:
    """Return whether there is a display, and a toolkit with which matplotlib opens windows."""
    if not any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")):
        return False
    from matplotlib import pyplot
    from matplotlib.backends.registry import BackendFilter, backend_registry

    try:
        backend = matplotlib.get_backend()
        pyplot.switch_backend(backend)
    except ImportError:  # the user's choice is not installed
        return False
    registry: Any = backend_registry  # its methods have no types
    return backend.lower() in registry.list_builtin(BackendFilter.INTERACTIVE)
