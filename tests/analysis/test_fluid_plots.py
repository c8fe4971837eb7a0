"""Pictures of a fluid show its planes upright; what cannot be drawn is refused in one line."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from support.presented import figure_of, plot_run

from hybrid_nbody.analysis import volume
from hybrid_nbody.analysis.panels import colour_norm, round_values
from hybrid_nbody.errors import InputError
from hybrid_nbody.files.run import open_run

DPI = 50
KINDS = ["diagnostics", "slices", "projection"]
CELLS = (12, 16, 8)

pytestmark = pytest.mark.usefixtures("no_warnings")


def numbered(cells=CELLS, frames=2):
    """Return a density that encodes frame and cell: 1000 t + 100 z + 10 y + x, (T, nz, ny, nx)."""
    t, z, y, x = np.ogrid[:frames, : cells[2], : cells[1], : cells[0]]
    return (1000 * t + 100 * z + 10 * y + x).astype("f4")


def images_of(figure):
    return [np.asarray(axes.images[0].get_array()) for axes in figure.axes[:3]]


# --- what is written ------------------------------------------------------------------------------


def test_by_default_all_that_fits_goes_into_the_runs_directory(write_fluid):
    assert plot_run(write_fluid(), dpi=DPI) == [Path.cwd() / f"smoke/{kind}.png" for kind in KINDS]
    chosen = plot_run(write_fluid("chosen", planes=[1, 4]), dpi=DPI)
    assert [path.stem for path in chosen] == KINDS[:2]  # there is nothing to look through
    without = plot_run(write_fluid("without", fields=("velocity",)), dpi=DPI)
    assert [path.stem for path in without] == KINDS[:2]  # the speed in place of the density


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cells", [CELLS, (40, 6, 6), (6, 40, 6), (3, 3, 3)])
def test_size_and_content(write_fluid, kind, cells):
    (path,) = plot_run(write_fluid(cells=cells, rows=30), kind, "picture.png", dpi=DPI)
    picture = np.asarray(Image.open(path).convert("RGB"))
    assert picture.shape[1] == 7.2 * DPI
    assert 0.2 * picture.shape[1] < picture.shape[0] <= picture.shape[1]
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 20
    assert (picture[[0, -1]] == 255).all()  # nothing is cut off above and below
    assert (picture[:, [0, -1]] == 255).all()


# --- what they show -------------------------------------------------------------------------------


def test_slices_go_through_the_middle_and_stand_upright(write_fluid):
    values = numbered()
    with open_run(write_fluid(density=values)) as run:
        figure = figure_of("fluid", "slices")(run, 1)
    xy, xz, zy = images_of(figure)
    np.testing.assert_array_equal(xy, values[1, 3])  # rows y, columns x
    np.testing.assert_array_equal(xz, values[1, :, 7])
    np.testing.assert_array_equal(zy, values[1, :, :, 5].T)
    assert [axes.get_xlabel() for axes in figure.axes[:3]] == [
        "x (length)",
        "x (length)",
        "z (length)",
    ]
    assert [axes.get_ylabel() for axes in figure.axes[:3]] == [
        "y (length)",
        "z (length)",
        "y (length)",
    ]
    assert [axes.get_title() for axes in figure.axes[:3]] == ["z = 0.219", "y = 0.469", "x = 0.344"]
    for axes, (right, top) in zip(figure.axes[:3], [(0.75, 1), (0.75, 0.5), (0.5, 1)], strict=True):
        assert (*axes.get_xlim(), *axes.get_ylim()) == (0, right, 0, top)
        assert tuple(axes.images[0].get_extent()) == (0, right, 0, top)
        assert axes.get_aspect() == 1


def test_arrows_show_the_velocity_within_the_plane(write_fluid):
    flow = np.zeros((1, 8, 16, 12, 3), dtype="f4")
    flow[..., :] = (3, 4, -5)
    with open_run(write_fluid(frames=1, velocity=flow)) as run:
        figure = figure_of("fluid", "slices")(run)
        assert "arrows up to 6.4 length / time" in figure.get_suptitle()  # hypot(4, 5)
        for axes, (across, up) in zip(figure.axes[:3], [(3, 4), (3, -5), (-5, 4)], strict=True):
            arrows = axes.collections[0]
            np.testing.assert_allclose(arrows.V / arrows.U, up / across, rtol=1e-6)
            assert np.all(np.sign(arrows.U) == np.sign(across))
            assert len(arrows.U) == axes.images[0].get_array().size


def test_a_fluid_at_rest_has_no_arrows(write_fluid):
    for name, options in {
        "rest": {"velocity": np.zeros((1, 8, 16, 12, 3))},
        "none": {"fields": ["density"]},
    }.items():
        with open_run(write_fluid(name, frames=1, **options)) as run:
            figure = figure_of("fluid", "slices")(run)
        assert not any(axes.collections for axes in figure.axes[:3])
        assert figure.get_suptitle() == "Smoke, time 0, 12 x 16 x 8 cells"


def test_chosen_planes_are_drawn_themselves(write_fluid):
    values = numbered()
    with open_run(write_fluid(density=values, planes=[6, 0, 2, 3, 7])) as run:
        figure = figure_of("fluid", "slices")(run, 0)
    assert [axes.get_title() for axes in figure.axes[:3]] == [
        "z = 0.0312",
        "z = 0.219",
        "z = 0.469",
    ]


@pytest.mark.parametrize("block_bytes", [1, 4000, 1 << 20])
def test_projections_are_integrals_along_the_line_of_sight(write_fluid, monkeypatch, block_bytes):
    monkeypatch.setattr(volume, "BLOCK_BYTES", block_bytes)
    values = numbered()[1].astype("f8") / 16  # the edge of a cell
    with open_run(write_fluid(density=numbered())) as run:
        along_z, along_y, along_x = images_of(figure_of("fluid", "projection")(run))
    np.testing.assert_allclose(along_z, values.sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(along_y, values.sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(along_x, values.sum(axis=2).T, rtol=1e-12)


def test_a_stride_keeps_positions_and_totals(write_fluid):
    even = np.ones((1, 8, 16, 12), dtype="f4")
    with open_run(write_fluid(frames=1, density=even, stride=3)) as run:
        found = volume.volume_of(run, "fluid/density")
        assert [len(indices) for indices in found.stored] == [4, 6, 3]
        np.testing.assert_allclose(found.centres(0), [0.5 / 16, 3.5 / 16, 6.5 / 16, 9.5 / 16])
        edges = zip(volume.columns(run, "fluid/density", 0), (0.75, 1.0, 0.5), strict=True)
        for column, length in edges:
            np.testing.assert_allclose(column, length, rtol=1e-12)


def test_diagnostics_are_those_of_the_run(write_fluid):
    with open_run(write_fluid(rows=9)) as run:
        figure, found = figure_of("fluid", "diagnostics")(run), run.diagnostics
        assert [axes.get_ylabel().split("\n")[0].split(" (")[0] for axes in figure.axes] == [
            "total density",
            "kinetic energy",
            "largest speed",
            "CFL number",
            "divergence",
            "iterations per solve",
        ]
        np.testing.assert_array_equal(figure.axes[0].lines[0].get_ydata(), found.total_density)
        before, after = figure.axes[4].lines
        np.testing.assert_array_equal(before.get_ydata()[1:], found.divergence_before[1:])
        np.testing.assert_array_equal(after.get_ydata()[1:], found.divergence_after[1:])
        assert np.isnan(before.get_ydata()[0])  # the fluid was at rest
        assert figure.axes[4].get_yscale() == "log"


@pytest.mark.parametrize(("low", "high"), [(0, 8.0), (-3, 8), (-5, -1), (0, 0), (2, 2), (0, 1e-30)])
def test_colours_are_those_of_the_values_and_ticks_lie_within(low, high):
    norm = colour_norm([np.array([low, high], dtype="f4")])
    assert norm.vmin == np.float32(min(low, 0))
    assert norm.vmax >= np.float32(high)
    assert norm.vmax > norm.vmin
    ticks = round_values(norm)
    assert 0 in ticks
    assert ticks == sorted(ticks)
    assert norm.vmin <= ticks[0] <= ticks[-1] <= norm.vmax


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf, -2.0])
def test_densities_out_of_the_ordinary(write_fluid, value):
    folder = write_fluid(frames=1, density=np.full((1, 8, 16, 12), value, dtype="f4"))
    for kind in ("slices", "projection"):
        assert plot_run(folder, kind, dpi=DPI)


def test_diagnostics_of_one_row(write_fluid):
    assert plot_run(write_fluid(rows=1), "diagnostics", dpi=DPI)


# --- refusals -------------------------------------------------------------------------------------


def test_what_a_fluid_does_not_hold(write_fluid, write_run, refused):
    write_fluid()
    for kind in ("slices", "projection"):
        assert refused(InputError, plot_run, "smoke", kind, frame=2) == (
            "frame 2: smoke/trajectory.h5 has 2 frames, 0 to 1 or -2 to -1"
        )
    assert refused(InputError, plot_run, "smoke", "tracks") == (
        "smoke/trajectory.h5: no picture of kind 'tracks' of a run of model 'fluid'; there are "
        "diagnostics, slices, streamlines, projection"
    )
    write_fluid(planes=[2, 5])
    assert refused(InputError, plot_run, "smoke", "projection") == (
        "smoke/trajectory.h5: the frames hold a few planes only (output.planes); nothing to "
        "look through"
    )
    write_fluid(fields=["velocity"])
    assert refused(InputError, plot_run, "smoke", "projection") == (
        "smoke/trajectory.h5: no density in the frames of this run of model 'fluid'"
    )
    write_run()
    for kind in ("slices", "diagnostics"):
        assert refused(InputError, plot_run, "out", kind).startswith(
            f"out/trajectory.h5: no picture of kind '{kind}' of a run of model 'nbody'; there are "
        )


def test_nothing_to_draw_yet(write_fluid, refused):
    write_fluid(frames=0, rows=0)
    assert refused(InputError, plot_run, "smoke") == (
        "smoke/trajectory.h5: nothing to plot yet, neither diagnostics nor frames"
    )
    assert "no complete frame" in refused(InputError, plot_run, "smoke", "slices")


def test_frames_that_do_not_fit_their_configuration(write_fluid, refused):
    write_fluid(density=np.zeros((2, 8, 20, 12)))
    assert "do not fit the configuration" in refused(InputError, plot_run, "smoke", "slices")
