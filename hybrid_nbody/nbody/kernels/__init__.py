"""The pair force: its plain form, ``reference``, and the fast ``cpu``, ``gpu`` and ``hybrid``."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # mypy checks that each implementation satisfies its contract
    from collections.abc import Sequence

    from hybrid_nbody.backends.base import Backend
    from hybrid_nbody.nbody.kernels.contract import ActivityCounter, Kernels, PairForce
    from hybrid_nbody.nbody.kernels.cpu.activity import Counter as CpuCounter
    from hybrid_nbody.nbody.kernels.cpu.fields import Fields as CpuFields
    from hybrid_nbody.nbody.kernels.cpu.kernels import Kernels as CpuKernels
    from hybrid_nbody.nbody.kernels.cpu.measures import Measuring as CpuMeasuring
    from hybrid_nbody.nbody.kernels.cpu.systems import Systems as CpuSystems
    from hybrid_nbody.nbody.kernels.cpu.tree.kernels import TreeSums as CpuTreeSums
    from hybrid_nbody.nbody.kernels.device_tree import DeviceTree
    from hybrid_nbody.nbody.kernels.expansions import Expansion
    from hybrid_nbody.nbody.kernels.fields.field import ExternalField, Fields
    from hybrid_nbody.nbody.kernels.gpu.activity import Counter as GpuCounter
    from hybrid_nbody.nbody.kernels.gpu.fields import Fields as GpuFields
    from hybrid_nbody.nbody.kernels.gpu.kernels import Kernels as GpuKernels
    from hybrid_nbody.nbody.kernels.gpu.measures import Measuring as GpuMeasuring
    from hybrid_nbody.nbody.kernels.gpu.symmetric import Kernels as GpuSymmetric
    from hybrid_nbody.nbody.kernels.gpu.systems import Systems as GpuSystems
    from hybrid_nbody.nbody.kernels.gpu.tree.kernels import DeviceTree as GpuTree
    from hybrid_nbody.nbody.kernels.hybrid.kernels import Kernels as HybridKernels
    from hybrid_nbody.nbody.kernels.measured import Measuring
    from hybrid_nbody.nbody.kernels.pair_sums import SymmetricKernels
    from hybrid_nbody.nbody.kernels.small_systems import Systems
    from hybrid_nbody.nbody.kernels.tree_contract import TreeSums
    from hybrid_nbody.nbody.state import State

    KERNELS: tuple[type[Kernels], ...] = (CpuKernels, GpuKernels, HybridKernels)
    MEASURING: tuple[type[Measuring], ...] = (CpuMeasuring, GpuMeasuring)
    TREE_SUMS: tuple[type[TreeSums], ...] = (CpuTreeSums,)
    DEVICE_TREES: tuple[type[DeviceTree], ...] = (GpuTree,)
    FIELDS: tuple[type[Fields], ...] = (CpuFields, GpuFields)
    SYSTEMS: tuple[type[Systems], ...] = (CpuSystems, GpuSystems)
    SYMMETRIC: tuple[type[SymmetricKernels], ...] = (GpuSymmetric,)
    COUNTERS: tuple[type[ActivityCounter], ...] = (CpuCounter, GpuCounter)


def make_kernels(
    backend: "Backend", state: "State", pair_force: "PairForce", **options: Any
) -> "Kernels":
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
    kernels: Kernels = backend.kernels(__name__).Kernels(backend, state, pair_force, **options)
    return kernels


def make_symmetric_kernels(
    backend: "Backend", state: "State", pair_force: "PairForce", **options: Any
) -> "SymmetricKernels":
    """Return the `pair_sums.SymmetricKernels` of a backend: parameters as in `make_kernels`."""
    module = backend.kernels(__name__, "symmetric")
    kernels: SymmetricKernels = module.Kernels(backend, state, pair_force, **options)
    return kernels


def expansion_of(backend: "Backend", accuracy: float, precision: str) -> "Expansion":
    """Return the expansions that a backend takes for an accuracy; see `expansion_for`."""
    from hybrid_nbody.nbody.kernels.expansions import expansion_for

    choices = backend.kernels(__name__, "tree.choices").CHOICES
    return expansion_for(accuracy, precision, choices)


def make_tree_sums(
    backend: "Backend", expansion: "Expansion", eps2: float, mass: float
) -> "TreeSums":
    """Return the sums by a tree of a backend.

    Parameters
    ----------
    backend : Backend
        The device.
    expansion : Expansion
    eps2 : float
        The softening length squared, in units of the kernels.
    mass : float
        Of all bodies, in units of the kernels.
    """
    module = backend.kernels(__name__, "tree.kernels")
    sums: TreeSums = module.TreeSums(expansion, eps2, mass)
    return sums


def make_device_tree(
    backend: "Backend", expansion: "Expansion", eps2: float, mass: float
) -> "DeviceTree":
    """Return the tree of a backend with memory of its own; parameters as in `make_tree_sums`."""
    module = backend.kernels(__name__, "tree.kernels")
    tree: DeviceTree = module.DeviceTree(backend, expansion, eps2, mass)
    return tree


def make_fields(backend: "Backend", fields: "Sequence[ExternalField]") -> "Fields":
    """Return the sum of external fields on the device of a backend."""
    made: Fields = backend.kernels(__name__, "fields").Fields(backend, fields)
    return made


def make_measuring(backend: "Backend") -> "Measuring":
    """Return what measures the bodies that the device of a backend holds."""
    holder = backend.holder
    made: Measuring = holder.kernels(__name__, "measures").Measuring(holder)
    return made


def make_systems(backend: "Backend", mass: Any, eps2: Any) -> "Systems":
    """Return many small systems on the device of a backend.

    Parameters
    ----------
    backend : Backend
        The device.
    mass : (S, n) array of float64
        Times the gravitational constant.
    eps2 : (S,) array of float64
        The softening lengths squared.
    """
    made: Systems = backend.kernels(__name__, "systems").Systems(backend, mass, eps2)
    return made


def make_counter(backend: "Backend", cells: int) -> "ActivityCounter":
    """Return the `contract.ActivityCounter` of a backend for `cells` cells along each side."""
    holder = backend.holder
    counter: ActivityCounter = holder.kernels(__name__, "activity").Counter(holder, cells)
    return counter
