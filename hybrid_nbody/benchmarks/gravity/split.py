"""``bench split``: a force that a GPU and CPU threads share, against the share of the CPU."""

from functools import cache, partial

from hybrid_nbody.backends.cpu import CpuBackend
from hybrid_nbody.backends.hybrid import HybridBackend
from hybrid_nbody.benchmarks.gravity.split_pictures import split_figure
from hybrid_nbody.benchmarks.gravity.split_runs import SharedForce, ratio
from hybrid_nbody.benchmarks.gravity.split_verdict import (
    ALONE,
    AUTO,
    EVERYWHERE,
    NEAR,
    alone,
    expected,
    of_problem,
    optimum,
    summary,
    verdict,
)
from hybrid_nbody.benchmarks.harness import options
from hybrid_nbody.benchmarks.harness.machine import Devices, check_memory, cores, find_devices
from hybrid_nbody.benchmarks.harness.pictures import write
from hybrid_nbody.benchmarks.harness.record import Plan, Task, carry_out
from hybrid_nbody.benchmarks.harness.results import Column, digits, times, timing_columns
from hybrid_nbody.benchmarks.ladder.problems import massive_box
from hybrid_nbody.errors import InputError
from hybrid_nbody.nbody.kernels.precision import PRECISIONS

SIZES = {"gpu": [16384, 131072], "cpu": [4096]}

SHARES = tuple(k / 10 for k in range(1, 10))
MULTIPLES = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0)
"""Shares that are measured: everywhere, and at these multiples of the predicted optimum."""

NAMES = {"gpu": "GPU alone", "cpu": "CPU in the GPU's role, alone"}

COLUMNS = (
    Column(
        "kind",
        "alone: a device by itself; near: a multiple of the predicted optimum; everywhere; auto",
    ),
    Column("precision", "of the pair force"),
    Column("bodies", "number of bodies N"),
    Column("main", "what computes the rest: a GPU, or CPU threads that play its role"),
    Column("helper", "what computes the share"),
    Column("label", "where the share comes from", "Share", note="note"),
    Column("note", "why a row was not measured"),
    Column("share", "of the bodies whose force the CPU computes", "of the\nCPU", "{:.2%}".format),
    *timing_columns(" of a force", "forces"),
    Column(
        "expected_s",
        "the longer of the times that both devices need for their parts, each at its rate alone, in s",
        "expected\nms",
        times(1e3, digits(4)),
    ),
    Column(
        "against_alone",
        "speed over that of the better device alone; that of auto is measured in turn with it",
        "of the\nbetter",
        "{:.3f}".format,
    ),
    Column("better_s", "of auto: time of the better device alone, measured in turn with it, in s"),
    Column("predicted_share", "of auto: optimum by the rates that it measured"),
    Column("main_rate", "of auto: interactions/s of the main device that it measured"),
    Column("helper_rate", "of auto: the same of the CPU"),
)


def run(arguments) -> int:
    """Carry out ``bench split`` and return the exit code."""
    repeats = options.number("--repeats", arguments.repeats)
    sizes = options.sizes(arguments, SIZES[arguments.roles])
    precisions = options.words("--precisions", arguments.precisions, tuple(PRECISIONS))
    threads = read_threads(arguments.threads)
    devices = find(arguments.roles)
    check_memory(devices, sizes)
    main = devices.gpu or CpuBackend(threads)
    helper = CpuBackend(threads)
    tasks = [
        task
        for precision in precisions
        for number in sizes
        for task in Problem(main, helper, precision, number, repeats).tasks()
    ]
    plan = Plan(
        "split", COLUMNS, tasks, partial(write, split_figure), conclude=verdict, summarise=summary
    )
    return carry_out(plan, Devices(helper, devices.gpu, devices.no_gpu), arguments)


def read_threads(text: str | None) -> int:
    """Return the threads of the CPU, all cores unless fewer are asked for.

    Raises
    ------
    InputError
        If it is no number, or there are not so many cores.
    """
    threads = cores() if text is None else options.number("--threads", text)
    if threads > cores():
        raise InputError(f"--threads: at most {cores()}, the cores of this process (got {threads})")
    return threads


def find(roles: str) -> Devices:
    """Return the devices of this machine, with a GPU if the roles ask for one.

    Raises
    ------
    InputError
        If they do, and there is none.
    """
    if roles == "cpu":
        return find_devices("cpu")
    try:
        return find_devices("gpu")
    except InputError as error:
        raise InputError(
            f"{error}; --roles cpu lets CPU threads play both roles, to see what this does"
        ) from error


class Problem:
    """The rows of one precision and number of bodies.

    Parameters
    ----------
    main, helper : Backend
        The GPU, or what plays its role, and the CPU.
    precision : {"single", "mixed", "double"}
    number : int
        Bodies.
    repeats : int
        Most timings of a row.
    """

    def __init__(self, main, helper, precision, number, repeats):
        self.main = main
        self.helper = helper
        self.head = {
            "precision": precision,
            "bodies": number,
            "main": main.description,
            "helper": helper.description,
        }
        backend = HybridBackend(main, helper, 0.0)
        self.force = cache(lambda: SharedForce(backend, precision, massive_box(number), repeats))

    def tasks(self):
        """Yield the rows: each device alone, shares near the optimum and everywhere, and what auto chooses."""
        yield self._task(ALONE, NAMES[self.main.kind], lambda rows: 0.0)
        yield self._task(ALONE, "CPU alone", lambda rows: 1.0)
        for multiple in MULTIPLES:
            yield self._task(NEAR, f"{multiple:g} × optimum", partial(near, multiple))
        for share in SHARES:
            yield self._task(EVERYWHERE, f"{share:.0%}", lambda rows, share=share: share)
        yield Task(self.section, "auto", self._auto)

    @property
    def section(self) -> str:
        """Title of the table."""
        bodies = self.head["bodies"]
        precision = self.head["precision"]
        return f"{bodies} bodies, {precision}: {self.helper.description} beside {self.main.description}"

    def _task(self, kind, label, share_of):
        return Task(
            self.section,
            label,
            partial(self._fixed, self.head | {"kind": kind, "label": label}, share_of),
        )

    def _fixed(self, head, share_of, rows, stop):
        """Measure a share; ``share_of(rows)`` says which."""
        own = of_problem(rows, head)
        share = share_of(own)
        if share > 1:
            return head | {"note": "more than all"}
        taken = self.force().timed(share, stop)
        row = head | self._columns(share, taken)
        return row | (against(own, share, taken) if head["kind"] != ALONE else {})

    def _auto(self, rows, stop):
        """Let the program choose, and compare its choice with the better device alone."""
        force = self.force()
        own = of_problem(rows, self.head)
        main, cpu = alone(own)
        stop()
        choice = force.kernels.choose(force.state)
        better, taken = force.in_turn(0.0 if main <= cpu else 1.0, choice.share, stop)
        row = self.head | {"kind": AUTO, "label": AUTO} | self._columns(choice.share, taken)
        return row | {
            "expected_s": expected(choice.share, main, cpu),
            "against_alone": ratio(better, taken),
            "better_s": better.median,
            "predicted_share": choice.rates.predicted,
            "main_rate": choice.rates.main,
            "helper_rate": choice.rates.helper,
        }

    def _columns(self, share, taken):
        return {
            "share": share,
            **taken.columns,
            "interactions_per_s": self.head["bodies"] ** 2 / taken.median,
        }


def near(multiple: float, own) -> float:
    """Return a multiple of the predicted optimum; `own` are the rows of the problem so far."""
    return multiple * optimum(*alone(own))


def against(own, share: float, taken) -> dict:
    """Return the columns that compare a time with those of both devices alone."""
    times = alone(own)
    return {"expected_s": expected(share, *times), "against_alone": min(times) / taken.median}
