"""A model of the time of a step, fitted to what was measured, and what it says of more ranks on another network.

Measured on p ranks that share a problem, a step takes

    t = a + b * bytes + work / rate

a is what a step costs however little there is to do: launches, and the beginning of messages. bytes
is what a rank receives in a step, b the time of each; work is that of the rank with the largest
share, rate what a rank does a second. On another network the exchange is counted anew, with its
latency and its bandwidth in the place of b:

    t = a + latency * messages in a row + bytes / bandwidth + work / rate           (allgather,
    halo) t = a + work of a block / rate + (p - 1) * max(work of a block / rate, message)  (ring)

It assumes that ranks are alike and have equal shares, that a kernel is as fast on a small share as
on the measured ones, that messages of one exchange travel side by side while their bytes share one
link, that links do not disturb each other, and that nothing is hidden behind computation but the
messages of a ring.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls


@dataclass(frozen=True)
class Point:
    """A measurement.

    Attributes
    ----------
    seconds : float
        Of a step.
    bytes : float
        That a rank receives in a step.
    work : float
        Of the rank with the largest share: interactions, or cells.
    """

    seconds: float
    bytes: float
    work: float


@dataclass(frozen=True)
class Fit:
    """The coefficients of the model; see the module.

    Attributes
    ----------
    fixed : float
        a, in seconds.
    per_byte : float or None
        b, in seconds; None where nothing was exchanged.
    rate : float
        Work a second.
    points : int
        Measurements that it was fitted to.
    worst : float
        Largest relative difference of a measured time from the fitted one.
    """

    fixed: float
    per_byte: float | None
    rate: float
    points: int
    worst: float


@dataclass(frozen=True)
class Network:
    """What connects ranks.

    Attributes
    ----------
    latency : float
        Seconds from one rank to another, however short the message.
    bandwidth : float
        Bytes a second into a rank.
    """

    latency: float
    bandwidth: float

    def seconds(self, messages: float, size: float) -> float:
        """Return what `messages` one after another take that bring `size` bytes in all."""
        return messages * self.latency + size / self.bandwidth


def fit(points: Sequence[Point]) -> Fit | None:
    """Fit the model by least squares of relative differences, no coefficient less than zero.

    Returns
    -------
    Fit or None
        None where the points do not tell the coefficients apart: too few of them, or too much
        alike.
    """
    rows = np.array([(1.0, point.bytes, point.work) for point in points]).reshape(-1, 3)
    used = [0, 2] if not rows[:, 1].any() else [0, 1, 2]
    rows = rows[:, used] / np.array([point.seconds for point in points])[:, None]
    scale = np.abs(rows).max(axis=0, initial=np.finfo(float).tiny)
    if np.linalg.matrix_rank(rows / scale, tol=1e-6) < len(used):
        return None
    found, _ = nnls(rows / scale, np.ones(len(rows)))
    coefficients = dict(zip(used, found / scale, strict=True))
    if coefficients[2] == 0:
        return None  # more work took no longer
    worst = float(np.abs(rows @ (found / scale) - 1).max())
    return Fit(coefficients[0], coefficients.get(1), 1 / coefficients[2], len(points), worst)


@dataclass(frozen=True)
class Demand:
    """What a step asks of each of several ranks.

    Attributes
    ----------
    ranks : int
    work : float
        Of the largest share.
    bytes : float
        Received by a rank.
    messages : float
        One after another.
    """

    ranks: int
    work: float
    bytes: float
    messages: float


def in_a_row(fit: Fit, network: Network, demand: Demand) -> float:
    """Return the seconds of a step that exchanges first and computes then."""
    return fit.fixed + network.seconds(demand.messages, demand.bytes) + demand.work / fit.rate


def hidden(fit: Fit, network: Network, demand: Demand) -> float:
    """Return the seconds of a step that computes a block of sources while the next one arrives."""
    block = demand.work / demand.ranks / fit.rate
    others = demand.ranks - 1
    message = network.seconds(demand.messages, demand.bytes) / max(others, 1)
    return fit.fixed + block + others * max(block, message)


def doublings(ranks: int) -> int:
    """Return how many times two ranks become four, and so on, until there are as many: messages of a tree."""
    return math.ceil(math.log2(ranks))


@dataclass(frozen=True)
class Scheme:
    """A way to exchange.

    Attributes
    ----------
    name : str
        For tables.
    messages : callable
        Takes the number of ranks; returns the messages in a row for what all ranks gather from each
        other.
    seconds : callable
        Takes `Fit`, `Network` and `Demand`; returns those of a step.
    """

    name: str
    messages: Callable
    seconds: Callable


SCHEMES = {
    "allgather": (
        Scheme("allgather, log2 p messages", doublings, in_a_row),
        Scheme("allgather, p - 1 messages", lambda ranks: ranks - 1, in_a_row),
    ),
    "ring": (Scheme("ring, behind computation", lambda ranks: ranks - 1, hidden),),
    "halo": (Scheme("halos", lambda ranks: 0, in_a_row),),
}
"""For each exchange of a run, what it may become on a network; those of halos are counted, not
derived."""
