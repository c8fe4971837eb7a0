"""Work on arrays that is recorded once and repeated as one launch."""

from collections import OrderedDict
from collections.abc import Callable, Hashable

from hybrid_nbody.backends.base import Array, Backend

MOST_KNOWN = 256
"""Recordings that are kept: arguments that follow from the length of a step may be new at each."""


class Replays:
    """Recordings of a kind of work, one for each set of arrays and other arguments.

    Where there are many, that which was not used for longest is dropped.

    Parameters
    ----------
    backend : Backend
        Of the arrays.
    """

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self._known: OrderedDict[Hashable, tuple[tuple[Array, ...], Callable[[], None]]]
        self._known = OrderedDict()  # that used last comes last

    def repeat(
        self, action: Callable[[], None], arrays: tuple[Array, ...], *others: Hashable
    ) -> None:
        """Do what `action` does, by the recording of the same arrays if there is one.

        Parameters
        ----------
        action : callable
            Queues work that follows from the arguments below alone, and waits for nothing.
        arrays : tuple of array
            They stay where they are as long as the recording.
        *others : hashable
        """
        key = (*map(self.backend.place, arrays), *others)
        if key not in self._known:
            self._known[key] = (arrays, self.backend.recorded(action))
        self._known.move_to_end(key)
        if len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)
        self._known[key][1]()
