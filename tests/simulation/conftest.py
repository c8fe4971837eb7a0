"""Fixtures of the loop's tests."""

from support.ranks import alone, communicator

__all__ = ["alone", "communicator"]
