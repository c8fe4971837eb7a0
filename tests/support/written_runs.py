"""Small output files, written with h5py alone as the run writes them, and the messages that bad
ones give.
"""

import hashlib
import json

import h5py
import numpy as np
import pytest

from hybrid_nbody.errors import FileError, InputError

ENERGY = "mass length^2 / time^2"
UNITS = {"time": "time", "step": "1", "relative_energy_error": "1", "virial_ratio": "1"}


@pytest.fixture
def in_folder(tmp_path, monkeypatch):
    """Work in an empty folder, so that messages name short paths."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def refused(in_folder):
    """Return a function that calls, and gives the one line that the call is refused with."""

    def line(error, call, *arguments, **options):
        with pytest.raises((InputError, FileError)) as caught:
            call(*arguments, **options)
        assert type(caught.value) is error
        assert "\n" not in str(caught.value)
        return str(caught.value)

    return line


@pytest.fixture
def write_run(in_folder):
    """Return a function that writes a run into a folder and returns the folder."""

    def write(
        name="out",
        *,
        frames=3,
        bodies=4,
        rows=5,
        positions=None,
        diagnostics=None,
        more=None,
        **attributes,
    ):
        positions = (
            positions_of(frames, bodies)
            if positions is None
            else np.asarray(positions, dtype=float)
        )
        frames, bodies = positions.shape[:2]
        (in_folder / name).mkdir(exist_ok=True)
        with h5py.File(in_folder / name / "trajectory.h5", "w") as file:
            file.attrs.update(fixed(ATTRIBUTES) | attributes)
            put(file, "bodies/position", positions, "length")
            put(file, "bodies/velocity", -positions, "length / time")
            for field, values in (more or {}).items():
                put(file, field, values, "1")
            put(file, "bodies/mass", np.linspace(1, 2, bodies), "mass", grows=False)
            put(file, "bodies/id", np.arange(bodies) + 10, "1", grows=False)
            for quantity, values in (diagnostics_of(rows) | (diagnostics or {})).items():
                put(file, f"diagnostics/{quantity}", values, UNITS.get(quantity, ENERGY))
            put(file, "step", 10 * np.arange(frames), "1")
            put(file, "time", 0.5 * np.arange(frames), "time")
        return in_folder / name

    return write


ATTRIBUTES = {
    "format": "hybrid_nbody trajectory",
    "format_version": 1,
    "program_version": "0.1.0",
    "config": "title: Test\ntime: {dt: 5e-2, steps: 20}\n",
    "title": "Test",
    "model": "nbody",
    "ranks": 4,
    "backend": "cpu",
}


def fixed(attributes):
    """Return texts at a fixed length; of damaged ones at variable length, HDF5 2.0 can search for
    ever.
    """
    return {
        name: np.bytes_(value.encode()) if isinstance(value, str) else value
        for name, value in attributes.items()
    }


def positions_of(frames, bodies):
    """Return positions that say which frame, body and axis they are: (T, N, 3)."""
    frame, body, axis = np.ogrid[:frames, :bodies, :3]
    return 100.0 * frame + body + 0.1 * axis


def diagnostics_of(rows):
    """Return the diagnostics of a run, by name: (D,) or (D, 3)."""
    time = 0.25 * np.arange(rows)
    kinetic, error = 0.25 + 0.01 * np.sin(5 * time), 1e-6 * time
    total = -0.25 * (1 + error)
    return {
        "step": 5 * np.arange(rows),
        "time": time,
        "kinetic_energy": kinetic,
        "potential_energy": total - kinetic,
        "total_energy": total,
        "relative_energy_error": error,
        "virial_ratio": np.ones(rows),
        "half_mass_radius": np.full(rows, 0.77),
        "momentum": np.arange(3.0 * rows).reshape(rows, 3),
    }


def put(file, name, values, units, grows=True):
    """Write a data set that can grow, as the run does."""
    values = np.asarray(values)
    data = file.create_dataset(
        name, data=values, maxshape=(None, *values.shape[1:]) if grows else None
    )
    data.attrs.update(fixed({"units": units, "description": f"what {name.split('/')[-1]} is"}))


@pytest.fixture
def write_fluid(in_folder):
    """Return a function that writes a run of a fluid into a folder and returns the folder."""

    def write(
        name="smoke",
        *,
        cells=(12, 16, 8),
        frames=2,
        rows=5,
        stride=1,
        planes=None,
        fields=FIELDS,
        settings=None,
        **changed,
    ):
        (in_folder / name).mkdir(exist_ok=True)
        config = {"grid": {"cells": list(cells)}, "output": {"stride": stride, "planes": planes}}
        config |= settings or {}
        stored = np.s_[
            :, range(0, cells[2], stride) if planes is None else sorted(planes), ::stride, ::stride
        ]
        with h5py.File(in_folder / name / "trajectory.h5", "w") as file:
            attributes = {"model": "fluid", "title": "Smoke", "config": json.dumps(config)}
            file.attrs.update(fixed(ATTRIBUTES | attributes))
            for field in fields:
                flow = FLOWS.get(field, density_of)
                values = changed.get(field, flow(cells, max(frames, 1))[:frames])
                put(
                    file,
                    f"fluid/{field}",
                    values[stored],
                    {"density": "density"}.get(field, "length / time"),
                )
            for quantity, values in diagnostics_of_fluid(rows).items():
                put(file, f"diagnostics/{quantity}", values, UNITS_OF_FLUID.get(quantity, "1"))
            put(file, "step", 10 * np.arange(frames), "1")
            put(file, "time", 1.0 * np.arange(frames), "time")
        return in_folder / name

    return write


FIELDS = ("density", "velocity")
UNITS_OF_FLUID = {
    "time": "time",
    "total_density": "density",
    "total_density_with_ghosts": "density",
    "kinetic_energy": "length^5 / time^2",
    "max_speed": "length / time",
    "divergence_before": "1 / time",
    "divergence_after": "1 / time",
}


def centres_of(cells):
    """Return x, y and z of all cells, the longest edge of the box being 1: (nz, ny, nx) each."""
    z, y, x = np.meshgrid(*(np.arange(number) + 0.5 for number in reversed(cells)), indexing="ij")
    return x / max(cells), y / max(cells), z / max(cells)


def density_of(cells, frames):
    """Return a ring of smoke that widens and rises along y: (T, nz, ny, nx) float32."""
    x, y, z = centres_of(cells)
    middle = [number / max(cells) / 2 for number in cells]
    radius = np.hypot(x - middle[0], z - middle[2])
    ring = [np.hypot(radius - 0.1 - 0.05 * frame, y - 0.3 - 0.2 * frame) for frame in range(frames)]
    return np.array([8 * np.exp(-((distance / 0.12) ** 2)) for distance in ring], dtype="f4")


def velocity_of(cells, frames):
    """Return a jet along y in the middle of the box that flows back along its walls: (T, nz, ny,
    nx, 3) float32.
    """
    x, y, z = centres_of(cells)
    edges = [number / max(cells) for number in cells]
    phase = [np.pi * along / edge for along, edge in zip((x, y, z), edges, strict=True)]
    v = np.cos(2 * phase[0]) * np.sin(phase[1]) * np.cos(2 * phase[2])
    u = -np.sin(2 * phase[0]) * np.cos(phase[1]) / 4
    w = -np.sin(2 * phase[2]) * np.cos(phase[1]) / 4
    return np.array(
        [(1 + frame) * np.stack([u, v, w], axis=-1) for frame in range(frames)], dtype="f4"
    )


FLOWS = {"density": density_of, "velocity": velocity_of}


def diagnostics_of_fluid(rows):
    """Return the diagnostics of a run of a fluid, by name: (D,).

    The first row is of a fluid at rest.
    """
    time = 0.25 * np.arange(rows)
    speed = 0.8 * time * np.exp(-time)
    return {
        "step": 5 * np.arange(rows),
        "time": time,
        "total_density": 40 + np.sin(3 * time),
        "total_density_with_ghosts": 42 + np.sin(3 * time),
        "kinetic_energy": 1e-3 * speed**2,
        "max_speed": speed,
        "cfl": 1.6 * speed,
        "divergence_before": 3 * speed,
        "divergence_after": 2e-4 * speed,
        "poisson_residual": 0.1 * speed,
        "iterations_per_solve": 20 - 8 * np.minimum(time, 1),
        "early_share": np.minimum(time, 0.75),
    }


@pytest.fixture
def write_checkpoint(in_folder, seal):
    """Return a function that writes a checkpoint and returns its path."""

    def write(name="checkpoint-0000000020.h5", *, step=20, time=1.0, bodies=4, **attributes):
        path = in_folder / name
        with h5py.File(path, "w", userblock_size=512) as file:
            file.attrs.update(
                fixed(ATTRIBUTES | {"format": "hybrid_nbody checkpoint", "scalars": "{}"})
            )
            file.attrs.update({"step": step, "time": time} | attributes)
            put(file, "bodies/position", positions_of(1, bodies)[0], "length", grows=False)
            put(file, "bodies/velocity", -positions_of(1, bodies)[0], "length / time", grows=False)
            put(file, "bodies/mass", np.linspace(1, 2, bodies), "mass", grows=False)
            put(file, "bodies/id", np.arange(bodies) + 10, "1", grows=False)
            put(file, "gravity/order", np.arange(bodies), "1", grows=False)
        return seal(path)

    return write


@pytest.fixture
def write_fluid_checkpoint(in_folder, seal):
    """Return a function that writes a checkpoint of a fluid and returns its path."""

    def write(name="checkpoint-0000000020.h5", *, cells=(12, 16, 8)):
        with h5py.File(in_folder / name, "w", userblock_size=512) as file:
            origin = {
                "format": "hybrid_nbody checkpoint",
                "model": "fluid",
                "title": "Smoke",
                "scalars": "{}",
            }
            file.attrs.update(fixed(ATTRIBUTES | origin) | {"step": 20, "time": 2.0})
            put(file, "state/density", density_of(cells, 1)[0], "1", grows=False)
            for component in "uvw":
                put(file, f"state/{component}", density_of(cells, 1)[0], "1", grows=False)
        return seal(in_folder / name)

    return write


@pytest.fixture
def seal():
    """Return a function that puts the digest of a checkpoint before its contents and returns its
    path.
    """

    def write(path):
        contents = path.read_bytes()[512:]
        line = f"hybrid_nbody checkpoint, sha256 {hashlib.sha256(contents).hexdigest()}\n"
        path.write_bytes(line.encode().ljust(512, b"\0") + contents)
        return path

    return write


@pytest.fixture
def cut():
    """Return a function that keeps only the first bytes of a file."""

    def keep(path, size):
        path.write_bytes(path.read_bytes()[:size])

    return keep
