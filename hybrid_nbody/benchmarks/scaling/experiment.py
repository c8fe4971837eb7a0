"""``bench scaling``: both models on 1, 2, 4, … ranks, and what to expect of many more."""

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import PercentFormatter

from hybrid_nbody.analysis import style
from hybrid_nbody.backends.cpu import CpuBackend
from hybrid_nbody.benchmarks.harness import machine, measure, pictures, record
from hybrid_nbody.benchmarks.harness.measure import Column, Row, Stop, Times, alike, counted, shown
from hybrid_nbody.benchmarks.harness.pictures import rate_text
from hybrid_nbody.benchmarks.scaling import problems
from hybrid_nbody.benchmarks.scaling.forecast import RANKS, Conclusion, Forecast
from hybrid_nbody.benchmarks.scaling.problems import STRONG, WEAK, Fluid, Series, Settings
from hybrid_nbody.benchmarks.scaling.runs import Parts, Run, Team, parts_of_a_step, timed_steps
from hybrid_nbody.errors import InputError
from hybrid_nbody.parallel.communicator import Communicator, library_name
from hybrid_nbody.parallel.placement import free_cores

SIZES = {
    "gpu": {"bodies": [131072], "bodies of a tree": [4194304], "cells": [256]},
    "cpu": {"bodies": [8192], "bodies of a tree": [65536], "cells": [64]},
}
"""Default sizes, by the device of a rank."""

REHEARSED = {"bodies": [64], "bodies of a tree": [64], "cells": [8]}
"""Sizes of the short runs that find out first whether all ranks can do what is asked for."""

COLUMNS = (
    Column("ranks", "ranks that took part", "Ranks"),
    Column("model", "gravity, fmm, or which fluid"),
    Column("kind", "strong: one problem on more ranks; weak: as much work a rank"),
    Column("exchange", "how ranks see each other's data"),
    Column("transport", "what carries it"),
    Column("size", "bodies, or cells along an edge, on one rank"),
    Column("bodies", "number of bodies", "bodies", rank=1),
    Column("cells", "cells along x, y and z", "cells", rank=1),
    Column("sweeps", "iterations of a solve"),
    *measure.timing_columns(" of a step on the slowest rank", "steps", rank=5)[:-1],
    Column("work", "interactions, bodies or cells of a step, of all ranks"),
    Column("largest_share", "the same of the rank that has most"),
    Column(
        "rate", "interactions, bodies or cells a second, of all ranks", "a second", rate_text, 2
    ),
    Column("efficiency", "rate of a rank over that on fewest ranks", "effi-\nciency", ".1%"),
    Column("watched_s", "the parts of the slowest rank, in s", "watched\nms", "3 ms", 2),
    Column("compute_s", "of each rank by itself in s", "compute\nms", "3 ms"),
    Column("exchange_s", "of a rank that waits for nobody, in s", "exchange\nms", "3 ms"),
    Column("wait_s", "waits of each rank in s", "wait\nms, most", lambda s: shown(max(s), "2 ms")),
    Column("exchanges", "of a step, on the rank that has most", "exch.", "g", 3),
    Column("reductions", "numbers of a step that all ranks agree on"),
    Column("messages", "of a step that a rank receives", "mess-\nages", "g", 3),
    Column("bytes", "bytes of a step that a rank receives", "MB", "3 M", 3),
)


def run(arguments: Namespace, communicator: Communicator) -> int:
    """Carry out ``bench scaling`` on all ranks and return the exit code."""
    settings = communicator.on_root(lambda: problems.read(arguments, communicator.size))
    settings.compute.setdefault("threads", free_cores(communicator))
    everyone = Team(communicator, communicator.size)
    devices = rehearse(settings, everyone)
    series = settings.series(SIZES["gpu" if devices.gpu else "cpu"])

    def check_all() -> None:
        check_threads(arguments.threads, devices.backend)
        check(settings, series, devices, communicator.local_size)
        record.check(arguments.output, "scaling", arguments.overwrite)

    communicator.only_on_root(check_all)
    plan = _plan(settings, series, everyone)
    if communicator.is_root:
        return record.carry_out(plan, devices, arguments, communicator.any)
    return record.follow(plan, communicator.any)


def _plan(settings: Settings, series: list[Series], everyone: Team) -> record.Plan:
    world = everyone.world
    teams = {count: Team(world, count) for count in settings.counts if count < everyone.ranks}
    teams[everyone.ranks] = everyone
    tasks = [
        record.Task(
            one.title, counted(ranks, "rank"), partial(measured, settings, one, teams[ranks])
        )
        for one in series
        for ranks in settings.counts
        if ranks <= one.most_ranks()
    ]
    conclusion = Conclusion(settings.network)

    def conclude(rows: Sequence[Row]) -> list:
        alone = ["one rank alone; for more: mpirun -n 4 hybrid-nbody bench scaling"]
        return [*conclusion.lines(rows), *(alone if world.size == 1 else [])]

    return record.Plan("scaling", COLUMNS, tasks, draw, conclude, summarise=conclusion.summary)


SAME_SERIES = ("model", "kind", "exchange", "size", "sweeps")

SAME_RUN = ("ranks", "model", "exchange", "size", "sweeps")
"""On one rank, where the kinds of scaling are the same; a ring sums in an order of its own."""


def measured(settings: Settings, series: Series, team: Team, rows: list[Row], stop: Stop) -> Row:
    """Return the row of a problem on a team, the same on every rank; all ranks call together."""
    head: Row = {"ranks": team.ranks}
    head |= {name: getattr(series, name) for name in ("model", "kind", "exchange", "size")}
    head |= series.columns(team.ranks)
    same = alike(rows, head, *SAME_RUN)
    if team.ranks == 1 and same:
        return same[0] | head
    earlier = alike(rows, head, *SAME_SERIES)
    values = settings.values(series, team.ranks)
    known = earlier[0]["calls"] if earlier else None
    transport, taken = timed_steps(team, values, known, settings.repeats, stop)
    if team.ranks > 1:
        parts: Any = parts_of_a_step(team, values, taken.calls, settings.repeats, stop)
    else:
        parts = team.do(lambda: Parts(np.array([taken.median]), np.zeros(1)))
    head["transport"] = transport
    row = team.do(lambda: head | figures(series, team.ranks, taken, parts, earlier))
    return team.world.broadcast(row)


def figures(series: Series, ranks: int, taken: Times, parts: Parts, earlier: list[Row]) -> Row:
    """Return the numbers of a row; `earlier` are the rows of the same problem on fewer ranks."""
    rate = series.work(ranks) / taken.median
    first = earlier[0] if earlier else {"rate": rate, "ranks": ranks}
    return taken.columns | {
        "work": series.work(ranks),
        "largest_share": series.share(ranks),
        "rate": rate,
        "efficiency": rate / ranks / (first["rate"] / first["ranks"]),
        "watched_s": float(parts.total.max()),
        "compute_s": parts.compute.tolist(),
        "exchange_s": parts.transfer,
        "wait_s": parts.wait.tolist(),
        **asdict(parts.traffic),
    }


@dataclass(frozen=True)
class RankDevices(machine.Devices):
    """The devices of the root, the kind of the backends, and facts on the ranks."""

    backend: str = "cpu"
    ranks: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def facts(self) -> dict[str, Any]:
        return super().facts | self.ranks

    @property
    def description(self) -> str:
        ranks = counted(self.ranks["ranks"], "rank")
        sharing = ", which share GPUs" if self.ranks["shared_gpus"] else ""
        return f"{ranks}, {self.ranks['transport']}{sharing}; {super().description}"


def rehearse(settings: Settings, everyone: Team) -> RankDevices:
    """Do a step of every model with every exchange, or raise `InputError`; return the devices."""
    small = settings._replace(bodies=None, cells=None, kinds=[WEAK])
    for series in small.series(REHEARSED):
        run = Run(small.values(series, everyone.ranks), everyone)
        transport = run.transport
        placement = run.built.placement
        run.close()
    if len(set(placement.backends)) > 1:
        raise InputError(
            f"ranks that differ ({', '.join(placement.backends)}) do not show how a step scales; "
            "start as many ranks as there are GPUs, or give --backend cpu"
        ).on_all_ranks()
    backend = placement.backend
    gpu: Any = next((device for device in backend.devices if device.name == "gpu"), None)
    ranks = {
        "ranks": everyone.ranks,
        "placement": [list(line) for line in placement.table],
        "shared_gpus": placement.shared_gpus,
        "transport": transport,
        "mpi": library_name(),
        "network": settings.network._asdict(),
    }
    cpu = CpuBackend(settings.compute["threads"])
    return RankDevices(cpu, gpu, "no rank asked for one", backend.name, ranks)


def check_threads(asked: str | None, kind: str) -> None:
    """Raise `InputError` if threads were asked for and are of no use to backends of a kind."""
    if asked is not None and kind == "gpu":
        remedy = "leave it out, or give --backend hybrid or cpu"
        raise InputError(f"--threads: these ranks compute on GPUs alone; {remedy}")


def check(
    settings: Settings, series: list[Series], devices: machine.Devices, local_size: int
) -> None:
    """Raise `InputError` if a problem cannot be shared among the ranks, or is too large."""
    bodies = []
    for one in series:
        if isinstance(one, Fluid):
            _check_planes(one, settings.counts)
            _check_memory(one, settings.counts, devices, local_size)
        else:
            bodies += [one.bodies(count) for count in settings.counts]
    if bodies:
        machine.check_memory(devices, bodies, "--bodies", local_size)


def _check_planes(series: Fluid, counts: list[int]) -> None:
    """Check that a grid has enough planes for the fewest ranks, and not too many on the most."""
    scaling = f"({series.kind} scaling)"
    if series.most_ranks() < counts[0]:
        shared = f"cannot be shared among {counts[0]} ranks {scaling}"
        raise InputError(f"--cells: {series.size} {shared}: at most {series.most_ranks()}")
    ranks = _most(series, counts)
    longest = max(series.cells(ranks))
    if longest > problems.MOST_CELLS:
        along = f"{longest} along z on {ranks} ranks {scaling}"
        most = f"more than {problems.MOST_CELLS}"
        raise InputError(f"--cells: {series.size} a rank are {along}, {most}")


def _check_memory(
    series: Fluid, counts: list[int], devices: machine.Devices, local_size: int
) -> None:
    """Check that a grid fits in memory: most ranks of a node, or the GPU of one of the fewest."""
    ranks = counts[0] if devices.gpu else _most(series, counts)
    sharing = 1 if devices.gpu else min(ranks, local_size)
    needed = sharing * series.share(ranks) * series.bytes_of_a_cell
    where, free = machine.memories(devices)[-1]
    where += f" ({series.kind} scaling)"
    machine.check_fit(f"--cells: {series.size} needs", needed, where, free)


def _most(series: Series, counts: list[int]) -> int:
    """Return the largest number of ranks that can share a problem."""
    return max(count for count in counts if count <= series.most_ranks())


PARTS = (("compute", style.BLUE), ("exchange", style.ORANGE), ("wait", style.GREY))
TITLES = {STRONG: "Strong: one problem", WEAK: "Weak: the same work per rank"}


def draw(rows: Sequence[Row], facts: pictures.Facts) -> Figure:
    """Draw efficiency against ranks, a panel a kind of scaling, above the parts of a step."""
    shared = [row for row in rows if row["ranks"] > 1]
    bars = sum(row["ranks"] for row in shared) + len(shared)
    heights = [2.6] + ([0.5 + 0.085 * bars] if shared else [])
    figure = style.new_figure(1.2 + sum(heights))
    above, *below = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    _draw_efficiencies(above, rows, Conclusion(problems.Network(**facts["network"])))
    for part in below:
        _draw_parts(part.subplots(), shared)
    title = pictures.machine_title(facts, "gpu" if "gpu" in facts else "cpu")
    figure.suptitle(f"{counted(facts['ranks'], 'rank')} of {title}")
    return figure


def _draw_efficiencies(figure: SubFigure, rows: Sequence[Row], conclusion: Conclusion) -> None:
    kinds = measure.groups(rows, "kind")
    forecasts = conclusion.forecasts(rows)
    colours = dict(zip(dict.fromkeys(map(_name, rows)), style.BODY_COLOURS, strict=False))
    panels = figure.subplots(1, len(kinds), squeeze=False, sharey=True)[0]
    for axes, ((kind,), own) in zip(panels, kinds, strict=True):
        for _, line in measure.groups(own, "model", "exchange", "size"):
            name = _name(line[0])
            colour = colours.get(name, style.BLACK)
            pictures.draw_line(axes, line, "ranks", "efficiency", color=colour, label=name)
        for forecast in forecasts:
            if forecast.series.kind == kind:
                _draw_forecast(axes, forecast, colours.get(_name(forecast.last), style.BLACK))
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
    return f"{row['model']}, {row['size']}³ cells"


def _draw_forecast(axes: Axes, forecast: Forecast, colour: str) -> None:
    points = [forecast.row(ranks) for ranks in measure.doubling(RANKS[-1])]
    dashes = ":" if "p - 1" in forecast.scheme.name else "--"
    look = {"color": colour, "linewidth": 1.1, "label": f"predicted: {forecast.scheme.name}"}
    possible = measure.having(points, "efficiency")
    pictures.draw_line(axes, possible, "ranks", "efficiency", dashes, **look)


def _style(axes: Axes, rows: Sequence[Row], counts: set[int]) -> None:
    style.size_axis(axes, counts, base=2)
    axes.axhline(1, color=style.GREY, linewidth=0.8, linestyle=":")
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
