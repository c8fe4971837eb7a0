"""The frames and the diagnostics of a run, read from its file when they are accessed."""

from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, ValuesView
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from hybrid_nbody.files.run import Run

Array = NDArray[Any]


class Diagnostics(Mapping[str, Array], dict[str, Array]):  # type: ignore[metaclass, misc]
    """The diagnostics of a run: ``diagnostics["total_energy"]`` or ``diagnostics.total_energy``.

    Every array is read when it is asked for: (D,) or (D, 3) float64, `step` (D,) int64. Rows have
    their own times, ``diagnostics.time``, which are not those of the frames.

    Iterating gives the names of the diagnostics. `keys`, `values` and `items` are those of a table
    with one number a row and column, where a vector has a column for each of its components, such
    as ``momentum_x``: ``pandas.DataFrame(run.diagnostics)`` is that table. pandas takes columns
    from a `dict` alone, which is why this is one; it cannot be changed.

    Attributes
    ----------
    number_of_rows : int
        D, the number of complete rows when the run was opened or last refreshed.
    """

    def __init__(
        self,
        read: Callable[[str, Any], Array],
        shapes: Mapping[str, tuple[int, ...]],
        number_of_rows: int,
    ):
        self._read = read
        self._names = list(shapes)
        self._columns = dict(_columns(shapes))
        self.number_of_rows = number_of_rows

    def __getitem__(self, name: str) -> Array:
        rows = slice(0, self.number_of_rows)
        if name in self._names:
            return self._read(f"diagnostics/{name}", rows)
        if name in self._columns:
            vector, place = self._columns[name]
            return self._read(f"diagnostics/{vector}", (rows, *place))
        raise KeyError(f"no diagnostics '{name}'; there are {', '.join(self._names) or 'none'}")

    def __contains__(self, name: object) -> bool:
        return name in self._names or name in self._columns

    def keys(self) -> KeysView[str]:
        """Return the names of the columns of the table; see the class."""
        return self._columns.keys()

    def values(self) -> ValuesView[Array]:
        """Return the columns of the table."""
        return self._table().values()

    def items(self) -> ItemsView[str, Array]:
        """Return names and columns of the table."""
        return self._table().items()

    def copy(self) -> dict[str, Array]:
        """Return the table as a `dict` of its own."""
        return self._table()

    def _table(self) -> dict[str, Array]:
        return {name: self[name] for name in self._columns}

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("the diagnostics of a run cannot be changed; change a copy()")

    __setitem__ = __delitem__ = __ior__ = update = setdefault = pop = popitem = clear = _refuse

    def __or__(self, other: Any) -> Any:
        return self._table() | dict(other)

    def __ror__(self, other: Any) -> Any:
        return dict(other) | self._table()

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    def row(self, index: int) -> dict[str, Array]:
        """Read one row of every quantity.

        Parameters
        ----------
        index : int
            Negative rows count from the end.

        Returns
        -------
        dict
            From the name of a quantity to its value, an array of shape () or (3,).

        Raises
        ------
        IndexError
            There is no such row.
        """
        count = self.number_of_rows
        if not -count <= index < count:
            raise IndexError(f"row {index}: there are {count} rows of diagnostics")
        return {name: np.asarray(self._read(f"diagnostics/{name}", index % count)) for name in self}

    def __getattr__(self, name: str) -> Array:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._names]

    def __repr__(self) -> str:
        return f"Diagnostics of {self.number_of_rows} rows: {', '.join(self._names) or 'nothing'}"


def _columns(
    shapes: Mapping[str, tuple[int, ...]],
) -> Iterator[tuple[str, tuple[str, tuple[int, ...]]]]:
    """Yield the name of each column, with the data set and the place in a row where it is.

    Parameters
    ----------
    shapes : mapping of str to tuple of int
        The shape of one row of each data set.
    """
    for name, shape in shapes.items():
        for column, place in column_names(name, shape):
            yield column, (name, place)


def column_names(name: str, shape: tuple[int, ...]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the name of each column of a quantity, such as ``momentum_x``, and its place in a row.

    Parameters
    ----------
    name : str
        Name of the quantity.
    shape : tuple of int
        Its shape in one row; axes of three are called x, y and z.
    """
    letters = ["xyz" if size == 3 else list(map(str, range(size))) for size in shape]
    for place in np.ndindex(*shape):
        axes = [letters[axis][number] for axis, number in enumerate(place)]
        yield "_".join([name, *axes]), place


@dataclass(frozen=True, eq=False)
class Frame:
    """One frame of a run; its arrays are read when they are accessed.

    Attributes
    ----------
    run : Run
        The run.
    index : int
        Number of the frame, from 0.
    time : float
        In the units of time.
    step : int
        Steps taken since the initial state.
    """

    run: "Run"
    index: int
    time: float
    step: int

    @property
    def positions(self) -> Array:
        """(N, 3) float64, in the units of length."""
        return self.run.positions(self.index)

    @property
    def velocities(self) -> Array:
        """(N, 3) float64, in the units of velocity."""
        return self.run.velocities(self.index)

    def field(self, name: str) -> Array:
        """Return a field of the frame by its name, see `Run.fields`."""
        return self.run.field(name, self.index)

    def __repr__(self) -> str:
        return f"Frame {self.index}: time {self.time:g}, step {self.step}"


def run_in_words(run: "Run") -> str:
    """Return what an open run holds, in a few lines."""
    lines = [f"Run '{run.title}' of model {run.model} in {run.path}"]
    if run.number_of_bodies:
        lines.append(f"  bodies       {run.number_of_bodies}")
    for name in run.fields:
        group, _, short = name.rpartition("/")
        if group != "bodies":
            lines.append(f"  {short:<12} {run.shape(name)[1:]} a frame")
    lines.append(f"  frames       {run.number_of_frames}{_span(run)}")
    quantities = ", ".join(run.diagnostics) or "nothing"
    lines.append(f"  diagnostics  {run.diagnostics.number_of_rows} rows of {quantities}")
    return "\n".join(lines)


def _span(run: "Run") -> str:
    """Return the times and steps of the first and the last frame."""
    if not run.number_of_frames:
        return ""
    times = run.time
    steps = run.step
    return f", time {times[0]:g} to {times[-1]:g}, step {steps[0]} to {steps[-1]}"
