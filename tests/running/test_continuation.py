"""Resumed runs whose end, output or diagnostics are other ones than before."""

import shutil
from dataclasses import replace

import h5py
import numpy as np
import pytest
from support.runs import assert_same_run, contents, run

from hybrid_nbody.files.listing import load_listing
from hybrid_nbody.files.run import open_run
from hybrid_nbody.output.listing import write_listing

BODIES = """\
model: nbody
bodies: {kind: figure-eight}
time: {dt: 1e-2, steps: 30}
compute: {backend: cpu, threads: 1}
output:
  directory: OUT
  trajectory: {every_steps: 20}
  diagnostics: {every_time: 0.2}
  checkpoint: {every_steps: 15}
"""

FLUID = """\
model: fluid
grid: {cells: [8, 6, 10]}
solver: {max_iterations: 5}
sources: {events: [{steps: [0, 9], density: 1}, {step: 2, velocity: [0, 1, 0]}]}
time: {dt: 0.1, steps: 20}
compute: {backend: cpu, threads: 1}
output:
  directory: OUT
  trajectory: {every_steps: 4}
  diagnostics: {every_steps: 2}
  checkpoint: {every_steps: 10}
"""


@pytest.fixture
def start(tmp_path):
    """Return a function that runs a configuration into a folder, which it returns."""

    def started(text, name, *settings):
        path = tmp_path / "job.yaml"
        path.write_text(text.replace("OUT", str(tmp_path / name)))
        run(path, *(f"--set={setting}" for setting in settings))
        return tmp_path / name

    return started


@pytest.mark.parametrize("settings", [(), ("output.diagnostics=null",)])
def test_an_extended_run_is_as_if_it_had_never_had_an_end(start, settings):
    """30 and 50 are no multiples of 20: their rows are there because the runs end."""
    whole = start(BODIES, "whole", "time.steps=70", *settings)
    extended = start(BODIES, "extended", *settings)
    assert contents(extended)["step"].tolist() == [0, 20, 30]
    run("resume", extended, "--set=time.steps=50")
    assert contents(extended)["step"].tolist() == [0, 20, 40, 50]
    run("resume", extended, "--set=time.end=0.7")
    assert contents(whole)["step"].tolist() == [0, 20, 40, 60, 70]
    assert_same_run(extended, whole)


def test_an_end_that_was_due_anyway_keeps_its_rows(start):
    folder = start(BODIES, "out", "time.steps=40")
    run("resume", folder, "--set=time.steps=45", "--set=output.trajectory.every_steps=25")
    assert contents(folder)["step"].tolist() == [0, 20, 40, 45]


def test_nothing_left_to_do_keeps_the_last_frame(start):
    folder = start(BODIES, "out")
    run("resume", folder)
    assert contents(folder)["step"].tolist() == [0, 20, 30]


@pytest.mark.parametrize(
    "setting", ["output.fields=[density]", "output.stride=2", "output.planes=[1, 3]"]
)
def test_frames_of_other_fields_begin_a_file_of_their_own(start, setting):
    whole = contents(start(FLUID, "whole", "time.steps=30"))
    other = contents(start(FLUID, "other", "time.steps=30", setting))
    folder = start(FLUID, "out")
    resumed = run("resume", folder, "--set=time.steps=30", f"--set={setting}")
    assert "those so far are kept as trajectory.until-0000000020.h5" in resumed.stdout
    assert "damaged" not in resumed.stdout
    assert resumed.stderr == ""
    found = contents(folder)
    assert found["step"].tolist() == [20, 24, 28, 30]
    assert found.keys() == other.keys()
    for name in (name for name in found if name.startswith("diagnostics/")):
        np.testing.assert_array_equal(found[name], whole[name], err_msg=name)
    for name in (name for name in found if name.startswith("fluid/")):
        np.testing.assert_array_equal(found[name], other[name][5:], err_msg=name)
    with open_run(folder / "trajectory.until-0000000020.h5") as before:
        np.testing.assert_array_equal(before.step, [0, 4, 8, 12, 16, 20])
        np.testing.assert_array_equal(before.field("fluid/velocity", 5), whole["fluid/velocity"][5])
    run("resume", folder, "--set=time.steps=32")  # the same fields again: the same file
    assert contents(folder)["step"].tolist() == [20, 24, 28, 32]


@pytest.mark.parametrize("text", [BODIES, FLUID])
def test_a_run_in_one_file_of_an_older_program_goes_on(start, text):
    steps = "time.steps=50"
    whole = start(text, "whole", steps)
    folder = start(text, "out")
    as_single_file(folder)
    earlier = contents(folder)
    with open_run(folder) as run_so_far:
        assert run_so_far.number_of_frames == len(earlier["step"])
    output = run("resume", folder, f"--set={steps}").stdout
    assert "damaged" not in output
    assert_same_run(folder, whole)


def as_single_file(folder):
    """Turn the trajectory of a run into one of format version 1."""
    with h5py.File(folder / "trajectory.h5") as sealed, h5py.File(folder / "one.h5", "w") as single:
        single.attrs.update(dict(sealed.attrs) | {"format_version": 1})
        del single.attrs["parts"]

        def copy(name, item):
            if isinstance(item, h5py.Dataset):
                grows = name not in ("bodies/mass", "bodies/id")
                maxshape = (None, *item.shape[1:]) if grows else None
                copied = single.create_dataset(name, data=item[()], maxshape=maxshape)
                copied.attrs.update({key: item.attrs[key] for key in ("units", "description")})

        sealed.visititems(copy)
    shutil.rmtree(folder / "trajectory")
    (folder / "one.h5").replace(folder / "trajectory.h5")


def test_a_resumed_run_stays_in_its_directory(start):
    folder = start(BODIES, "out")
    error = run("resume", folder, "--set=output.directory=elsewhere", check=2).stderr
    assert "a resumed run stays in its directory" in error


GONE = ("momentum", "virial_ratio")
"""Diagnostics that a program of the past did not have."""


def test_a_new_diagnostic_is_nan_before(start):
    """A run of a program without one of today's diagnostics, and with one that is gone today."""
    whole = start(BODIES, "whole", "time.steps=60")
    folder = start(BODIES, "out")
    listing = load_listing(folder / "trajectory.h5")
    rows = {name: column for name, column in listing.rows.items() if name not in GONE}
    columns = [column for column in listing.variables.diagnostics if column.name not in GONE]
    entropy = replace(columns[0], name="entropy", shape=())
    variables = replace(listing.variables, diagnostics=(*columns, entropy))
    rows["entropy"] = np.ones(len(rows["step"]))
    write_listing(folder / "trajectory.h5", replace(listing, variables=variables, rows=rows))
    text = run("resume", folder, "--set=time.steps=60").stdout
    assert "damaged" not in text and "warning" not in text
    assert not list(folder.glob("*damaged*"))
    found = contents(folder)
    expected = contents(whole)
    for name in GONE:
        values = found.pop(f"diagnostics/{name}")
        known = expected.pop(f"diagnostics/{name}")
        assert np.isnan(values[:2]).all()
        np.testing.assert_array_equal(values[2:], known[2:])
    np.testing.assert_array_equal(found.pop("diagnostics/entropy"), [1, 1, np.nan, np.nan])
    assert found.keys() == expected.keys()
    for name in found:
        np.testing.assert_array_equal(found[name], expected[name], err_msg=name)
    run("resume", folder, "--set=time.steps=80")  # the added columns are now its own
    assert not list(folder.glob("*damaged*"))


def test_a_checkpoint_of_another_run_is_refused(start):
    """Only what a resumed run may change can differ, such as its end and its frames."""
    mine = start(BODIES, "mine", "time.steps=15")
    theirs = start(BODIES, "theirs", "gravity.G=2")
    before = contents(mine)
    shutil.copy(theirs / "checkpoint-0000000030.h5", mine)
    refused = run("resume", mine, check=2)
    assert "checkpoint-0000000030.h5: belongs to another run than trajectory.h5" in refused.stderr
    assert "gravity.G" in refused.stderr
    assert contents(mine).keys() == before.keys()
    assert contents(mine)["step"].tolist() == before["step"].tolist()
    (mine / "checkpoint-0000000030.h5").unlink()
    run("resume", mine, "--set=time.steps=20", "--set=output.trajectory.every_steps=10")
