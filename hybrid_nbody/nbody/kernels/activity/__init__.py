"""Counting the bodies in each cell of the unit square, a twin for every kind of backend."""
