"""Every rank sees all rows."""

from hybrid_nbody.backends.base import Array
from hybrid_nbody.parallel.exchange.base import Exchange


class AllgatherExchange(Exchange):
    """Every rank holds all rows: the order of sums does not depend on the number of ranks."""

    name = "allgather"

    def reduce_scatter(self, array: Array, out: Array) -> Array:
        """Return this rank's rows of the sum over all ranks of `array`.

        Parameters
        ----------
        array : (N, ...) array of float64
            It is the result itself on a rank that is alone.
        out : (n, ...) array of float64
            It is filled and returned by all others.
        """
        if self.alone:
            return array
        self.transport.reduce_scatter(array, out, self.partition)
        return out
