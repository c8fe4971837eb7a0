"""Small output files, written with h5py alone as the run writes them, and the messages that bad ones give."""

import hashlib

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

    def write(name="out", *, frames=3, bodies=4, rows=5, positions=None, diagnostics=None, **attributes):
        positions = positions_of(frames, bodies) if positions is None else np.asarray(positions, dtype=float)
        frames, bodies = positions.shape[:2]
        (in_folder / name).mkdir(exist_ok=True)
        with h5py.File(in_folder / name / "trajectory.h5", "w") as file:
            file.attrs.update(fixed(ATTRIBUTES) | attributes)
            put(file, "bodies/position", positions, "length")
            put(file, "bodies/velocity", -positions, "length / time")
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
    """Return texts at a fixed length; of damaged ones at variable length, HDF5 2.0 can search for ever."""
    return {name: np.bytes_(value.encode()) if isinstance(value, str) else value for name, value in attributes.items()}


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
    data = file.create_dataset(name, data=values, maxshape=(None, *values.shape[1:]) if grows else None)
    data.attrs.update(fixed({"units": units, "description": f"what {name.split('/')[-1]} is"}))


@pytest.fixture
def write_checkpoint(in_folder, seal):
    """Return a function that writes a checkpoint and returns its path."""

    def write(name="checkpoint-0000000020.h5", *, step=20, time=1.0, bodies=4, **attributes):
        path = in_folder / name
        with h5py.File(path, "w", userblock_size=512) as file:
            file.attrs.update(fixed(ATTRIBUTES | {"format": "hybrid_nbody checkpoint", "scalars": "{}"}))
            file.attrs.update({"step": step, "time": time} | attributes)
            put(file, "bodies/position", positions_of(1, bodies)[0], "length", grows=False)
            put(file, "bodies/velocity", -positions_of(1, bodies)[0], "length / time", grows=False)
            put(file, "bodies/mass", np.linspace(1, 2, bodies), "mass", grows=False)
            put(file, "bodies/id", np.arange(bodies) + 10, "1", grows=False)
            put(file, "gravity/order", np.arange(bodies), "1", grows=False)
        return seal(path)

    return write


@pytest.fixture
def seal():
    """Return a function that puts the digest of a checkpoint before its contents and returns its path."""

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
