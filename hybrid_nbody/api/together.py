"""Points of a sweep computed together: small systems side by side on one device, in one file."""

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.api.systems import BACKENDS, STAGES, Systems, relative_change
from hybrid_nbody.backends.base import Backend
from hybrid_nbody.config.sections import ModelConfig
from hybrid_nbody.errors import InputError, NumericalError
from hybrid_nbody.files.hdf5 import attributes, reading
from hybrid_nbody.files.seals import open_sealed
from hybrid_nbody.files.views import column_names
from hybrid_nbody.nbody.bodies import Bodies
from hybrid_nbody.nbody.build import NBodyBuilder
from hybrid_nbody.nbody.config import NBodyConfig
from hybrid_nbody.nbody.diagnostics import ENERGY_ERROR, measure
from hybrid_nbody.nbody.kernels.small_systems import MOST_BODIES
from hybrid_nbody.nbody.starting import on_all_ranks
from hybrid_nbody.output import hdf5
from hybrid_nbody.output.sealing import raw_data, write_sealed
from hybrid_nbody.parallel.communicator import Communicator

KIND = "systems"
"""The kind of a file of systems, as its seal says."""

MOST_SYSTEMS = 10_000
"""Of a file, which one process computes at once."""

LOOK_SECONDS = 0.3
"""Time between two looks at whether to go on."""

SAVE_SECONDS = 60.0
"""Time between two savings of what has been computed."""

Columns = dict[str, Any]
"""A row of the table, by columns."""


def check(config: ModelConfig) -> NBodyConfig:
    """Check that a configuration can be computed together with others, and return it.

    Raises
    ------
    InputError
        It cannot.
    """
    reason = _reason_against(config) if isinstance(config, NBodyConfig) else "model must be nbody"
    if reason or not isinstance(config, NBodyConfig):
        raise InputError(f"--together: {reason}; or leave it out, for a run of each")
    return config


def _reason_against(config: NBodyConfig) -> str:
    """Return what does not fit; empty if all does."""
    integrators = ", ".join(STAGES)
    backends = ", ".join(BACKENDS)
    obstacles = {
        f"time.integrator must be one of {integrators}": config.time.integrator not in STAGES,
        "gravity.solver must be direct or auto": config.gravity.solver not in ("direct", "auto"),
        "gravity.external must be left out": bool(config.gravity.external),
        "stop must be left out": bool(config.stop),
        "activity_map must be left out": config.activity_map is not None,
        f"compute.backend must be one of {backends}": config.compute.backend not in BACKENDS,
    }
    return next((text for text, stands in obstacles.items() if stands), "")


@dataclass(frozen=True)
class Point:
    """A system of a sweep.

    Attributes
    ----------
    name : str
        By its values.
    config : NBodyConfig
    bodies : Bodies
        At the start.
    """

    name: str
    config: NBodyConfig
    bodies: Bodies

    @property
    def pace(self) -> tuple[int, float, int, str]:
        """Return what systems of a file have in common."""
        time_axis = self.config.time
        return len(self.bodies), time_axis.dt, time_axis.total_steps, time_axis.integrator

    @property
    def place(self) -> tuple[str, str | int]:
        """Return where it is to be computed: a kind of device, and its threads."""
        compute = self.config.compute
        return str(compute.backend), compute.threads


class Drawer:
    """Makes the bodies of points, of equal ones once.

    Parameters
    ----------
    communicator : Communicator
        Of this process alone.
    """

    def __init__(self, communicator: Communicator) -> None:
        self.communicator = communicator
        self._made: dict[Any, Bodies] = {}

    def point(self, name: str, config: NBodyConfig) -> Point:
        """Return a point with its bodies.

        Raises
        ------
        InputError
            They cannot be made, are too few or too many, or cannot be computed.
        """
        NBodyBuilder(config, self.communicator).check()
        sources = (config.bodies, config.seed, config.centred, config.gravity.G)
        if sources not in self._made:
            self._made[sources] = self._bodies(config)
        bodies = self._made[sources]
        if not 2 <= len(bodies) <= MOST_BODIES:
            raise InputError(
                f"--together: is for 2 to {MOST_BODIES} bodies (got {len(bodies)}); leave it out"
            )
        return Point(name, config, bodies)

    def _bodies(self, config: NBodyConfig) -> Bodies:
        source = on_all_ranks(NBodyBuilder(config, self.communicator).initial(), self.communicator)
        return source.rows(0, len(source))


def pieces_of(points: Sequence[Point]) -> list[list[Point]]:
    """Return the points that are computed at once, in pieces of a limited size."""
    groups: dict[Any, list[Point]] = {}
    for point in points:
        groups.setdefault((point.pace, point.place), []).append(point)
    return [
        group[first : first + MOST_SYSTEMS]
        for group in groups.values()
        for first in range(0, len(group), MOST_SYSTEMS)
    ]


def state_of(points: Sequence[Point]) -> list[NDArray[np.float64]]:
    """Return the positions and velocities of points at their start, (S, n, 3) each."""
    return [
        np.array([getattr(point.bodies, name) for point in points])
        for name in ("position", "velocity")
    ]


def digest_of(points: Sequence[Point]) -> str:
    """Return what tells the systems of some points from others, wherever they are computed."""
    digest = hashlib.sha256(repr(points[0].pace).encode())
    laws = [[point.config.gravity.softening, point.config.gravity.G] for point in points]
    masses = [point.bodies.mass for point in points]
    for array in (*state_of(points), np.array(masses), *np.array(laws).T):
        digest.update(array.tobytes())
    return digest.hexdigest()


def check_file(points: Sequence[Point], path: Path) -> None:
    """Check that a file, if it is there, holds some points.

    Raises
    ------
    InputError
        It holds other systems.
    FileError
        It is damaged.
    """
    if not path.exists():
        return
    with open_sealed(path, KIND) as file, reading(path):
        header = attributes(file)
    _check_systems(header, digest_of(points), path)


def _check_systems(header: Mapping[str, Any], digest: str, path: Path) -> None:
    """Raise `InputError` unless the header of a file is that of systems with this digest."""
    if header["systems"] != digest:
        raise InputError(
            f"{path} holds other systems than those of this sweep; give --overwrite, or another "
            "--output"
        )


class Piece:
    """Some points of a sweep, from their file or from the beginning.

    Parameters
    ----------
    points : sequence of Point
        Of the same number of bodies, steps and integrator.
    path : Path
        The file of the piece.
    communicator : Communicator
        Of this process alone.
    device : Backend
        Computes them.

    Raises
    ------
    InputError
        The file holds other systems.
    FileError
        It is damaged.
    """

    def __init__(
        self, points: Sequence[Point], path: Path, communicator: Communicator, device: Backend
    ) -> None:
        self.points = points
        self.path = path
        self.communicator = communicator
        self.device = device
        _, self.dt, self.steps, self.integrator = points[0].pace
        self.mass = np.array([point.bodies.mass for point in points])
        self.softening = np.array([point.config.gravity.softening for point in points])
        self.G = np.array([point.config.gravity.G for point in points])
        start = state_of(points)
        self.digest = digest_of(points)
        self.systems = self._systems(start)
        self.initial_energy = self.systems.energies
        self.lost = np.zeros(len(points), bool)
        if path.exists():
            self._load(start)

    def _systems(self, state: Sequence[NDArray[np.float64]]) -> Systems:
        position, velocity = state
        return Systems(
            position,
            velocity,
            self.mass,
            dt=self.dt,
            softening=self.softening,
            G=self.G,
            integrator=self.integrator,
            backend=self.device,
        )

    @property
    def finished(self) -> bool:
        """Return whether all steps are done."""
        return self.systems.steps >= self.steps

    def run(self, goes_on: Callable[[], bool], tell: Callable[[str], None]) -> None:
        """Take the steps that are left, or as many as time allows, and save.

        Parameters
        ----------
        goes_on : callable
            Returns whether to go on.
        tell : callable
            Takes a line on how far it is.
        """
        if self.finished and self.path.exists():
            return
        number = 1
        saved = time.monotonic()
        while not self.finished and goes_on():
            start = time.monotonic()
            number = min(number, self.steps - self.systems.steps)
            with suppress(NumericalError):  # such systems are in the table
                self.systems.run(number)
            now = time.monotonic()
            number = max(1, int(number * min(LOOK_SECONDS / max(now - start, 1e-9), 100)))
            if now - saved > SAVE_SECONDS:
                self.save()
                saved = now
                tell(f"step {self.systems.steps} of {self.steps}")
        self.save()

    # --- the file ---------------------------------------------------------------------------------

    def save(self) -> None:
        """Write the state to the file of the piece, which is replaced as a whole.

        Raises
        ------
        FileError
            It cannot be written.
        """
        arrays = {
            "name": np.array([point.name.encode() for point in self.points]),
            "position": self._without_lost(self.systems.positions),
            "velocity": self._without_lost(self.systems.velocities),
            "mass": self.mass,
            "softening": self.softening,
            "G": self.G,
        }
        data = {name: raw_data(array) for name, array in arrays.items()}
        clock = {"step": self.systems.steps, "time": self.systems.time, "dt": self.dt}
        header = {**clock, "integrator": self.integrator, "systems": self.digest}
        write_sealed(self.path, KIND, data, partial(_describe, header))

    def _without_lost(self, array: NDArray[np.float64]) -> NDArray[np.float64]:
        array[self.lost] = np.nan
        return array

    def _load(self, start: Sequence[NDArray[np.float64]]) -> None:
        """Go on from the file; systems that were lost stay so, whatever becomes of them."""
        with open_sealed(self.path, KIND) as file, reading(self.path):
            header = attributes(file)
            state = [file[name][:] for name in ("position", "velocity")]
        _check_systems(header, self.digest, self.path)
        self.lost = ~np.all([np.isfinite(array).all(axis=(1, 2)) for array in state], axis=0)
        for array, first in zip(state, start, strict=True):
            array[self.lost] = first[self.lost]
        self.systems = self._systems(state)
        self.systems.steps = int(header["step"])

    # --- the table --------------------------------------------------------------------------------

    def rows(self) -> Iterator[tuple[Point, Columns]]:
        """Yield each point with its columns: where it is, its diagnostics, and why it failed."""
        positions = self.systems.positions
        velocities = self.systems.velocities
        for row, (point, error) in enumerate(zip(self.points, self._errors(), strict=True)):
            place = {"file": self.path.name, "row": row}
            told: Columns = {}
            if np.isfinite(error):
                bodies = Bodies(positions[row], velocities[row], point.bodies.mass)
                told = self._diagnostics(point.config, bodies) | {ENERGY_ERROR: error}
            yield point, {**place, **told, "reason": _fault(point.config, error)}

    def _errors(self) -> list[float]:
        """Return the relative energy error of each system; NaN of those that are lost."""
        change = relative_change(self.systems.energies, self.initial_energy)
        errors: list[float] = np.where(self.lost, np.nan, change).tolist()
        return errors

    def _diagnostics(self, config: NBodyConfig, bodies: Bodies) -> Columns:
        potential = _potential(bodies, config.gravity.softening, config.gravity.G)
        values = measure(bodies, potential, len(bodies), self.communicator)
        return {"time": self.systems.time, "step": self.systems.steps} | dict(_flat(values))


def _describe(header: Mapping[str, object], file: h5py.File) -> None:
    hdf5.write_header(file, "hybrid_nbody systems", header)


def _fault(config: NBodyConfig, error: float) -> str:
    """Return why a system has failed; empty if it has not."""
    if not np.isfinite(error):
        return "a number is not finite any more; take a softening, or a smaller dt"
    limit = config.time.energy_limit
    if limit is not None and abs(error) > limit:
        return f"the energy ran away: its relative error is {error:.3g}, more than {limit:g}"
    return ""


def _potential(bodies: Bodies, softening: float, G: float) -> NDArray[np.float64]:
    """Return the potential at each body."""
    apart = bodies.position[:, None] - bodies.position
    distance = np.sqrt((apart**2).sum(axis=2) + softening * softening)
    np.fill_diagonal(distance, np.inf)
    found: NDArray[np.float64] = -G * (bodies.mass / distance).sum(axis=1)
    return found


def _flat(values: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield a column for each component of each value."""
    for name, value in values.items():
        array = np.asarray(value)
        for column, place in column_names(name, array.shape):
            yield column, array[place].item()
