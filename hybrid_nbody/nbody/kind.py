"""The model `nbody`, gravity between bodies, as the program knows it."""

TYPE_CHECKING = False  # that of `typing`, whose import would delay every command
if TYPE_CHECKING:  # each part is loaded by the command that needs it
    from collections.abc import Mapping

    import h5py

    from hybrid_nbody.analysis.presentation import Exports, Facts, Figures
    from hybrid_nbody.files.run import Run
    from hybrid_nbody.files.state import Source
    from hybrid_nbody.nbody.build import NBodyBuilder
    from hybrid_nbody.nbody.config import NBodyConfig
    from hybrid_nbody.nbody.starting import Initial
    from hybrid_nbody.parallel.communicator import Communicator
    from hybrid_nbody.parallel.shares import Devices
    from hybrid_nbody.simulation.model import Quantity
    from hybrid_nbody.simulation.plan import Plan

EXAMPLE = """\
model: nbody
title: Plummer sphere
bodies: {kind: plummer, n: 8192}
gravity: {softening: 0.01}
time: {dt: 1e-3, end: 1.0}
output:
  directory: output/plummer
  trajectory: {every_time: 0.05}
  checkpoint: {every_steps: 500, keep: 2}
"""

NOTES = "Units are those of the bodies: with G = 1 they are standard N-body units."


class NBodyKind:
    """Gravity between bodies; see `hybrid_nbody.running.contract.ModelKind` for the contract."""

    name = "nbody"
    summary = "gravity between bodies"
    example = EXAMPLE
    notes = NOTES
    timings = ("force", "exchange")
    highlights = (
        "kinetic_energy",
        "potential_energy",
        "total_energy",
        "relative_energy_error",
        "virial_ratio",
    )

    @property
    def schema(self) -> "type[NBodyConfig]":
        """Return the root of its configuration."""
        from hybrid_nbody.nbody.config import NBodyConfig

        return NBodyConfig

    @property
    def quantities(self) -> "Mapping[str, Quantity]":
        """Return the names and meanings of its diagnostics."""
        from hybrid_nbody.nbody.diagnostics import QUANTITIES

        return QUANTITIES

    @property
    def changeable(self) -> tuple[str, ...]:
        """Return the keys that a resumed run may change."""
        from hybrid_nbody.parallel.shares import CHANGEABLE

        return (*CHANGEABLE, "time.max_energy_error", "stop")

    @property
    def fixed(self) -> tuple[str, ...]:
        """Return the keys that a run from a state of another one leaves as they are."""
        return ("model", "seed", "bodies", "centred", "units")

    def sources(self, config: "NBodyConfig") -> "tuple[Mapping[str, Source], str]":
        """Return no fields: bodies are read as those of any file; and a warning of rounding."""
        frames = config.output.trajectory
        rounded = frames is not None and frames.precision == "float32"
        return {}, "the frame holds positions and velocities in float32" if rounded else ""

    def branched(self, before: "NBodyConfig", config: "NBodyConfig", step: int) -> "NBodyConfig":
        """Return the configuration as it is: what bodies feel may change at any time."""
        return config

    @property
    def figures(self) -> "Figures":
        """Return everything that is drawn of its runs."""
        from hybrid_nbody.nbody.figures.catalogue import FIGURES

        return FIGURES

    @property
    def exports(self) -> "Exports":
        """Return what is exported of its runs."""
        from hybrid_nbody.nbody.figures.exports import EXPORTS

        return EXPORTS

    def resolved(self, config: "NBodyConfig") -> "NBodyConfig":
        """Return the configuration as it is: a checkpoint holds the bodies."""
        return config

    def builder(
        self, config: "NBodyConfig", communicator: "Communicator", devices: "Devices | None" = None
    ) -> "NBodyBuilder":
        """Return what builds the model of a configuration."""
        from hybrid_nbody.nbody.build import NBodyBuilder

        return NBodyBuilder(config, communicator, devices)

    def plan(self, config: "NBodyConfig", initial: "Initial", ranks: int) -> "Plan":
        """Return what a run would compute, hold and write."""
        from hybrid_nbody.nbody.plan import plan

        return plan(config, initial, ranks)

    def facts_of_run(self, run: "Run") -> "Facts":
        """Say how many bodies a run has, and each of its components if there are several."""
        from hybrid_nbody.files.thinning import chosen_bodies

        if not run.number_of_bodies:
            return []
        facts = (str(run.number_of_bodies), chosen_bodies(run.config))
        return [("bodies", ", ".join(fact for fact in facts if fact)), *_components(run)]

    def facts_of_checkpoint(self, file: "h5py.File") -> "Facts":
        """Say how many bodies a checkpoint holds."""
        return [("bodies", str(len(file["bodies/mass"])))] if "bodies/mass" in file else []


def _components(run: "Run") -> "Facts":
    """Say how many bodies each component has, where there are several that can be told apart."""
    from hybrid_nbody.errors import InputError
    from hybrid_nbody.nbody.components import components_in

    if not run.config.get("bodies") or not run.number_of_frames:
        return []
    try:
        found = components_in(run)
    except InputError:  # more than one is a file
        return []
    numbers = [f"{name} {len(ids)}" for name, ids in found.items()]
    return [("components", ", ".join(numbers))] if len(numbers) > 1 else []
