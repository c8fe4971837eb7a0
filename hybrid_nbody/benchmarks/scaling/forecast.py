"""A model of the time of a step, fitted to rows, and what it says of more ranks and networks.

A step takes ``t = a + b * bytes + work / rate``, of the rank with most to do. On another network it
takes, with an allgather or halos, and with a ring of p ranks:

    t = a + latency * messages in a row + bytes / bandwidth + work / rate
    t = a + work of a block / rate + (p - 1) * max(work of a block / rate, message)

docs/benchmarks-appendix.md says what this assumes.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from rich.table import Table
from scipy.optimize import nnls

from hybrid_nbody.benchmarks.harness.measure import Row, digits, groups, new_table, only
from hybrid_nbody.benchmarks.scaling.problems import Network, problem_of
from hybrid_nbody.output.summary import with_prefix

RANKS = (64, 512, 4096)
UNITS = {"gravity": "interactions", "fmm": "bodies"}  # of work, where it is not cells
BYTES_OF_A_BODY = 24
"""A position in float64: what ranks exchange, where it could not be counted."""


class Point(NamedTuple):
    """A measurement: seconds of a step, bytes that a rank receives, work of the largest share."""

    seconds: float
    bytes: float
    work: float


class Fit(NamedTuple):
    """The coefficients a, b (None without an exchange) and rate, and how far the points are off."""

    fixed: float
    per_byte: float | None
    rate: float
    points: int
    worst: float


def fit(points: Sequence[Point]) -> Fit | None:
    """Fit the model by least squares of relative differences, no coefficient less than zero.

    Return None where the points, too few or too much alike, do not tell the coefficients apart.
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


class Demand(NamedTuple):
    """The largest share of a step on some ranks, bytes received, and messages in a row."""

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
    """Return how often the ranks of a tree double until there are as many: its messages."""
    return math.ceil(math.log2(ranks))


class Scheme(NamedTuple):
    """An exchange: its messages in a row to gather from all ranks, and the seconds of a step."""

    name: str
    messages: Callable[[int], int]
    seconds: Callable[[Fit, Network, Demand], float]


SCHEMES = {
    "allgather": (
        Scheme("allgather, log2 p messages", doublings, in_a_row),
        Scheme("allgather, p - 1 messages", lambda ranks: ranks - 1, in_a_row),
    ),
    "ring": (Scheme("ring, behind computation", lambda ranks: ranks - 1, hidden),),
    "halo": (Scheme("halos", lambda ranks: 0, in_a_row),),
    "tree": (),
}
"""Exchanges of a run, as a network may do them; for a tree, which depends on bodies, none."""


class Forecast(NamedTuple):
    """The predicted time of a step of one problem; `last` is its row on the most ranks."""

    series: Any  # Gravity or Fluid
    scheme: Scheme
    fit: Fit
    network: Network
    last: Row

    def seconds(self, ranks: int) -> float | None:
        """Return the time of a step; None if the problem cannot be divided among `ranks`."""
        if ranks > self.series.most_ranks():
            return None
        if ranks == 1:
            return self.fit.fixed + self.series.work(1) / self.fit.rate
        received = self._gathered if self.series.model == "gravity" else self._beside
        size, messages = received(ranks)
        messages += self.last["reductions"] * doublings(ranks)
        demand = Demand(ranks, self.series.share(ranks), size, messages)
        return self.scheme.seconds(self.fit, self.network, demand)

    def efficiency(self, ranks: int) -> float | None:
        """Return the work a second and rank, over that of one rank."""
        seconds, alone = self.seconds(ranks), self.seconds(1)
        if seconds is None or alone is None:
            return None
        return self.series.work(ranks) / ranks / seconds * alone / self.series.work(1)

    def _gathered(self, ranks: int) -> tuple[float, float]:
        """Return bytes and messages in a row where every rank needs every body once a step."""
        measured = self.last["ranks"]
        per_body: float = BYTES_OF_A_BODY
        if measured > 1:
            received = self.series.bodies(measured) * (measured - 1) / measured
            per_body = self.last["bytes"] / received
        others = (ranks - 1) / ranks
        return per_body * self.series.bodies(ranks) * others, self.scheme.messages(ranks)

    def _beside(self, ranks: int) -> tuple[float, float]:
        """Return the same for planes of two neighbours, as they were counted."""
        neighbours = min(self.last["ranks"] - 1, 2)
        return self.last["bytes"] / neighbours * min(ranks - 1, 2), self.last["exchanges"]

    def row(self, ranks: int) -> Row:
        problem = {name: getattr(self.series, name) for name in ("model", "kind", "size")}
        found = {"seconds": self.seconds(ranks), "efficiency": self.efficiency(ranks)}
        return problem | {"scheme": self.scheme.name, "ranks": ranks} | found


def points_of(rows: Sequence[Row], model: str, exchange: str) -> list[Point]:
    """Return what is fitted: the rows of a model with one exchange, the same measurement once."""
    own = only(rows, model=model, exchange=exchange)
    points = [Point(row["median_s"], row["bytes"], row["largest_share"]) for row in own]
    return list(dict.fromkeys(points))


class Conclusion:
    """The conclusion from all rows, and for a network."""

    def __init__(self, network: Network):
        self.network = network

    def fits(self, rows: Sequence[Row]) -> dict[tuple[str, str], Fit | None]:
        kinds = dict.fromkeys((row["model"], row["exchange"]) for row in rows)
        return {kind: fit(points_of(rows, *kind)) for kind in kinds}

    def forecasts(self, rows: Sequence[Row]) -> list[Forecast]:
        """Return predictions for the largest problem of each kind of scaling, if it was shared."""
        found = []
        for (model, exchange), fitted in self.fits(rows).items():
            for _, own in groups(only(rows, model=model, exchange=exchange), "kind"):
                last = max(own, key=lambda row: (row["size"], row["ranks"]))
                if fitted and (exchange != "halo" or last["ranks"] > 1):
                    about = fitted, self.network, last
                    series = problem_of(last)
                    found += [Forecast(series, scheme, *about) for scheme in SCHEMES[exchange]]
        return found

    def summary(self, rows: Sequence[Row]) -> dict[str, Any]:
        """Return the fits and the predictions, for the JSON."""
        fits = [
            {"model": model, "exchange": exchange} | (fitted._asdict() if fitted else {})
            for (model, exchange), fitted in self.fits(rows).items()
        ]
        predictions = [forecast.row(ranks) for forecast in self.forecasts(rows) for ranks in RANKS]
        return {"network": self.network._asdict(), "fits": fits, "predictions": predictions}

    def lines(self, rows: Sequence[Row]) -> list[str | Table]:
        """Return the same in words and a table."""
        lines: list[str | Table] = []
        for kind, fitted in self.fits(rows).items():
            lines += fit_lines(*kind, fitted)
        forecasts = self.forecasts(rows)
        if forecasts:
            latency = f"{digits(3)(self.network.latency * 1e6)} µs"
            bandwidth = f"{with_prefix(self.network.bandwidth).rstrip()}B/s"
            network = f"on a network of {latency} and {bandwidth}"
            lines += [f"predicted, {network}, ranks as fast as here:", forecast_table(forecasts)]
        return lines


def fit_lines(model: str, exchange: str, fitted: Fit | None) -> list[str]:
    """Return the coefficients of a model and what they mean."""
    name = f"{model}, {exchange}: a step takes a + b * bytes + work / rate"
    if fitted is None:
        remedy = "measure several sizes, on one rank and on more"
        return [f"{name}; the points do not tell these apart: {remedy}"]
    fixed = f"{digits(3)(fitted.fixed * 1e6)} µs"
    rate = f"{with_prefix(fitted.rate)}{UNITS.get(model, 'cells')}/s"
    if fitted.per_byte is None:
        exchanged = "b is not known: nothing was exchanged"
    elif fitted.per_byte == 0:
        exchanged = "b = 0: the bytes cost nothing that can be told from the rest"
    else:
        speed = f"the exchange does {with_prefix(1 / fitted.per_byte).rstrip()}B/s"
        exchanged = f"b = {digits(3)(fitted.per_byte * 1e9)} ns: {speed}"
    return [
        f"{name}; fitted to {fitted.points} points, at most {fitted.worst:.1%} off",
        f"  a = {fixed}, whatever the size: launches, beginnings of messages",
        f"  {exchanged}",
        f"  rate = {rate}: what one rank computes",
    ]


def forecast_table(forecasts: Sequence[Forecast]) -> Table:
    """Return what a step takes on each number of ranks, with its efficiency."""
    numbers = [f"{ranks} ranks" for ranks in RANKS]
    table = new_table(["model", "scaling", "size", "exchange", *numbers], left=4)
    for forecast in forecasts:
        series = forecast.series
        size = f"{series.size} bodies" if series.model == "gravity" else f"{series.size}^3 cells"
        known = [(forecast.seconds(ranks), forecast.efficiency(ranks)) for ranks in RANKS]
        cells = [
            f"{digits(3)(seconds * 1e3)} ms {share:6.1%}" if seconds else "too few planes"
            for seconds, share in known
        ]
        table.add_row(series.model, series.kind, size, forecast.scheme.name, *cells)
    return table
