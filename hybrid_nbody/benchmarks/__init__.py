"""Experiments a user runs with ``hybrid-nbody bench NAME``; `command` holds the table of their names."""
