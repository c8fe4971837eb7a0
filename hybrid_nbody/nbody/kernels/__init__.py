"""The pair force: ``reference`` is the truth; ``cpu``, ``gpu`` and ``hybrid`` are tested against it."""

from typing import Any


def make_kernels(backend, state, pair_force, **options) -> Any:
    """Return the `contract.Kernels` of a backend for a state.

    Parameters
    ----------
    backend : Backend
        The device.
    state : State
        The arrays of this rank, whose sizes count here.
    pair_force : PairForce
        Precision, softening and gravitational constant.
    **options
        Of one device alone, such as ``tuning`` of a GPU.
    """
    return backend.kernels(__name__).Kernels(backend, state, pair_force, **options)


def make_symmetric_kernels(backend, state, pair_force, **options) -> Any:
    """Return the `contract.SymmetricKernels` of a backend: parameters as in `make_kernels`."""
    return backend.kernels(__name__, "symmetric").Kernels(backend, state, pair_force, **options)


def make_counter(backend, cells: int) -> Any:
    """Return the `contract.ActivityCounter` of a backend for `cells` cells along each side."""
    return backend.kernels(__name__, "activity").Counter(backend, cells)
