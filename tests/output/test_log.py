"""The log has the same words on the terminal and in the file; only the root writes."""

import errno
import io
import re

import pytest
from rich.console import Console

from hybrid_nbody.errors import FileError
from hybrid_nbody.output.log import Log

STAMP = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  ")


@pytest.fixture
def console():
    return Console(file=io.StringIO(), width=40)


def lines_of(path):
    """Return the lines of a log without their times."""
    lines = path.read_text(encoding="utf-8").splitlines()
    assert all(STAMP.match(line) for line in lines)
    return [STAMP.sub("", line) for line in lines]


def test_what_is_said_stands_in_both_and_what_is_noted_in_the_file_alone(console, tmp_path):
    log = Log(console)
    log.say("said early")
    log.note("noted early")
    log.open(tmp_path / "log.txt")
    assert lines_of(tmp_path / "log.txt") == ["said early", "noted early"]
    log.say("said")
    log.note("noted")
    # before it is closed
    assert lines_of(tmp_path / "log.txt") == ["said early", "noted early", "said", "noted"]
    log.close()
    assert console.file.getvalue() == "said early\nsaid\n"


@pytest.mark.parametrize(
    "text",
    [
        "[bold]no markup[/bold] [1, 2]",
        "a path with :cat: and :x:",
        "ü ☉",
        "long " * 40 + "line",
        "https://a.b/c",
    ],
)
def test_texts_are_left_as_they_are(console, tmp_path, text):
    log = Log(console)
    log.open(tmp_path / "log.txt")
    log.say(text)
    log.close()
    assert console.file.getvalue() == f"{text}\n"
    assert lines_of(tmp_path / "log.txt") == [text]


def test_a_resumed_run_continues_its_log(console, tmp_path):
    for text in ("first", "second"):
        log = Log(console)
        log.open(tmp_path / "log.txt")
        log.say(text)
        log.close()
        log.close()  # closed already
    assert lines_of(tmp_path / "log.txt") == ["first", "second"]


def test_other_ranks_say_nothing_and_touch_no_file(tmp_path, capfd):
    log = Log(None)
    log.say("said")
    log.note("noted")
    log.open(tmp_path / "log.txt")
    log.say("said")
    log.close()
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")


def test_a_log_that_cannot_be_opened_is_named(console, tmp_path):
    with pytest.raises(FileError) as caught:
        Log(console).open(tmp_path / "no" / "log.txt")
    assert (
        str(caught.value)
        == f"{tmp_path / 'no' / 'log.txt'}: opening failed: No such file or directory"
    )


@pytest.mark.skipif("not __import__('os').path.exists('/dev/full')")
def test_a_full_disk_is_said_once_and_again_at_the_end(console, tmp_path):
    """A run goes on without its log: its own files tell whether they can be written."""
    (tmp_path / "log.txt").symlink_to("/dev/full")
    log = Log(console)
    log.open(tmp_path / "log.txt")
    log.say("first")
    log.say("second")
    what = f"{tmp_path / 'log.txt'}: writing failed: the disk is full"
    said = console.file.getvalue()
    assert said == f"first\nwarning: {what}; no more lines are written there\nsecond\n"
    with pytest.raises(FileError) as caught:
        log.close()
    assert str(caught.value) == what


def test_a_disk_that_is_full_only_when_the_file_is_closed_is_named(console, tmp_path):
    """File systems of networks tell of quotas then."""
    log = Log(console)
    log.open(tmp_path / "log.txt")
    log.say("first")
    file = log.file

    class Full:
        name = file.name

        def close(self):
            file.close()
            raise OSError(errno.ENOSPC, "No space left on device")

    log.file = Full()
    with pytest.raises(FileError, match=r"log\.txt: writing failed: the disk is full$"):
        log.close()
