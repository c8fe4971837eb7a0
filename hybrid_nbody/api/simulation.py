"""A simulation in memory: where it comes from, where it is saved, and how it looks."""

import gc
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from numpy.typing import ArrayLike

from hybrid_nbody.api.bodies import checked_bodies
from hybrid_nbody.api.checks import AttributeInputError
from hybrid_nbody.api.fluids import GivenFluid, given_fluid, with_sections
from hybrid_nbody.api.models import builder_of, in_full, setup_of, warn_of
from hybrid_nbody.api.saving import save
from hybrid_nbody.api.settings import as_json, as_set
from hybrid_nbody.api.stepping import ENDLESS, Stepping
from hybrid_nbody.config import loader
from hybrid_nbody.config.faults import did_you_mean
from hybrid_nbody.config.sections import ModelConfig
from hybrid_nbody.errors import InputError
from hybrid_nbody.files.checkpoint import Checkpoint
from hybrid_nbody.nbody.bodies import Bodies
from hybrid_nbody.output import directory
from hybrid_nbody.parallel.communicator import Communicator, start_mpi
from hybrid_nbody.running.continuation import load_saved_run
from hybrid_nbody.running.models import MODELS
from hybrid_nbody.running.start import resolved, without_numpy_warnings

if TYPE_CHECKING:
    from matplotlib.figure import Figure


PLAIN = ("config", "communicator", "outcome", "reason")
"""Attributes of a simulation that are no properties."""

STATE = ("positions", "velocities", "masses", "density", "velocity")
"""Properties that a person can set."""


class Simulation(Stepping):
    """A simulation in memory, from a configuration.

    A function of one's own stands in it as it is: ``{"kind": "python", "function": drag}`` among
    the fields of ``gravity.external`` is written with its source.

    What the command line warns of before a run, such as a step that is too long, is a Python
    warning here. ``with Simulation(...) as simulation:`` closes it at the end.

    Parameters
    ----------
    configuration : str, Path or mapping, optional
        A file, or what it would hold.
    overrides : mapping, optional
        Values in the place of the file's, such as ``{"time.dt": 1e-3}``.
    communicator : Communicator, optional
        The ranks; by default all of them.
    initial : Bodies or GivenFluid, optional
        The state at the start, in the place of that of the configuration: see `from_bodies` and
        `from_fluid`.
    **sections
        What a file would hold, instead of one: ``model="nbody"``, ``bodies={...}``, ``time={...}``.
        Without ``time.steps`` or ``time.end`` there is no end, and `run` is told how far to go.

    Attributes
    ----------
    config : ModelConfig
        The configuration, with every default.
    communicator : Communicator
    outcome : str
        Why the last `run` ended: ``finished``, what `stop` was told, or the name of a condition.
    reason : str
        What then happened, to whom and when, in words; empty if it was no condition.

    Raises
    ------
    InputError
        With every fault of the configuration.
    """

    def __init__(
        self,
        configuration: str | Path | Mapping[str, Any] | None = None,
        overrides: Mapping[str, Any] | None = None,
        communicator: Communicator | None = None,
        initial: Bodies | GivenFluid | None = None,
        **sections: Any,
    ) -> None:
        if (configuration is None) == (not sections):
            raise InputError("Simulation: give a configuration file, or the sections of one")
        self.communicator = communicator or start_mpi()
        self._together("")
        settings = as_set(overrides)
        self.config: ModelConfig = self.communicator.on_root(
            lambda: _config_of(sections if configuration is None else configuration, settings)
        )
        builder = builder_of(self.config, self.communicator)
        with without_numpy_warnings():
            self.attach(setup_of(builder, initial))
        warn_of(builder)

    @classmethod
    def from_bodies(
        cls,
        positions: ArrayLike,
        velocities: ArrayLike,
        masses: ArrayLike,
        *,
        dt: float,
        softening: float = 0.0,
        G: float | None = None,
        communicator: Communicator | None = None,
        **sections: Any,
    ) -> Self:
        """Return a simulation of given bodies, which the root passes; other ranks' are not used.

        Parameters
        ----------
        positions, velocities : (N, 3) array
            In units of length, and of length over time.
        masses : (N,) array
        dt : float
            Time step.
        softening, G : float
            Of ``gravity``; without G it is 1, or that of ``units``.
        communicator : Communicator, optional
            The ranks; by default all of them.
        **sections
            Other keys of a configuration: ``gravity={"solver": "fmm"}``,
            ``time={"integrator": "yoshida4"}``, ``compute={"backend": "gpu"}``.

        Raises
        ------
        InputError
            If shapes do not fit, a number is not finite, or a mass is negative.
        """
        ranks = communicator or start_mpi()
        bodies = ranks.only_on_root(lambda: checked_bodies(positions, velocities, masses))
        placeholder = {"kind": "random-box", "n": ranks.broadcast(len(bodies or ()))}
        constant = {} if G is None else {"G": G}
        return cls(
            communicator=ranks,
            initial=bodies,
            model="nbody",
            bodies=placeholder,
            gravity=constant | {"softening": softening} | sections.pop("gravity", {}),
            time={"dt": dt} | sections.pop("time", {}),
            **sections,
        )

    @classmethod
    def from_fluid(
        cls,
        density: ArrayLike | None = None,
        velocity: ArrayLike | None = None,
        *,
        dt: float,
        cells: int | Sequence[int] | None = None,
        communicator: Communicator | None = None,
        **keys: Any,
    ) -> Self:
        """Return a simulation of a fluid, which the root passes; other ranks' is not used.

        Arrays have the order of the files, (z, y, x), as `density` and `velocity` return them. The
        longest edge of the box is the unit of length; the first step takes the divergence out of
        the velocity.

        Parameters
        ----------
        density : (nz, ny, nx) array, optional
        velocity : (nz, ny, nx, 3) array, optional
            At the centres of the cells; at rest without it.
        dt : float
            Time step.
        cells : int or (int, int, int), optional
            Along x, y and z; needed where there is no array.
        communicator : Communicator, optional
            The ranks; by default all of them.
        **keys
            Keys of ``fluid``, such as ``viscosity=1e-3`` and ``boundary="periodic"``, and other
            sections of a configuration: ``solver={"max_iterations": 20}``,
            ``sources={"events": [...]}``.

        Raises
        ------
        InputError
            If shapes do not fit, or a number is not finite.
        """
        ranks = communicator or start_mpi()
        given = given_fluid(density, velocity, cells, ranks)
        sections = with_sections(keys)
        return cls(
            communicator=ranks,
            initial=given,
            model="fluid",
            grid={"cells": given.cells},
            time={"dt": dt} | sections.pop("time", {}),
            **sections,
        )

    @classmethod
    def resume(
        cls,
        path: str | Path,
        overrides: Mapping[str, Any] | None = None,
        communicator: Communicator | None = None,
    ) -> Self:
        """Return the simulation that was saved in a directory, or the run that stopped there.

        It goes on to the same bits as one that was not interrupted. Functions and conditions of
        `every` and `stop_when` are to be given anew.

        Parameters
        ----------
        path : str or Path
            What `save` was given, or the directory of a run.
        overrides : mapping, optional
            As of `Simulation`, but only of keys that a resumed run can change.
        communicator : Communicator, optional
            The ranks; by default all of them.

        Raises
        ------
        InputError, FileError
            On every rank, if there is no state that can be read, or it would be of another run.
        """
        simulation = cls.__new__(cls)
        simulation.communicator = communicator or start_mpi()
        simulation._together("resume")
        saved, config = simulation.communicator.on_root(
            lambda: _saved(Path(path), as_set(overrides))
        )
        simulation.config = config
        builder = builder_of(config, simulation.communicator)
        with without_numpy_warnings():
            simulation.attach(builder.restored(saved))
        return simulation

    def save(self, path: str | Path) -> Path:
        """Write the state into a directory, in the place of an earlier one; return its file.

        All ranks call together. `resume` goes on from it, and so does ``hybrid-nbody resume``.

        Raises
        ------
        InputError
            If the directory holds a run with a trajectory, or a later state.
        FileError
            If it cannot be written.
        """
        self._together("save")
        return save(Path(path), self.config, self.communicator, self.model)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute that there is: what is set by a wrong name would change nothing.

        Classes that are derived from this one can have others.
        """
        is_known = name.startswith("_") or name in PLAIN or hasattr(type(self), name)
        if type(self) is Simulation and not is_known:
            raise AttributeInputError(
                f"{name}: a simulation has nothing of this name that can be set; what can be is "
                f"{', '.join(STATE)}{did_you_mean(name, STATE)}"
            )
        super().__setattr__(name, value)

    def close(self) -> None:
        """Let go of the model, its memory and what ranks see of each other; all call together.

        Steps and arrays are gone then; nothing has been written that is not on the disk already.
        """
        if self._running is None:
            return
        self._together("close")
        self._transport.release()
        self._running = None
        gc.collect()  # parts of a model refer to each other

    def __enter__(self) -> Self:
        """Return the simulation, which the end of the block closes."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Close it; after an error other ranks may not come along, and the process lets go."""
        if kind is None or self.communicator.size == 1:
            self.close()

    # ---- Looks -----------------------------------------------------------------------------------

    def plot(self, kind: str | None = None) -> "Figure | None":
        """Return a matplotlib figure of the present state, on the root; all ranks call together.

        Parameters
        ----------
        kind : str, optional
            A kind of ``hybrid-nbody plot`` that needs a single frame, such as ``profiles``; by
            default the first of the model.

        Raises
        ------
        InputError
            If there is no such kind.
        """
        from hybrid_nbody.api.pictures import figure_of

        self._together("plot")

        return figure_of(in_full(self.config), self.communicator, self.model, kind)

    def _repr_html_(self) -> str | None:
        """Return a picture of the state, for a notebook; a notebook has one rank."""
        if self.communicator.size > 1:
            return None
        from hybrid_nbody.api.notebook import picture_of

        figure = self.plot()
        return picture_of(figure, repr(self)) if figure else None

    def __repr__(self) -> str:
        """Return what is simulated, and how far it is."""
        if self._running is None:
            return f"Simulation(model={self.config.model}, closed)"
        return f"Simulation(model={self.config.model}, t={self.time:g}, steps={self.steps})"


def _saved(folder: Path, settings: list[str]) -> tuple[Checkpoint, ModelConfig]:
    """Return the newest state in a folder, and its configuration."""
    directory.require_run(folder)
    saved = load_saved_run(folder, settings, "resume: ")
    return saved.checkpoint, saved.config


def _config_of(given: str | Path | Mapping[str, Any], settings: list[str]) -> ModelConfig:
    """Return the configuration of a file or of sections, checked."""
    if isinstance(given, Mapping):
        return _of_sections(given, settings)
    return resolved(given, settings)


def _of_sections(sections: Mapping[str, Any], settings: list[str]) -> ModelConfig:
    """Return the configuration of sections, checked; without an end it has a distant one."""
    axis = dict(sections.get("time", {}))
    if not axis.keys() & {"end", "steps"}:
        axis["steps"] = ENDLESS
    text = as_json({**sections, "time": axis})
    config = loader.loads(text, "Simulation", settings, models=MODELS)
    complete: ModelConfig = MODELS[config.model].resolved(config)
    return complete
