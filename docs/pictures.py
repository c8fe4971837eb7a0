"""Make the pictures of the documentation from runs of the program, stored small.

    python docs/pictures.py
    python docs/pictures.py --gallery
    python docs/pictures.py output/bench-ladder/ladder.json output/bench-sizes/sizes.json

Needs the package and nothing else; takes one or two minutes on two cores, the gallery of fluids
five. Run it again when plots change. With files of results it draws those benchmarks instead,
wherever they were measured: a picture each, of the rows of all its files.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

REPOSITORY = Path(__file__).resolve().parent.parent
FOLDER = REPOSITORY / "docs" / "pictures"
MOST_BYTES = 1_000_000
"""All pictures together stay below this."""

BENCHMARK_DPI = 120

FIGURE_EIGHT = (
    "title='Figure eight'",
    "bodies={kind: figure-eight}",
    "gravity={precision: double}",
    "time.dt=6.32591398e-3",
    "output.trajectory.every_steps=5",
    "compute.threads=1",
)

HULL = (
    "title='A hull in a wind tunnel'",
    "grid.cells=[96, 48, 48]",
    "fluid={advection: maccormack, viscosity: 5e-4, "
    "boundary: {all: free-slip, x-: {inflow: [1, 0, 0]}, x+: outflow}}",
    "obstacles=[{mesh: %s/hull.stl, name: body}]",
    "sources={}",
    "time={dt: 0.01, end: 2}",
)

EVERY_100 = ("output.trajectory.every_steps=100",)

Changes = tuple[str, ...]

RUNS: dict[str, tuple[str, Changes]] = {
    "plummer": ("plummer", ()),
    "figure-eight": ("plummer", FIGURE_EIGHT),
    "flat": ("flat", ()),
    "smoke": ("smoke", ()),
}
"""Runs by name: a file of ``input/``, and what is changed in it."""

GALLERY_RUNS: dict[str, tuple[str, Changes]] = {
    "karman": ("karman", ("grid.cells=[176, 34, 4]", "time.dt=0.003", *EVERY_100)),
    "cavity": ("cavity", ("grid.cells=[64, 64, 4]", "time.dt=0.04", *EVERY_100)),
    "ball": ("ball", ("output.trajectory.every_steps=30",)),
    "room": ("room", ("output.trajectory.every_steps=20",)),
    "hull": ("ball", HULL),
}
"""Flows in a plane have half of the cells along each edge."""


@dataclass(frozen=True)
class Picture:
    """A picture of a run.

    Attributes
    ----------
    run, kind : str
    frame : int
    field : str
        Of a fluid; empty: as the kind has it.
    """

    run: str
    kind: str
    frame: int = -1
    field: str = ""


PICTURES = (
    Picture("plummer", "overview"),
    Picture("plummer", "snapshot"),
    Picture("plummer", "profiles"),
    Picture("figure-eight", "tracks"),
    Picture("flat", "activity", 18),  # half-way to the centre
    Picture("smoke", "slices"),
    Picture("smoke", "diagnostics"),
)

GALLERY = (
    Picture("karman", "slices", field="speed"),
    Picture("cavity", "streamlines", field="speed"),
    Picture("ball", "projection"),
    Picture("room", "streamlines", field="temperature"),
    Picture("hull", "slices", field="vorticity"),
)


def main() -> None:
    """Make the pictures asked for and check the size of all."""
    words = parser().parse_args()
    results = words.results
    FOLDER.mkdir(exist_ok=True)
    found = [json.loads(path.read_text()) for path in results]
    for name in dict.fromkeys(result["benchmark"] for result in found):
        draw_benchmark(name, [result for result in found if result["benchmark"] == name])
    if words.gallery:
        draw_runs(GALLERY_RUNS, GALLERY)
    elif not results:
        draw_runs(RUNS, PICTURES)
    size = sum(path.stat().st_size for path in FOLDER.glob("*.png"))
    print(f"{size} bytes in {FOLDER}")
    if size > MOST_BYTES:
        sys.exit(f"error: the pictures are larger than {MOST_BYTES} bytes")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    words = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    words.add_argument(
        "results",
        nargs="*",
        type=Path,
        help="JSON files of benchmarks to draw (default: make runs)",
    )
    words.add_argument("--gallery", action="store_true", help="make those of docs/gallery.md")
    return words


def draw_runs(runs: Mapping[str, tuple[str, Changes]], pictures: Sequence[Picture]) -> None:
    """Make runs and the pictures of them."""
    with tempfile.TemporaryDirectory() as output:
        hull = (sys.executable, "run_scripts/hull.py", f"{output}/hull.stl")
        subprocess.run(hull, cwd=REPOSITORY, check=True)
        for run, (name, changes) in runs.items():
            given = [change.replace("%s", output) for change in changes]
            hybrid_nbody("run", f"input/{name}.yaml", *settings(given, f"{output}/{run}"))
        for picture in pictures:
            draw(picture, f"{output}/{picture.run}")


def draw(picture: Picture, directory: str) -> None:
    """Make a picture of the run in a directory."""
    target = FOLDER / f"{picture.run}-{picture.kind}.png"
    words = ["--kind", picture.kind, f"--frame={picture.frame}", "--output", str(target)]
    if picture.field:
        words += ["--field", picture.field]
    hybrid_nbody("plot", directory, *words)
    make_small(target)


def draw_benchmark(name: str, results: list[dict]) -> None:
    """Draw the results of a benchmark as it did itself, with fewer pixels."""
    from hybrid_nbody.benchmarks import figure_of
    from hybrid_nbody.benchmarks.harness.pictures import png

    target = FOLDER / f"bench-{name}.png"
    rows = [row for result in results for row in result["rows"]]
    target.write_bytes(png(figure_of(name), rows, results[0]["machine"], BENCHMARK_DPI))
    make_small(target)


def settings(changes: Sequence[str], directory: str) -> list[str]:
    """Return the arguments that apply `changes` and write to `directory`."""
    return [
        word for change in (*changes, f"output.directory={directory}") for word in ("--set", change)
    ]


def hybrid_nbody(*arguments: str) -> None:
    """Run a command of the program from the repository."""
    subprocess.run([sys.executable, "-m", "hybrid_nbody", *arguments], cwd=REPOSITORY, check=True)


def make_small(path: Path) -> None:
    """Store a picture with 256 colours: a third of the size, and no difference to the eye."""
    with Image.open(path) as picture:
        small = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    small.save(path, optimize=True)


if __name__ == "__main__":
    main()
