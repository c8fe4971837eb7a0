"""From the rows of ``bench scaling`` to the fitted model, and to what it says of more ranks."""

from dataclasses import asdict, dataclass

from rich.table import Table

from hybrid_nbody.benchmarks.harness.results import digits
from hybrid_nbody.benchmarks.scaling.model import (
    SCHEMES,
    Demand,
    Fit,
    Network,
    Point,
    Scheme,
    doublings,
    fit,
)
from hybrid_nbody.benchmarks.scaling.problems import Fluid, Gravity
from hybrid_nbody.output.summary import with_prefix

RANKS = (64, 512, 4096)
UNITS = {"gravity": "interactions", "fluid": "cells"}
BYTES_OF_A_BODY = 24
"""A position in float64: what ranks exchange, where it could not be counted."""


def points_of(rows, model: str, exchange: str) -> list[Point]:
    """Return what the model is fitted to: all rows of a model with one exchange, the same measurement once."""
    chosen = [row for row in rows if (row["model"], row["exchange"]) == (model, exchange)]
    return list(
        dict.fromkeys(Point(row["median_s"], row["bytes"], row["largest_share"]) for row in chosen)
    )


@dataclass(frozen=True)
class Forecast:
    """What a step of one problem would take on a network.

    Attributes
    ----------
    series : Gravity or Fluid
        The problem.
    scheme : Scheme
        How its ranks would exchange.
    fit : Fit
        How fast they are.
    network : Network
    last : dict
        The row of the problem on the most ranks that were measured.
    """

    series: object
    scheme: Scheme
    fit: Fit
    network: Network
    last: dict

    def seconds(self, ranks: int) -> float | None:
        """Return the time of a step; None where the problem cannot be shared among so many."""
        if ranks > self.series.most_ranks():
            return None
        if ranks == 1:
            return self.fit.fixed + self.series.work(1) / self.fit.rate
        return self.scheme.seconds(self.fit, self.network, self._demand(ranks))

    def efficiency(self, ranks: int) -> float | None:
        """Return the work a second and rank, over that of one rank."""
        seconds = self.seconds(ranks)
        if seconds is None:
            return None
        share = self.series.work(ranks) / ranks
        return share / seconds * self.seconds(1) / self.series.work(1)

    def _demand(self, ranks):
        size, in_a_row = DEMANDS[self.series.model](self, ranks)
        return Demand(
            ranks,
            self.series.share(ranks),
            size,
            in_a_row + self.last["reductions"] * doublings(ranks),
        )

    def gathered(self, ranks: int) -> tuple[float, float]:
        """Return bytes and messages in a row where every rank needs every body once a step."""
        measured = self.last["ranks"]
        others = (ranks - 1) / ranks
        if measured == 1:
            per_body = BYTES_OF_A_BODY
        else:
            per_body = self.last["bytes"] / (
                self.series.bodies(measured) * (measured - 1) / measured
            )
        return per_body * self.series.bodies(ranks) * others, self.scheme.messages(ranks)

    def beside(self, ranks: int) -> tuple[float, float]:
        """Return the same for planes of two neighbours, as they were counted."""
        neighbours = min(self.last["ranks"] - 1, 2)
        return self.last["bytes"] / neighbours * min(ranks - 1, 2), self.last["exchanges"]

    def row(self, ranks: int) -> dict:
        """Return a prediction for the JSON."""
        return {
            "model": self.series.model,
            "kind": self.series.kind,
            "size": self.series.size,
            "scheme": self.scheme.name,
            "ranks": ranks,
            "seconds": self.seconds(ranks),
            "efficiency": self.efficiency(ranks),
        }


DEMANDS = {"gravity": Forecast.gathered, "fluid": Forecast.beside}


def problem_of(row):
    """Return the problem that a row is about."""
    if row["model"] == "gravity":
        return Gravity(row["kind"], row["size"], row["exchange"])
    return Fluid(row["kind"], row["size"], row["sweeps"])


def largest(rows, kind: tuple[str, str, str]) -> dict | None:
    """Return the row of the largest problem on the most ranks.

    Parameters
    ----------
    rows : list of dict
    kind : tuple of str
        Model, exchange and kind of scaling.

    Returns
    -------
    dict or None
        None if there is none, or if it is a fluid's on one rank alone, whose messages could not be
        counted.
    """
    own = [row for row in rows if (row["model"], row["exchange"], row["kind"]) == kind]
    last = max(own, key=lambda row: (row["size"], row["ranks"]), default=None)
    return None if last is None or (last["model"] == "fluid" and last["ranks"] == 1) else last


class Conclusion:
    """What the rows say as a whole.

    Parameters
    ----------
    network : Network
        That is predicted for.
    """

    def __init__(self, network: Network):
        self.network = network

    def fits(self, rows) -> dict[tuple[str, str], Fit | None]:
        """Return the fitted model for each model and exchange of the rows."""
        kinds = dict.fromkeys((row["model"], row["exchange"]) for row in rows)
        return {kind: fit(points_of(rows, *kind)) for kind in kinds}

    def forecasts(self, rows) -> list[Forecast]:
        """Return what can be predicted: of each kind of scaling the largest problem."""
        found = []
        for (model, exchange), fitted in self.fits(rows).items():
            for kind in dict.fromkeys(row["kind"] for row in rows):
                last = largest(rows, (model, exchange, kind))
                if fitted and last:
                    series = problem_of(last)
                    found += [
                        Forecast(series, way, fitted, self.network, last)
                        for way in SCHEMES[exchange]
                    ]
        return found

    def summary(self, rows) -> dict:
        """Return the fits and the predictions, for the JSON."""
        fits = [
            {"model": model, "exchange": exchange} | (asdict(fitted) if fitted else {})
            for (model, exchange), fitted in self.fits(rows).items()
        ]
        predictions = [forecast.row(ranks) for forecast in self.forecasts(rows) for ranks in RANKS]
        return {"network": asdict(self.network), "fits": fits, "predictions": predictions}

    def lines(self, rows) -> list[str | Table]:
        """Return the same in words and a table."""
        lines = []
        for kind, fitted in self.fits(rows).items():
            lines += fit_lines(*kind, fitted)
        forecasts = self.forecasts(rows)
        if forecasts:
            latency = digits(3)(self.network.latency * 1e6)
            bandwidth = with_prefix(self.network.bandwidth).rstrip()
            lines.append(
                f"predicted, on a network of {latency} µs and {bandwidth}B/s, ranks as fast as here:"
            )
            lines.append(forecast_table(forecasts))
        return lines


def fit_lines(model: str, exchange: str, fitted: Fit | None) -> list[str]:
    """Return the coefficients of a model and what they mean."""
    name = f"{model}, {exchange}: a step takes a + b * bytes + work / rate"
    if fitted is None:
        return [
            f"{name}; the points do not tell these apart: measure several sizes, on one rank and on more"
        ]
    lines = [f"{name}; fitted to {fitted.points} points, at most {fitted.worst:.1%} off"]
    lines.append(
        f"  a = {digits(3)(fitted.fixed * 1e6)} µs, whatever the size: launches, beginnings of messages"
    )
    if fitted.per_byte is None:
        lines.append("  b is not known: nothing was exchanged")
    elif fitted.per_byte == 0:
        lines.append("  b = 0: the bytes cost nothing that can be told from the rest")
    else:
        speed = f"the exchange does {with_prefix(1 / fitted.per_byte).rstrip()}B/s"
        lines.append(f"  b = {digits(3)(fitted.per_byte * 1e9)} ns: {speed}")
    return [*lines, f"  rate = {with_prefix(fitted.rate)}{UNITS[model]}/s: what one rank computes"]


def forecast_table(forecasts) -> Table:
    """Return what a step takes on each number of ranks, with its efficiency."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("model", "scaling", "size", "exchange"):
        table.add_column(title)
    for ranks in RANKS:
        table.add_column(f"{ranks} ranks", justify="right")
    for forecast in forecasts:
        series = forecast.series
        size = f"{series.size} bodies" if series.model == "gravity" else f"{series.size}^3 cells"
        cells = [_prediction(forecast, ranks) for ranks in RANKS]
        table.add_row(series.model, series.kind, size, forecast.scheme.name, *cells)
    return table


def _prediction(forecast, ranks):
    seconds = forecast.seconds(ranks)
    if seconds is None:
        return "too few planes"
    return f"{digits(3)(seconds * 1e3)} ms {forecast.efficiency(ranks):6.1%}"
