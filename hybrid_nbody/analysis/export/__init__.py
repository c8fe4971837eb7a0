"""Runs as files that other programs open: `export_run` writes them, `load_yt` hands a snapshot to yt."""

from hybrid_nbody.analysis.export.exporting import FORMATS, export_run
from hybrid_nbody.analysis.export.yt_loader import load_yt

__all__ = ["FORMATS", "export_run", "load_yt"]
