"""Gravity by a fast multipole method, on one rank or many."""
