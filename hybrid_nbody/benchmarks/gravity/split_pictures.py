"""The picture of ``bench split``: time of a force against the share of the CPU, all of it and near the optimum."""

from itertools import groupby

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, PercentFormatter

from hybrid_nbody.analysis.style import BLACK, BLUE, GREEN, GREY, ORANGE, VERMILLION
from hybrid_nbody.benchmarks.gravity.split_verdict import (
    ALONE,
    AUTO,
    alone,
    conclusions,
    expected,
    optimum,
)
from hybrid_nbody.benchmarks.harness.pictures import WIDTH, machine_title

NEARBY = 3.5
"""The panel on the right ends at so many times the predicted optimum."""

POINTS = 200

MARKS = {
    "best": {
        "marker": "o",
        "color": VERMILLION,
        "markersize": 9,
        "mfc": "none",
        "ls": "",
        "label": "best measured",
    },
    "auto": {"marker": "*", "color": BLACK, "markersize": 10, "ls": "", "label": "chosen by auto"},
}


def split_figure(rows, facts) -> Figure:
    """Draw two panels a problem, with the predicted optimum, the measured one and the choice of auto marked."""
    rows = [row for row in rows if row.get("median_s")]
    problems = [
        list(group) for _, group in groupby(rows, key=lambda row: (row["precision"], row["bodies"]))
    ]
    problems = [
        problem
        for problem in problems
        if len([row for row in problem if row["kind"] == ALONE]) == 2
    ]
    figure = Figure(figsize=(WIDTH, 1.0 + 2.5 * max(len(problems), 1)), layout="constrained")
    FigureCanvasAgg(figure)
    for panels, problem in zip(
        figure.subplots(max(len(problems), 1), 2, squeeze=False), problems, strict=False
    ):
        _draw_problem(*panels, problem)
    if problems:
        figure.legend(
            *figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3
        )
    figure.suptitle(machine_title(facts))
    return figure


def _draw_problem(whole, near, rows):
    times, (found,) = alone(rows), conclusions(rows)
    edge = min(1.0, NEARBY * optimum(*times))
    whole.set_yscale("log")
    for axes, end in ((whole, 1.0), (near, edge)):
        _draw_times(
            axes, [row for row in rows if row["share"] <= end], np.linspace(0, end, POINTS), times
        )
        _mark(axes, found, end)
        axes.set_xlim(-0.02 * end, 1.02 * end)
        axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0 if end > 0.2 else 1))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda seconds, place: f"{seconds * 1e3:g}"))
        axes.set_xlabel("share of the CPU")
    whole.yaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5), numticks=20))
    whole.yaxis.set_minor_formatter(NullFormatter())
    whole.set_ylabel("ms a force")
    whole.set_title(f"{rows[0]['bodies']} bodies, {rows[0]['precision']}", loc="left")
    near.set_title("near the optimum", loc="left")


def _draw_times(axes, rows, shares, times):
    axes.plot(
        shares,
        [expected(share, *times) for share in shares],
        "--",
        color=GREY,
        linewidth=1.1,
        label="expected",
    )
    fixed = sorted((row["share"], row["median_s"]) for row in rows if row["kind"] != AUTO)
    axes.plot(*zip(*fixed, strict=True), "o-", color=BLUE, markersize=3.5, label="measured")


def _mark(axes, found, end):
    """Mark what lies within a panel that ends at a share."""
    axes.axvline(found["predicted_share"], color=ORANGE, linewidth=1.2, label="predicted optimum")
    better = min(found["bodies"] ** 2 / found[rate] for rate in ("main_rate", "cpu_rate"))
    axes.axhline(better, color=GREEN, linewidth=1, linestyle=":", label="the better device alone")
    for name, style in MARKS.items():
        if found.get(f"{name}_share", 2.0) <= end:
            axes.plot(found[f"{name}_share"], found[f"{name}_s"], **style)
