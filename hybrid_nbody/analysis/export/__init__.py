"""Exports of runs to files of other programs, and `load_yt`, which opens one in yt."""

from hybrid_nbody.analysis.export.exporting import FORMATS, ExportOptions, export_run
from hybrid_nbody.analysis.export.yt_loader import load_yt

__all__ = ["FORMATS", "ExportOptions", "export_run", "load_yt"]
