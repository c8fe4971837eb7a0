"""Run the pages of docs/notebooks, and turn them into Jupyter notebooks.

    python docs/notebooks.py                    every page in full; saves their figures beside them
    python docs/notebooks.py fluid sweep        these alone

A page is Markdown; its blocks of Python are cells that run one after the other. The first one sets
the sizes of what follows, which a caller may replace. The documentation's build makes a notebook of
each page.
"""

import argparse
import io
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).resolve().parent / "notebooks"

CODE = re.compile(r"^```python\n(.*?)^```\n?", re.MULTILINE | re.DOTALL)

COLOURS = 64
"""Of a stored picture."""


class Cell(NamedTuple):
    """A part of a page.

    Attributes
    ----------
    text : str
    line : int
        The first, of the page.
    is_code : bool
    """

    text: str
    line: int
    is_code: bool


def pages() -> dict[str, Path]:
    """Return the pages by name."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.md"))}


def cells_of(page: Path) -> Iterator[Cell]:
    """Yield the cells of a page in order, those of text too."""
    text = page.read_text(encoding="utf-8")
    end = 0
    for code in CODE.finditer(text):
        yield _cell_at(text, end, code.start(), is_code=False)
        yield _cell_at(text, code.start(1), code.end(1), is_code=True)
        end = code.end()
    yield _cell_at(text, end, len(text), is_code=False)


def _cell_at(text: str, start: int, stop: int, is_code: bool) -> Cell:
    return Cell(text[start:stop], 1 + text.count("\n", 0, start), is_code)


def run(page: Path, sizes: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Run a page in the present directory; return its variables.

    Parameters
    ----------
    page : Path
    sizes : mapping, optional
        Values in the place of those of the first cell.

    Raises
    ------
    KeyError
        If the first cell has no such variable.
    """
    names: dict[str, Any] = {"__name__": page.stem}
    cells = [cell for cell in cells_of(page) if cell.is_code]
    for number, cell in enumerate(cells):
        exec(compile("\n" * (cell.line - 1) + cell.text, str(page), "exec"), names)
        if number == 0:
            names |= {name: _replaced(names, name, value) for name, value in (sizes or {}).items()}
    return names


def _replaced(names: Mapping[str, Any], name: str, value: Any) -> Any:
    """Return a value in the place of a variable, which there must be."""
    names[name]
    return value


def notebook_of(page: Path) -> str:
    """Return a page as the text of a Jupyter notebook without outputs."""
    cells = [
        _stored(cell, number) for number, cell in enumerate(cells_of(page)) if cell.text.strip()
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return json.dumps(
        {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5},
        indent=1,
    )


def _stored(cell: Cell, number: int) -> dict[str, Any]:
    """Return a cell as notebooks store it."""
    common = {"id": f"cell-{number}", "metadata": {}, "source": cell.text.strip()}
    if cell.is_code:
        return common | {"cell_type": "code", "execution_count": None, "outputs": []}
    return common | {"cell_type": "markdown"}


def save_picture(figure: Any, path: Path) -> None:
    """Save a figure in few colours."""
    from PIL import Image

    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", dpi=80)
    Image.open(drawn).convert("RGB").quantize(COLOURS).save(path, optimize=True)


def main() -> None:
    """Run the pages asked for, each in a directory that is removed, and save their figures."""
    parser = argparse.ArgumentParser(prog="notebooks.py", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="pages, by default all")
    names = parser.parse_args().names or list(pages())
    for name in names:
        page = pages()[name]
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            save_picture(run(page)["figure"], page.with_suffix(".png"))
            os.chdir(FOLDER)


if __name__ == "__main__":
    main()
