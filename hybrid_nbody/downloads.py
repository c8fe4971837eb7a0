"""Copies of arrays on their way from a device to the host."""

from abc import ABC, abstractmethod
from typing import Any

from numpy.typing import NDArray


class Download(ABC):
    """A copy of an array as it was when the copy was begun.

    Attributes
    ----------
    nbytes : int
        Bytes of it.
    """

    nbytes: int

    @abstractmethod
    def rows(self) -> NDArray[Any]:
        """Return the copy on the host, once it is there; for any thread."""


class OnHost(Download):
    """A copy that is there already.

    Parameters
    ----------
    rows : ndarray
        The copy.
    """

    def __init__(self, rows: NDArray[Any]) -> None:
        self.nbytes = rows.nbytes
        self._rows = rows

    def rows(self) -> NDArray[Any]:
        """See `Download`."""
        return self._rows
