"""Fixtures of the builders' tests."""

from support.ranks import alone, communicator

__all__ = ["alone", "communicator"]
