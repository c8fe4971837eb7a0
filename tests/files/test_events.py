"""Events in the course's format are read as they are; faults are named with their line."""

from pathlib import Path

import pytest

from hybrid_nbody.errors import InputError
from hybrid_nbody.files.events import FileEvent, read_events

COURSE = Path(__file__).parents[3] / "shared" / "reference" / "events-course.txt"
KINDS = "'source d t' or 'force x y z t'"


def test_kinds_order_and_comments(in_folder):
    (in_folder / "e.txt").write_bytes(
        b"\xef\xbb\xbf# a list\n\n 20 # steps\r\nforce 0 -1e1 .5 19\nsource 3 7# late\nsource 4 7\n"
    )
    assert read_events("e.txt") == [
        FileEvent(19, velocity=(0.0, -10.0, 0.5)),
        FileEvent(7, density=3.0),
        FileEvent(7, density=4.0),
    ]


def test_a_list_without_events(in_folder):
    (in_folder / "e.txt").write_text("5\n")
    assert read_events("e.txt") == []


@pytest.mark.skipif(not COURSE.exists(), reason="the course's list is not part of this project")
def test_the_list_of_the_course():
    events = read_events(COURSE, 100)
    assert len(events) == 20
    assert events[0] == FileEvent(69, density=3.0)
    assert sum(event.density for event in events if event.density is not None) == 89
    assert [event.step for event in events if event.velocity == (0.0, 1.0, 0.0)] == [65, 84, 78, 24]


NUMBER_NEEDED = "the first line must be the number of steps, a whole number from 1"

MESSAGES = {
    "": "e.txt: an empty list of events; its first line must be the number of steps",
    "# nothing\n": "e.txt: an empty list of events; its first line must be the number of steps",
    "source 1 2\n": f"e.txt:1: {NUMBER_NEEDED} (got 'source 1 2')",
    "\n0\n": "e.txt:2: the first line must be the number of steps, a whole number from 1 (got '0')",
    "1e2\n": f"e.txt:1: {NUMBER_NEEDED} (got '1e2')",
    "9\nsuorce 1 2\n": f"e.txt:2: unknown event 'suorce'; must be {KINDS}",
    "9\n\nsource 1\n": "e.txt:3: source takes 2 numbers, d t (got 1)",
    "9\nforce 1 2 3 4 5\n": "e.txt:2: force takes 4 numbers, x y z t (got 5)",
    "9\nsource one 2\n": "e.txt:2: d must be a finite number (got 'one')",
    "9\nforce 1 nan 3 4\n": "e.txt:2: y must be a finite number (got 'nan')",
    "9\nforce 1 2 1e999 4\n": "e.txt:2: z must be a finite number (got '1e999')",
    "9\nsource 1_0 2\n": "e.txt:2: d must be a finite number (got '1_0')",
    "9\nsource 1 2.5\n": "e.txt:2: the step t must be a whole number from 0 (got '2.5')",
    "9\nsource 1 9\n": "e.txt:2: step 9 lies outside the 9 steps of the list, 0 to 8",
    "9\nsource 1 -1\n": "e.txt:2: the step t must be a whole number from 0 (got '-1')",
    "9\nsource 1 8\n": "e.txt:2: step 8 lies past the end of the run, whose steps are 0 to 7",
    f"9\nsource 1 {'7' * 5000}\n": (
        f"e.txt:2: the step t must be a whole number from 0 (got '{'7' * 60}…')"
    ),
    "9\nsource \0 1\n": "e.txt:2: not a list of events but a binary file",
}


@pytest.mark.parametrize("text", MESSAGES)
def test_what_is_wrong_is_named_with_its_line(in_folder, refused, text):
    (in_folder / "e.txt").write_text(text)
    assert refused(InputError, read_events, "e.txt", 8) == MESSAGES[text]


def test_all_faults_are_reported_at_once_in_the_order_of_their_lines(in_folder):
    (in_folder / "e.txt").write_text(
        "many\n\nsource one two # both\nsource 1 7\nsuorce 1 2\nforce 1 2 3\nsource 1 8\n"
    )
    with pytest.raises(InputError) as caught:
        read_events("e.txt", 8)
    assert str(caught.value).split("\n") == [
        "e.txt:1: the first line must be the number of steps, a whole number from 1 (got 'many')",
        "e.txt:3: d must be a finite number (got 'one')",
        "e.txt:3: the step t must be a whole number from 0 (got 'two')",
        f"e.txt:5: unknown event 'suorce'; must be {KINDS}",
        "e.txt:6: force takes 4 numbers, x y z t (got 3)",
        "e.txt:7: step 8 lies past the end of the run, whose steps are 0 to 7",
    ]


def test_many_faults_are_counted_and_not_all_printed(in_folder):
    (in_folder / "e.txt").write_text("9\n" + "source 1 9\n" * 70)
    with pytest.raises(InputError) as caught:
        read_events("e.txt")
    lines = str(caught.value).split("\n")
    assert lines[49:] == [
        "e.txt:51: step 9 lies outside the 9 steps of the list, 0 to 8",
        "… and 20 more faults",
    ]


def test_files_that_cannot_be_read(in_folder, refused):
    assert refused(InputError, read_events, "e.txt") == "e.txt: no such file"
    assert refused(InputError, read_events, ".") == ".: a directory, not a file"
    (in_folder / "e.txt").write_bytes(b"9\nsource \xff 1\n")
    assert (
        refused(InputError, read_events, "e.txt")
        == "e.txt:2: not UTF-8 text; save the file as UTF-8"
    )
