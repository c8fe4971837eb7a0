"""Stable fluids in three dimensions: slabs of planes, shared out over ranks."""
