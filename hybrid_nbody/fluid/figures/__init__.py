"""Figures, movies and the view in space of a run of a fluid."""
