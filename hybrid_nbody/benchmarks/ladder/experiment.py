"""``bench ladder``: every rung of the ladders A, C and E in order, timed and checked."""

from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hybrid_nbody.analysis import style
from hybrid_nbody.benchmarks.harness import measure, options, pictures
from hybrid_nbody.benchmarks.harness.machine import Devices, check_memory, find_devices
from hybrid_nbody.benchmarks.harness.measure import Column, Row, Stop, digits
from hybrid_nbody.benchmarks.harness.record import Plan, Task, carry_out
from hybrid_nbody.benchmarks.harness.runs import Problem
from hybrid_nbody.benchmarks.ladder.rungs import LADDERS, Ladder, Rung

COLUMNS = (
    Column("ladder", "ladder: A, C or E"),
    measure.BODIES,
    Column("rung", "what was measured", "Rung", note="note"),
    measure.DEVICE,
    Column("note", "what the machine lacks for this rung, or how many targets a step was cut to"),
    measure.TARGETS,
    *measure.timing_columns(" of a step", "steps", rank=4),
    measure.GFLOPS,
    Column("speedup_before", "over the rung before, or on its device", "× rung\nbefore", "3"),
    Column("speedup_serial", "speed-up over the serial loop", "×\nserial", "3"),
    *measure.CHECKS,
    Column("kernel", "function and file of a GPU rung"),
    measure.BLOCK,
    measure.UNROLL,
    Column("options", "more options of the CUDA compiler"),
    Column("bytes_per_s", "bytes copied a second", "GB/s", "3 G"),
    Column("share_of_step", "of the last rung on the GPU, in time", "of a\nstep", ".1%"),
)


def run(arguments: Namespace) -> int:
    """Carry out ``bench ladder`` and return the exit code."""
    names = options.words("--ladders", arguments.ladders, tuple(LADDERS))
    asked = options.sizes(arguments)
    devices = find_devices(arguments.backend)
    climbs = [
        Climb(LADDERS[name], number, devices, arguments.repeats)
        for name in names
        for number in asked or LADDERS[name].sizes["gpu" if devices.gpu else "cpu"]
    ]
    check_memory(devices, [climb.head["bodies"] for climb in climbs])
    tasks = [task for climb in climbs for task in climb.tasks(arguments.backend)]
    return carry_out(Plan("ladder", COLUMNS, tasks, draw), devices, arguments)


class Climb:
    """The rows of a ladder at one number of bodies."""

    def __init__(self, ladder: Ladder, number: int, devices: Devices, repeats: int):
        self.ladder = ladder
        self.head: Row = {"ladder": ladder.name, "bodies": number}
        self.devices = devices
        self.repeats = repeats
        self.problem: Callable[[], Problem] = cache(lambda: ladder.problem(number))

    def tasks(self, asked: str) -> Iterator[Task]:
        """Yield a task a rung of the backends asked for, and those of the copies."""
        number = self.head["bodies"]
        section = f"Ladder {self.ladder.name}, {number} bodies: {self.ladder.title}"
        for rung in self.ladder.rungs:
            if asked != "gpu" or rung.device == "gpu" or rung is self.ladder.rungs[0]:
                yield Task(section, rung.name, partial(self._rung, rung))
        if self.ladder.name == "A" and self.devices.gpu:
            fastest = "beside a step of the fastest kernel of ladder A"
            section = f"Copies, {number} bodies: 28 bytes each, {fastest}"
            for copy in COPIES:
                yield Task(section, copy.name, partial(self._copy, copy))

    def _rung(self, rung: Rung, rows: list[Row], stop: Stop) -> Row:
        kernel = rung.kernel.columns if rung.kernel else {}
        head = self.head | {"rung": rung.name, "device": rung.device} | kernel
        row = rung.row(head, self.devices, self.problem(), self.repeats, stop)
        if "interactions_per_s" not in row:
            return row
        return row | _speedups(row["interactions_per_s"], rung, self._peers(rows))

    def _copy(self, copy: "Copy", rows: list[Row], stop: Stop) -> Row:
        step = min(row["median_s"] for row in measure.only(self._peers(rows), device="gpu"))
        return self.head | copy.row(self.devices.gpu, self.head["bodies"], self.repeats, stop, step)

    def _peers(self, rows: list[Row]) -> list[Row]:
        """Return the rungs of the same ladder and size that have been measured."""
        return measure.having(measure.alike(rows, self.head, *self.head))


def _speedups(rate: float, rung: Rung, peers: list[Row]) -> Row:
    """Compare with the rung before, and what a run uses with the last rung on its own device."""
    before = [row for row in peers if not rung.production or row["device"] == rung.device]
    return {
        "speedup_before": rate / before[-1]["interactions_per_s"] if before else None,
        "speedup_serial": rate / peers[0]["interactions_per_s"] if peers else 1.0,
    }


NUMBERS_PER_BODY = 7  # x, y, z, vx, vy, vz, mass, in float32


class Copy(NamedTuple):
    """A copy of the bodies to or from a GPU, in pageable or in pinned memory of the host."""

    up: bool
    pinned: bool

    @property
    def name(self) -> str:
        where = "pinned" if self.pinned else "pageable"
        return f"{'to' if self.up else 'from'} the device, {where} memory"

    def row(self, backend, number: int, repeats: int, stop: Stop, step: float) -> Row:
        """Return the row of a copy of `number` bodies, beside a step of `step` seconds."""
        count = NUMBERS_PER_BODY * number
        host = backend.pinned(count, "f4") if self.pinned else np.empty(count, "f4")
        host[:] = 1
        device = backend.zeros(count, "f4")
        copy = partial(device.get, out=host, stream=backend.stream)
        if self.up:
            copy = partial(device.set, host, stream=backend.stream)
        copy()
        taken = measure.timings(backend, copy, repeats, stop)
        rates = {"bytes_per_s": host.nbytes / taken.median, "share_of_step": taken.median / step}
        return {"rung": self.name, "device": backend.name, **taken.columns, **rates}


COPIES = tuple(Copy(up, pinned) for up in (True, False) for pinned in (False, True))

SIZE_MARKERS = "o^sDv"
SMALL_MARK: pictures.Look = {"color": style.BLACK, "markersize": 3, "mfc": "white", "mew": 0.7}


def draw(rows: Sequence[Row], facts: pictures.Facts) -> Figure:
    """Draw each ladder as bars: a rung's rate at the largest size, marks for smaller ones."""
    rungs = [row for row in rows if row.get("bytes_per_s") is None]
    ladders = measure.groups(rungs, "ladder")
    heights = [len(measure.groups(group, "rung")) + 1 for _, group in ladders]
    figure = pictures.new_figure(0.7 + sum(0.23 + 0.17 * height for height in heights), facts)
    panels = figure.subplots(len(ladders), 1, squeeze=False, sharex=True, height_ratios=heights)
    for axes, ((name,), group) in zip(panels[:, 0], ladders, strict=True):
        _draw_ladder(axes, name, group)
    rates = [row["interactions_per_s"] for row in measure.having(rungs)]
    if rates:  # leave room for the labels
        low, high = min(rates), max(rates)
        panels[0, 0].set_xlim(low / 3, high * (high / low * 3) ** 0.25)
    panels[-1, 0].set_xlabel(f"{pictures.RATE} (×: speed-up over the serial loop)")
    return figure


def _draw_ladder(axes: Axes, name: str, rows: list[Row]) -> None:
    *smaller, largest = sorted({row["bodies"] for row in rows})
    rungs = measure.groups(rows, "rung")
    places = {name: y for y, ((name,), _) in enumerate(rungs)}
    axes.set_xscale("log")
    for y, (_, own) in enumerate(rungs):
        _draw_rung(axes, y, own, largest)
    for size, marker in zip(smaller, SIZE_MARKERS, strict=False):
        points = measure.having(measure.only(rows, bodies=size))
        rates = [row["interactions_per_s"] for row in points]
        heights = [places[row["rung"]] for row in points]
        axes.plot(rates, heights, marker, label=f"{size}", **SMALL_MARK)
    pictures.name_bars(axes, dict(enumerate(places)), len(places) - 0.4)
    style.decades(axes.xaxis, pictures.rate_text)
    axes.set_title(f"Ladder {name}: {largest} bodies", loc="left")
    if smaller:
        beside_title: pictures.Look = {"loc": "lower right", "bbox_to_anchor": (1, 0.985)}
        axes.legend(**beside_title, ncols=len(smaller), fontsize=7, handletextpad=0)


def _draw_rung(axes: Axes, y: int, rows: list[Row], largest: int) -> None:
    rates = {row["bodies"]: row["interactions_per_s"] for row in measure.having(rows)}
    if largest not in rates:
        look: pictures.Look = {"va": "center", "color": style.GREY, "fontsize": 7}
        note = rows[-1].get("note", "")
        axes.text(0.01, y, note, transform=axes.get_yaxis_transform(), **look)
        return
    (row,) = measure.only(rows, bodies=largest)
    production = row["rung"].startswith("production")
    colour = style.GREEN if production else pictures.DEVICE_COLOURS[row["device"]]
    pictures.draw_bar(axes, y, rates[largest], colour)
    speedup = row.get("speedup_serial") or 1
    text = pictures.rate_text(rates[largest])
    if speedup != 1:
        text += f"  ×{digits(3)(speedup)}"
    pictures.write_beside(axes, text, max(rates.values()), y)
