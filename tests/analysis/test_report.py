"""A report holds the run and loads nothing; its view works with WebGL and without."""

import base64
import json
import re

import h5py
import numpy as np
from support.presented import make_report

from hybrid_nbody.analysis import scene3d
from hybrid_nbody.errors import FileError, InputError
from hybrid_nbody.files.log import read_log
from hybrid_nbody.files.run import open_run
from hybrid_nbody.fluid.figures import surface
from hybrid_nbody.nbody.figures import points as points_view

LOG = """\
2026-01-02 03:04:05  backend auto chose cpu: no GPU can be used
2026-01-02 03:04:05    rank 0    old                  CPU, 1 thread                4 bodies
2026-01-02 03:04:05  where the time went
  force             8.000 s   80.0%
  total            10.000 s
2026-01-02 03:05:05  resumed
2026-01-02 03:05:05  backend auto chose cpu: no GPU can be used
2026-01-02 03:05:05    rank 0    <node>               CPU, 1 thread                2 bodies
2026-01-02 03:05:05    rank 1    <node>               CPU, 1 thread                2 bodies
2026-01-02 03:05:05  warning: dt is <long>
2026-01-02 03:05:06  warning: dt is <long>
2026-01-02 03:05:06  where the time went
  force             3.000 s   75.0%
  rest              1.000 s   25.0%
  total             4.000 s
2026-01-02 03:05:06  4 steps
"""


def numbers(text):
    return np.frombuffer(base64.b64decode(text), "<u2").reshape(-1, 3).astype(int)


# --- the page -------------------------------------------------------------------------------------


def test_a_page_holds_the_run_and_loads_nothing(write_run):
    folder = write_run(
        title="a < b & <script>alert(1)</script>", config="title: <script>\ntime: {dt: 1}\n"
    )
    (folder / "log.txt").write_text(LOG)
    lines = []
    path = make_report(folder, say=lines.append)
    page = path.read_text()
    assert path == folder / "report.html"
    assert "<title>a &lt; b &amp; &lt;script&gt;alert(1)" in page
    assert "title: &lt;script&gt;" in page
    assert re.findall(r'(?:src|href)="(?!data:)[^"]*"|url\(|@import|https?://', page) == []
    assert page.count('<img alt="') == page.count('src="data:image/png;base64,') == 4
    assert "<td>total energy</td>" in page
    for text in (
        "rank 1    &lt;node&gt;",
        '<td>force</td><td class="number">3.000 s</td><td class="number">75.0%',
    ):
        assert text in page
    assert page.count("<h2>Warnings</h2>\n<ul>\n<li>dt is &lt;long&gt;</li>\n</ul>") == 1
    assert "8.000 s" not in page  # of the part before the last
    assert [line.split(":")[0] for line in lines] == ["no lagrangian", "no profiles", "no activity"]


def test_the_warnings_of_a_quantity_are_one(write_run):
    """The first beyond its limit and the last, of which the worst is shown."""
    texts = [f"warning: energy is {value}, beyond 0.001: halve it" for value in (0.002, -0.3, 0.1)]
    other = "warning: drift is 2, beyond 1: stop"
    folder = write_run()
    (folder / "log.txt").write_text("\n".join([*texts, "warning: dt is long", other]))
    page = make_report(folder).read_text()
    items = re.findall("<li>(.*?)</li>", page)
    assert items == [
        "energy is -0.3, beyond 0.001: halve it",
        "dt is long",
        "drift is 2, beyond 1: stop",
    ]


def test_what_is_missing_is_left_out_with_the_reason(write_run):
    lines = []
    page = make_report(write_run(frames=0), say=lines.append).read_text()
    assert lines[0] == "no view in space: no frames of bodies"
    assert lines[-1].startswith("no table of where the time went: ")
    assert lines[-1].endswith("out/log.txt: No such file or directory")
    assert "<canvas" not in page
    assert "<h2>Warnings" not in page
    assert "<h2>Diagnostics</h2>" in page


def test_a_run_that_still_goes_on_has_no_table_of_times_yet(write_run):
    lines = []
    (write_run(bodies=1) / "log.txt").write_text("resuming\n")
    make_report("out", say=lines.append)
    assert lines[-1] == (
        "no table of where the time went: the log has none; the run is still running, or was killed"
    )


def test_a_log_of_something_else(in_folder):
    (in_folder / "log.txt").write_bytes(
        b"\xff\x00 nothing of ours\nwhere the time went\nsomething else\n"
    )
    found = read_log("log.txt")
    assert (found.machine, found.shares, found.reason) == ([], [], "")


def test_where_reports_cannot_go(write_run, refused):
    write_run()
    assert refused(InputError, make_report, "out", "report.pdf") == (
        "report.pdf: neither an existing directory nor a file ending in .html or .htm"
    )
    assert refused(FileError, make_report, "out", "nowhere/report.html") == (
        "nowhere/report.html: cannot write the report (no such directory: nowhere)"
    )


# --- the scene ------------------------------------------------------------------------------------


def test_points_are_where_the_bodies_are(write_run):
    with open_run(write_run(frames=4, bodies=5)) as run:
        scene = json.loads(json.dumps(points_view.points_data(run)))
        assert scene["times"] == [0, 0.5, 1, 1.5]
        first, last = (numbers(scene["frames"][frame]) for frame in (0, 3))
        moved = (last - first) / scene3d.STEPS
        step = run.positions(3) - run.positions(0)
        width = step[0, 0] / moved[0, 0]
        np.testing.assert_allclose(moved * width, step, atol=2 * width / scene3d.STEPS)
        assert len(scene["colours"]) == 5


def test_frames_and_points_are_bounded(write_run, monkeypatch):
    monkeypatch.setattr(points_view, "FRAMES", 3)
    monkeypatch.setattr(points_view, "POINTS", 20)
    points = np.random.default_rng(1).normal(size=(9, 50, 3))
    points[4, 7] = np.nan
    with open_run(write_run(positions=points)) as run:
        scene = points_view.points_data(run)
    assert scene["times"] == [0, 2, 4]
    assert [len(numbers(frame)) for frame in scene["frames"]] == [20] * 3
    assert scene["caption"].startswith("20 of 50 bodies")


def test_a_body_that_is_nowhere_is_marked(write_run):
    points = np.random.default_rng(1).normal(size=(1, 50, 3))
    points[0, 7], points[0, 8] = np.nan, 1e6
    with open_run(write_run(positions=points)) as run:
        found = numbers(points_view.points_data(run)["frames"][0])
    assert (found[7:9] == scene3d.STEPS + 1).all()
    assert (np.delete(found, [7, 8], axis=0) <= scene3d.STEPS).all()


def test_the_surface_of_a_fluid_is_bounded(write_fluid, monkeypatch):
    with open_run(write_fluid(frames=2)) as run:
        fine = surface.surface_data(run)
        monkeypatch.setattr(surface, "TRIANGLES", 600)
        coarse = surface.surface_data(run)
    assert fine["geometry"] == "surface"
    assert fine["box"] == [0.75, 1.0, 0.5]
    vertices, triangles = (numbers(text) for text in fine["frames"][1])
    assert triangles.max() < len(vertices)
    assert (vertices.max(axis=0) <= np.array(fine["box"]) * scene3d.STEPS + 1).all()
    assert sum(len(numbers(frame[1])) for frame in coarse["frames"]) < len(triangles)


def test_a_damaged_run_gives_no_report(write_run, refused):
    folder = write_run()
    with h5py.File(folder / "trajectory.h5", "r+") as file:
        file.attrs["format"] = "something else"
    assert refused(FileError, make_report, "out") == (
        "out/trajectory.h5: an HDF5 file, but not one that hybrid_nbody wrote"
    )
    assert not (folder / "report.html").exists()
