"""What a benchmark leaves behind: rows at once, tables that fit, and no foreign folder changed."""

import csv
import json

import pytest
from rich.console import Console

from hybrid_nbody.benchmarks.harness.measure import Column, digits, table
from hybrid_nbody.benchmarks.harness.record import Results, claim
from hybrid_nbody.errors import FileError, InputError

COLUMNS = (
    Column("name", "what it is", "Name", note="note"),
    Column("note", "a remark"),
    Column("rate", "how fast", "rate", "3 G"),
    Column("spread", "how sure", "spread", "2", rank=1),
    Column("detail", "what nobody reads", "detail", "2", rank=2),
)
ROWS = [
    {"name": "first", "rate": 1.2345e9, "spread": 0.5, "detail": 2.0, "median_s": 1.0},
    {"name": "second", "note": "needs a GPU"},
]


def results(folder, overwrite=False):
    return Results("ladder", folder, COLUMNS, {"cpu": "a processor"}, overwrite)


def test_a_row_is_on_disk_as_soon_as_it_is_added(tmp_path):
    kept = results(tmp_path / "out")
    for number, row in enumerate(ROWS, start=1):
        kept.add(row)
        with open(kept.csv, newline="") as file:
            assert len(list(csv.DictReader(file))) == number
    with open(kept.csv, newline="") as file:
        first, second = csv.DictReader(file)
    assert float(first["rate"]) == 1.2345e9
    assert second == {
        "name": "second",
        "note": "needs a GPU",
        "rate": "",
        "spread": "",
        "detail": "",
    }


def test_json_holds_machine_columns_and_rows(tmp_path):
    kept = results(tmp_path / "out")
    assert json.loads(kept.json.read_text())["outcome"] == "running"
    kept.add(ROWS[0])
    kept.write_json("finished")
    content = json.loads(kept.json.read_text())
    assert content["outcome"] == "finished"
    assert content["machine"] == {"cpu": "a processor"}
    assert content["columns"]["rate"] == "how fast"
    assert content["rows"] == ROWS[:1]


def test_earlier_results_are_replaced_only_when_asked(tmp_path):
    results(tmp_path / "out").add(ROWS[0])
    before = (tmp_path / "out" / "ladder.csv").read_text()
    with pytest.raises(InputError) as error:
        results(tmp_path / "out")
    assert str(error.value) == (
        f"--output: {tmp_path}/out holds results of `bench ladder` already; "
        "choose another directory, or give --overwrite"
    )
    assert (tmp_path / "out" / "ladder.csv").read_text() == before
    results(tmp_path / "out", overwrite=True)
    assert (tmp_path / "out" / "ladder.csv").read_text() != before


@pytest.mark.parametrize("name", ["notes.txt", "ladder.csv", "ladder.json"])
def test_a_foreign_folder_is_left_alone(tmp_path, name):
    (tmp_path / name).write_text("{}")
    with pytest.raises(InputError) as error:
        claim(tmp_path, "ladder", overwrite=True)
    assert str(error.value) == (
        f"--output: {tmp_path} holds {name}, which is not of `bench ladder`; "
        "choose another directory"
    )
    assert (tmp_path / name).read_text() == "{}"


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(InputError) as error:
        claim(tmp_path / "out", "ladder", overwrite=True)
    assert str(error.value) == f"--output: {tmp_path}/out is a file, not a directory"


def test_a_full_disk_is_told_with_the_file(tmp_path):
    kept = results(tmp_path / "out")
    kept.csv.unlink()
    kept.csv.symlink_to("/dev/full")
    with pytest.raises(FileError, match=r"ladder\.csv: writing failed: .*(no space|No space|full)"):
        kept.add(ROWS[0])


def shown(width):
    console = Console(width=width, record=True)
    with console.capture() as text:
        console.print(table(COLUMNS, ROWS, width))
    return [line.rstrip() for line in text.get().splitlines()]


def test_a_table_shows_what_there_is_room_for():
    assert shown(80) == [
        "Name                 rate spread detail",
        "first                1.23   0.50    2.0",
        "second (needs a GPU)",
    ]
    assert shown(34) == [
        "Name                 rate spread",
        "first                1.23   0.50",
        "second (needs a GPU)",
    ]
    assert shown(26) == [
        "Name                 rate",
        "first                1.23",
        "second (needs a GPU)",
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0.00"),
        (1.2345, "1.23"),
        (9.999, "10.0"),
        (0.00012345, "0.000123"),
        (123456.0, "123456"),
        (99.96, "100"),
    ],
)
def test_digits(value, text):
    assert digits(3)(value) == text
