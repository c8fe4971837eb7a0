"""The picture of ``bench flat``: N threads against N x N threads, and what threads and a GPU bring."""

from itertools import groupby

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from hybrid_nbody.analysis.style import BLACK, BLUE, BODY_COLOURS, GREY, VERMILLION
from hybrid_nbody.benchmarks.harness.pictures import WIDTH, machine_title

MARKERS = "os^Dv*"

CLOSEST = 1.2
"""Sizes of which one is so many times the other, at least, are both labelled."""


def flat_figure(rows, facts) -> Figure:
    """Draw the time of a step against the number of bodies, in two panels."""
    rows = [row for row in rows if row.get("median_s")]
    figure = Figure(figsize=(WIDTH, 4.0), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    _draw_threads(left, rows)
    _draw_devices(right, [row for row in rows if row["part"] == "devices"])
    figure.suptitle(machine_title(facts))
    return figure


def _draw_threads(axes, rows):
    """Draw the fastest rung with N and with N x N threads, and where they cross."""
    from hybrid_nbody.benchmarks.square.flat import crossover, fastest

    axes.set_title("the fastest rung on the GPU", loc="left")
    found = {threads: fastest(rows, threads) for threads in ("N", "N x N")}
    for (threads, times), colour, marker in zip(
        found.items(), (BLUE, VERMILLION), MARKERS, strict=False
    ):
        if times:
            axes.plot(
                times.keys(),
                times.values(),
                f"{marker}-",
                color=colour,
                markersize=4,
                label=f"{threads} threads",
            )
    if not all(found.values()):
        axes.text(0.5, 0.5, "needs a GPU", transform=axes.transAxes, ha="center", color=GREY)
        axes.set(xticks=[], yticks=[])
        return
    _style(axes, found["N"])
    place = crossover(rows)
    if place:
        axes.axvline(place, color=BLACK, linewidth=1, linestyle=":", label=f"equal at {place:.0f}")
    axes.legend()


def _draw_devices(axes, rows):
    """Draw a line for each device."""
    axes.set_title("one thread, all threads and a GPU", loc="left")
    ordered = sorted(rows, key=lambda row: row["rung"])
    lines = groupby(ordered, key=lambda row: row["rung"])
    for (name, group), colour, marker in zip(lines, BODY_COLOURS, MARKERS, strict=False):
        points = sorted((row["bodies"], row["median_s"]) for row in group)
        axes.plot(*zip(*points, strict=True), f"{marker}-", color=colour, markersize=4, label=name)
    if rows:
        _style(axes, {row["bodies"] for row in rows})
        axes.figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3)


def _apart(sizes):
    """Return those sizes whose labels have room side by side."""
    kept = sizes[:1]
    for size in sizes[1:]:
        kept += [size] if size >= kept[-1] * CLOSEST else []
    return kept


def _style(axes, sizes):
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.xaxis.set_major_locator(FixedLocator(_apart(sorted(sizes))))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda number, place: f"{number:.0f}"))
    axes.tick_params(axis="x", labelsize=7, labelrotation=45)
    axes.yaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5), numticks=20))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda seconds, place: f"{seconds * 1e6:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("bodies")
    axes.set_ylabel("µs a step")
