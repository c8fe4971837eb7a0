"""Fixtures: small output files, and the messages that bad ones give."""

import warnings

import pytest
from support.written_runs import (
    cut,
    in_folder,
    refused,
    seal,
    write_checkpoint,
    write_fluid,
    write_fluid_checkpoint,
    write_run,
)

__all__ = [
    "cut",
    "in_folder",
    "refused",
    "seal",
    "write_checkpoint",
    "write_fluid",
    "write_fluid_checkpoint",
    "write_run",
]


@pytest.fixture
def no_warnings():
    """A picture that draws with a warning is not right yet."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("default", ResourceWarning)  # of what other tests left behind
        yield
