"""Writing HDF5 files: what data sets and files say of themselves."""

import h5py
import numpy as np
import pytest

from hybrid_nbody.files.hdf5 import attributes
from hybrid_nbody.output import hdf5


@pytest.fixture
def file(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["numbers"] = np.arange(1000)
        file.flush()
        yield file


def test_a_data_set_says_what_it_is(file):
    hdf5.describe(file["numbers"], "length", "what it is")
    assert attributes(file["numbers"]) == {"units": "length", "description": "what it is"}


@pytest.mark.parametrize("value", ["", "plain", "ü ☉ π", "two\nlines", "x" * 30_000])
def test_texts_come_back_as_they_were_stored(file, value):
    hdf5.write_header(file, "hybrid_nbody kind", {"title": value, "ranks": 3})
    assert attributes(file)["title"] == value
    assert file.attrs["ranks"] == 3
    assert attributes(file)["format"] == "hybrid_nbody kind"
