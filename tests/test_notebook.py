"""The notebook of the documents runs from top to bottom on a run of this program."""

import importlib.util
import os
from pathlib import Path

import pytest
from support.runs import run

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOK = ROOT / "docs" / "analysis.ipynb"


@pytest.fixture
def notebook(tmp_path):
    """The executed notebook, in a folder beside the output of a small run."""
    for name in ("nbclient", "nbformat", "ipykernel"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed; the extra `test` brings it")
    import nbclient
    import nbformat

    small = [
        "bodies.n=512",
        "time.steps=100",
        "output.trajectory.every_steps=50",
        "compute.threads=1",
    ]
    settings = [word for setting in small for word in ("--set", setting)]
    run(
        "run",
        ROOT / "input" / "plummer.yaml",
        *settings,
        "--set",
        f"output.directory={tmp_path}/output/plummer",
    )
    found = nbformat.read(NOTEBOOK, as_version=4)
    (tmp_path / "docs").mkdir()
    client = nbclient.NotebookClient(
        found, timeout=60, resources={"metadata": {"path": str(tmp_path / "docs")}}
    )
    variables = {
        "PYTHONPATH": str(ROOT),
        "IPYTHONDIR": str(tmp_path),
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    }
    return client.execute(env=os.environ | variables)


def test_every_cell_runs_and_shows_what_it_promises(notebook):
    """A cell that fails raises; this looks at what the others show."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    texts = ["".join(output.get("text", "") for output in cell.outputs) for cell in cells]
    pictures = [
        sum("image/png" in output.get("data", {}) for output in cell.outputs) for cell in cells
    ]
    assert "512" in cells[0].outputs[0]["data"]["text/plain"]
    assert "largest relative energy error" in texts[1]
    assert "'position': (512, 3)" in texts[-1]
    assert pictures == [0, 1, 1, 1, 0]


def test_it_is_stored_without_outputs():
    nbformat = pytest.importorskip(
        "nbformat", reason="nbformat is not installed; the extra `test` brings it"
    )
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    assert len(cells) > 5
    assert all(
        not cell.outputs and cell.execution_count is None
        for cell in cells
        if cell.cell_type == "code"
    )
