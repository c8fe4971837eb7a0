"""The directory of a run: refused with the exact reason, and untouched when it is."""

import fcntl
import os
import stat

import pytest
from support.ranks import answer_of

from hybrid_nbody.errors import FileError, InputError
from hybrid_nbody.output import directory

RUN = {
    "config.yaml": "model: nbody\n",
    "log.txt": "said\n",
    "trajectory.h5": "rows",
    "checkpoint-0000000010.h5": "state",
    "checkpoint-0000000020.h5": "state",
}
OTHERS = {
    "notes.txt": "mine",
    "checkpoint-10.h5": "not ours",
    "trajectory.damaged.h5": "kept aside",
}


@pytest.fixture
def run(tmp_path):
    """A folder that holds a run, and files of somebody's own."""
    folder = tmp_path / "run"
    fill(folder, RUN | OTHERS)
    return folder


def fill(folder, files):
    """Put files into a folder."""
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)


def everything_in(folder):
    """Return what a folder and those in it hold, and when it was last changed."""
    return sorted(
        (str(path), path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else None)
        for path in [folder, *folder.rglob("*")]
    )


def refusal(folder, overwrite=False):
    """Return the one message with which both `check` and `claim` refuse a folder."""
    messages = []
    for action in (directory.check, directory.claim):
        with pytest.raises(InputError) as caught:
            action(folder, overwrite)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    return messages[0]


# ---- Claiming ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["new", "a/b/new"])
def test_a_new_folder_is_made_with_those_above_it_but_not_by_the_check(tmp_path, name):
    before = everything_in(tmp_path)
    directory.check(tmp_path / name, overwrite=False)
    assert everything_in(tmp_path) == before
    directory.claim(tmp_path / name, overwrite=False)
    assert (tmp_path / name).is_dir()
    directory.claim(tmp_path / name, overwrite=False)  # empty: nothing to lose


def test_files_that_are_no_run_are_left_alone(tmp_path):
    fill(tmp_path, OTHERS)
    before = everything_in(tmp_path)
    assert directory.files_of_a_run(tmp_path) == []
    directory.claim(tmp_path, overwrite=False)
    directory.claim(tmp_path, overwrite=True)
    assert everything_in(tmp_path) == before


@pytest.mark.parametrize("name", [name for name in RUN if name.endswith(".h5")])
def test_any_file_of_a_run_makes_one(tmp_path, name):
    fill(tmp_path, {name: RUN[name]})
    before = everything_in(tmp_path)
    whole = (
        f"output.directory: {tmp_path} holds a run already; continue it with `hybrid-nbody "
        f"resume {tmp_path}`, "
        "choose another directory, or give --overwrite to replace it"
    )
    without_checkpoint = (
        f"output.directory: {tmp_path} holds a run that ended before its first checkpoint, which "
        "cannot be resumed; give --overwrite to replace it, or choose another directory"
    )
    assert refusal(tmp_path) == (whole if name.startswith("checkpoint") else without_checkpoint)
    assert everything_in(tmp_path) == before


def test_a_run_without_a_checkpoint_is_not_resumed(tmp_path):
    fill(tmp_path, {"trajectory.h5": RUN["trajectory.h5"]})
    with pytest.raises(FileError, match=r"ended before its first one; start it again: .* --overw"):
        directory.require_run(tmp_path)


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("name", ["config.yaml", "log.txt"])
def test_somebodys_own_file_of_a_run_s_name_is_never_replaced(tmp_path, name, overwrite):
    fill(tmp_path, {name: "mine", "download.part": "mine"})
    before = everything_in(tmp_path)
    assert refusal(tmp_path, overwrite) == (
        f"output.directory: {tmp_path} holds no run but {tmp_path / name}, which would be "
        "replaced; "
        "choose another directory"
    )
    assert everything_in(tmp_path) == before


LOCKED = """
import json, sys
from pathlib import Path
from hybrid_nbody.errors import InputError
from hybrid_nbody.output import directory

try:
    directory.lock(Path(sys.argv[1]))
    print(json.dumps("locked"))
except InputError as error:
    print(json.dumps(str(error)))
"""


def test_a_directory_belongs_to_one_process_at_a_time(tmp_path):
    folder = tmp_path / "a" / "run"
    assert answer_of(LOCKED, folder) == "locked"  # made, and free again when the process has ended
    descriptor = os.open(folder, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    message = f"{folder}: another process is running in this directory; wait for it, or stop it"
    assert answer_of(LOCKED, folder) == message
    os.close(descriptor)
    assert answer_of(LOCKED, folder) == "locked"


def test_overwriting_removes_the_files_of_the_run_and_no_others(run):
    fill(run, {"trajectory.until-0000000020.h5": "frames of other contents"})
    before = everything_in(run)
    directory.check(run, overwrite=True)
    assert everything_in(run) == before
    directory.claim(run, overwrite=True)
    assert {path.name: path.read_text() for path in run.iterdir()} == OTHERS


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("below", ["", "run", "a/run"])
def test_a_file_in_the_way_is_named(tmp_path, overwrite, below):
    file = tmp_path / "file"
    file.write_text("mine")
    before = everything_in(tmp_path)
    assert (
        refusal(file / below, overwrite) == f"output.directory: {file} is a file, not a directory"
    )
    assert everything_in(tmp_path) == before


def test_paths_are_named_as_they_were_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fill(tmp_path, {"file": "mine"})
    relative = directory.Path("file/run")
    assert refusal(relative) == "output.directory: file is a file, not a directory"


def test_a_name_that_no_file_can_have_is_refused(tmp_path):
    folder = tmp_path / ("x" * 300)
    assert refusal(folder) == f"output.directory: {folder} cannot be used: File name too long"
    with pytest.raises(InputError) as caught:
        directory.claim(tmp_path / "nul\0byte", overwrite=False)
    assert str(caught.value).endswith("byte cannot be written: embedded null byte")
    assert list(tmp_path.iterdir()) == []


# ---- Permissions ---------------------------------------------------------------------------------

AS_A_USER = """
import json, os, sys
from pathlib import Path
from hybrid_nbody.errors import HybridNBodyError
from hybrid_nbody.output import directory

if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
messages = []
for folder in map(Path, sys.argv[1:]):
    actions = [lambda: directory.check(folder, True), lambda: directory.claim(folder, True)]
    for action in [*actions, lambda: directory.write_config(folder, "model: nbody")]:
        try:
            action()
            messages.append("done")
        except HybridNBodyError as error:
            messages.append(str(error))
print(json.dumps(messages))
"""


@pytest.fixture
def reachable(tmp_path):
    """A folder that every user can reach, for the time of the test."""
    own = [path for path in (tmp_path, *tmp_path.parents) if path.stat().st_uid == os.getuid()]
    modes = [stat.S_IMODE(path.stat().st_mode) for path in own]
    changed = [(path, mode) for path, mode in zip(own, modes, strict=True) if mode & 0o111 != 0o111]
    for path, mode in changed:
        path.chmod(mode | 0o111)
    yield tmp_path
    for path, mode in changed:
        path.chmod(mode)


def test_a_read_only_folder_is_refused_and_untouched(reachable):
    run, empty, shut = (reachable / name for name in ("run", "empty", "shut"))
    fill(run, RUN)
    fill(empty, {})
    fill(shut, {})
    run.chmod(0o555)
    empty.chmod(0o555)
    shut.chmod(0o000)
    before = everything_in(run)
    folders = [run, empty, empty / "new" / "run", shut]
    messages = iter(answer_of(AS_A_USER, *folders))
    shut.chmod(0o700)
    for folder, existing in zip(folders, [run, empty, empty, shut], strict=True):
        check, claim, config = next(messages), next(messages), next(messages)
        assert check == claim
        if folder != shut:
            assert (
                check
                == f"output.directory: {folder} cannot be written: no permission in {existing}"
            )
        assert check.startswith(f"output.directory: {folder} cannot be ")
        assert config.startswith(f"{folder / 'config.yaml'}: writing failed: ")
    assert everything_in(run) == before
    assert list(empty.iterdir()) == list(shut.iterdir()) == []


# ---- The configuration and the directory of a run ------------------------------------------------


def test_the_configuration_is_replaced_as_a_whole(run):
    directory.write_config(run, "title: ü\n")
    assert (run / "config.yaml").read_bytes() == "title: ü\n".encode()
    assert not list(run.glob("*.part"))


def test_a_configuration_that_cannot_be_written_leaves_the_old_one(run, monkeypatch):
    def no_room(path, text, encoding):
        path.write_bytes(b"ha")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(directory.Path, "write_text", no_room)
    with pytest.raises(FileError) as caught:
        directory.write_config(run, "model: nbody\n# another\n")
    assert str(caught.value) == f"{run / 'config.yaml'}: writing failed: the disk is full"
    assert {path.name: path.read_text() for path in run.iterdir()} == RUN | OTHERS


def test_only_a_run_can_be_resumed(run, tmp_path):
    directory.require_run(run)
    fill(tmp_path, {"plummer.yaml": "model: nbody\n", "other.h5": "mine"})
    alone, other = tmp_path / "plummer.yaml", tmp_path / "other.h5"
    for folder, message in (
        (tmp_path / "none", "no such directory"),
        (
            run / "log.txt",
            f"a file, not the directory of a run; give its directory: hybrid-nbody resume {run}",
        ),
        (alone, f"a file, not the directory of a run; start it: hybrid-nbody run {alone}"),
        (other, "a file, not the directory of a run; give a directory that holds checkpoint-*.h5"),
        (tmp_path, "holds no run of hybrid_nbody"),
    ):
        with pytest.raises(InputError) as caught:
            directory.require_run(folder)
        assert str(caught.value) == f"{folder}: {message}"


def test_a_file_put_aside_replaces_no_other(run):
    path, aside = run / "trajectory.h5", run / "trajectory.damaged.h5"
    for turn, name in enumerate(["trajectory.damaged-2.h5", "trajectory.damaged-3.h5"]):
        path.write_text(f"damaged {turn}")
        directory.put_aside(path, aside)
        assert not path.exists()
        assert (run / name).read_text() == f"damaged {turn}"
    assert aside.read_text() == OTHERS[aside.name]
    directory.put_aside(path, aside)  # it is not there: nothing to do
    assert len(list(run.glob("trajectory*"))) == 3
