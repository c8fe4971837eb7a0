"""The picture of ``bench scaling``: efficiency against ranks with what is predicted, and what a step is made of."""

from itertools import groupby

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator, PercentFormatter

from hybrid_nbody.analysis.style import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILLION
from hybrid_nbody.benchmarks.harness.pictures import WIDTH, machine_title
from hybrid_nbody.benchmarks.scaling.forecast import RANKS, Conclusion
from hybrid_nbody.benchmarks.scaling.model import Network
from hybrid_nbody.benchmarks.scaling.problems import STRONG, WEAK

LINES = (BLUE, VERMILLION, GREEN, ORANGE, SKY, PURPLE, BLACK)
PARTS = (("compute", BLUE), ("exchange", ORANGE), ("wait", GREY))
TITLES = {STRONG: "Strong: one problem", WEAK: "Weak: as much work a rank"}


def scaling_figure(rows, facts) -> Figure:
    """Draw efficiency against ranks, a panel a kind of scaling, above the parts of a step on each rank."""
    shared = [row for row in rows if row["ranks"] > 1]
    bars = sum(row["ranks"] for row in shared) + len(shared)
    heights = [2.6] + ([0.5 + 0.085 * bars] if shared else [])
    figure = Figure(figsize=(WIDTH, 1.2 + sum(heights)), layout="constrained")
    FigureCanvasAgg(figure)
    above, *below = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    _draw_efficiencies(above, rows, Conclusion(Network(**facts["network"])))
    for part in below:
        _draw_parts(part.subplots(), shared)
    number = facts["ranks"]
    title = machine_title(facts, "gpu" if "gpu" in facts else "cpu")
    figure.suptitle(f"{number} rank{'s' if number > 1 else ''} of {title}")
    return figure


def _draw_efficiencies(figure, rows, conclusion):
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    forecasts = conclusion.forecasts(rows)
    colours = dict(zip(dict.fromkeys(_name(row) for row in rows), LINES, strict=False))
    panels = figure.subplots(1, len(kinds), squeeze=False, sharey=True)[0]
    for axes, kind in zip(panels, kinds, strict=True):
        _draw_measured(axes, [row for row in rows if row["kind"] == kind], colours)
        for forecast in forecasts:
            if forecast.series.kind == kind:
                _draw_forecast(axes, forecast, colours)
        _style(axes, kind, rows, forecasts)
    panels[0].set_ylabel("efficiency")
    handles = {
        text: line
        for axes in panels
        for line, text in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=2, fontsize=7)


def _name(row):
    """Return what a line is called."""
    if row["model"] == "gravity":
        return f"gravity, {row['size']} bodies, {row['exchange']}"
    return f"fluid, {row['size']}³ cells"


def _draw_measured(axes, rows, colours):
    for name, group in groupby(rows, key=_name):
        points = [(row["ranks"], row["efficiency"]) for row in group]
        axes.plot(
            *zip(*points, strict=True),
            "o-",
            color=colours.get(name, BLACK),
            markersize=4,
            label=name,
        )


def _draw_forecast(axes, forecast, colours):
    counts = [2**k for k in range(RANKS[-1].bit_length())]
    points = [
        (ranks, forecast.efficiency(ranks))
        for ranks in counts
        if forecast.seconds(ranks) is not None
    ]
    style = ":" if "p - 1" in forecast.scheme.name else "--"
    name = f"predicted: {forecast.scheme.name}"
    colour = colours.get(_name(forecast.last), BLACK)
    axes.plot(*zip(*points, strict=True), style, color=colour, linewidth=1.1, label=name)


def _style(axes, kind, rows, forecasts):
    counts = sorted({row["ranks"] for row in rows} | (set(RANKS) if forecasts else set()))
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(counts))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda count, place: f"{count:.0f}"))
    axes.axhline(1, color=GREY, linewidth=0.8, linestyle=":")
    axes.set_ylim(0, max(1.1, 1.05 * max(row["efficiency"] for row in rows)))
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.set_xlabel("ranks")
    axes.set_title(TITLES[kind], loc="left")


def _draw_parts(axes, rows):
    """Draw a bar a rank: the shares of what it does by itself, of the exchange, and of waiting for others."""
    place = 0
    places = []
    names = []
    for row in rows:
        places.append(place + (row["ranks"] - 1) / 2)
        names.append(f"{row['kind']}, {_name(row)}, {row['ranks']} ranks")
        for rank in range(row["ranks"]):
            _draw_bar(axes, place, row["compute_s"][rank], row["exchange_s"], row["wait_s"][rank])
            place += 1
        place += 1
    axes.set_yticks(places, names)
    axes.set_ylim(place - 1.4, -0.6)
    axes.set_xlim(0, 1)
    axes.tick_params(axis="y", length=0, labelsize=6.5)
    axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.set_xlabel("of a step, a bar a rank")
    for name, colour in PARTS:
        axes.barh(0, 0, color=colour, label=name)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3)


def _draw_bar(axes, place, *seconds):
    start = 0.0
    total = sum(seconds)
    for part, (_, colour) in zip(seconds, PARTS, strict=True):
        axes.barh(
            place, part / total, left=start, height=0.8, color=colour, alpha=0.85, linewidth=0
        )
        start += part / total
