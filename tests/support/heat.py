"""Heat in a plane: a model from outside the package. As a script, the command line with it.

``python heat.py run plate.yaml`` is what ``hybrid-nbody run plate.yaml`` would be if the program
had the model.
"""

import sys
from types import SimpleNamespace
from typing import Literal

import numpy as np
from pydantic import Field as Key

from hybrid_nbody.analysis.presentation import PlainPresentation
from hybrid_nbody.config.sections import Compute, ModelConfig, Output, Section, Time
from hybrid_nbody.config.values import AtLeastOne, Line, Positive
from hybrid_nbody.errors import InputError
from hybrid_nbody.parallel.exchange.halo import HaloExchange
from hybrid_nbody.parallel.shares import (
    CHANGEABLE,
    Devices,
    RunSetup,
    check_lists,
    placement_lines,
    planned_counts,
    plural,
    shares,
)
from hybrid_nbody.simulation.model import Field, Quantity, Work
from hybrid_nbody.simulation.plan import Memory, Plan
from hybrid_nbody.simulation.timings import Timings

BYTES = 8


class Plate(Section):
    """A rectangular plate, insulated at its edges."""

    rows: AtLeastOne = Key(description="Cells along y, which ranks share out.")
    columns: AtLeastOne = Key(description="Cells along x.")
    diffusivity: Positive = Key(0.1, description="In units of cells^2 / time.")
    waves: AtLeastOne = Key(1, description="Half waves along each edge of the initial state.")


class HeatConfig(ModelConfig):
    """Heat in a plane, by explicit diffusion."""

    model: Literal["heat"] = Key(description="heat: heat in a plane.")
    title: Line = Key("", description="A name.")
    plate: Plate = Key(description="The plate.")
    time: Time = Key(description="Time step and end of the run.")
    compute: Compute = Key(Compute(), description="Where the work is done.")
    output: Output = Key(Output(), description="Files of the run.")


def cosine_mode(plate: Plate) -> np.ndarray:
    """Return a mode of the plate, 1 at its corner: (rows, columns) float64."""
    along = [
        np.cos(np.pi * plate.waves * (np.arange(number) + 0.5) / number)
        for number in (plate.rows, plate.columns)
    ]
    return np.outer(*along)


def decay_of_a_step(config: HeatConfig) -> float:
    """Return the factor by which a step reduces the mode, from the eigenvalue of the stencil."""
    plate = config.plate
    sines = [np.sin(np.pi * plate.waves / (2 * n)) ** 2 for n in (plate.rows, plate.columns)]
    return 1.0 - 4.0 * plate.diffusivity * config.time.dt * sum(sines)


class HeatModel:
    """Temperatures of the rows that a rank owns, with one row of its neighbours at each end."""

    quantities = {
        "heat": Quantity("temperature", "sum over all cells"),
        "largest": Quantity("temperature", "largest in size"),
    }
    advice = {"start": "Look at the plate", "run": "Take a smaller time.dt"}
    row_name = "row"

    def __init__(self, config, setup, communicator):
        self.plate = config.plate
        self.dt = config.time.dt
        self.halo = setup.exchange
        self.backend = setup.placement.backend
        self.communicator = communicator
        self.step = 0
        self.timings = Timings()
        cells = self.plate.rows * self.plate.columns
        self.work = Work("cells", float(cells), 6)
        own = self.halo.own
        self.temperature = np.zeros((own.stop - own.start + 2, self.plate.columns))
        self.temperature[1:-1] = cosine_mode(self.plate)[own]

    @property
    def time(self):
        return self.step * self.dt

    def advance(self, steps):
        with self.timings.measure("diffusion"):
            for _ in range(steps):
                self._step_once()
        self.step += steps

    def _step_once(self):
        values = self.temperature
        self.halo.fill(values)
        if self.halo.own.start == 0:  # no heat passes an edge
            values[0] = values[1]
        if self.halo.own.stop == self.plate.rows:
            values[-1] = values[-2]
        wide = np.pad(values[1:-1], ((0, 0), (1, 1)), mode="edge")
        neighbours = values[:-2] + values[2:] + wide[:, :-2] + wide[:, 2:]
        factor = self.plate.diffusivity * self.dt
        values[1:-1] += factor * (neighbours - 4.0 * values[1:-1])

    def diagnostics(self):
        own = self.temperature[1:-1]
        sums = self.communicator.concatenate(own.sum(axis=1))
        largest = self.communicator.maximum(np.array(np.abs(own).max()))
        return {"heat": float(sums.sum()), "largest": float(largest)}

    def fields(self):
        field = Field(
            name="heat/temperature",
            shape=(self.plate.rows, self.plate.columns),
            dtype=np.dtype("f8"),
            units="temperature",
            description="of each cell (y, x)",
            index=self.halo.own,
            host=lambda start, stop: self.temperature[1 + start : 1 + stop],
        )
        return {field.name: field}

    def scalars(self):
        return {"step": self.step, "time": self.time}

    def restore(self, rows, scalars):
        self.step = int(scalars["step"])
        self.temperature[1:-1] = rows("heat/temperature")

    def suspect(self):
        return "the hottest cell"


class HeatBuilder:
    """From a configuration to a plate on all ranks."""

    least = 1
    doing = "preparing the plate"
    warnings = ()

    def __init__(self, config, communicator, devices=None):
        self.config = config
        self.communicator = communicator
        self.devices = devices or Devices()

    def check(self):
        check_lists(self.config.compute, self.communicator.size)
        if self.config.plate.rows < self.communicator.size:
            raise InputError("plate.rows: a rank needs one row at least").on_all_ranks()

    def initial(self):
        return None

    def pace(self, backend):
        return 1.0

    def fresh(self, initial):
        compute = self.config.compute
        placement = self.devices.assign(compute.backend, compute.threads, self.communicator)
        partition = shares(compute, self.config.plate.rows, placement, self._speeds, self.least)
        transport = self.devices.connect(
            compute.transport, placement.backend, self.communicator, placement.shared_gpus
        )
        return self._setup(placement, transport, partition)

    def _setup(self, placement, transport, partition):
        halo = HaloExchange(transport, partition, self.communicator, periodic=False)
        where = SimpleNamespace(placement=placement, exchange=halo)
        return RunSetup(HeatModel(self.config, where, self.communicator), placement, halo)

    def restored(self, saved):
        return self._at(saved, self.fresh(None))

    def rearranged(self, setup, partition, saved):
        transport = setup.exchange.transport
        return self._at(saved, self._setup(setup.placement, transport, partition))

    def branched(self, start):
        return self.restored(start)

    def _at(self, saved, setup):
        own = setup.exchange.own
        setup.model.restore(lambda name: saved.rows(name, own), saved.scalars)
        return setup

    def _speeds(self):
        return [1.0] * self.communicator.size

    def busy_seconds(self, setup):
        return setup.model.timings["diffusion"]

    def speeds(self, setup, seconds):
        return None

    def lines(self, setup):
        def rows(number):
            return plural(number, "row", "rows")

        return [self.config.title, *placement_lines(self.config.compute, setup, rows)]


class HeatKind(PlainPresentation):
    """Heat in a plane; see `hybrid_nbody.running.contract.ModelKind` for the contract."""

    name = "heat"
    summary = "heat in a plane"
    schema = HeatConfig
    example = "model: heat\nplate: {rows: 8, columns: 8}\ntime: {dt: 1, steps: 10}\n"
    notes = "The plate is insulated."
    quantities = HeatModel.quantities
    timings = ("diffusion",)
    changeable = CHANGEABLE
    highlights = ("largest",)
    fixed = ("model", "plate.rows", "plate.columns")

    def sources(self, config):
        return {"heat/temperature": ("heat/temperature", None)}, ""

    def branched(self, before, config, step):
        return config

    def resolved(self, config):
        return config

    def builder(self, config, communicator, devices=None):
        return HeatBuilder(config, communicator, devices)

    def plan(self, config, initial, ranks):
        plate = config.plate
        counts = planned_counts(config.compute.balance, plate.rows, ranks)
        size = plate.rows * plate.columns * BYTES
        return Plan(
            problem=[("plate", f"{plate.rows} x {plate.columns} cells")],
            work=f"{plate.rows * plate.columns * config.time.total_steps:.3g} cells stepped",
            frame_bytes=size,
            checkpoint_bytes=size,
            memory=Memory((max(counts) + 2) * plate.columns * BYTES, "1 array"),
        )


if __name__ == "__main__":
    from hybrid_nbody.cli.main import main
    from hybrid_nbody.running.models import register

    register(HeatKind())
    sys.exit(main())
