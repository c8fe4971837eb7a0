"""``bench compare``: ratios of rows, rows of one file alone, refusals, and the exit code."""

import json

import pytest
from support.command import call, refused

from hybrid_nbody.benchmarks import BENCHMARKS
from hybrid_nbody.benchmarks.harness import compare
from hybrid_nbody.errors import FileError, InputError

KEYS = {one.name: one.keys for one in BENCHMARKS} | {"flat": ("part", "bodies", "rung")}


def row(bodies, seconds, sd=0.0, **more):
    times = {"median_s": seconds, "mean_s": seconds, "sd_s": sd * seconds, "repeats": 10}
    head = {"device": "cpu", "precision": "single", "bodies": bodies}
    return head | times | {"interactions_per_s": bodies**2 / seconds} | more


def written(path, rows, benchmark="sizes", **machine):
    facts = {"cpu": "a processor", "hybrid_nbody": "0.1"} | machine
    path.write_text(json.dumps({"benchmark": benchmark, "machine": facts, "rows": rows}))
    return path


@pytest.fixture
def files(tmp_path):
    """A function that writes old and new rows, and returns what `compare` reads of them."""

    def write(old, new, **kinds):
        pairs = (("old.json", old), ("new.json", new))
        paths = [written(tmp_path / name, rows, **kinds) for name, rows in pairs]
        return [compare.read(path, KEYS) for path in paths]

    return write


def test_rows_are_matched_by_their_keys(files):
    """Wherever they stand; the ratio is that of the times for the same work."""
    old, new = files([row(64, 1.0), row(128, 2.0)], [row(128, 3.0), row(64, 0.5)])
    found = {one["row"]: one["ratio"] for one in compare.compared(old, new, 0.05)}
    assert found == {
        "cpu, single, 64 bodies": pytest.approx(0.5),
        "cpu, single, 128 bodies": pytest.approx(1.5),
    }


def test_a_slower_row_is_found_at_the_share_asked_for(files):
    old, new = files([row(64, 1.0), row(128, 1.0)], [row(64, 1.049), row(128, 1.051)])
    verdicts = [one["verdict"] for one in compare.compared(old, new, 0.05)]
    assert verdicts == ["", "slower"]
    assert not any(one["verdict"] for one in compare.compared(old, new, 0.06))


def test_the_scatter_is_that_of_both(files):
    old, new = files([row(64, 1.0, sd=0.03)], [row(64, 2.0, sd=0.04)])
    (found,) = compare.compared(old, new, 0.05)
    assert found["scatter"] == pytest.approx(0.05)


def test_other_work_is_no_speed(files):
    """Steps cut to half the targets take half as long."""
    rate = {"interactions_per_s": 4096.0}
    old, new = files([row(64, 1.0, **rate)], [row(64, 0.5, **rate)])
    (found,) = compare.compared(old, new, 0.05)
    assert found["ratio"] == 1.0


def test_rows_without_a_time_are_compared_by_their_bytes(files):
    copy = {"part": "layouts", "device": "cpu", "cells": 256, "rung": "copy"}
    rows = ([copy | {"bytes_per_s": 2e9}], [copy | {"bytes_per_s": 1e9}])
    (found,) = compare.compared(*files(*rows, benchmark="fluid"), 0.05)
    assert found["row"] == "layouts, cpu, 256 cells, copy"
    assert found["ratio"] == 2.0


def test_rows_of_one_file_are_named(files):
    lost = row(256, 1.0) | {"median_s": None, "interactions_per_s": None, "note": "left out"}
    old, new = files([row(64, 1.0), row(128, 1.0), row(256, 1.0)], [row(64, 1.0), lost])
    rows = compare.compared(old, new, 0.05)
    lines = compare.summary(old, new, rows, 0.05)
    assert lines[:2] == [
        f"only in {old.path}: cpu, single, {bodies} bodies" for bodies in (128, 256)
    ]
    assert lines[2].startswith("1 rows compared, median ratio 1.000, largest 1.000")


def test_other_benchmarks_are_not_compared(files, tmp_path):
    old, _ = files([row(64, 1.0)], [row(64, 1.0)])
    path = written(tmp_path / "other.json", [row(64, 1.0)], "limits")
    with pytest.raises(InputError) as error:
        compare.compared(old, compare.read(path, KEYS), 0.05)
    assert str(error.value) == (
        f"{old.path} holds results of `bench sizes`, {path} of `bench limits`; "
        "compare two of the same benchmark"
    )


def test_the_old_name_of_a_benchmark_is_understood(files, tmp_path):
    rows = [{"part": "devices", "bodies": 500, "rung": "CPU, one thread", "median_s": 1.0}]
    old = compare.read(written(tmp_path / "flat.json", rows, "flat"), KEYS)
    new = compare.read(written(tmp_path / "square.json", rows, "square"), KEYS)
    assert len(compare.compared(old, new, 0.05)) == 1


def test_nothing_in_common_is_said(files):
    with pytest.raises(InputError, match="have no measured row in common$"):
        compare.compared(*files([row(64, 1.0)], [row(128, 1.0)]), 0.05)


@pytest.mark.parametrize("text", ["no JSON", "[]", "{}", '{"benchmark": "sizes"}'])
def test_a_file_of_another_kind_is_refused(tmp_path, text):
    (tmp_path / "file.json").write_text(text)
    with pytest.raises(InputError, match="does not hold results of a benchmark$"):
        compare.read(tmp_path / "file.json", KEYS)
    with pytest.raises(FileError, match=r"none\.json: cannot be read \(No such file"):
        compare.read(tmp_path / "none.json", KEYS)


def test_machines_differ_in_more_than_the_release():
    old = {"cpu": "A", "numba": "0.68", "hybrid_nbody": "0.1"}
    new = {"cpu": "A", "numba": "0.69", "hybrid_nbody": "0.2", "gpu": "H200"}
    assert compare.differences(old, new) == {"numba": "0.68 and 0.69", "gpu": "unknown and H200"}


def test_keys_tell_the_rows_of_every_benchmark_apart():
    assert all(one.keys for one in BENCHMARKS)


# ---- As a user calls it --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code"), [((), 1), (("--slower", "20%"), 0), (("--slower", "0.05"), 1)]
)
def test_the_exit_code_says_whether_a_row_is_slower(tmp_path, words, code):
    written(tmp_path / "old.json", [row(64, 1.0), row(128, 1.0)])
    written(tmp_path / "new.json", [row(64, 1.1), row(128, 1.0)], cpu="another")
    result = call(tmp_path, "bench", "compare", "old.json", "new.json", *words)
    assert result.returncode == code, result.stderr
    assert "warning: the machines differ in cpu: a processor and another" in result.stdout
    assert ("slower\n" in result.stdout) == bool(code)
    assert "2 rows compared, median ratio 1.050, largest 1.100 (cpu, single, 64" in result.stdout


def test_a_share_that_is_none_is_refused(tmp_path):
    written(tmp_path / "old.json", [row(64, 1.0)])
    message = refused(tmp_path, "bench", "compare", "old.json", "old.json", "--slower", "much")
    assert message.startswith("--slower: must be a number greater than 0, alone or with one of %")
