"""The model `fluid`, stable fluids in three dimensions, as the program knows it."""

TYPE_CHECKING = False  # that of `typing`, whose import would delay every command
if TYPE_CHECKING:  # each part is loaded by the command that needs it
    from collections.abc import Iterable, Mapping, Sequence

    import h5py

    from hybrid_nbody.analysis.presentation import Exports, Facts, Figures
    from hybrid_nbody.files.run import Run
    from hybrid_nbody.files.state import Source
    from hybrid_nbody.fluid.build import FluidBuilder
    from hybrid_nbody.fluid.config import FluidConfig
    from hybrid_nbody.fluid.sources import Event
    from hybrid_nbody.parallel.communicator import Communicator
    from hybrid_nbody.parallel.shares import Devices
    from hybrid_nbody.simulation.model import Quantity
    from hybrid_nbody.simulation.plan import Plan

EXAMPLE = """\
model: fluid
title: Rising smoke
grid: {cells: [64, 96, 64]}
fluid: {buoyancy: 0.5}
sources:
  events:
    - {steps: [0, 149], density: 1, sphere: {centre: [31.5, 8, 31.5], radius: 5}}
    - {step: 40, velocity: [0.2, 0, 0]}   # in the cell at the centre
time: {dt: 0.05, steps: 200}
output:
  directory: output/smoke
  trajectory: {every_steps: 10}
"""

NOTES = """\
Cells are cubes, and the longest edge of the box is the unit of length; x, y and z are the order of
every list.

Refused together: `sources.carry_over` with MacCormack advection, buoyancy or vorticity confinement;
an odd number of cells along a periodic axis; the lexicographic solver with a periodic axis or a
GPU; `solver.omega` without sor; with `criterion: residual` a tolerance below the rounding of
`fluid.dtype` (1.2e-7 of float32); an event outside the grid, or at a step that the run does not
have (the last is `time.steps` - 1)."""


class FluidKind:
    """Stable fluids; see `hybrid_nbody.running.contract.ModelKind` for the contract."""

    name = "fluid"
    summary = "smoke in a box"
    example = EXAMPLE
    notes = NOTES
    timings = ("fluid",)
    highlights = (
        "total_density",
        "total_density_with_ghosts",
        "kinetic_energy",
        "max_speed",
        "cfl",
    )

    @property
    def schema(self) -> "type[FluidConfig]":
        """Return the root of its configuration."""
        from hybrid_nbody.fluid.config import FluidConfig

        return FluidConfig

    @property
    def quantities(self) -> "Mapping[str, Quantity]":
        """Return the names and meanings of its diagnostics."""
        from hybrid_nbody.fluid.diagnostics import QUANTITIES

        return QUANTITIES

    @property
    def changeable(self) -> tuple[str, ...]:
        """Return the keys that a resumed run may change."""
        from hybrid_nbody.parallel.shares import CHANGEABLE

        return CHANGEABLE

    @property
    def fixed(self) -> tuple[str, ...]:
        """Return the keys that a run from a state of another one leaves as they are."""
        return ("model", "grid", "sources.carry_over")

    def sources(self, config: "FluidConfig") -> "tuple[Mapping[str, Source], str]":
        """Return where the fields of a state stand in frames, which must hold every cell.

        Raises
        ------
        InputError
            They do not.
        """
        from hybrid_nbody.fluid.branching import sources_in_frames

        return sources_in_frames(config), ""

    def branched(self, before: "FluidConfig", config: "FluidConfig", step: int) -> "FluidConfig":
        """Return the configuration without events that are past, where steps change.

        Raises
        ------
        InputError
            An event to come would fall at another time.
        """
        from hybrid_nbody.fluid.branching import with_events_to_come

        return with_events_to_come(before, config, step)

    @property
    def figures(self) -> "Figures":
        """Return everything that is drawn of its runs."""
        from hybrid_nbody.fluid.figures.catalogue import FIGURES

        return FIGURES

    @property
    def exports(self) -> "Exports":
        """Return what is exported of its runs."""
        from hybrid_nbody.fluid.figures.exports import EXPORTS

        return EXPORTS

    def resolved(self, config: "FluidConfig") -> "FluidConfig":
        """Return the configuration with the events of its file beside the others.

        A restart then needs no file.

        Raises
        ------
        InputError
            If the file is missing or wrong, or results would depend on the units.
        """
        from hybrid_nbody.fluid.build import with_events_of_file
        from hybrid_nbody.fluid.config_checks import refuse_units_of_change

        refuse_units_of_change(config)
        return with_events_of_file(config)

    def builder(
        self, config: "FluidConfig", communicator: "Communicator", devices: "Devices | None" = None
    ) -> "FluidBuilder":
        """Return what builds the model of a configuration."""
        from hybrid_nbody.fluid.build import FluidBuilder

        return FluidBuilder(config, communicator, devices)

    def plan(self, config: "FluidConfig", initial: "Sequence[Event]", ranks: int) -> "Plan":
        """Return what a run would compute, hold and write."""
        from hybrid_nbody.fluid.plan import plan

        return plan(config, initial, ranks)

    def facts_of_run(self, run: "Run") -> "Facts":
        """Say how many cells the grid has, and which of them the frames hold."""
        from hybrid_nbody.analysis.volume import volume_of

        names = [name for name in run.fields if name.startswith("fluid/")]
        if not names:
            return []
        volume = volume_of(run, names[0])
        what = " and ".join(name.partition("/")[2] for name in names)
        shown = tuple(len(indices) for indices in volume.stored)
        part = "" if shown == volume.cells else f" of {_product(shown)} of them"
        return [("grid", f"{_product(volume.cells)} cells"), ("fields", f"{what}{part}")]

    def facts_of_checkpoint(self, file: "h5py.File") -> "Facts":
        """Say how many cells a checkpoint holds."""
        whole = "state/density"
        return [("grid", f"{_product(file[whole].shape[::-1])} cells")] if whole in file else []


def _product(numbers: "Iterable[int]") -> str:
    return " x ".join(map(str, numbers))
