"""Fixtures of the output's tests."""

from support.ranks import alone, communicator

__all__ = ["alone", "communicator"]
