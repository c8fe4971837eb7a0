"""``bench split``: a force that a GPU and CPU threads share, against the share of the CPU."""

import statistics
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from hybrid_nbody.analysis import style
from hybrid_nbody.backends.base import Backend
from hybrid_nbody.backends.cpu import CpuBackend, usable_cores
from hybrid_nbody.backends.hybrid import HybridBackend
from hybrid_nbody.backends.timing import seconds_of
from hybrid_nbody.benchmarks.harness import measure, options, pictures
from hybrid_nbody.benchmarks.harness.machine import Devices, check_memory, find_devices
from hybrid_nbody.benchmarks.harness.measure import Action, Column, Row, Stop, Times
from hybrid_nbody.benchmarks.harness.record import Plan, Task, carry_out
from hybrid_nbody.benchmarks.harness.runs import ProductionRun, massive_box
from hybrid_nbody.errors import InputError
from hybrid_nbody.nbody.kernels.hybrid.kernels import FORCE_ALONE
from hybrid_nbody.nbody.precision import PRECISIONS

ALONE = "alone"
NEAR = "near"
EVERYWHERE = "everywhere"
AUTO = "auto"
"""Rows: a device alone, a multiple of the predicted optimum, a share, the program's choice."""

CLAIMED = 0.1
PROMISED = 0.98
"""The share that experiment E calls hardly worthwhile; the speed that auto reaches at least."""

SIZES = {"gpu": [16384, 131072], "cpu": [4096]}

SHARES = tuple(k / 10 for k in range(1, 10))
MULTIPLES = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0)
"""Shares that are measured: everywhere, and at these multiples of the predicted optimum."""

REMEDY = "; --roles cpu lets CPU threads play both roles, to see what this does"
NAMES = {"gpu": "GPU alone", "cpu": "CPU in the GPU's role, alone"}

ROW_SECONDS = 2.0
FEWEST = 3
"""About as long as the timings of a row may take, and the fewest of a slow one."""

COLUMNS = (
    Column("kind", "alone: a device by itself; near: near the optimum; everywhere; auto"),
    measure.PRECISION,
    measure.BODIES,
    Column("main", "what computes the rest: a GPU, or CPU threads that play its role"),
    Column("helper", "what computes the share"),
    Column("label", "where the share comes from", "Share", note="note"),
    Column("note", "why a row was not measured"),
    Column("share", "of the bodies, for the CPU to compute", "of the\nCPU", ".2%"),
    *measure.timing_columns(" of a force", "forces"),
    Column("expected_s", "if each device keeps its rate, in s", "expected\nms", "4 ms"),
    Column("against_alone", "speed over the better device's alone", "of the\nbetter", ".3f"),
    Column("better_s", "of auto: the better device alone, timed in turn with it, in s"),
    Column("predicted_share", "of auto: optimum by the rates that it measured"),
    Column("main_rate", "of auto: interactions/s of the main device that it measured"),
    Column("helper_rate", "of auto: the same of the CPU"),
)


def run(arguments: Namespace) -> int:
    """Carry out ``bench split`` and return the exit code."""
    sizes = options.sizes(arguments, SIZES[arguments.roles])
    precisions = options.words("--precisions", arguments.precisions, tuple(PRECISIONS))
    threads = read_threads(arguments.threads)
    devices = find_devices(arguments.roles, REMEDY)
    check_memory(devices, sizes)
    main = devices.gpu or CpuBackend(threads)
    helper = CpuBackend(threads)
    tasks = [
        task
        for precision in precisions
        for number in sizes
        for task in Problem(main, helper, precision, number, arguments.repeats).tasks()
    ]
    summary = lambda rows: {"conclusions": conclusions(rows)}  # noqa: E731
    plan = Plan("split", COLUMNS, tasks, draw, words, summarise=summary)
    return carry_out(plan, Devices(helper, devices.gpu, devices.no_gpu), arguments)


def read_threads(text: str | None) -> int:
    """Return the threads of the CPU, all cores unless fewer are asked for; raise `InputError`."""
    threads = usable_cores() if text is None else options.number("--threads", text)
    if threads > usable_cores():
        most = f"at most {usable_cores()}, the cores of this process"
        raise InputError(f"--threads: {most} (got {threads})")
    return threads


class Problem:
    """The rows of a precision and number of bodies on a GPU (or its stand-in) and the CPU."""

    def __init__(self, main: Backend, helper: Backend, precision: str, number: int, repeats: int):
        self.main = main
        self.head: Row = {"precision": precision, "bodies": number}
        self.head |= {"main": main.description, "helper": helper.description}
        devices = f"{helper.description} beside {main.description}"
        self.section = f"{number} bodies, {precision}: {devices}"
        backend = HybridBackend(main, helper, 0.0)
        self.force = cache(lambda: SharedForce(backend, precision, number, repeats))

    def tasks(self) -> Iterator[Task]:
        """Yield each device alone, shares near the optimum and everywhere, and that of auto."""
        yield self._task(ALONE, NAMES[self.main.name], lambda own: 0.0)
        yield self._task(ALONE, "CPU alone", lambda own: 1.0)
        for multiple in MULTIPLES:
            near = partial(lambda multiple, own: multiple * optimum(*alone(own)), multiple)
            yield self._task(NEAR, f"{multiple:g} × optimum", near)
        for share in SHARES:
            yield self._task(EVERYWHERE, f"{share:.0%}", partial(lambda share, own: share, share))
        yield Task(self.section, AUTO, self._auto)

    def _task(self, kind: str, label: str, share_of: Callable[[list[Row]], float]) -> Task:
        head = self.head | {"kind": kind, "label": label}
        return Task(self.section, label, partial(self._fixed, head, share_of))

    def _fixed(self, head: Row, share_of: Callable, rows: list[Row], stop: Stop) -> Row:
        """Measure a share; ``share_of(rows)`` says which."""
        own = self._own(rows)
        share = share_of(own)
        if share > 1:
            return head | {"note": "more than all"}
        taken = self.force().timed(share, stop)
        row = head | self._columns(share, taken)
        if head["kind"] == ALONE:
            return row
        seconds = alone(own)
        row["expected_s"] = expected(share, *seconds)
        return row | {"against_alone": min(seconds) / taken.median}

    def _auto(self, rows: list[Row], stop: Stop) -> Row:
        """Let the program choose, and compare its choice with the better device alone."""
        force = self.force()
        main, cpu = alone(self._own(rows))
        stop()
        choice = force.kernels.choose(force.state)
        better, taken = force.in_turn(0.0 if main <= cpu else 1.0, choice.share, stop)
        row = self.head | {"kind": AUTO, "label": AUTO}
        return row | {
            **self._columns(choice.share, taken),
            "expected_s": expected(choice.share, main, cpu),
            "against_alone": ratio(better, taken),
            "better_s": better.median,
            "predicted_share": choice.rates.predicted,
            "main_rate": choice.rates.main,
            "helper_rate": choice.rates.helper,
        }

    def _own(self, rows: list[Row]) -> list[Row]:
        return [row for row in rows if self.head.items() <= row.items()]

    def _columns(self, share: float, taken: Times) -> Row:
        rate = self.head["bodies"] ** 2 / taken.median
        return {"share": share, **taken.columns, "interactions_per_s": rate}


class SharedForce:
    """The force on all bodies of a problem, computed as runs do it, with one share or another."""

    def __init__(self, backend: HybridBackend, precision: str, number: int, repeats: int):
        self.backend = backend
        self.repeats = repeats
        run = ProductionRun(backend, massive_box(number), precision)
        self.state = run.state
        self.kernels = run.kernels

    def timed(self, share: float, stop: Stop) -> Times:
        """Return the times of a force with a share of the helper's."""
        batch, calls, repeats = self._prepared(share, stop)
        return measure.timings(self.backend, batch, repeats, stop, calls)

    def in_turn(self, first: float, second: float, stop: Stop) -> tuple[Times, Times]:
        """Return the times of a force with two shares in turn: a clock drifts alike for both."""
        _, calls, repeats = self._prepared(first, stop)
        found: tuple[list[float], list[float]] = [], []
        for _ in range(repeats):
            for share, seconds in zip((first, second), found, strict=True):
                stop()
                batch = self._batch(share, calls)
                batch()  # a share is prepared at its first force
                seconds.append(seconds_of(self.backend, batch) / calls)
        return Times(tuple(found[0]), calls), Times(tuple(found[1]), calls)

    def _prepared(self, share: float, stop: Stop) -> tuple[Action, int, int]:
        """Return a warm batch of forces, their number, and how often it can be timed."""
        stop()
        self._batch(share, 1)()  # compiles, and prepares the share
        stop()
        seconds = seconds_of(self.backend, self._batch(share, 1))
        calls = measure.calls_for(seconds)
        batch = self._batch(share, calls)
        if calls > 1:
            batch()
        return batch, calls, measure.affordable(self.repeats, seconds * calls, ROW_SECONDS, FEWEST)

    def _batch(self, share: float, calls: int) -> Action:
        """Return a function that computes some forces, which leave the bodies where they were."""
        self.kernels.fix(share)
        return lambda: self.kernels.run(self.state, FORCE_ALONE, calls)


def ratio(first: Times, second: Times) -> float:
    """Return the speed of the second over that of the first, timed in turn: a median over turns."""
    turns = zip(first.seconds, second.seconds, strict=True)
    return statistics.median(one / other for one, other in turns)


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
    found = [group for _, group in measure.groups(rows, "precision", "bodies")]
    return [group for group in found if sum(row["kind"] == ALONE for row in group) == 2]


def conclusions(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return what the rows say of each problem."""
    return list(map(_conclusion, problems(rows)))


def _conclusion(rows: list[Row]) -> dict[str, Any]:
    """Return predicted and measured optimum, what the claimed share gives, and auto's choice."""
    main, cpu = alone(rows)
    bodies = rows[0]["bodies"]
    share = optimum(main, cpu)
    measured = [row for row in measure.having(rows, "median_s") if row["kind"] != AUTO]
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
    if claimed := measure.only(measured, share=CLAIMED):
        found["claimed_share"] = CLAIMED
        found["claimed_against_main"] = main / claimed[0]["median_s"]
    if choices := measure.only(rows, kind=AUTO):
        auto = choices[0]
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

RING: pictures.Look = {"marker": "o", "color": style.VERMILLION, "mfc": "none", "ls": ""}
STAR: pictures.Look = {"marker": "*", "color": style.BLACK, "markersize": 10, "ls": ""}
MARKS = {
    "best": RING | {"markersize": 9, "label": "best measured"},
    "auto": STAR | {"label": "chosen by auto"},
}


def draw(rows: Sequence[Row], facts: pictures.Facts) -> Figure:
    """Draw two panels a problem: the time of a force against the share, and near the optimum."""
    found = problems(measure.having(rows, "median_s"))
    count = max(len(found), 1)
    figure = pictures.new_figure(1.0 + 2.5 * count, facts)
    for panels, own in zip(figure.subplots(count, 2, squeeze=False), found, strict=False):
        _draw_problem(panels[0], panels[1], own)
    if found:
        labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(*labels, loc="outside lower center", ncols=3)
    return figure


def _draw_problem(whole: Axes, near: Axes, rows: list[Row]) -> None:
    edge = min(1.0, NEARBY * optimum(*alone(rows)))
    for axes, end in ((whole, 1.0), (near, edge)):
        _draw_times(axes, rows, end)
        _mark(axes, _conclusion(rows), end)
        axes.set_xlim(-0.02 * end, 1.02 * end)
        axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0 if end > 0.2 else 1))
        axes.set_xlabel("share of the CPU")
    whole.set(yscale="log", ylabel="ms a force")
    style.time_ticks(whole.yaxis, 1e3)
    style.ticks_text(near.yaxis, lambda seconds: f"{seconds * 1e3:g}")
    whole.set_title(f"{rows[0]['bodies']} bodies, {rows[0]['precision']}", loc="left")
    near.set_title("near the optimum", loc="left")


def _draw_times(axes: Axes, rows: list[Row], end: float) -> None:
    """Draw what was expected and measured up to a share."""
    shares = np.linspace(0, end, POINTS)
    seconds = [expected(share, *alone(rows)) for share in shares]
    axes.plot(shares, seconds, "--", color=style.GREY, linewidth=1.1, label="expected")
    fixed = [row for row in rows if row["kind"] != AUTO and row["share"] <= end]
    fixed.sort(key=lambda row: row["share"])
    pictures.draw_line(axes, fixed, "share", "median_s", color=style.BLUE, label="measured")


def _mark(axes: Axes, found: dict[str, Any], end: float) -> None:
    predicted = found["predicted_share"]
    axes.axvline(predicted, color=style.ORANGE, linewidth=1.2, label="predicted optimum")
    better = min(found["bodies"] ** 2 / found[rate] for rate in ("main_rate", "cpu_rate"))
    dotted: pictures.Look = {"color": style.GREEN, "linewidth": 1, "linestyle": ":"}
    axes.axhline(better, label="the better device alone", **dotted)
    for name, look in MARKS.items():
        if found.get(f"{name}_share", 2.0) <= end:
            axes.plot(found[f"{name}_share"], found[f"{name}_s"], **look)
