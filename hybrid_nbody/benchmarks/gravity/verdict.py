"""The verdict of ``bench split`` on the best share, in words and in a picture."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, PercentFormatter

from hybrid_nbody.analysis.style import BLACK, BLUE, GREEN, GREY, ORANGE, VERMILLION, new_figure
from hybrid_nbody.benchmarks.harness import pictures
from hybrid_nbody.benchmarks.harness.measure import Row

ALONE = "alone"
NEAR = "near"
EVERYWHERE = "everywhere"
AUTO = "auto"
"""The meaning of a row: a device alone, a multiple of the predicted optimum, a given share, or the
program's own choice."""

CLAIMED = 0.1
"""The share of experiment E, which it calls hardly worthwhile."""

PROMISED = 0.98
"""Of the speed of the better device alone: what the choice of auto reaches at least."""


def alone(rows: Sequence[Row]) -> tuple[float, float]:
    """Return the seconds of a force on the main device alone and on the CPU alone."""
    seconds = {row["share"]: row["median_s"] for row in rows if row["kind"] == ALONE}
    return seconds[0.0], seconds[1.0]


def optimum(main: float, cpu: float) -> float:
    """Return the share at which both devices take equally long, given their times alone."""
    return main / (main + cpu)


def expected(share: float, main: float, cpu: float) -> float:
    """Return the seconds of a force if both devices work at the same time, each at its own rate."""
    return max((1 - share) * main, share * cpu)


def problems(rows: Sequence[Row]) -> list[list[Row]]:
    """Return the rows of each precision and size whose devices were both measured alone."""
    found = [group for _, group in pictures.groups(rows, "precision", "bodies")]
    return [group for group in found if sum(row["kind"] == ALONE for row in group) == 2]


def conclusions(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return what the rows say of each problem."""
    return [_conclusion(group) for group in problems(rows)]


def _conclusion(rows: list[Row]) -> dict[str, Any]:
    """Return predicted and measured optimum, what the claimed share gives, and auto's choice."""
    main, cpu = alone(rows)
    bodies = rows[0]["bodies"]
    share = optimum(main, cpu)
    measured = [row for row in pictures.having(rows, "median_s") if row["kind"] != AUTO]
    best = min(measured, key=lambda row: row["median_s"])
    found = {
        "precision": rows[0]["precision"],
        "bodies": bodies,
        "main_rate": bodies**2 / main,
        "cpu_rate": bodies**2 / cpu,
        "predicted_share": share,
        "predicted_s": expected(share, main, cpu),
        "best_share": best["share"],
        "best_s": best["median_s"],
        "best_against_alone": min(main, cpu) / best["median_s"],
    }
    claimed = next((row for row in measured if row["share"] == CLAIMED), None)
    if claimed:
        found["claimed_share"] = CLAIMED
        found["claimed_against_main"] = main / claimed["median_s"]
    auto = next((row for row in rows if row["kind"] == AUTO), None)
    if auto:
        found["auto_share"] = auto["share"]
        found["auto_s"] = auto["median_s"]
        found["auto_against_alone"] = auto["against_alone"]
        found["auto_keeps_promise"] = auto["against_alone"] >= PROMISED
    return found


def words(rows: Sequence[Row]) -> list[str]:
    """Return the conclusions in words."""
    return [line for found in conclusions(rows) for line in _lines(found)]


def _lines(found: dict[str, Any]) -> Iterator[str]:
    yield (
        f"{found['bodies']} bodies, {found['precision']}: alone {found['main_rate'] * 1e-9:.4g} "
        f"and {found['cpu_rate'] * 1e-9:.4g} (CPU) G interactions/s; predicted optimum "
        f"{found['predicted_share']:.2%} on the CPU, {found['predicted_s'] * 1e3:.4g} ms"
    )
    yield (
        f"  best measured {found['best_share']:.2%}, {found['best_s'] * 1e3:.4g} ms: "
        f"{found['best_against_alone']:.3f} of the speed of the better device alone"
    )
    if "auto_share" in found:
        kept = found["auto_keeps_promise"]
        yield (
            f"  auto took {found['auto_share']:.2%}, {found['auto_s'] * 1e3:.4g} ms: "
            f"{found['auto_against_alone']:.3f} of the better device alone"
            + ("" if kept else f", LESS than the {PROMISED} that are promised")
        )
    if "claimed_share" in found:
        speed = f"{found['claimed_against_main']:.3f} of the speed without"
        yield f"  with {found['claimed_share']:.0%} on the CPU: {speed}"


POINTS = 200
NEARBY = 3.5
"""The panel on the right ends at this multiple of the predicted optimum."""

RING: pictures.Look = {"marker": "o", "color": VERMILLION, "markersize": 9, "mfc": "none", "ls": ""}
STAR: pictures.Look = {"marker": "*", "color": BLACK, "markersize": 10, "ls": ""}
MARKS = {"best": RING | {"label": "best measured"}, "auto": STAR | {"label": "chosen by auto"}}


def draw(rows: Sequence[Row], facts: pictures.Facts) -> Figure:
    """Draw two panels a problem: the time of a force against the share, and near the optimum."""
    found = problems(pictures.having(rows, "median_s"))
    count = max(len(found), 1)
    figure = new_figure(1.0 + 2.5 * count)
    for panels, own in zip(figure.subplots(count, 2, squeeze=False), found, strict=False):
        _draw_problem(panels[0], panels[1], own)
    if found:
        labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(*labels, loc="outside lower center", ncols=3)
    figure.suptitle(pictures.machine_title(facts))
    return figure


def _draw_problem(whole: Axes, near: Axes, rows: list[Row]) -> None:
    edge = min(1.0, NEARBY * optimum(*alone(rows)))
    whole.set_yscale("log")
    for axes, end in ((whole, 1.0), (near, edge)):
        _draw_times(axes, rows, end)
        _mark(axes, _conclusion(rows), end)
        axes.set_xlim(-0.02 * end, 1.02 * end)
        axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0 if end > 0.2 else 1))
        pictures.ticks_text(axes.yaxis, lambda seconds: f"{seconds * 1e3:g}")
        axes.set_xlabel("share of the CPU")
    whole.yaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5), numticks=20))
    whole.set_ylabel("ms a force")
    whole.set_title(f"{rows[0]['bodies']} bodies, {rows[0]['precision']}", loc="left")
    near.set_title("near the optimum", loc="left")


def _draw_times(axes: Axes, rows: list[Row], end: float) -> None:
    """Draw what was expected and measured up to a share."""
    shares = np.linspace(0, end, POINTS)
    seconds = [expected(share, *alone(rows)) for share in shares]
    axes.plot(shares, seconds, "--", color=GREY, linewidth=1.1, label="expected")
    fixed = [row for row in rows if row["kind"] != AUTO and row["share"] <= end]
    points = sorted((row["share"], row["median_s"]) for row in fixed)
    axes.plot(*zip(*points, strict=True), "o-", color=BLUE, markersize=3.5, label="measured")


def _mark(axes: Axes, found: dict[str, Any], end: float) -> None:
    axes.axvline(found["predicted_share"], color=ORANGE, linewidth=1.2, label="predicted optimum")
    better = min(found["bodies"] ** 2 / found[rate] for rate in ("main_rate", "cpu_rate"))
    axes.axhline(better, color=GREEN, linewidth=1, linestyle=":", label="the better device alone")
    for name, style in MARKS.items():
        if found.get(f"{name}_share", 2.0) <= end:
            axes.plot(found[f"{name}_share"], found[f"{name}_s"], **style)
