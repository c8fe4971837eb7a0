"""The picture of ``bench fluid``: a panel for each part that was measured."""

from itertools import groupby

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from hybrid_nbody.analysis.style import BLACK, BLUE, GREEN, ORANGE, SKY, VERMILLION
from hybrid_nbody.benchmarks.harness.pictures import DEVICE_COLOURS, WIDTH, machine_title, rate_text

LINE_COLOURS = (VERMILLION, ORANGE, GREEN, BLUE, SKY, BLACK)
LABEL = {"textcoords": "offset points", "va": "center", "fontsize": 6.5}


def fluid_figure(rows, facts) -> Figure:
    """Draw the parts that have rows, one below the other: phases as lines, all else as bars."""
    rows = [row for row in rows if row.get("median_s")]
    parts = [(part, list(group)) for part, group in groupby(rows, key=lambda row: row["part"])]
    heights = [HEIGHTS.get(part, 0.3 + 0.19 * _lines(group)) for part, group in parts] or [1.0]
    figure = Figure(figsize=(WIDTH, 0.6 + sum(heights) + 0.45 * len(heights)), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axes, (part, group) in zip(panels, parts, strict=False):
        PANELS[part](axes, group)
    figure.suptitle(machine_title(facts))
    return figure


HEIGHTS = {"phases": 2.3}


def _tables(rows):
    """Return the rows of each table of a part: those of one device and size."""
    return [
        list(group) for _, group in groupby(rows, key=lambda row: (row["device"], row["cells"]))
    ]


def _lines(rows):
    """Return how many lines the bars of all tables take, with a line between tables."""
    return len(rows) + len(_tables(rows)) - 1


# --- phases ---------------------------------------------------------------------------------------


def _draw_phases(axes, rows):
    """Draw the time of a step against the size, a line a phase."""
    for name, colour in zip(dict.fromkeys(row["rung"] for row in rows), LINE_COLOURS, strict=False):
        points = [(row["cells"], row["median_s"]) for row in rows if row["rung"] == name]
        axes.plot(*zip(*points, strict=True), "o-", color=colour, markersize=3.5, label=name)
        axes.annotate(_time_text(points[-1][1]), points[-1], (5, 0), **LABEL)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(*_whole_decades(row["median_s"] for row in rows))
    axes.margins(x=0.2)
    axes.xaxis.set_major_locator(FixedLocator(sorted({row["cells"] for row in rows})))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda edge, place: f"{edge:.0f}³"))
    _decades(axes.yaxis, _time_text)
    axes.set_xlabel("cells")
    axes.set_title("Phases: time of a step of the plume", loc="left")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


def _time_text(seconds) -> str:
    """Return a time in short, such as ``3.1 ms``."""
    unit, factor = next((pair for pair in UNITS if seconds * pair[1] >= 0.9995), UNITS[-1])
    return f"{seconds * factor:.3g} {unit}"


UNITS = (("s", 1.0), ("ms", 1e3), ("µs", 1e6))


def _whole_decades(values):
    """Return the powers of ten around some values: they alone have labels."""
    exponents = np.log10(list(values))
    return 10.0 ** np.floor(exponents.min()), 10.0 ** (np.floor(exponents.max() + 0.1) + 1)


def _decades(axis, text):
    axis.set_major_locator(LogLocator(10, numticks=20))
    axis.set_minor_locator(LogLocator(10, subs=range(2, 10), numticks=20))
    axis.set_major_formatter(FuncFormatter(lambda value, place: text(value)))
    axis.set_minor_formatter(NullFormatter())


def _label(axes, text):
    """Name the values along the bottom."""
    if axes.get_xscale() == "log":
        _decades(axes.xaxis, text)
    else:
        axes.xaxis.set_major_formatter(
            FuncFormatter(lambda value, place: text(value) if value else "0")
        )


# --- bars -----------------------------------------------------------------------------------------


def _draw_bars(axes, rows, key, text):
    """Draw a bar a row, the tables apart; ``text(row)`` stands beside each.

    Return the place of every row.
    """
    places = []
    names = []
    place = 0
    for table in _tables(rows):
        for row in table:
            axes.barh(
                place,
                row[key],
                height=0.75,
                color=DEVICE_COLOURS[row["device"]],
                alpha=0.85,
                linewidth=0,
            )
            axes.annotate(text(row), (max(row[key], row.get("limit", 0)), place), (5, 0), **LABEL)
            places.append(place)
            names.append(f"{row['rung']}, {row['cells']}³")
            place += 1
        place += 1
    ends = [max(row[key], row.get("limit", 0)) for row in rows]
    _scale(axes, min(row[key] for row in rows), max(ends))
    axes.set_yticks(places, names)
    axes.set_ylim(place - 1.4, -0.6)
    axes.tick_params(axis="y", length=0, labelsize=7)
    return places


def _scale(axes, least, most):
    """Let bars start at zero, or, where they differ too much, on a logarithmic axis; leave room for the labels."""
    if most < 20 * least:
        axes.set_xlim(0, 1.45 * most)
        return
    low = least / 2
    axes.set_xscale("log")
    axes.set_xlim(low, most * (most / low) ** 0.5)


def _draw_layouts(axes, rows):
    """Draw the rate of each layout, with a line where copying its bytes would end."""
    rows = [
        row | {"limit": row["updates_per_s"] / row["share_of_copy"]}
        for row in rows
        if row.get("share_of_copy")
    ]
    places = _draw_bars(
        axes,
        rows,
        "updates_per_s",
        lambda row: f"{rate_text(row['updates_per_s'])}, {row['share_of_copy']:.0%}",
    )
    for row, place in zip(rows, places, strict=True):
        axes.plot([row["limit"]] * 2, [place - 0.45, place + 0.45], color=BLACK, linewidth=1.8)
    _label(axes, rate_text)
    axes.set_title("Layouts: cell-iterations/s (line: a copy of as many bytes)", loc="left")


def _draw_rates(title):
    """Return a panel of cell-iterations a second."""

    def draw(axes, rows):
        _draw_bars(axes, rows, "updates_per_s", lambda row: rate_text(row["updates_per_s"]))
        _label(axes, rate_text)
        axes.set_title(f"{title}: cell-iterations/s", loc="left")

    return draw


def _draw_solvers(axes, rows):
    """Draw the time of each solve, with its iterations."""
    _draw_bars(
        axes,
        rows,
        "median_s",
        lambda row: f"{_time_text(row['median_s'])}, {_count_text(row['iterations'])}",
    )
    _label(axes, _time_text)
    axes.set_title("Solvers: time to a relative residual of 0.001", loc="left")


def _count_text(iterations) -> str:
    return f"{iterations} iterations" if iterations > 1 else "1 iteration"


PANELS = {
    "phases": _draw_phases,
    "layouts": _draw_layouts,
    "convergence": _draw_rates("Convergence tests"),
    "blocks": _draw_rates("Shapes of blocks, interleaved arrays"),
    "solvers": _draw_solvers,
}
