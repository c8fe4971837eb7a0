"""A long job shows its progress after each part, from the first to the last."""

import io
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from support.presented import export_run, make_report, plot_run

from hybrid_nbody import progress
from hybrid_nbody.analysis import report, volume
from hybrid_nbody.analysis.compare import compare
from hybrid_nbody.analysis.export import source
from hybrid_nbody.cli.main import main
from hybrid_nbody.fluid.figures import surface

HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"
"""What a terminal takes to hide its cursor, and to show it again."""

COMMANDS = {
    "plot": "plot out",
    "report": "report out --output a.html",
    "compare": "compare out out --output a.png",
    "export": "export out --format npz --frame all --output a.npz",
    "movie": "movie out --output a.gif",
}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(report, "DPI", 20)


@pytest.fixture
def calls():
    """Return a list whose method `tell` is told the progress."""

    class Calls(list):
        def tell(self, *numbers):
            self.append(numbers)

    return Calls()


@pytest.fixture
def on_a_terminal(monkeypatch):
    """Return a function that runs a command and returns its exit code and the terminal's output."""

    def run(command):
        stream = io.StringIO()
        stream.isatty = lambda: True
        for name, value in {"TERM": "xterm", "COLUMNS": "80", "LINES": "24"}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr("sys.stderr", stream)
        return main(command.split()), stream.getvalue()

    return run


def rising(total):
    """Return what is told of a job of so many parts."""
    return [(done, total) for done in range(1, total + 1)]


# --- what is counted ------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "frames", "parts"), [("lagrangian", 3, 4), ("snapshot", 1, 1)])
def test_plot_counts_pictures_and_the_frames_of_radii(write_run, calls, kind, frames, parts):
    plot_run(write_run(frames=frames, bodies=12), kind, dpi=20, progress=calls.tell)
    assert calls == rising(parts)


def test_plot_counts_all_kinds(write_run, calls):
    written = plot_run(write_run(frames=2, bodies=12), dpi=20, progress=calls.tell)
    assert calls == rising(len(written) + 2)


@pytest.mark.parametrize(("frames", "parts"), [(3, 3 + 5 + 3), (1, 1 + 4)])
def test_report_counts_its_view_and_its_pictures(write_run, calls, frames, parts):
    make_report(write_run(frames=frames, bodies=12), progress=calls.tell)
    assert calls == rising(parts)


def test_report_counts_a_fluid_once_even_if_its_surface_is_made_coarser(
    write_fluid, calls, monkeypatch
):
    monkeypatch.setattr(surface, "TRIANGLES", 600)
    make_report(write_fluid(frames=2), progress=calls.tell)
    assert calls == rising(2 + 3)


def test_report_without_frames_counts_what_there_is(write_run, calls):
    make_report(write_run(frames=0), progress=calls.tell)
    assert calls == rising(1)  # the energies


@pytest.mark.parametrize("frames", [1, 3])
def test_compare_counts_frames_once_for_all_fields(write_run, calls, frames):
    compare(write_run("a", frames=frames), write_run("b", frames=3), calls.tell)
    assert calls == rising(frames)


@pytest.mark.parametrize(
    ("name", "frame", "fields"),
    [
        ("a.npz", "all", 3),
        ("a.vtkhdf", "all", 2),
        ("a.npz", -1, 3),
        ("a.hdf5", 0, 2),
        ("a.csv", 1, 2),
    ],
)
def test_export_counts_what_a_format_holds(write_run, calls, name, frame, fields):
    folder = write_run(more={"activity/map": np.ones((3, 4, 4))})
    format = {"hdf5": "gadget"}.get(name[2:], name[2:])
    export_run(folder, format, name, frame, progress=calls.tell)
    assert calls == rising(fields * (3 if frame == "all" else 1))


@pytest.mark.parametrize("format", ["npz", "vtkhdf"])
def test_export_counts_the_blocks_of_a_large_frame(write_fluid, calls, monkeypatch, format):
    monkeypatch.setattr(source, "BLOCK_BYTES", 1)
    monkeypatch.setattr(volume, "BLOCK_BYTES", 1)
    export_run(
        write_fluid(frames=2, cells=(12, 16, 8)), format, f"a.{format}", "all", progress=calls.tell
    )
    assert calls == rising(2 * 2 * 8)  # planes of z


# --- what is shown --------------------------------------------------------------------------------


@pytest.mark.parametrize("frames", [1, 3])
def test_a_bar_on_a_terminal(write_run, on_a_terminal, capsys, frames):
    write_run(frames=frames)
    code, shown = on_a_terminal(COMMANDS["compare"])
    assert code == 0
    assert f"frame {frames}/{frames} " in shown
    assert shown.rindex(SHOW) > shown.rindex(HIDE)
    assert capsys.readouterr().out.endswith("a.png\n")


def test_no_bar_in_a_pipe(write_run, monkeypatch, capsys):
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: 0.0))
    write_run(frames=25)
    assert main(COMMANDS["export"].split()) == 0
    assert capsys.readouterr() == (
        "a.npz\n",
        "".join(f"part {5 * n}/50 ({10 * n}%)  0 s left\n" for n in range(1, 11)),
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_ctrl_c_leaves_no_file_and_shows_the_cursor(
    write_run, in_folder, monkeypatch, on_a_terminal, command
):
    class Stopped(progress.BarProgress):
        def update(self, done, total, details=""):
            super().update(done, total, details)
            raise KeyboardInterrupt

    write_run(bodies=12)
    monkeypatch.setattr(progress, "BarProgress", Stopped)
    before = sorted(in_folder.rglob("*"))
    code, shown = on_a_terminal(COMMANDS[command])
    assert code == 75
    assert sorted(in_folder.rglob("*")) == before
    assert shown.rindex(SHOW) > shown.rindex(HIDE)
    assert shown.endswith("hybrid_nbody: stopped by Ctrl-C\n")


class Unheard(io.StringIO):
    """A stream that nobody reads any more."""

    def __init__(self, terminal):
        super().__init__()
        self.isatty = lambda: terminal

    def write(self, text):
        raise BrokenPipeError


@pytest.mark.parametrize(
    "stream", [None, Unheard(False), Unheard(True)], ids=["none", "pipe", "terminal"]
)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_job_goes_on_when_nobody_hears_of_its_progress(
    write_run, in_folder, monkeypatch, capsys, command, stream
):
    write_run(bodies=12)
    monkeypatch.setattr(sys, "stderr", stream)
    assert main(COMMANDS[command].split()) == 0
    written = capsys.readouterr().out.split()[-1]
    assert (in_folder / written).stat().st_size > 0
