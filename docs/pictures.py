"""Make the pictures of the documentation from runs of the program, stored small.

    python docs/pictures.py
    python docs/pictures.py output/bench-ladder/ladder.json output/bench-sizes/sizes.json

Needs the package and nothing else; takes one or two minutes on two cores. Run it again when plots
change. With files of results it draws those benchmarks instead, wherever they were measured: a
picture each, of the rows of all its files.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

REPOSITORY = Path(__file__).resolve().parent.parent
FOLDER = REPOSITORY / "docs" / "pictures"
MOST_BYTES = 700_000
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

RUNS = {
    "plummer": ("plummer", ()),
    "figure-eight": ("plummer", FIGURE_EIGHT),
    "flat": ("flat", ()),
    "smoke": ("smoke", ()),
}
"""Runs by name: a file of ``input/``, and what is changed in it."""

PICTURES = (
    ("plummer", "overview", -1),
    ("plummer", "snapshot", -1),
    ("plummer", "profiles", -1),
    ("figure-eight", "tracks", -1),
    ("flat", "activity", 18),  # half-way to the centre
    ("smoke", "slices", -1),
    ("smoke", "diagnostics", -1),
)
"""A run, the kind of picture made of it, and the frame."""


def main() -> None:
    """Make the pictures asked for and check the size of all."""
    results = parser().parse_args().results
    FOLDER.mkdir(exist_ok=True)
    found = [json.loads(path.read_text()) for path in results]
    for name in dict.fromkeys(result["benchmark"] for result in found):
        draw_benchmark(name, [result for result in found if result["benchmark"] == name])
    if not results:
        draw_runs()
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
    return words


def draw_runs() -> None:
    """Make the runs and the pictures of them."""
    with tempfile.TemporaryDirectory() as output:
        for run, (name, changes) in RUNS.items():
            hybrid_nbody("run", f"input/{name}.yaml", *settings(changes, f"{output}/{run}"))
        for run, kind, frame in PICTURES:
            target = FOLDER / f"{run}-{kind}.png"
            hybrid_nbody(
                "plot",
                f"{output}/{run}",
                "--kind",
                kind,
                f"--frame={frame}",
                "--output",
                str(target),
            )
            make_small(target)


def draw_benchmark(name: str, results: list[dict]) -> None:
    """Draw the results of a benchmark as it did itself, with fewer pixels."""
    from hybrid_nbody.benchmarks import figure_of
    from hybrid_nbody.benchmarks.harness.pictures import png

    target = FOLDER / f"bench-{name}.png"
    rows = [row for result in results for row in result["rows"]]
    target.write_bytes(png(figure_of(name), rows, results[0]["machine"], BENCHMARK_DPI))
    make_small(target)


def settings(changes, directory: str) -> list[str]:
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
