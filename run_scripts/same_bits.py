"""Compare the results of two checkouts bit for bit, on one rank and on several.

    python run_scripts/same_bits.py OLD_CHECKOUT [NEW_CHECKOUT]

Both do short runs of every example with the Python that runs this script. Every data set of every
trajectory is compared, except what was measured with a clock. The exit code is 1 if any bit
differs.
"""

import argparse
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np

SHORT = (
    "time.steps=24",
    "output.trajectory={every_steps: 8}",
    "output.diagnostics={every_steps: 8}",
)
SMALL_BODIES = ("bodies={kind: plummer, n: 700}",)
SMALL_GRID = ("grid={cells: [20, 22, 24]}", "solver.max_iterations=10")
SMALL_SOURCES = (
    "sources={events: [{steps: [0, 9], density: 1}, {step: 2, velocity: [0.1, 0.2, 0.05]}]}",
)

CASES = {
    "plummer single": ("plummer.yaml", (*SMALL_BODIES, "gravity.precision=single")),
    "plummer mixed": ("plummer.yaml", (*SMALL_BODIES, "gravity.precision=mixed")),
    "plummer double yoshida4": (
        "plummer.yaml",
        (*SMALL_BODIES, "gravity.precision=double", "time.integrator=yoshida4"),
    ),
    "plummer euler": ("plummer.yaml", (*SMALL_BODIES, "time.integrator=euler")),
    "plummer hermite4": (
        "plummer.yaml",
        ("bodies={kind: plummer, n: 120}", "gravity.precision=double", "time.integrator=hermite4"),
    ),
    "plummer ring": ("plummer.yaml", (*SMALL_BODIES, "compute.exchange=ring")),
    "six bodies": ("six_bodies.yaml", ()),
    "flat": ("flat.yaml", ()),
    "smoke": ("smoke.yaml", (*SMALL_GRID, *SMALL_SOURCES)),
    "smoke maccormack": (
        "smoke.yaml",
        (*SMALL_GRID, *SMALL_SOURCES, "fluid.advection=maccormack", "fluid.dtype=float64"),
    ),
    "smoke multigrid": ("smoke.yaml", (*SMALL_GRID, *SMALL_SOURCES, "solver.method=multigrid")),
    "smoke sor": ("smoke.yaml", (*SMALL_GRID, *SMALL_SOURCES, "solver.method=sor")),
    "smoke no-slip": (
        "smoke.yaml",
        (*SMALL_GRID, *SMALL_SOURCES, "fluid.boundary=[no-slip, no-slip, free-slip]"),
    ),
    "smoke periodic": ("smoke.yaml", (*SMALL_GRID, *SMALL_SOURCES, "fluid.boundary=periodic")),
    "plume 42": ("plume_42.yaml", ("time.steps=100", "output.trajectory={every_steps: 20}")),
}
"""For each name an example and what is changed in it to make it short."""

RANKS = (1, 2, 3)
CLOCK = ("timing", "seconds", "wall")


def run(checkout: Path, case: str, ranks: int, output: Path) -> str:
    """Run a case; return what went wrong, or an empty string."""
    example, changes = CASES[case]
    settings = [
        *SHORT,
        *changes,
        f"output.directory={output}",
        "compute.threads=1",
        "output.checkpoint=null",
    ]
    words = [word for setting in settings for word in ("--set", setting)]
    launcher = [*find_mpirun(), "-n", str(ranks)] if ranks > 1 else []
    command = [
        *launcher,
        sys.executable,
        "-m",
        "hybrid_nbody",
        "run",
        str(checkout / "input" / example),
        *words,
    ]
    paths = [str(checkout), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=checkout)
    return "" if done.returncode == 0 else (done.stderr or done.stdout).strip()[-300:]


@functools.cache
def find_mpirun() -> list[str]:
    """Return the mpirun beside Python, or that on the path, with the flags that it needs."""
    beside = Path(sys.executable).with_name("mpirun")
    program = str(beside) if beside.exists() else str(shutil.which("mpirun"))
    version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
    if "Open MPI" in version or "OpenRTE" in version:
        return [program, "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
    return [program]


def data_of(folder: Path) -> dict[str, np.ndarray]:
    """Return every data set of a trajectory that no clock has measured."""
    found = {}

    def keep(name, item):
        if isinstance(item, h5py.Dataset) and not any(word in name for word in CLOCK):
            found[name] = item[()]

    with h5py.File(folder / "trajectory.h5") as file:
        file.visititems(keep)
    return found


def differences(first: Path, second: Path) -> list[str]:
    """Return the names of the data sets whose bits differ."""
    old = data_of(first)
    new = data_of(second)
    names = sorted(old.keys() | new.keys())
    return [
        name
        for name in names
        if name not in old or name not in new or not same(old[name], new[name])
    ]


def same(first: np.ndarray, second: np.ndarray) -> bool:
    """Return whether two arrays are the same to the last bit."""
    alike = first.dtype == second.dtype and first.shape == second.shape
    return alike and np.ascontiguousarray(first).tobytes() == np.ascontiguousarray(second).tobytes()


def compare(old: Path, new: Path, case: str, ranks: int, folder: Path) -> str:
    """Run a case with both checkouts; return the verdict in words."""
    folders = folder / "old", folder / "new"
    faults = [
        run(checkout, case, ranks, output)
        for checkout, output in zip((old, new), folders, strict=True)
    ]
    if any(faults):
        refused_alike = faults[0] == faults[1]
        return (
            f"refused by both: {faults[0]}"
            if refused_alike
            else f"DIFFERS: old {faults[0]!r}, new {faults[1]!r}"
        )
    names = differences(*folders)
    shutil.rmtree(folder)
    folder.mkdir()
    return f"DIFFERS in {', '.join(names)}" if names else "same bits"


def main() -> int:
    """Compare all cases and return the exit code."""
    words = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    words.add_argument("old", type=Path, help="the checkout to compare with")
    words.add_argument(
        "new", type=Path, nargs="?", default=Path(__file__).parents[1], help="default: this one"
    )
    words.add_argument("--ranks", type=int, nargs="+", default=RANKS)
    arguments = words.parse_args()
    wrong = 0
    for case in CASES:
        for ranks in arguments.ranks:
            with tempfile.TemporaryDirectory() as folder:
                verdict = compare(
                    arguments.old.resolve(), arguments.new.resolve(), case, ranks, Path(folder)
                )
            wrong += "DIFFERS" in verdict
            print(f"{case:<26} {ranks} ranks  {verdict}", flush=True)
    print(f"{wrong} of {len(CASES) * len(arguments.ranks)} differ")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
