"""The arguments of the compiled loops: arrays and numbers by name.

Numba passes the fields of a named tuple as it passes single arguments. From Python it takes a
microsecond longer than a plain tuple to be recognized: functions that are called for every force
take the fields of these types as plain tuples, and name them in compiled code.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]
Int32 = NDArray[np.int32]
Floats = NDArray[np.floating]


class Law(NamedTuple):
    """The pair force.

    Attributes
    ----------
    accelerations, potentials, jerks : float
        Factors of the sums of m d / r^3, of m / r, and of the time derivative of the first: the
        gravitational constant, and the units of the kernels.
    lengths, speeds : float
        Factors that bring positions and velocities of targets to these units.
    eps2 : float of the working type
        Softening length squared, in these units.
    equal_masses : bool
        Whether all masses are the same, and multiplied last.
    excludes_self : bool
        Whether a target is left out of its own sum.
    """

    accelerations: float
    potentials: float
    jerks: float
    lengths: float
    speeds: float
    eps2: float
    equal_masses: bool
    excludes_self: bool


class Targets(NamedTuple):
    """The n bodies at which sums are wanted.

    Attributes
    ----------
    position : (n, 3) array of float64
    source_index : (n,) array of int32
        Index of each target among the sources; -1 where it is none.
    """

    position: Float64
    source_index: Int32


class MovingTargets(NamedTuple):
    """The same with velocities, (n, 3) float64."""

    position: Float64
    source_index: Int32
    velocity: Float64


class PackedSources(NamedTuple):
    """N sources in the order of the sum, in chunks about an origin each, in units of the kernels.

    Attributes
    ----------
    starts : (capacity + 1,) array of int32
        Index of the first source of each chunk.
    origin : (capacity, 3) array of float64
        Its middle body, or zero.
    offset : (3, N) array of the stored type
        Positions about the origin of the chunk.
    mass : (N,) array of the working type
    """

    starts: Int32
    origin: Float64
    offset: Floats
    mass: Floats


class MovingSources(NamedTuple):
    """The same with velocities, stored as positions are: about an origin for each chunk."""

    starts: Int32
    origin: Float64
    offset: Floats
    mass: Floats
    velocity_origin: Float64
    velocity_offset: Floats


Packing = tuple[Float64, Int32, bool, float, float]
"""Fields ``(mass, order, local, lengths, masses)`` that `hybrid_nbody.nbody.kernels.cpu.sums.pack`
takes beside the positions: masses, (N,); the bodies in the order of the sum, (N,); whether the
origin of a chunk is its middle body, rather than zero; and the factors that bring positions and
masses to the units of the kernels. A plain tuple, also in compiled code."""


class Bodies(NamedTuple):
    """The bodies of a rank that owns all of them: (N, 3) arrays of float64, changed in place."""

    position: Float64
    velocity: Float64
    acceleration: Float64


class Copies(NamedTuple):
    """Memory for copies of the state, and the steps at which they are due.

    Attributes
    ----------
    left : int
        Steps until the first copy; more than are taken if there is none.
    interval : int
        Steps from each copy to the next.
    position, velocity : (copies, N, 3) array of float64
    """

    left: int
    interval: int
    position: Float64
    velocity: Float64


class Physics(NamedTuple):
    """The arguments of a force on a rank that owns every body.

    Attributes
    ----------
    law : tuple
        The fields of `Law`.
    packing : Packing
    source_index : (N,) array of int32
        Index of each body among the sources.
    sources : tuple
        The fields of `PackedSources` or of `MovingSources`, filled anew for each force.
    """

    law: tuple[Any, ...]
    packing: Packing
    source_index: Int32
    sources: tuple[Any, ...]


class Substeps(NamedTuple):
    """Scratch of Hermite's scheme; see `hybrid_nbody.nbody.kernels.contract.HermiteScratch`."""

    start: Float64
    low: Float64
    origin: Float64
    velocity: Float64
    jerk: Float64
    substeps: Float64
