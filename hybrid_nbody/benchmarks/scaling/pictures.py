"""The picture of ``bench scaling``: efficiency against ranks, and what a step is made of."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import PercentFormatter

from hybrid_nbody.analysis.style import BLACK, BLUE, BODY_COLOURS, GREY, ORANGE, new_figure
from hybrid_nbody.benchmarks.harness import pictures
from hybrid_nbody.benchmarks.harness.measure import Row, counted, doubling
from hybrid_nbody.benchmarks.scaling.forecast import RANKS, Conclusion, Forecast
from hybrid_nbody.benchmarks.scaling.problems import STRONG, WEAK, Network

PARTS = (("compute", BLUE), ("exchange", ORANGE), ("wait", GREY))
TITLES = {STRONG: "Strong: one problem", WEAK: "Weak: the same work per rank"}


def draw(rows: Sequence[Row], facts: pictures.Facts) -> Figure:
    """Draw efficiency against ranks, a panel a kind of scaling, above the parts of a step."""
    shared = [row for row in rows if row["ranks"] > 1]
    bars = sum(row["ranks"] for row in shared) + len(shared)
    heights = [2.6] + ([0.5 + 0.085 * bars] if shared else [])
    figure = new_figure(1.2 + sum(heights))
    above, *below = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    _draw_efficiencies(above, rows, Conclusion(Network(**facts["network"])))
    for part in below:
        _draw_parts(part.subplots(), shared)
    title = pictures.machine_title(facts, "gpu" if "gpu" in facts else "cpu")
    figure.suptitle(f"{counted(facts['ranks'], 'rank')} of {title}")
    return figure


def _draw_efficiencies(figure: SubFigure, rows: Sequence[Row], conclusion: Conclusion) -> None:
    kinds = pictures.distinct(rows, "kind")
    forecasts = conclusion.forecasts(rows)
    colours = dict(zip(dict.fromkeys(map(_name, rows)), BODY_COLOURS, strict=False))
    panels = figure.subplots(1, len(kinds), squeeze=False, sharey=True)[0]
    for axes, kind in zip(panels, kinds, strict=True):
        own = [row for row in rows if row["kind"] == kind]
        for name in dict.fromkeys(map(_name, own)):
            line = [row for row in own if _name(row) == name]
            look = {"color": colours.get(name, BLACK), "markersize": 4, "label": name}
            pictures.draw_line(axes, line, "ranks", "efficiency", "o-", **look)
        for forecast in forecasts:
            if forecast.series.kind == kind:
                _draw_forecast(axes, forecast, colours.get(_name(forecast.last), BLACK))
        _style(axes, rows, {row["ranks"] for row in rows} | (set(RANKS) if forecasts else set()))
        axes.set_title(TITLES[kind], loc="left")
    panels[0].set_ylabel("efficiency")
    labels = [zip(*axes.get_legend_handles_labels(), strict=True) for axes in panels]
    handles = {text: line for panel in labels for line, text in panel}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=2, fontsize=7)


def _name(row: Row) -> str:
    if row["model"] == "gravity":
        return f"gravity, {row['size']} bodies, {row['exchange']}"
    if row["model"] == "fmm":
        return f"fmm, {row['size']} bodies"
    return f"fluid, {row['size']}³ cells"


def _draw_forecast(axes: Axes, forecast: Forecast, colour: str) -> None:
    points = [forecast.row(ranks) for ranks in doubling(RANKS[-1])]
    style = ":" if "p - 1" in forecast.scheme.name else "--"
    look = {"color": colour, "linewidth": 1.1, "label": f"predicted: {forecast.scheme.name}"}
    possible = pictures.having(points, "efficiency")
    pictures.draw_line(axes, possible, "ranks", "efficiency", style, **look)


def _style(axes: Axes, rows: Sequence[Row], counts: set[int]) -> None:
    pictures.size_axis(axes, counts, base=2)
    axes.axhline(1, color=GREY, linewidth=0.8, linestyle=":")
    axes.set_ylim(0, max(1.1, 1.05 * max(row["efficiency"] for row in rows)))
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.set_xlabel("ranks")


def _draw_parts(axes: Axes, rows: Sequence[Row]) -> None:
    """Draw one bar per rank: the shares of work, of exchange, and of waiting for others."""
    y = 0
    names: dict[float, str] = {}
    for row in rows:
        names[y + (row["ranks"] - 1) / 2] = f"{row['kind']}, {_name(row)}, {row['ranks']} ranks"
        for compute, wait in zip(row["compute_s"], row["wait_s"], strict=True):
            _draw_bar(axes, y, compute, row["exchange_s"], wait)
            y += 1
        y += 1
    pictures.name_bars(axes, names, y - 1.4, size=6.5)
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.set_xlabel("share of a step, one bar per rank")
    for name, colour in PARTS:
        axes.barh(0, 0, color=colour, label=name)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3)


def _draw_bar(axes: Axes, y: float, *seconds: float) -> None:
    start = 0.0
    for part, (_, colour) in zip(seconds, PARTS, strict=True):
        width = part / sum(seconds)
        axes.barh(y, width, left=start, height=0.8, color=colour, **pictures.BAR)
        start += width
