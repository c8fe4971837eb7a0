"""The contract of a model: what the time loop, the output and the checkpoints know of it."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.downloads import Download
from hybrid_nbody.simulation.timings import Timings

T = TypeVar("T")

RowIndex = slice | NDArray[np.int64]
"""Global rows: consecutive ones, or their numbers in any order."""


class Role(Enum):
    """The files of a field: all but those shown or watched are in checkpoints."""

    FRAME = "one row a frame of the trajectory"
    SHOWN = "the same, and not in checkpoints: it follows from the others"
    STATIC = "once in the trajectory"
    SHOWN_ONCE = "once in the trajectory, and not in checkpoints: it follows from the others"
    INTERNAL = "in checkpoints alone"
    WATCHED = "nowhere: it follows from the others, and only the guard looks at it"


FRAME_ROLES = (Role.FRAME, Role.SHOWN)
"""Roles of the fields that make up a frame."""

SHARED_ROLES = (Role.STATIC, Role.SHOWN_ONCE)
"""Roles of the fields that all frames share."""

SAVED_ROLES = (Role.FRAME, Role.STATIC, Role.INTERNAL)
"""Roles of the fields that together are the complete state."""


@dataclass(frozen=True)
class PartOf:
    """The part of a field that frames hold: some rows, in a precision of their own.

    Attributes
    ----------
    whole : Field
        The field.
    moving : sequence of Field
        The fields of the state that steps change, `whole` among them; all have an array.
    choose : callable
        ``choose(copies)`` returns what frames hold of copies of the whole array, (times, rows, …),
        on the same device: (times, chosen rows, …).
    """

    whole: "Field"
    moving: "Sequence[Field]"
    choose: Callable[[Any], Any]


@dataclass(frozen=True)
class Field:
    """A distributed array: global shape and meaning, and this rank's rows of it.

    Attributes
    ----------
    name : str
        Path of the data set in output files, such as ``bodies/position``.
    shape : tuple of int
        Global shape; ranks share out the rows along the first axis.
    dtype : numpy.dtype
        Element type on the host.
    units, description : str
        Written beside the data set.
    index : slice or (n,) array of int64
        Which global rows this rank holds: a slice where they are consecutive, else their numbers in
        the order in which the rank holds them. Every row has exactly one owner. Files are always in
        global order.
    host : callable
        ``host(start, stop)`` returns a copy of this rank's rows start … stop - 1, counted from the
        first that it holds, as a NumPy array.
    role : Role
        Where the field is written.
    start : callable, optional
        ``start()`` begins a copy of all of this rank's rows, which later steps neither wait for nor
        change.
    gather : callable, optional
        ``gather()`` begins the same copy of the rows of all ranks, for the root, where these travel
        between devices without the hosts; collective.
    check : callable, optional
        ``check(start, stop)`` returns numbers, one or more a row, that are all finite where the row
        is. The guard looks at them in place of the rows themselves.
    array : array, optional
        This rank's rows, of float64 and in one piece: the numbers of `host`. They are on its
        device, or on the host if they never change. The guard lets the device look at those of all
        fields at once. That of a field of frames stays the same array, whose numbers steps change.
    part_of : PartOf, optional
        The field of which this is a part, and how to choose it.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    units: str
    description: str
    index: RowIndex
    host: Callable[[int, int], np.ndarray]
    role: Role = Role.FRAME
    check: Callable[[int, int], np.ndarray] | None = None
    start: Callable[[], Download] | None = None
    gather: Callable[[], Download] | None = None
    array: Any = None
    part_of: PartOf | None = None

    @property
    def rows(self) -> int:
        """Return the number of rows of this rank."""
        if isinstance(self.index, slice):
            return int(self.index.stop - self.index.start)
        return len(self.index)

    def global_rows(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the global numbers of some of this rank's `rows`, counted from its first."""
        if isinstance(self.index, slice):
            return rows + int(self.index.start)
        return self.index[rows]

    @property
    def row_bytes(self) -> int:
        """Size of one row in bytes."""
        return math.prod(self.shape[1:]) * self.dtype.itemsize

    @property
    def total_bytes(self) -> int:
        """Size of the whole array, all ranks' rows, in bytes."""
        return self.row_bytes * self.shape[0]


class Ranks(Protocol):
    """The ranks, as the time loop sees them; see `hybrid_nbody.parallel.communicator.Communicator`.

    Every method is collective.
    """

    @property
    def size(self) -> int:
        """Return how many there are."""

    @property
    def is_root(self) -> bool:
        """Return whether this rank decides."""

    def any(self, flag: bool) -> bool:
        """Return whether the flag of any rank is set."""

    def broadcast(self, value: T) -> T:
        """Return the root's value on every rank."""

    def minimum(self, values: np.ndarray) -> np.ndarray:
        """Return the smallest of the values of all ranks, element by element."""


class Device(Protocol):
    """The device of a rank, as the log and the guard know it."""

    @property
    def description(self) -> str:
        """Return its name."""

    @property
    def makes_way(self) -> bool:
        """Return whether `make_way` does anything."""

    def make_way(self) -> str:
        """Leave other processes the cores that they take; say so, the first time."""

    def use(self) -> None:
        """Make it the current device of this thread."""

    def start_look(self, *arrays: Any) -> Callable[[], list[int]]:
        """Return what waits for a look, and returns the first number of each that is not finite.

        The place is counted through all rows; it is the size of the array if there is none.
        """

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """Return an array on the device, of no defined values."""

    def copy(self, source: Any, target: Any) -> None:
        """Copy an array in one piece into another one on the device."""

    def hand_over(self, array: Any) -> Download:
        """Begin to bring an array to the host that is not changed any more."""


@dataclass(frozen=True)
class Work:
    """The work of one step, for rates.

    Attributes
    ----------
    unit : str
        What is counted: interactions, cells.
    per_step : float
        How many of them a step has.
    operations : float
        Floating-point operations of each; 0 where they are not counted.
    """

    unit: str
    per_step: float
    operations: float


@dataclass(frozen=True)
class Quantity:
    """Meaning of one diagnostic.

    Attributes
    ----------
    units, description : str
        Written beside it.
    components : int
        Numbers of one value; 1 for a scalar.
    limit : float
        The run warns of a scalar whose absolute value is larger.
    advice : str
        What it then means, and what to do.
    advise : callable, optional
        ``advise(value)`` returns that for a value.
    """

    units: str
    description: str
    components: int = 1
    limit: float = math.inf
    advice: str = ""
    advise: Callable[[float], str] | None = None


Diagnostics = float | tuple[float, ...]
"""The value of one diagnostic."""


class Model(Protocol):
    """A workload that the loop can advance, write and restart.

    Every method is collective: all ranks call it together.

    Attributes
    ----------
    step : int
        Steps done since the initial state.
    time : float
        Simulated time.
    work : Work
        Cost of a step.
    timings : Timings
        Seconds that `advance` spent, by part.
    quantities : mapping of str to Quantity
        What `diagnostics` returns.
    advice : mapping of str to str
        What to do when the state has gone wrong: at the ``start``, or later in the ``run``.
    row_name : str
        What a row of its fields is, in messages: body, plane.
    backend : Backend
        This rank's device.
    """

    @property
    def step(self) -> int:
        """See the class."""

    @property
    def time(self) -> float:
        """See the class."""

    @property
    def work(self) -> Work:
        """See the class."""

    @property
    def timings(self) -> Timings:
        """See the class."""

    @property
    def quantities(self) -> Mapping[str, Quantity]:
        """See the class."""

    @property
    def advice(self) -> Mapping[str, str]:
        """See the class."""

    @property
    def row_name(self) -> str:
        """See the class."""

    @property
    def backend(self) -> Device:
        """See the class."""

    def advance(self, steps: int) -> None:
        """Do `steps` whole steps, on the device as far as possible."""

    def diagnostics(self) -> dict[str, Diagnostics]:
        """Return the global quantities of the present state, the same on every rank."""

    def fields(self) -> dict[str, Field]:
        """Return every distributed array of the state and of frames, each by a key of its own."""

    def scalars(self) -> dict[str, float]:
        """Return the rest of the state: numbers that all ranks share.

        A number that is not known yet is left out.
        """

    def restore(self, rows: Callable[[str], np.ndarray], scalars: Mapping[str, float]) -> None:
        """Take back a state: ``rows(name)`` gives this rank's rows of a field."""

    def suspect(self) -> str:
        """Describe the body or cell that most likely made the state go wrong."""


@runtime_checkable
class RunsAhead(Protocol):
    """A model whose device may work while the host goes on; others need only `Model.advance`."""

    @property
    def runs_ahead(self) -> bool:
        """Return whether it does, on this device."""

    def queue(self, steps: int) -> Callable[[], float]:
        """Queue `steps` whole steps; return what waits for them and returns their seconds.

        The state is that after them from now on: whoever reads it waits for them, too.
        """


@runtime_checkable
class CopiesState(Protocol):
    """A model whose device may copy the state of frames within its steps."""

    def times_at(self, steps: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the simulated times of steps."""

    def queue_with_copies(
        self, interval: int, copies: Mapping[str, Any]
    ) -> Callable[[], float] | None:
        """Queue whole steps, and a copy of the state after every `interval` of them.

        There may be fewer copies than memory where steps take long: `Model.step` is that of the
        last one.

        Parameters
        ----------
        interval : int
        copies : mapping of str to array
            Where the fields of frames go, by name: (number, rows, …), on the device.

        Returns
        -------
        callable or None
            Waits for the steps, and returns their seconds. None, nothing having been done, where
            it is no faster than copies between batches of steps.

        Raises
        ------
        HybridNBodyError
            A step cannot be taken.
        """


class SavedState(Protocol):
    """A complete state in global order: a checkpoint, on disk or in memory.

    Attributes
    ----------
    number : int
        Rows of all ranks.
    scalars : mapping of str to float
        The state that all ranks share.
    """

    @property
    def number(self) -> int:
        """See the class."""

    @property
    def scalars(self) -> Mapping[str, float]:
        """See the class."""

    def rows(self, name: str, index: RowIndex) -> np.ndarray:
        """Return the global rows `index` of a field, in that order; all ranks call together."""


def fields_of(model: Model, *roles: Role) -> list[Field]:
    """Return the fields of `model` that have one of the roles, in its order."""
    return [field for field in model.fields().values() if field.role in roles]
