"""Pictures of benchmarks: each function takes the rows of one and returns a figure; `write` puts it into a file."""

import io
from itertools import groupby

import numpy as np
from matplotlib import colormaps
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from hybrid_nbody.analysis.style import BLACK, BLUE, GREEN, GREY, ORANGE, SKY, VERMILLION, our_look
from hybrid_nbody.benchmarks.harness.results import digits, file_errors
from hybrid_nbody.output.summary import with_prefix

WIDTH = 7.2
DPI = 200
DEVICE_COLOURS = {"cpu": ORANGE, "gpu": BLUE}
PRODUCTION_COLOUR = GREEN
PRECISION_COLOURS = {"single": BLUE, "mixed": GREEN, "double": VERMILLION}
LOOP_COLOURS = (VERMILLION, BLUE, GREEN, SKY, BLACK)
SIZE_MARKERS = "o^sDv"
SMALL_MARK = {"color": BLACK, "markersize": 3, "mfc": "white", "mew": 0.7}
RATE = "interactions/s"


def write(draw, rows, facts, path) -> None:
    """Draw the rows of a benchmark in our look and write the picture.

    Parameters
    ----------
    draw : callable
        Takes rows and facts; returns a figure.

    Raises
    ------
    FileError
        The file cannot be written.
    """
    picture = io.BytesIO()
    with our_look():
        draw(rows, facts).savefig(picture, format="png", dpi=DPI)
    with file_errors(path):
        path.write_bytes(picture.getvalue())


def machine_title(facts, device="") -> str:
    """Return the machine in a line: its processor, its GPU, or both."""
    cpu = f"{facts['cpu']}, {facts['threads']} thread{'s' if facts['threads'] > 1 else ''}"
    return ", ".join(
        part
        for part in (
            cpu if device != "gpu" else "",
            facts.get("gpu", "") if device != "cpu" else "",
        )
        if part
    )


def _figure(height, **layout):
    figure = Figure(figsize=(WIDTH, height), layout="constrained", **layout)
    FigureCanvasAgg(figure)
    return figure


def rate_text(rate) -> str:
    """Return a rate in short, such as ``2.36 T``."""
    return with_prefix(rate).strip()


def _rate_axis(axis):
    """Name the decades of a logarithmic axis of rates: 1 G, 10 G, 100 G."""
    axis.set_major_locator(LogLocator(10, numticks=20))
    axis.set_minor_locator(LogLocator(10, subs=range(2, 10), numticks=20))
    axis.set_major_formatter(FuncFormatter(lambda rate, place: rate_text(rate)))
    axis.set_minor_formatter(NullFormatter())


# --- ladder ---------------------------------------------------------------------------------------


def ladder_figure(rows, facts) -> Figure:
    """Draw each ladder as bars, a rung below the other: its rate at the largest size, marks for smaller ones."""
    rungs = [row for row in rows if row.get("bytes_per_s") is None]
    ladders = [(name, list(group)) for name, group in groupby(rungs, key=lambda row: row["ladder"])]
    counts = [len({row["rung"] for row in group}) for _, group in ladders]
    figure = _figure(0.7 + sum(0.4 + 0.17 * count for count in counts))
    panels = figure.subplots(
        len(ladders), 1, squeeze=False, sharex=True, height_ratios=[count + 1 for count in counts]
    )
    for axes, (name, group) in zip(panels[:, 0], ladders, strict=True):
        _draw_ladder(axes, name, group)
    rates = [row["interactions_per_s"] for row in rungs if row.get("interactions_per_s")]
    if rates:
        panels[0, 0].set_xlim(
            min(rates) / 3, max(rates) * (max(rates) / min(rates) * 3) ** 0.25
        )  # room for the labels
    panels[-1, 0].set_xlabel(f"{RATE} (×: speed-up over the serial loop)")
    figure.suptitle(machine_title(facts))
    return figure


def _draw_ladder(axes, name, rows):
    """Draw one ladder."""
    *smaller, largest = sorted({row["bodies"] for row in rows})
    names = list(dict.fromkeys(row["rung"] for row in rows))
    axes.set_xscale("log")
    for place, rung in enumerate(names):
        _draw_rung(axes, place, [row for row in rows if row["rung"] == rung], largest)
    for size, marker in zip(smaller, SIZE_MARKERS, strict=False):
        points = {
            names.index(row["rung"]): row["interactions_per_s"]
            for row in rows
            if _measured_at(row, size)
        }
        axes.plot(points.values(), points.keys(), marker, label=f"{size}", **SMALL_MARK)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0, labelsize=7.5)
    _rate_axis(axes.xaxis)
    axes.set_title(f"Ladder {name}: {largest} bodies", loc="left")
    if smaller:
        axes.legend(
            loc="lower right",
            bbox_to_anchor=(1, 0.985),
            ncols=len(smaller),
            fontsize=7,
            handletextpad=0,
        )


def _measured_at(row, size):
    return row["bodies"] == size and row.get("interactions_per_s")


def _draw_rung(axes, place, rows, largest):
    """Draw the bar of a rung, or say why there is none."""
    row = next((row for row in rows if _measured_at(row, largest)), None)
    if row is None:
        note = rows[-1].get("note", "")
        axes.text(
            0.01,
            place,
            note,
            transform=axes.get_yaxis_transform(),
            va="center",
            color=GREY,
            fontsize=7,
        )
        return
    colour = (
        PRODUCTION_COLOUR if row["rung"].startswith("production") else DEVICE_COLOURS[row["device"]]
    )
    axes.barh(place, row["interactions_per_s"], height=0.72, color=colour, alpha=0.85, linewidth=0)
    speedup = row.get("speedup_serial") or 1
    text = rate_text(row["interactions_per_s"]) + (
        f"  ×{digits(3)(speedup)}" if speedup != 1 else ""
    )
    end = max(row["interactions_per_s"] for row in rows if row.get("interactions_per_s"))
    axes.annotate(text, (end, place), (5, 0), textcoords="offset points", va="center", fontsize=7)


# --- threads --------------------------------------------------------------------------------------


def threads_figure(rows, facts) -> Figure:
    """Draw rate and parallel efficiency against threads for each loop, with the ideal lines; the largest size."""
    rows = [row for row in rows if row.get("interactions_per_s")]
    number = max((row["bodies"] for row in rows), default=0)
    figure = _figure(3.2)
    left, right = figure.subplots(1, 2)
    loops = groupby((row for row in rows if row["bodies"] == number), key=lambda row: row["loop"])
    for (name, group), colour in zip(loops, LOOP_COLOURS, strict=False):
        _draw_threads(left, right, name, list(group), colour)
    counts = sorted({row["threads"] for row in rows})
    for axes in (left, right):
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_locator(FixedLocator(counts))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda count, place: f"{count:.0f}"))
        axes.set_xlabel("threads")
    _style_threads(left, right)
    figure.suptitle(f"{number} bodies; {machine_title(facts, 'cpu')}")
    return figure


def _draw_threads(left, right, name, rows, colour):
    threads = np.array([row["threads"] for row in rows])
    rate = np.array([row["interactions_per_s"] for row in rows])
    left.plot(threads, rate, "o-", color=colour, markersize=4, label=name)
    left.plot(threads, rate[0] * threads / threads[0], ":", color=colour, linewidth=1)
    left.annotate(
        rate_text(rate[-1]),
        (threads[-1], rate[-1]),
        (0, -11),
        textcoords="offset points",
        ha="center",
        fontsize=7,
    )
    right.plot(threads, [row["efficiency"] for row in rows], "o-", color=colour, markersize=4)


def _style_threads(left, right):
    left.set_yscale("log")
    _rate_axis(left.yaxis)
    left.margins(y=0.15)
    left.set_ylabel(RATE)
    left.plot([], [], ":", color=GREY, linewidth=1, label="ideal")
    left.figure.legend(loc="outside lower center", ncols=4, columnspacing=1.2)
    right.axhline(1, color=GREY, linewidth=1, linestyle=":")
    right.set_ylim(0, 1.15)
    right.set_ylabel("parallel efficiency")


# --- blocks ---------------------------------------------------------------------------------------


def blocks_figure(rows, facts) -> Figure:
    """Draw a heat map a size: block size against unroll factor, with the rule N / p >= multiprocessors marked."""
    sizes = list(dict.fromkeys(row["bodies"] for row in rows))
    across = min(2, len(sizes))
    down = -(-len(sizes) // across)
    figure = _figure(0.5 + 2.9 * down)
    panels = figure.subplots(down, across, squeeze=False).ravel()
    for axes, size in zip(panels, sizes, strict=False):
        _draw_blocks(axes, [row for row in rows if row["bodies"] == size], facts)
    for axes in panels[len(sizes) :]:
        axes.set_axis_off()
    figure.suptitle(f"G interactions/s; {machine_title(facts, 'gpu')}")
    return figure


def _draw_blocks(axes, rows, facts):
    blocks, unrolls = (sorted({row[key] for row in rows}) for key in ("block", "unroll"))
    rates = np.full((len(blocks), len(unrolls)), np.nan)
    for row in rows:
        rates[blocks.index(row["block"]), unrolls.index(row["unroll"])] = (
            row["interactions_per_s"] * 1e-9
        )
    norm = LogNorm(np.nanmin(rates) * 0.999, np.nanmax(rates) * 1.001)
    axes.imshow(rates, norm=norm, cmap="viridis", aspect="auto", origin="lower")
    best = np.unravel_index(np.nanargmax(rates), rates.shape)
    for place in np.argwhere(~np.isnan(rates)):
        _label_cell(axes, place, rates, norm, best=tuple(place) == best)
    _mark_rule(axes, blocks, rows[0]["bodies"], facts["multiprocessors"])
    axes.set_xticks(range(len(unrolls)), unrolls)
    axes.set_yticks(range(len(blocks)), blocks)
    axes.tick_params(length=0)
    axes.set_xlabel("unroll factor")
    axes.set_ylabel("block size p")
    axes.set_title(f"{rows[0]['bodies']} bodies", loc="left")


def _label_cell(axes, place, rates, norm, best):
    value, (y, x) = rates[tuple(place)], place
    colour = "white" if norm(value) < 0.6 else BLACK
    text = f"{value:.0f}" if value >= 100 else f"{value:.3g}"
    axes.text(
        x,
        y,
        text,
        ha="center",
        va="center",
        fontsize=6.5,
        color=colour,
        weight="bold" if best else "normal",
    )
    if best:
        axes.plot(x, y, "o", markersize=20, mfc="none", mec=colour, mew=1.2)


def _mark_rule(axes, blocks, number, multiprocessors):
    """Draw a line above the last block size that gives every multiprocessor a block."""
    filling = sum(number / block >= multiprocessors for block in blocks)
    axes.axhline(filling - 0.5, color=VERMILLION, linewidth=2.5, clip_on=False)
    text = (
        f"N/p ≥ {multiprocessors} below the line"
        if filling
        else f"N/p < {multiprocessors} everywhere"
    )
    text = text if filling < len(blocks) else f"N/p ≥ {multiprocessors} everywhere"
    axes.set_title(text, loc="right", fontsize=7, color=VERMILLION)


# --- sizes ----------------------------------------------------------------------------------------


def sizes_figure(rows, facts) -> Figure:
    """Draw the rate against the number of bodies for each backend and precision, with the crossovers marked."""
    from hybrid_nbody.benchmarks.gravity.sizes import crossover

    figure = _figure(4.0)
    axes = figure.subplots()
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    measured = [row for row in rows if row.get("interactions_per_s")]
    crossovers = {row["precision"]: crossover(measured, row["precision"]) for row in measured}
    for (device, precision), group in groupby(
        measured, key=lambda row: (row["device"], row["precision"])
    ):
        points = [(row["bodies"], row["interactions_per_s"]) for row in group]
        name = f"{device.upper()}, {precision}"
        if device == "gpu" and crossovers[precision]:
            name += f": faster from {crossovers[precision][0]:.0f} bodies"
        style = "o-" if device == "gpu" else "s--"
        axes.plot(
            *zip(*points, strict=True),
            style,
            color=PRECISION_COLOURS[precision],
            markersize=3.5,
            label=name,
        )
    for precision in filter(crossovers.get, crossovers):
        colour = PRECISION_COLOURS[precision]
        axes.plot(
            *crossovers[precision], "*", color=colour, markersize=11, mec=BLACK, mew=0.6, zorder=4
        )
    _draw_ceiling(axes, measured)
    _whole_decades(axes)
    _rate_axis(axes.yaxis)
    axes.xaxis.set_major_locator(FixedLocator(sorted({row["bodies"] for row in measured})))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda number, place: f"{number:.0f}"))
    axes.tick_params(axis="x", labelsize=6)
    axes.set_xlabel("bodies")
    axes.set_ylabel(RATE)
    axes.legend(loc="lower right")
    figure.suptitle(machine_title(facts))
    return figure


def _whole_decades(axes):
    """Let an axis of rates end at decades: they alone have labels."""
    low, high = np.log10(axes.get_ylim())
    axes.set_ylim(10 ** np.floor(low), 10 ** np.ceil(high))


def _draw_ceiling(axes, rows):
    """Draw the issue-slot ceiling of single precision, if a GPU was measured."""
    found = [
        row["interactions_per_s"] / row["share_of_ceiling"]
        for row in rows
        if row.get("share_of_ceiling")
    ]
    if found:
        axes.axhline(found[0], color=SKY, linewidth=1.2)
        axes.set_ylim(top=2 * found[0])
        name = f"ceiling of single: {rate_text(found[0])}"
        axes.annotate(
            name,
            (0.01, found[0]),
            (0, 3),
            xycoords=axes.get_yaxis_transform(),
            textcoords="offset points",
            fontsize=7,
        )


# --- tune -----------------------------------------------------------------------------------------


def tune_figure(rows, facts) -> Figure:
    """Draw the rate of the accelerations against the targets of a lane: a panel a precision, a line a size."""
    rows = [row for row in rows if row["sum"] == "accelerations"]
    precisions, sizes = (
        list(dict.fromkeys(row[key] for row in rows)) for key in ("precision", "bodies")
    )
    figure = _figure(3.6)
    panels = figure.subplots(1, max(1, len(precisions)), squeeze=False, sharey=True)[0]
    for axes, precision in zip(panels, precisions, strict=False):
        for size, colour in zip(
            sizes, colormaps["viridis"](np.linspace(0, 0.9, len(sizes))), strict=True
        ):
            _draw_choices(
                axes,
                [row for row in rows if (row["precision"], row["bodies"]) == (precision, size)],
                colour,
            )
        axes.set_xlabel("targets of a lane")
        axes.set_title(precision, loc="left")
    panels[0].set_yscale("log")
    _rate_axis(panels[0].yaxis)
    panels[0].set_ylabel(RATE)
    handles = [
        Line2D([], [], color=line.get_color(), label=line.get_label())
        for line in panels[0].lines[::2]
    ]
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=4,
        title="bodies; a ring marks the fastest",
    )
    figure.suptitle(machine_title(facts, "gpu"))
    return figure


def _draw_choices(axes, rows, colour):
    """Draw one size, with a ring around the fastest choice."""
    points = {int(row["choice"]): row["interactions_per_s"] for row in rows}
    if points:
        best = max(points, key=points.get)
        axes.plot(
            points.keys(),
            points.values(),
            "o-",
            color=colour,
            markersize=2.5,
            label=f"{rows[0]['bodies']}",
        )
        axes.plot(best, points[best], "o", markersize=8, mfc="none", mec=colour)


# --- limits ---------------------------------------------------------------------------------------


def limits_figure(rows, facts) -> Figure:
    """Draw the rate of each kernel as a bar, and its ceiling as a line across, with the share reached."""
    rows = [row for row in rows if row.get("interactions_per_s")]
    figure = _figure(1.0 + 0.2 * len(rows))
    axes = figure.subplots()
    for place, row in enumerate(rows):
        colour = PRECISION_COLOURS[row["precision"]]
        axes.barh(
            place, row["interactions_per_s"], height=0.72, color=colour, alpha=0.85, linewidth=0
        )
        axes.plot([row["ceiling"]] * 2, [place - 0.45, place + 0.45], color=BLACK, linewidth=1.8)
        text = f"{rate_text(row['interactions_per_s'])}, {row['share_of_ceiling']:.0%}"
        end = max(row["interactions_per_s"], row["ceiling"])
        axes.annotate(
            text, (end, place), (5, 0), textcoords="offset points", va="center", fontsize=7
        )
    names = [f"{row['precision']}, {row['kernel']}, {row['bodies']}" for row in rows]
    axes.set_yticks(range(len(rows)), names)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.margins(x=0.15)
    axes.tick_params(axis="y", length=0, labelsize=7.5)
    axes.xaxis.set_major_formatter(
        FuncFormatter(lambda rate, place: rate_text(rate) if rate else "0")
    )
    axes.set_xlabel(f"{RATE} (line: what the instructions allow at most)")
    figure.suptitle(machine_title(facts, "gpu"))
    return figure
