"""The command line as a user calls it: help, and every refusal, which writes nothing."""

import os
import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy as np
import pytest
from support.command import call, refused
from support.forked import run_fast

from hybrid_nbody.cli import main as cli
from hybrid_nbody.errors import InputError

GOOD = """\
model: nbody
bodies: {kind: plummer, n: 10}
gravity: {softening: 0.01}
time: {dt: 1e-3, steps: 5}
compute: {backend: cpu}
output: {directory: out}
"""


@pytest.fixture
def folder(tmp_path):
    """Return a folder with a good configuration, ``job.yaml``; commands run there."""
    (tmp_path / "job.yaml").write_text(GOOD)
    return tmp_path


def with_line(folder, old, new):
    """Change the configuration."""
    text = (folder / "job.yaml").read_text()
    assert old in text
    (folder / "job.yaml").write_text(text.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "softening:",
            "sofening:",
            "job.yaml:3: gravity.sofening: unknown key; did you mean 'softening'? "
            "allowed: G, softening, solver, precision, external, accuracy",
        ),
        (
            "n: 10",
            "n: ten",
            "job.yaml:2: bodies.n: must be a whole number, at least 1 and at most 1e9 (got 'ten')",
        ),
        ("dt: 1e-3", "dt: -0.1", "job.yaml:4: time.dt: must be greater than 0 (got -0.1)"),
        ("n: 10", "n: 0", "job.yaml:2: bodies.n: must be at least 1 (got 0)"),
        (
            "steps: 5",
            "steps: 5, end: 1",
            "job.yaml:4: time.end: cannot be given together with steps; give exactly one of end "
            "and steps",
        ),
        (
            "bodies:",
            "model: nbody\nbodies:",
            "job.yaml:2: model: duplicate key, first given in line 1; keep one of them",
        ),
        (
            "backend: cpu",
            "threads: 0",
            "job.yaml:5: compute.threads: must be auto or a whole number, at least 1 "
            "and at most 1024 (got 0)",
        ),
        (
            "backend: cpu",
            "balance: [1, 2]",
            "compute.balance: 2 weights for 1 rank; give one weight per rank",
        ),
    ],
)
def test_faults_of_the_configuration(folder, old, new, message):
    with_line(folder, old, new)
    assert refused(folder, "job.yaml") == message


def test_all_faults_are_told_at_once(folder):
    with_line(folder, "n: 10", "n: 0")
    with_line(folder, "dt: 1e-3", "dt: 0")
    assert len(refused(folder, "job.yaml").split("\n")) == 3  # below the word error


def test_a_missing_file_and_a_directory(folder):
    assert refused(folder, "jab.yaml") == "jab.yaml: no such file; did you mean 'job.yaml'?"
    assert refused(folder, ".") == ".: is a directory, not a file; did you mean 'job.yaml'?"


def test_text_that_is_not_utf_8(folder):
    (folder / "job.yaml").write_bytes(GOOD.encode() + b"title: \xff\n")
    message = refused(folder, "job.yaml")
    assert message == (
        f"job.yaml:7: is not UTF-8 text (byte 0xff at offset {len(GOOD) + 7}); save the file "
        "as UTF-8"
    )


@pytest.mark.parametrize(
    ("tag", "value"), [("python/object", "{}"), ("python/object/apply", "[ls]")]
)
def test_tags_are_refused(folder, tag, value):
    (folder / "job.yaml").write_text(GOOD + f"title: !!{tag}:os.system {value}\n")
    assert refused(folder, "job.yaml") == (
        f"job.yaml:7: title: tags such as 'tag:yaml.org,2002:{tag}:os.system' are not allowed; "
        "write the plain value"
    )


def test_an_alias_bomb_of_ten_levels_is_refused_at_once(folder):
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 9)}]" for k in range(1, 10)]
    (folder / "job.yaml").write_text(
        GOOD + "title: " + levels[0][4:] + "\n" + "\n".join(levels[1:])
    )
    start = time.monotonic()
    lines = refused(folder, "job.yaml").split("\n")
    assert "job.yaml:8: a1[0]: aliases such as *a0 are not allowed; write the value out" in lines
    assert time.monotonic() - start < 10


CSV = "x,y,z,vx,vy,vz,m\n0,0,0,0,0,0,1\n1,0,0,0,{vy},0,1\n"


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("abc", "bodies.csv:3: column 'vy': not a number (got 'abc')"),
        ("", "bodies.csv:3: column 'vy': missing"),
    ],
)
def test_a_bad_cell_is_named_by_row_and_column(folder, cell, message):
    (folder / "bodies.csv").write_text(CSV.format(vy=cell))
    with_line(folder, "{kind: plummer, n: 10}", "{kind: file, path: bodies.csv}")
    assert refused(folder, "job.yaml").endswith(message)


FOREIGN = {
    "foreign.h5": "an HDF5 file, but not one that hybrid_nbody wrote",
    "broken.h5": "damaged or unreadable (",  # and HDF5's own words
}


def test_foreign_and_unreadable_hdf5(folder):
    with h5py.File(folder / "foreign.h5", "w") as file:
        file["x"] = np.zeros(3)
    (folder / "broken.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + b"\0" * 50)
    for name in ("foreign.h5", "broken.h5"):
        message = refused(folder, "job.yaml", "--set", f"bodies={{kind: file, path: {name}}}")
        assert message.startswith(f"{folder / name}: {FOREIGN[name]}")
        assert "\n" not in message


def test_an_output_directory_that_holds_a_run_is_refused_and_untouched(folder):
    assert call(folder, "job.yaml").returncode == 0
    before = contents_of(folder / "out")
    message = refused(folder, "job.yaml")
    assert message == (
        "output.directory: out holds a run already; continue it with `hybrid-nbody resume out`, "
        "choose another directory, or give --overwrite to replace it"
    )
    assert contents_of(folder / "out") == before
    assert call(folder, "job.yaml", "--overwrite").returncode == 0


def contents_of(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_an_output_directory_that_is_a_file_is_refused(folder):
    (folder / "out").write_text("")
    assert refused(folder, "job.yaml") == "output.directory: out is a file, not a directory"


UNPRIVILEGED = """\
import os, sys
import hybrid_nbody.running.start, mpi4py.MPI, numba  # while Python's own files can be read
from hybrid_nbody.cli.main import main
if os.getuid() == 0:
    os.setuid(65534)
sys.exit(main(["job.yaml"]))
"""


def test_a_read_only_output_directory_is_refused(folder):
    (folder / "out").mkdir()
    (folder / "out").chmod(0o555)
    for parent in (
        folder,
        *folder.parents[:-2],
    ):  # pytest's folders are private; the unprivileged user must pass
        parent.chmod(parent.stat().st_mode | 0o055)
    root = str(Path(__file__).parents[2])
    variables = os.environ | {"PYTHONPATH": root}
    result = run_fast(["-c", UNPRIVILEGED], folder, variables)
    assert result.returncode == 2, result.stderr
    assert "output.directory: out cannot be written: no permission in out" in result.stderr
    assert list((folder / "out").iterdir()) == []


def test_a_gpu_that_is_not_there_is_an_error_that_says_what_to_do(folder):
    message = refused(
        folder, "job.yaml", "--set", "compute.backend=gpu", environment={"CUDA_VISIBLE_DEVICES": ""}
    )
    assert message.startswith("no GPU can be used: ")
    assert "use compute.backend: cpu" in message


def test_auto_says_what_it_chose(folder):
    result = call(
        folder,
        "job.yaml",
        "--set",
        "compute.backend=auto",
        environment={"CUDA_VISIBLE_DEVICES": ""},
    )
    assert "backend auto chose cpu: no GPU can be used" in result.stdout


@pytest.mark.parametrize(
    "variables", [("PMI_SIZE", "PMI_RANK"), ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK")]
)
def test_a_foreign_mpirun_is_refused_once_with_the_remedy(folder, variables):
    size, rank = variables
    # PMI_FD is absent, so that MPICH itself starts a world of one
    message = refused(folder, "job.yaml", environment={size: "4", rank: "0"})
    assert "each sees an MPI world of 1" in message
    assert "use the mpirun of that library: " in message
    result = call(folder, "job.yaml", environment={size: "4", rank: "2"})
    assert (result.returncode, result.stderr) == (2, "")


def test_resume_refuses_what_is_no_run_and_changed_physics(folder):
    assert refused(folder, "resume", "nothing") == "nothing: no such directory"
    (folder / "empty").mkdir()
    assert refused(folder, "resume", "empty") == "empty: holds no run of hybrid_nbody"
    assert call(folder, "job.yaml").returncode == 0
    assert "a resumed run can only change" in refused(folder, "resume", "out", "--set", "time.dt=1")
    assert "at step 5 already" in refused(folder, "resume", "out", "--set", "time.steps=3")


def test_a_refused_run_on_several_ranks_speaks_once(folder, mpirun):
    with_line(folder, "n: 10", "n: 0")
    result = mpirun(3, "-m", "hybrid_nbody", folder / "job.yaml")
    assert result.returncode == 2
    assert result.stderr.count("hybrid_nbody: error:") == 1


@pytest.mark.parametrize("backend", ["hybrid", "[hybrid]"])
def test_a_hybrid_run_without_a_gpu_is_refused_as_one_of_gpu(folder, backend):
    with_line(folder, "backend: cpu", f"backend: {backend}")
    message = refused(folder, "job.yaml", environment={"CUDA_VISIBLE_DEVICES": ""})
    assert message.startswith("no GPU can be used: ")
    assert "use compute.backend: cpu" in message


def test_backends_must_match_the_ranks(folder):
    with_line(folder, "backend: cpu", "backend: [cpu, cpu, gpu]")
    assert (
        refused(folder, "job.yaml")
        == "compute.backend: 3 backends for 1 rank; give one backend per rank"
    )


def test_weights_must_match_the_ranks(folder, mpirun):
    with_line(folder, "backend: cpu", "balance: [1, 2]")
    result = mpirun(3, "-m", "hybrid_nbody", folder / "job.yaml")
    assert result.returncode == 2
    assert "compute.balance: 2 weights for 3 ranks; give one weight per rank" in result.stderr


def test_help_loads_nothing_heavy():
    code = (
        "import sys\nfrom hybrid_nbody.cli.main import main\ntry:\n    main(['--help'])\nexcept "
        "SystemExit:\n    pass\nheavy = {'numba', 'mpi4py', 'cupy', 'numpy', 'h5py', "
        "'matplotlib', 'pydantic', 'rich'} & set(sys.modules)\nsys.exit(str(sorted(heavy)) if "
        "heavy else 0)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 0, result.stderr
    commands = "run resume check info plot export movie report compare bench doctor"
    for command in commands.split():
        assert f"\n    {command} " in result.stdout


def test_check_says_what_would_be_done_and_writes_nothing(folder):
    before = sorted(folder.rglob("*"))
    result = call(folder, "check", "job.yaml")
    assert result.returncode == 0, result.stderr
    assert sorted(folder.rglob("*")) == before
    assert "job.yaml: a valid configuration" in result.stdout
    assert "10 (plummer)" in result.stdout
    assert "5 steps of 0.001, to t = 0.005" in result.stdout


def test_doctor_on_two_ranks(mpirun):
    result = mpirun(2, "-m", "hybrid_nbody", "doctor")
    assert result.returncode == 0, result.stdout + result.stderr
    for word in ("MPI ", "CUDA-aware", "ranks        2", "layer of Numba", "packages", "numba"):
        assert word in result.stdout


def test_info_and_plot_of_a_run(folder):
    assert call(folder, "job.yaml").returncode == 0
    text = call(folder, "info", "out").stdout
    assert "bodies        10" in text
    pictures = call(folder, "plot", "out").stdout.split()
    assert pictures
    for picture in pictures:
        assert (folder / picture).read_bytes().startswith(b"\x89PNG")


def test_more_bodies_than_memory_are_refused_before_they_are_drawn(folder):
    message = refused(folder, "job.yaml", "--set", "bodies.n=1e9")
    assert message.startswith("bodies.n: 1000000000 bodies take 150 GB of memory at least, and ")
    assert message.endswith(" GB are free on this machine; take fewer")


def test_memory_that_runs_out_is_a_fault_of_the_input():
    def greedy(parsed, ranks):
        raise MemoryError("Unable to allocate 7 GiB")

    with pytest.raises(
        InputError, match="^not enough memory: Unable to allocate 7 GiB; take a smaller problem"
    ):
        cli._call(greedy, None, None)


def test_bodies_from_every_kind_of_file_give_the_same_run(folder):
    import hybrid_nbody

    assert (
        call(
            folder, "job.yaml", "--set", "output.directory=first", "--set", "bodies.kind=random-box"
        ).returncode
        == 0
    )
    run = hybrid_nbody.open_run(folder / "first")
    arrays = {"position": run.positions(0), "velocity": run.velocities(0), "mass": run.mass[:]}
    np.savez(folder / "bodies.npz", **arrays)
    table = np.column_stack([arrays["position"], arrays["velocity"], arrays["mass"]])
    np.savetxt(
        folder / "bodies.csv",
        table,
        delimiter=",",
        header="x,y,z,vx,vy,vz,m",
        comments="",
        fmt="%.17g",
    )
    for name in ("bodies.npz", "bodies.csv"):
        option = f"bodies={{kind: file, path: {name}}}"
        result = call(folder, "job.yaml", "--overwrite", "--set", option)
        assert result.returncode == 0, result.stderr
        again = hybrid_nbody.open_run(folder / "out")
        np.testing.assert_array_equal(again.positions(-1), run.positions(-1))


def test_a_name_that_is_too_long_is_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for command in ("info", "plot", "movie", "report"):
        assert cli.main([command, "x" * 300]) in (2, 4)
        said = capsys.readouterr().err
        assert said.startswith("hybrid_nbody: error: ")
        assert said.count("\n") == 1


@pytest.mark.parametrize("command", ["check a.yaml", "square 9 4 cpu -i 9", "plot a"])
def test_ctrl_c_ends_a_command_in_a_line(command):
    """Of one that uses MPI, or not, and while the command line is still read."""
    for place in ("hybrid_nbody.cli.main._call", "hybrid_nbody.cli.main.parser"):
        code = f"""
import sys
from unittest.mock import patch
from hybrid_nbody.cli.main import main
with patch("{place}", side_effect=KeyboardInterrupt):
    sys.exit(main({command.split()}))
"""
        result = run_fast(["-c", code])
        assert (result.returncode, result.stderr) == (75, "hybrid_nbody: stopped by Ctrl-C\n")
