"""Contents of the frames of a run: all bodies or some, their fields, and the precision of these."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Array, Backend
from hybrid_nbody.errors import InputError
from hybrid_nbody.nbody.activity import ActivityMap
from hybrid_nbody.nbody.unit_names import PLAIN, UnitNames
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.rows import multiples, row_numbers
from hybrid_nbody.simulation.model import Field, PartOf, Role, RowIndex

MOST_SHOWN = 5
"""Most ids that a message lists."""


@dataclass(frozen=True)
class Chosen:
    """The bodies that frames hold, as one rank sees them.

    Attributes
    ----------
    number : int
        How many there are on all ranks.
    own : slice or (m,) array of int64
        Which of this rank's bodies are among them, counted from its first.
    index : slice or (m,) array of int64
        The rows of a frame that these are.
    """

    number: int
    own: RowIndex
    index: RowIndex


def every_nth(step: int, own: RowIndex, number: int) -> Chosen:
    """Return the choice of body 0 and every `step`-th after it.

    Parameters
    ----------
    step : int
        At least 1.
    own : slice or (n,) array of int64
        The global rows of this rank's bodies.
    number : int
        Bodies of all ranks.
    """
    total = -(-number // step)
    if isinstance(own, slice):
        index = slice(-(-own.start // step), -(-own.stop // step))
        return Chosen(total, multiples(step, own), index)
    held = multiples(step, own)
    return Chosen(total, held, own[held] // step)


def of_ids(
    wanted: Sequence[int], ids: NDArray[np.int64], own: RowIndex, communicator: Communicator
) -> Chosen:
    """Return the choice of some ids, in the order of the bodies; all ranks call together.

    Parameters
    ----------
    wanted : sequence of int
        Different ids.
    ids : (n,) array of int64
        Those of this rank's bodies.
    own : slice or (n,) array of int64
        The global rows of this rank's bodies.
    communicator : Communicator
        All ranks.

    Raises
    ------
    InputError
        On every rank, if no body has one of the ids.
    """
    held = np.flatnonzero(np.isin(ids, np.array(wanted, np.int64)))
    found = communicator.concatenate(ids[held])
    missing = sorted(set(wanted).difference(found.tolist()))
    if missing:
        names = ", ".join(map(str, missing[:MOST_SHOWN]))
        more = f" and {len(missing) - MOST_SHOWN} more" if len(missing) > MOST_SHOWN else ""
        raise InputError(f"output.trajectory.ids: no body has the id {names}{more}").on_all_ranks()
    mine = row_numbers(own)[held]
    rows = np.sort(communicator.concatenate(mine))
    if isinstance(own, slice):
        first, stop = np.searchsorted(rows, [own.start, own.stop]).tolist()
        return Chosen(len(rows), held, slice(first, stop))
    return Chosen(len(rows), held, np.searchsorted(rows, mine))


class Frames:
    """What frames hold of the bodies, where that is not every field of each as it is computed.

    Parameters
    ----------
    names : sequence of {"position", "velocity"}
        The fields.
    dtype : str
        Type of their numbers: float32 or float64.
    chosen : Chosen
        The bodies.
    backend : Backend
        This rank's device.
    """

    def __init__(self, names: Sequence[str], dtype: str, chosen: Chosen, backend: Backend) -> None:
        self.names = tuple(names)
        self.dtype = np.dtype(dtype)
        self.chosen = chosen
        self.backend = backend
        own = chosen.own
        self._on_device: Any = own if isinstance(own, slice) else backend.upload(own)

    def shown(self, field: Field, array: Array, moving: Sequence[Field]) -> Field:
        """Return what frames hold of a field, whose rows here are an `array` on the device.

        `moving` are the fields that steps change, this one among them.
        """
        return replace(
            self._of_chosen(field),
            dtype=self.dtype,
            host=lambda start, stop: self.backend.download(self._rows(array)[start:stop]),
            start=lambda: self.backend.start_download(self._rows(array)),
            role=Role.SHOWN,
            part_of=PartOf(field, moving, self._rows_at_times),
        )

    def shown_once(self, field: Field, array: NDArray[Any]) -> Field:
        """Return what all frames share of a field, whose rows here are an `array` on the host."""
        return replace(
            self._of_chosen(field),
            host=lambda start, stop: array[self.chosen.own][start:stop].copy(),
            role=Role.SHOWN_ONCE,
        )

    def _of_chosen(self, field: Field) -> Field:
        shape = (self.chosen.number, *field.shape[1:])
        return replace(field, shape=shape, index=self.chosen.index, gather=None, array=None)

    def _rows(self, array: Array) -> Array:
        """Return the chosen rows in the precision of the frames: a new array on the device."""
        with np.errstate(over="ignore"):  # infinity, as the guide says
            return array[self._on_device].astype(self.dtype)

    def _rows_at_times(self, copies: Array) -> Array:
        """Return the chosen rows of copies, (times, rows, …), in the precision of the frames.

        It may be a view of the copies; it lies in one piece.
        """
        with np.errstate(over="ignore"):
            return copies[:, self._on_device].astype(self.dtype, order="C", copy=False)


class Asked(Protocol):
    """What a configuration asks for; see `hybrid_nbody.nbody.config_output.BodyFrames`."""

    @property
    def fields(self) -> tuple[str, ...]: ...

    @property
    def precision(self) -> str: ...

    @property
    def every_body(self) -> int | None: ...

    @property
    def ids(self) -> tuple[int, ...] | None: ...

    @property
    def is_whole(self) -> bool: ...


@dataclass(frozen=True)
class Shown:
    """What is written with the frames, and not in checkpoints.

    Attributes
    ----------
    frames : Frames, optional
        What frames hold of the bodies; by default every field of each.
    maps : sequence of ActivityMap
        What follows from the positions.
    units : UnitNames
        The names of the units.
    advise : callable, optional
        Returns what a person is told of a relative energy error that is too large.
    """

    frames: Frames | None = None
    maps: Sequence[ActivityMap] = ()
    units: UnitNames = PLAIN
    advise: Callable[[float], str] | None = None


EVERYTHING = Shown()
"""Every field of each body, and no map."""


def frames_of(
    section: Asked | None,
    ids: NDArray[np.int64],
    own: RowIndex,
    number: int,
    communicator: Communicator,
    backend: Backend,
) -> Frames | None:
    """Return what frames hold; None for every field of every body. All ranks call together.

    Parameters
    ----------
    section : Asked or None
        The configuration; None for a run without frames.
    ids : (n,) array of int64
        Those of this rank's bodies.
    own : slice or (n,) array of int64
        The global rows of this rank's bodies.
    number : int
        Bodies of all ranks.
    communicator : Communicator
        All ranks.
    backend : Backend
        This rank's device.

    Raises
    ------
    InputError
        On every rank, if no body has one of the ids.
    """
    if section is None or section.is_whole:
        return None
    if section.ids is None:
        chosen = every_nth(section.every_body or 1, own, number)
    else:
        chosen = of_ids(section.ids, ids, own, communicator)
    return Frames(section.fields, section.precision, chosen, backend)
