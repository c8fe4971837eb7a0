"""Several sets of bodies taken together, each turned, moved and set in motion as a whole.

Nothing here depends on how ranks share the bodies: a body's place follows from itself alone.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.nbody import drawn
from hybrid_nbody.nbody.bodies import Bodies, BodySource, joined
from hybrid_nbody.nbody.drawn import BLOCK, DrawnBodies, exact_sums
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.partition import Partition

Floats = NDArray[np.float64]
Vector = tuple[float, float, float]
NOWHERE: Vector = (0.0, 0.0, 0.0)


class SomeBodies(Protocol):
    """Bodies, or what draws or reads them."""

    def __len__(self) -> int:
        """Return the number of bodies."""

    def sample(self) -> Bodies:
        """Return bodies that stand for all."""


Part = TypeVar("Part", bound=SomeBodies)


@dataclass(frozen=True)
class Placement:
    """How a set of bodies is turned about the origin, moved, and set in motion.

    Attributes
    ----------
    rotation : tuple of 3 floats
        Along the axis, as long as the angle in degrees.
    offset, velocity : tuple of 3 floats
        Added to positions and velocities after the rotation.
    """

    rotation: Vector = NOWHERE
    offset: Vector = NOWHERE
    velocity: Vector = NOWHERE

    def placed(self, bodies: Bodies) -> Bodies:
        """Return the bodies in their place."""
        position = self._turned(bodies.position) + np.array(self.offset)
        velocity = self._turned(bodies.velocity) + np.array(self.velocity)
        return Bodies(position, velocity, bodies.mass, bodies.id)

    def _turned(self, vectors: Floats) -> Floats:
        """Return (n, 3) vectors turned; a product of matrices would round by the number of rows."""
        if self.rotation == NOWHERE:
            return vectors
        x, y, z = vectors.T
        rows = self.matrix
        turned = [row[0] * x + row[1] * y + row[2] * z for row in rows]
        return np.stack(turned, axis=1)

    @cached_property
    def matrix(self) -> Floats:
        """Return the matrix of the rotation, (3, 3), by Rodrigues' formula."""
        degrees = math.hypot(*self.rotation)
        if not degrees:
            return np.eye(3)
        x, y, z = (component / degrees for component in self.rotation)
        cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        angle = math.radians(degrees)
        turn: Floats = math.sin(angle) * cross + (1 - math.cos(angle)) * (cross @ cross)
        return np.eye(3) + turn


@dataclass(frozen=True)
class Composition:
    """How the parts of a whole are placed.

    Attributes
    ----------
    placements : tuple of Placement
        For each part.
    centred : bool
        Whether the centre of mass of the whole is put at rest at the origin.
    """

    placements: tuple[Placement, ...]
    centred: bool


@dataclass(frozen=True)
class Composed(Generic[Part]):
    """Several sets of bodies as the root finds them, and how they are placed.

    Attributes
    ----------
    parts : tuple
        Bodies, or what draws or reads them.
    composition : Composition
    """

    parts: tuple[Part, ...]
    composition: Composition

    def __len__(self) -> int:
        """Return the number of all bodies."""
        return sum(len(part) for part in self.parts)

    def sample(self) -> Bodies:
        """Return bodies that stand for all; not centred as a whole, which would need all."""
        placed = []
        first = 0
        for part, placement in zip(self.parts, self.composition.placements, strict=True):
            found = placement.placed(self._sample_of(part))
            identity = found.id + first
            placed.append(Bodies(found.position, found.velocity, found.mass, identity))
            first += len(part)
        return joined(placed)

    def _sample_of(self, part: Part) -> Bodies:
        """Return bodies of a part, of those drawn at random the same share as of others."""
        sample = part.sample()
        if not isinstance(part, DrawnBodies):
            return sample
        most = math.ceil(drawn.SAMPLE * len(part) / len(self))
        return sample.share(slice(0, most))


class ComposedSource:
    """Bodies of several sources, one after the other; see `BodySource`.

    Their identities count through all of them.

    Parameters
    ----------
    sources : sequence of BodySource
    composition : Composition
    communicator : Communicator
        Every rank calls together.
    """

    def __init__(
        self,
        sources: Sequence[BodySource],
        composition: Composition,
        communicator: Communicator,
    ) -> None:
        self.sources = sources
        self.placements = composition.placements
        self.ends = np.cumsum([len(source) for source in sources]).tolist()
        self._centre = np.zeros((2, 3))
        if composition.centred:
            self._centre = self._found_centre(communicator)

    def __len__(self) -> int:
        """See `BodySource`."""
        return int(self.ends[-1])

    def rows(self, first: int, last: int) -> Bodies:
        """See `BodySource`."""
        parts = [
            self._rows_of(part, first - end + len(source), last - end + len(source))
            for part, (source, end) in enumerate(zip(self.sources, self.ends, strict=True))
        ]
        whole = joined(parts)
        position = whole.position - self._centre[0]
        velocity = whole.velocity - self._centre[1]
        ids = np.arange(first, last, dtype=np.int64)  # those of several files may be the same
        return Bodies(position, velocity, whole.mass, whole.id if len(self.sources) == 1 else ids)

    def masses(self) -> Floats:
        """See `BodySource`."""
        return np.concatenate([source.masses() for source in self.sources])

    def _rows_of(self, part: int, first: int, last: int) -> Bodies:
        """Return the bodies of a part, in their place, whose rows there are from first to last."""
        source = self.sources[part]
        within = np.clip([first, last], 0, len(source))
        return self.placements[part].placed(source.rows(int(within[0]), int(within[1])))

    def _found_centre(self, communicator: Communicator) -> Floats:
        """Return the position and velocity of the centre of mass, (2, 3)."""
        blocks = Partition.equal(-(-len(self) // BLOCK), communicator.size)
        own = blocks.share(communicator.rank)
        edges = np.minimum([own.start * BLOCK, own.stop * BLOCK], len(self))
        bodies = self.rows(int(edges[0]), int(edges[1]))
        sums = exact_sums(communicator.concatenate(_sums_of_blocks(bodies)))
        centre: Floats = sums[:2] / sums[2]
        return centre


def _sums_of_blocks(bodies: Bodies) -> Floats:
    """Return sums of mass times position, of mass times velocity, and of mass, (blocks, 3, 3)."""
    mass = np.repeat(bodies.mass[:, None], 3, axis=1)
    terms = np.stack([mass * bodies.position, mass * bodies.velocity, mass], axis=1)
    starts = range(0, len(terms), BLOCK)
    sums = np.empty((len(starts), 3, 3))
    for block, start in enumerate(starts):
        sums[block] = terms[start : start + BLOCK].sum(axis=0)
    return sums
