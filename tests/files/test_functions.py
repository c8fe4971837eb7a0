"""Functions of the user's own, in files of Python."""

import numpy as np
import pytest

from hybrid_nbody.files.functions import BadFunctionError, load_function


def test_functions_of_files(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    path = tmp_path / "shape.py"
    path.write_text("import sys\nfrom math import pi\ndef hull(points):\n    return points[:, 0]\n")
    assert load_function(str(path), "hull")(np.ones((2, 3))).tolist() == [1.0, 1.0]
    assert list(tmp_path.iterdir()) == [path]  # nothing is written beside it
    with pytest.raises(BadFunctionError, match="has no function sail; it has: hull"):
        load_function(str(path), "sail")
    path.write_text("1 / 0")
    with pytest.raises(BadFunctionError, match="raised ZeroDivisionError"):
        load_function(str(path), "hull")
    path.write_text("raise SystemExit(0)")
    with pytest.raises(BadFunctionError, match="raised SystemExit: 0"):
        load_function(str(path), "hull")
    with pytest.raises(OSError, match="none.py"):
        load_function(str(tmp_path / "none.py"), "hull")
