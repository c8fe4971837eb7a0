"""Pictures have the right size and show the data."""

import subprocess
import sys
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from PIL import Image
from support.presented import figure_of, plot_run

from hybrid_nbody.analysis.panels import density_at, view_of
from hybrid_nbody.analysis.style import BODY_COLOURS, ENERGY_COLOURS, label, our_look, power_of_ten
from hybrid_nbody.errors import InputError
from hybrid_nbody.files.run import open_run
from hybrid_nbody.nbody.figures import tracks

DPI = 50

pytestmark = pytest.mark.usefixtures("no_warnings")


@pytest.fixture
def cluster(write_run):
    """A run of 300 bodies in a ball, one of them ejected."""
    points = np.random.default_rng(3).normal(size=(2, 300, 3))
    points[:, 17] = [900, 0, 0]
    return write_run(positions=points)


def pixels(path):
    return np.asarray(Image.open(path).convert("RGB")).astype(int)


def number_of(colour, picture):
    """Count the pixels of a colour such as ``#0072B2``."""
    wanted = [int(colour[index : index + 2], 16) for index in (1, 3, 5)]
    return int((np.abs(picture - wanted).max(axis=2) < 8).sum())


# --- what is written where ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bodies", "kinds"),
    [
        (4, ["energies", "snapshot", "tracks", "tracks-3d"]),
        (40, ["energies", "snapshot", "lagrangian"]),
    ],
)
def test_by_default_all_that_fits_goes_into_the_runs_directory(write_run, bodies, kinds):
    written = plot_run(write_run(bodies=bodies), dpi=DPI)
    assert written == [Path.cwd() / f"out/{kind}.png" for kind in kinds]
    names = {path.name for path in Path("out").iterdir()}
    assert names == {f"{kind}.png" for kind in kinds} | {"trajectory.h5"}


def test_what_is_left_out_is_said_with_the_reason(write_run, refused):
    lines = []
    write_run(bodies=40, frames=1)
    refused(InputError, plot_run, "out", output="pictures", say=lines.append)
    assert lines == []  # what is not drawn at all is not said to be left out
    written = plot_run("out", dpi=DPI, say=lines.append)
    assert [path.stem for path in written] == ["energies", "snapshot"]
    assert lines == [
        "no tracks: too many bodies (40); tracks are drawn of at most 32",
        "no tracks-3d: too many bodies (40); tracks are drawn of at most 32",
        "no lagrangian: a single frame",
        "no profiles: 40 bodies are too few; it takes 300",
        "no activity: the frames hold no activity map",
    ]


@pytest.mark.parametrize(
    ("kind", "bodies", "dpi"),
    [
        ("energies", 3, 80),
        ("snapshot", 4, 50),
        ("snapshot", 40, 50),
        ("tracks", 3, 50),
        ("overview", 40, 60),
    ],
)
def test_size_and_content(write_run, kind, bodies, dpi):
    write_run(bodies=bodies)
    (path,) = plot_run("out", kind, "picture.png", dpi=dpi)
    picture = pixels(path)
    assert path == Path("picture.png")
    assert picture.shape[1] == 7.2 * dpi
    assert 0.3 * picture.shape[1] < picture.shape[0] < 0.65 * picture.shape[1]
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 20
    # nothing is cut off above and below
    assert number_of("#ffffff", picture[[0, -1]]) == 2 * picture.shape[1]
    assert number_of("#ffffff", picture[:, [0, -1]]) == 2 * picture.shape[0]


@pytest.mark.parametrize(
    ("suffix", "start"), [(".pdf", b"%PDF"), (".svg", b"<?xml"), (".PNG", b"\x89PNG")]
)
def test_formats(write_run, suffix, start):
    write_run()
    (path,) = plot_run("out", "energies", f"picture{suffix}", dpi=DPI)
    assert path.read_bytes().startswith(start)


def test_into_a_directory(write_run, in_folder):
    write_run()
    (in_folder / "paper").mkdir()
    assert plot_run("out", "energies", "paper", dpi=DPI) == [Path("paper/energies.png")]


# --- what they show -------------------------------------------------------------------------------


def test_energies_are_there_in_their_colours(write_run):
    picture = pixels(plot_run(write_run(), "energies", dpi=100)[0])
    for colour in ENERGY_COLOURS.values():
        assert number_of(colour, picture) > 300


@pytest.mark.parametrize("kind", ["energies", "overview"])
def test_labels_of_neighbours_do_not_meet(write_run, kind):
    with open_run(write_run()) as run, our_look():
        figure = figure_of("nbody", kind)(run)
        figure.draw_without_rendering()
    above, below = (axes.yaxis.label.get_window_extent() for axes in figure.axes[:2])
    assert below.y1 < above.y0


def lines_of(figure, panel):
    return {line.get_label(): line.get_xydata() for line in figure.axes[panel].lines}


def test_energies_are_those_of_the_run(write_run):
    with open_run(write_run(rows=9)) as run:
        figure, found = figure_of("nbody", "energies")(run), run.diagnostics
        lines = lines_of(figure, 0)
        assert list(lines) == ["kinetic", "potential", "total"]
        for name, drawn in lines.items():
            np.testing.assert_array_equal(
                drawn, np.column_stack([found.time, found[f"{name}_energy"]])
            )
        error = figure.axes[1].lines[-1].get_xydata()
        np.testing.assert_allclose(
            error, np.column_stack([found.time, found.relative_energy_error * 1e6]), rtol=1e-12
        )
        assert figure.axes[1].get_ylabel() == "relative error ($10^{-6}$)"


def test_tracks_are_those_of_the_bodies(write_run):
    with open_run(write_run(frames=6)) as run:
        figure = figure_of("nbody", "tracks")(run, 4)
        for panel, plane in enumerate([(0, 1), (0, 2), (1, 2)]):
            paths = [
                line.get_xydata() for line in figure.axes[panel].lines if len(line.get_xydata()) > 1
            ]
            np.testing.assert_array_equal(
                paths, run.positions(slice(0, 5))[:, :, plane].swapaxes(0, 1)
            )
            assert figure.axes[panel].get_aspect() == 1
        assert [text.get_text() for text in figure.legends[0].get_texts()] == [
            f"body {name}" for name in run.id
        ]


def test_tracks_of_a_long_run_are_thinned_evenly_and_end_where_the_bodies_are(
    write_run, monkeypatch
):
    monkeypatch.setattr(tracks, "TRACK_POINTS", 10)
    with open_run(write_run(frames=36)) as run:
        found = tracks.tracks_of(run, -1)
        np.testing.assert_array_equal(found[:, 0, 0] / 100, [0, 4, 8, 12, 16, 20, 24, 28, 32, 35])


def test_tracks_show_each_body_in_its_colour(write_run):
    picture = pixels(plot_run(write_run(), "tracks", dpi=100)[0])
    for colour in BODY_COLOURS[:4]:
        assert number_of(colour, picture) > 30


@pytest.mark.parametrize("bodies", [300, 60_000])
def test_a_snapshot_shows_every_body_but_the_ejected_ones(write_run, bodies):
    points = np.random.default_rng(3).uniform(-1, 1, size=(1, bodies, 3))
    points[0, 17] = [900, 0, 0]
    with open_run(write_run(positions=points)) as run:
        figure = figure_of("nbody", "snapshot")(run)
    assert figure.get_suptitle() == f"Test, time 0, {bodies} bodies, 1 outside the picture"
    for axes in figure.axes[:3]:
        assert np.abs([*axes.get_xlim(), *axes.get_ylim()]).max() < 1.2
        assert axes.get_aspect() == 1
        if bodies == 300:
            assert len(axes.collections[0].get_offsets()) == bodies - 1
        else:
            area = (np.diff(axes.get_xlim())[0] / axes.images[0].get_array().shape[0]) ** 2
            assert axes.images[0].get_array().sum() * area == pytest.approx(bodies - 1)


@pytest.mark.parametrize("bodies", [3, 300])
def test_bodies_in_a_plane_are_drawn_in_it_alone(write_run, bodies):
    points = np.random.default_rng(3).uniform(size=(1, bodies, 3))
    points[..., 2] = 0
    with open_run(write_run(positions=points)) as run:
        axes, *others = figure_of("nbody", "snapshot")(run).axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x (length)", "y (length)")
    assert [one.get_xlabel() for one in others] == [""] * len(others)  # the colour bar at most
    assert len(axes.collections[0].get_offsets()) == bodies


def test_a_snapshot_of_an_earlier_frame(cluster):
    early, late = (
        plot_run(cluster, "snapshot", f"{frame}.png", frame=frame, dpi=DPI)[0] for frame in (0, -1)
    )
    assert early.read_bytes() != late.read_bytes()
    again = plot_run(cluster, "snapshot", "again.png", frame=1, dpi=DPI)[0]
    assert again.read_bytes() == late.read_bytes()


def test_an_overview_shows_energies_and_bodies(cluster, write_run):
    with open_run(cluster) as run:
        panels = figure_of("nbody", "overview")(run).axes
        assert len(panels[0].lines) == 3
        assert len(panels[2].collections[0].get_offsets()) == 299
    with open_run(write_run("few")) as run:
        assert len(figure_of("nbody", "overview")(run).axes[2].lines) == 3 * 4


def test_the_view_of_known_sets():
    random = np.random.default_rng(1)
    ball = random.normal(size=(4000, 3))
    ball /= np.linalg.norm(ball, axis=1)[:, None] * random.random((4000, 1)) ** (-1 / 3)
    assert view_of(ball, "m").contains(ball).all()
    plummer = (
        ball
        / np.linalg.norm(ball, axis=1)[:, None]
        / np.sqrt(random.random((4000, 1)) ** (-2 / 3) - 1)
    )
    assert 0.94 < view_of(plummer, "m").contains(plummer).mean() < 0.99
    # of two, each counts
    assert view_of(np.array([[0, 0, 0], [1000, 0, 0.0]]), "m").half == pytest.approx(600)


def test_density_counts_bodies_per_area():
    points = np.random.default_rng(1).uniform(-1, 1, size=(40_000, 3))
    density = density_at(points, view_of(points, "m"), (0, 1))
    # 40,000 on 4 square metres, and each counts itself
    assert np.median(density) == pytest.approx(10_800, rel=0.02)


# --- odd data -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["snapshot", "overview"])
def test_a_run_of_one_frame_and_one_row(write_run, kind):
    assert plot_run(write_run(frames=1, rows=1), kind, dpi=DPI)


@pytest.mark.parametrize(
    ("bodies", "position"), [(1, 0.0), (3, np.nan), (40, 0.0), (40, 1e12), (40, np.nan)]
)
def test_bodies_on_one_spot_or_nowhere(write_run, bodies, position):
    assert plot_run(write_run(positions=np.full((2, bodies, 3), position)), "overview", dpi=DPI)


@pytest.mark.parametrize("values", [[np.nan] * 5, [1e300] * 5, [0, 1e-300, 0, 0, np.inf]])
def test_energies_out_of_the_ordinary(write_run, values):
    quantities = ["kinetic_energy", "potential_energy", "total_energy", "relative_energy_error"]
    assert plot_run(write_run(diagnostics=dict.fromkeys(quantities, values)), "energies", dpi=DPI)


def test_a_title_is_no_formula(write_run):
    plot_run(write_run(title=r"cost: $\frac{ 5$ and _more_ ^this"), "overview", dpi=DPI)


@pytest.mark.parametrize(
    ("values", "power"),
    [
        ([0.25, -0.5], 0),
        ([1.5e11], 11),
        ([-7.9e-7, 1e-9], -7),
        ([4999], 0),
        ([5000], 3),
        ([0], 0),
        ([np.nan], 0),
    ],
)
def test_powers_of_ten(values, power):
    assert power_of_ten(values) == power


def test_labels():
    assert label("x", "length") == "x (length)"
    assert label("x", "m", 11) == "x ($10^{11}$ m)"
    assert label("energy", "mass length^2 / time^2") == "energy\n(mass length$^{2}$ / time$^{2}$)"
    assert label("relative error", "1", -6) == "relative error ($10^{-6}$)"
    assert label("time", "time") == label("time", "1") == label("time") == "time"


# --- the user's settings --------------------------------------------------------------------------


def test_the_users_settings_neither_matter_nor_change(write_run):
    write_run()
    (plain,) = plot_run("out", "overview", "plain.png", dpi=DPI)
    with matplotlib.rc_context(
        {"font.size": 20, "figure.facecolor": "black", "lines.linewidth": 9}
    ):
        before = dict(matplotlib.rcParams)
        (other,) = plot_run("out", "overview", "other.png", dpi=DPI)
        assert dict(matplotlib.rcParams) == before
    assert plain.read_bytes() == other.read_bytes()


def test_no_window_and_no_pyplot(write_run):
    write_run()
    code = (
        "import sys, matplotlib; from hybrid_nbody.analysis.plots import PictureOptions, plot_run;"
        "from hybrid_nbody.running.models import MODELS;"
        "plot_run('out', options=PictureOptions('overview', dpi=50), models=MODELS);"
        "print('matplotlib.pyplot' in sys.modules, matplotlib.rcParams._get_backend_or_none())"
    )
    environment = {"PATH": "", "MPLBACKEND": "", "PYTHONPATH": ":".join(filter(None, sys.path))}
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment
    )
    assert run.stdout == "False None\n", run.stderr
