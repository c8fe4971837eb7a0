"""Exports of small runs, read a few rows at a time as large ones are."""

import pytest

from hybrid_nbody.analysis.export import source


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Frames are read in several blocks."""
    monkeypatch.setattr(source, "BLOCK_BYTES", 100)
