"""The table of forces: for each value of ``gravity.solver`` what makes the force.

A force from outside is added by one call before the configuration is read::

    register("my-force", ForceKind(MyForce))
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hybrid_nbody.backends.base import Backend
from hybrid_nbody.errors import InputError
from hybrid_nbody.nbody.forces.base import Force, ForceSetup
from hybrid_nbody.nbody.forces.direct import DirectForce
from hybrid_nbody.nbody.forces.ring import RingForce
from hybrid_nbody.nbody.forces.symmetric import SymmetricForce
from hybrid_nbody.nbody.forces.tree.calibrate import compile_tree
from hybrid_nbody.nbody.forces.tree.force import TreeForce
from hybrid_nbody.nbody.kernels.contract import PairForce
from hybrid_nbody.nbody.kernels.gpu.exact_sums import is_applicable
from hybrid_nbody.parallel.exchange.ring import RingExchange


def compile_nothing(backend: Backend, pair_force: PairForce, accuracy: float) -> None:
    """Compile nothing: the force takes the kernels of direct sums alone."""


LEAST_SOURCES = 0.7
"""Part of the bodies with mass from which on it is faster to compute each pair once:
of fewer, sums over these alone take less."""


@dataclass(frozen=True)
class ForceKind:
    """An entry of the table.

    Attributes
    ----------
    make : callable
        Returns the force of a `ForceSetup`; all ranks call together.
    jerks : bool
        Whether the force is a `JerkForce`, which Hermite's scheme needs.
    backends : tuple of str
        The backends on which it runs.
    rings : bool
        Whether it takes bodies that go around a ring of ranks.
    all_pairs : bool
        Whether it sums over all pairs, so that its work is the square of the bodies.
    direct_sums : bool
        Whether it takes the kernels of direct sums, so that they are compiled before time counts.
    mixed : bool
        Whether ranks may run on different backends.
    compile : callable
        ``compile(backend, pair_force, accuracy)`` compiles kernels of this force alone before time
        counts.
    """

    make: Callable[[ForceSetup], Force]
    jerks: bool = False
    backends: tuple[str, ...] = ("cpu", "gpu", "hybrid")
    rings: bool = True
    all_pairs: bool = True
    direct_sums: bool = True
    mixed: bool = True
    compile: Callable[[Backend, PairForce, float], None] = compile_nothing


def make_direct(setup: ForceSetup) -> Force:
    """Return the direct sum in the form that is fastest for the exchange, devices and bodies."""
    if isinstance(setup.exchange, RingExchange):
        return RingForce(setup)
    mass = setup.all_masses()
    once = is_applicable(setup.backends, setup.pair_force, mass)
    if once and not setup.ring_order and np.count_nonzero(mass) >= LEAST_SOURCES * len(mass):
        return SymmetricForce(setup)
    return DirectForce(setup)


FORCES: dict[str, ForceKind] = {}
"""The forces by their names."""


def register(name: str, kind: ForceKind) -> None:
    """Add a force, from this package or from outside of it.

    Parameters
    ----------
    name : str
        The value of ``gravity.solver`` that chooses it.
    kind : ForceKind

    Raises
    ------
    ValueError
        If there is a force of this name already.
    """
    if name in FORCES:
        raise ValueError(f"there is a force of the name '{name}' already")
    FORCES[name] = kind


def check_backends(name: str, backends: Sequence[str]) -> None:
    """Refuse devices on which a force does not run.

    Parameters
    ----------
    name : str
        The force.
    backends : sequence of str
        Those of all ranks.

    Raises
    ------
    InputError
        On every rank.
    """
    allowed = FORCES[name].backends
    if others := sorted(set(backends) - set(allowed)):
        raise InputError(
            f"gravity.solver: {name} does not run on backend {others[0]}; take "
            f"compute.backend: {' or '.join(allowed)}, or solver: direct"
        ).on_all_ranks()
    found = sorted(set(backends))
    if len(found) > 1 and not FORCES[name].mixed:
        raise InputError(
            f"gravity.solver: {name} takes one backend on all ranks, not {' and '.join(found)}; "
            f"take compute.backend: {' or '.join(found)}, or solver: direct"
        ).on_all_ranks()


register("direct", ForceKind(make_direct, jerks=True))
register(
    "fmm",
    ForceKind(
        TreeForce,
        backends=("cpu", "gpu"),
        rings=False,
        all_pairs=False,
        direct_sums=False,
        mixed=False,
        compile=compile_tree,
    ),
)
