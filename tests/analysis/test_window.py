"""The window of bodies over their map: when there can be one, and how long it goes on."""

import itertools

import numpy as np
import pytest
from matplotlib import pyplot

from hybrid_nbody.analysis.presentation import WindowFrame
from hybrid_nbody.analysis.window import can_open
from hybrid_nbody.nbody.figures import window


@pytest.fixture(autouse=True)
def no_real_window():
    pyplot.switch_backend("agg")


def frames():
    """Yield one body that goes right, on a map of two by two cells, without end."""
    for step in itertools.count():
        position = np.array([[0.1 * step, 0.5, 0.0]])
        activity = np.full((2, 2), float(step))
        fields = {"bodies/position": position, "activity/map": activity}
        yield WindowFrame(0.01 * step, fields)


def test_no_window_without_a_display(monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    assert not can_open()


@pytest.mark.parametrize(
    ("backend", "found"), [("agg", False), ("tkagg", True), ("module://no_such_toolkit", False)]
)
def test_a_window_needs_a_toolkit(monkeypatch, backend, found):
    def switch(name):
        if name.startswith("module://"):
            raise ImportError(name)

    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr("matplotlib.get_backend", lambda: backend)
    monkeypatch.setattr(pyplot, "switch_backend", switch)
    assert can_open() is found


def test_the_window_shows_frames_until_it_is_closed(monkeypatch):
    shown = []

    def pause(seconds):
        axes = pyplot.gcf().axes[0]
        (image,), (dots,) = axes.images, axes.collections
        shown.append(
            (axes.get_title(loc="left"), float(dots.get_offsets()[0, 0]), image.get_clim())
        )
        if len(shown) == 2:
            pyplot.close("all")

    monkeypatch.setattr(pyplot, "pause", pause)
    window.show(frames(), "one body")
    assert shown == [("one body, time 0.01", 0.1, (0, 1)), ("one body, time 0.02", 0.2, (0, 2))]
    assert not pyplot.get_fignums()


def test_ctrl_c_closes_the_window(monkeypatch):
    def pause(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(pyplot, "pause", pause)
    window.show(frames(), "one body")
    assert not pyplot.get_fignums()
