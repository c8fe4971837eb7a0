"""The bodies that a run starts from: each rank gets its own rows of them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.errors import InputError
from hybrid_nbody.files.bodies import BodiesFile, open_bodies
from hybrid_nbody.files.memory import available_memory
from hybrid_nbody.files.state import StoredState
from hybrid_nbody.files.stored_bodies import PIECE, BodiesTable, StoredBodies
from hybrid_nbody.nbody.bodies import Bodies, BodySource, check_is_in_plane, joined
from hybrid_nbody.nbody.composed import Composed, ComposedSource, Composition, Placement
from hybrid_nbody.nbody.config import NBodyConfig
from hybrid_nbody.nbody.config_bodies import FileBodies, Kind
from hybrid_nbody.nbody.config_galaxies import PythonBodies
from hybrid_nbody.nbody.config_placement import PlacedBodies
from hybrid_nbody.nbody.drawn import SAMPLE, DrawnBodies
from hybrid_nbody.nbody.initial.kinds import made
from hybrid_nbody.nbody.initial.own import bodies_of_function
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.rows import broadcast_array, redistribute
from hybrid_nbody.simulation.model import SavedState

NOT_ARGUMENTS = (*PlacedBodies.model_fields, "dimensions")
"""Keys of a section of bodies that the function which makes them does not take."""

MOST_MEASURED = 1 << 16
"""Most bodies of a checkpoint without units from which they are measured."""

MIN_BYTES_PER_BODY = 150
"""Memory that a body takes at least while it is drawn, or in the model after that."""


@dataclass(frozen=True)
class ExaminedFile:
    """A file of bodies that the root has read through in pieces.

    Attributes
    ----------
    file : BodiesFile
        Where every rank reads its own rows.
    some : Bodies
        Stand for all where units and precision are chosen.
    """

    file: BodiesFile
    some: Bodies

    def __len__(self) -> int:
        """Return the number of bodies."""
        return self.file.number

    def sample(self) -> Bodies:
        """Return the bodies that stand for all."""
        return self.some


Part = Bodies | DrawnBodies | ExaminedFile
"""Bodies of one kind: those that the root holds, or what each rank can draw or read by itself."""

Initial = Part | Composed[Part]
"""What the root finds: bodies of one kind, or of several together."""


def on_all_ranks(initial: Initial | None, communicator: Communicator) -> BodySource:
    """Return what every rank takes its rows from.

    Parameters
    ----------
    initial : Bodies, DrawnBodies, ExaminedFile or Composed
        Of the root; other ranks pass None.
    communicator : Communicator
        Every rank calls together.
    """
    found = communicator.broadcast(_sent(initial))
    if isinstance(found, Composition):
        parts = initial.parts if isinstance(initial, Composed) else [None] * len(found.placements)
        sources = [on_all_ranks(part, communicator) for part in parts]
        return ComposedSource(sources, found, communicator)
    if isinstance(found, BodiesFile):
        return BodiesOfFile(found, communicator)
    if found is None:
        held = initial if isinstance(initial, Bodies) else None
        return BodiesOfRoot(held, communicator)
    found.find_centre(communicator)
    return found


def _sent(initial: Initial | None) -> DrawnBodies | BodiesFile | Composition | None:
    """Return what other ranks need to make their own rows; None if the root holds these."""
    if isinstance(initial, Composed):
        return initial.composition
    if isinstance(initial, ExaminedFile):
        return initial.file
    return initial if isinstance(initial, DrawnBodies) else None


class BodiesOfFile:
    """Bodies in a file of which every rank reads its own rows; see `BodySource`.

    Parameters
    ----------
    file : BodiesFile
    communicator : Communicator
        Every rank calls together: if one cannot read the file, all end with its error.
    """

    def __init__(self, file: BodiesFile, communicator: Communicator) -> None:
        self.file = file
        self.communicator = communicator

    def __len__(self) -> int:
        """See `BodySource`."""
        return self.file.number

    def rows(self, first: int, last: int) -> Bodies:
        """See `BodySource`."""
        table = self.communicator.together(lambda: self.file.rows(first, last))
        return _bodies_of(table, first)

    def masses(self) -> NDArray[np.float64]:
        """See `BodySource`."""
        return self.communicator.together(self.file.masses)


class BodiesOfRoot:
    """Bodies that the root holds, and sends to the ranks that ask for them; see `BodySource`.

    Parameters
    ----------
    bodies : Bodies or None
        All bodies on the root, None on other ranks.
    communicator : Communicator
        Every rank calls together.
    """

    def __init__(self, bodies: Bodies | None, communicator: Communicator) -> None:
        self.bodies = bodies
        self.communicator = communicator
        self.number = communicator.broadcast(0 if bodies is None else len(bodies))

    def __len__(self) -> int:
        """See `BodySource`."""
        return self.number

    def rows(self, first: int, last: int) -> Bodies:
        """See `BodySource`."""
        position = self._rows("position", (self.number, 3), "f8", slice(first, last))
        velocity = self._rows("velocity", (self.number, 3), "f8", slice(first, last))
        mass = self._rows("mass", (self.number,), "f8", slice(first, last))
        return Bodies(
            position, velocity, mass, self._rows("id", (self.number,), "i8", slice(first, last))
        )

    def masses(self) -> NDArray[np.float64]:
        """See `BodySource`."""
        mass = None if self.bodies is None else self.bodies.mass
        return broadcast_array(mass, (self.number,), "f8", self.communicator)

    def _rows(self, name: str, shape: tuple[int, ...], dtype: str, wanted: slice) -> NDArray[Any]:
        """Return rows of an array of the root."""
        held: NDArray[Any] | None = getattr(self.bodies, name, None)
        array = np.empty((0, *shape[1:]), dtype) if held is None else np.asarray(held, dtype)
        return redistribute(ArrayOfRoot(name, shape, array), wanted, self.communicator)


@dataclass(frozen=True)
class ArrayOfRoot:
    """An array whose rows are all on the root; see `hybrid_nbody.parallel.rows.DistributedArray`.

    Attributes
    ----------
    name : str
    shape : tuple of int
        On the root.
    array : ndarray
        All rows on the root, none on other ranks.
    """

    name: str
    shape: tuple[int, ...]
    array: NDArray[Any]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the type of the numbers."""
        return self.array.dtype

    @property
    def index(self) -> slice:
        """Return the rows that are here."""
        return slice(0, len(self.array))

    @property
    def rows(self) -> int:
        """Return the number of rows that are here."""
        return len(self.array)

    @property
    def row_bytes(self) -> int:
        """Return the bytes of a row."""
        return self.array.itemsize * int(np.prod(self.shape[1:], dtype=int))

    @property
    def host(self) -> Callable[[int, int], NDArray[Any]]:
        """Return what gives some of the rows that are here."""
        return lambda start, stop: self.array[start:stop]


# --- of a configuration ---------------------------------------------------------------------------


def initial_bodies(
    config: NBodyConfig, part: float = 1.0, start: StoredState | None = None
) -> Initial:
    """Return the bodies that a configuration asks for, or those of a state; on the root alone.

    Parameters
    ----------
    config : NBodyConfig
    part : float
        The part of the bodies that the ranks of this machine will hold.
    start : StoredState, optional
        The state of another run, whose bodies are taken instead.

    Raises
    ------
    InputError
        If a file of bodies is missing or wrong, or the bodies do not fit into memory.
    """
    if start is not None:
        return _bodies_of_state(start)
    _check_memory(config.components, part)
    parts: list[Part] = []
    placements: list[Placement] = []
    for place, choice in enumerate(config.components):
        seed = config.seed + place if choice.seed is None else choice.seed
        found = _parts_of(choice, seed, config.gravity.G)
        parts += found
        placements += [Placement(choice.rotation, choice.offset, choice.velocity)] * len(found)
    if len(parts) == 1 and placements[0] == Placement() and not config.centred:
        return parts[0]
    return Composed(tuple(parts), Composition(tuple(placements), config.centred))


def _parts_of(choice: Kind, seed: int, G: float) -> list[Part]:
    """Return the bodies of one kind, around the origin, in one or several parts."""
    if isinstance(choice, FileBodies):
        return [_bodies_of_file(choice, seed)]
    if isinstance(choice, PythonBodies):
        return [bodies_of_function(choice.path, choice.function, choice.n, seed)]
    keys = {name: value for name, value in choice if name not in NOT_ARGUMENTS}
    return [*made(choice.kind, keys, seed, G).values()]


def _check_memory(choices: Sequence[Kind], part: float) -> None:
    """Refuse more bodies than fit into memory: the system would end a process without a word."""
    number = sum(math.ceil(part * getattr(choice, "n", 0)) for choice in choices)
    needed = number * MIN_BYTES_PER_BODY
    free = available_memory()
    if needed > free:
        raise InputError(
            f"bodies.n: {number} bodies take {needed / 1e9:.3g} GB of memory at least, and "
            f"{free / 1e9:.3g} GB are free on this machine; take fewer"
        )


# --- of a file ------------------------------------------------------------------------------------


def first_bodies(saved: SavedState) -> Bodies:
    """Return the first bodies of a checkpoint, with the masses of all; all ranks call together."""
    rows = slice(0, min(saved.number, MOST_MEASURED))
    mass = saved.rows("bodies/mass", slice(0, saved.number))
    return Bodies(saved.rows("bodies/position", rows), saved.rows("bodies/velocity", rows), mass)


def _bodies_of_state(state: StoredState) -> Bodies | ExaminedFile:
    """Return the bodies of a checkpoint or a frame."""
    # not checked as what a person writes: any name that the system knows will do
    choice = FileBodies.model_construct(kind="file", path=str(state.path))
    return _bodies_of_file(choice, 1, -1 if state.frame is None else state.frame)


def _bodies_of_file(choice: FileBodies, seed: int, frame: int = -1) -> Bodies | ExaminedFile:
    """Return the bodies of a file that must be read as a whole, or the file and some of them."""
    with open_bodies(choice.path, seed, frame) as stored:
        if stored.reopened is not None:
            file = BodiesFile(stored.path, stored.number, stored.reopened)
            return ExaminedFile(file, _examined(stored, choice))
        table = stored.rows(0, stored.number)
        stored.check_identities()
    if choice.dimensions == 2:
        check_is_in_plane(choice.path, table.position, table.velocity)
    return _bodies_of(table, 0)


def _examined(stored: StoredBodies, choice: FileBodies) -> Bodies:
    """Check the bodies of a file, and return some that stand for all."""
    run = SAMPLE // -(-stored.number // PIECE)
    found = []
    for first, table in stored.pieces():
        if choice.dimensions == 2:
            check_is_in_plane(choice.path, table.position, table.velocity, first)
        found.append(_bodies_of(table, first).some(_standing_for(table, run)))
    stored.check_identities()
    return joined(found)


def _standing_for(table: BodiesTable, run: int) -> NDArray[np.int64]:
    """Return the rows of the first bodies, `run` of them, and of the extreme ones.

    Those are the lightest with a mass and the heaviest, the outermost and the fastest.
    """
    has_mass = np.flatnonzero(table.mass > 0)
    speed = np.abs(table.velocity).max(axis=1)
    extremes = [table.mass.argmax(), speed.argmax(), *has_mass[table.mass[has_mass].argsort()[:1]]]
    extremes += [*table.position.argmin(axis=0), *table.position.argmax(axis=0)]
    return np.union1d(np.arange(min(run, len(table))), np.array(extremes, np.int64))


def _bodies_of(table: BodiesTable, first: int) -> Bodies:
    """Return the bodies of a table; without identities they are counted from `first`."""
    identity = np.arange(first, first + len(table)) if table.id is None else table.id
    return Bodies(table.position, table.velocity, table.mass, identity)
