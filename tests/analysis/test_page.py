"""The page of a report in a real browser: mouse, fingers, keys, a phone's width, dark mode."""

import base64
import io
import json

import numpy as np
import pytest
from PIL import Image
from support.browser import CHROMIUM, Browser
from support.presented import make_report

from hybrid_nbody.analysis import report

RENDERERS = pytest.mark.parametrize("webgl", [True, False], ids=["webgl", "canvas"])

LOG = """\
2026-01-02 03:05:05    rank 0    a-node-with-a-long-name  CPU, 1 thread, of a kind with a long name
2026-01-02 03:05:06  where the time went
  force             3.000 s   75.0%
  a phase with an uncommonly long name 1.000 s   25.0%
  total             4.000 s
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if CHROMIUM is None:
        pytest.skip("no chromium on the PATH")
    with Browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture
def page(browser, monkeypatch):
    """Return a function that opens the page of a run, which must not say or fetch anything."""
    tabs = []

    def opened(folder, pictures=False, **options):
        if not pictures:  # they take long, and few tests look at them
            monkeypatch.setattr(report, "_pictures", lambda *_: "")
        path = make_report(folder).resolve()
        tab = browser.open(f"file://{path}", **options)
        tabs.append((tab, f"file://{path}"))
        return tab

    yield opened
    for tab, address in tabs:
        assert tab.messages() == []
        assert {one for one in tab.requests() if not one.startswith("data:")} == {address}
        tab.close()


@pytest.fixture
def cloud(write_run):
    points = np.random.default_rng(3).normal(size=(300, 3))
    return write_run(positions=[points + [step / 5, 0, 0] for step in range(3)])


@pytest.fixture
def orbits(write_run):
    """A run of two bodies on a circle, 20 frames."""
    angle = np.linspace(0, 3, 20)
    one = np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=-1)
    return write_run(positions=np.stack([one, -one], axis=1), title="Orbits")


def pixels(tab):
    """Return what the window shows: (height, width, 3) int."""
    return np.asarray(Image.open(io.BytesIO(tab.picture())).convert("RGB")).astype(int)


def numbers(tab, *names):
    seen = tab.seen()
    return [float(seen[name]) for name in names]


# --- the mouse ------------------------------------------------------------------------------------


@RENDERERS
def test_the_mouse_turns_moves_and_enlarges(cloud, page, webgl):
    tab = page(cloud, webgl=webgl)
    start = tab.seen()
    assert start["renderer"] == ("webgl" if webgl else "canvas")
    assert (start["yaw"], start["pitch"], start["zoom"]) == ("0.600", "0.350", "1.000")
    assert 200 < int(start["drawn"]) <= 300
    before = pixels(tab)
    tab.drag(150, 30)
    assert numbers(tab, "yaw", "pitch", "x", "y") == [1.6, 0.55, 0, 0]
    assert (pixels(tab) != before).any(axis=2).sum() > 300
    tab.drag(56, -28, shift=True)
    half = tab.value("document.getElementById('view').clientHeight") / 2
    moved = [1.6, 56 / half, 28 / half]
    assert numbers(tab, "yaw", "x", "y") == pytest.approx(moved, abs=1e-3)
    tab.wheel(-300)
    tab.wait_for("document.getElementById('view').dataset.zoom !== '1.000'")
    assert numbers(tab, "zoom") == pytest.approx([np.exp(0.5)], abs=1e-3)


def test_the_slider_and_play(cloud, page):
    tab = page(cloud)
    assert (tab.seen()["frame"], tab.value("clock.textContent")) == ("2", "time 1")
    frame = tab.value("(({x, y, height}) => [x, y + height / 2])(frame.getBoundingClientRect())")
    mouse = {"x": frame[0] + 3, "y": frame[1], "button": "left", "buttons": 1, "clickCount": 1}
    tab.call("Input.dispatchMouseEvent", type="mousePressed", **mouse)
    tab.call("Input.dispatchMouseEvent", type="mouseReleased", **mouse)
    assert (tab.seen()["frame"], tab.value("clock.textContent")) == ("0", "time 0")
    tab.value("document.getElementById('play').click()")
    tab.wait_for("document.getElementById('view').dataset.frame === '2'")


# --- keys -----------------------------------------------------------------------------------------


def test_keys_turn_move_enlarge_and_step(cloud, page):
    tab = page(cloud)
    tab.key("ArrowLeft")
    assert tab.seen()["yaw"] == "0.600"  # the view has not been chosen
    tab.drag(0, 0)
    tab.key("ArrowLeft")
    tab.key("ArrowDown")
    assert numbers(tab, "yaw", "pitch") == [0.5, 0.45]
    tab.key("ArrowRight", shift=True)
    assert numbers(tab, "x", "y") == [0.1, 0]
    tab.key("+")
    assert numbers(tab, "zoom") == [1.2]
    tab.key("0")
    assert numbers(tab, "yaw", "pitch", "zoom", "x") == [0.6, 0.35, 1, 0]
    for key, frame in (("Home", "0"), (".", "1"), ("End", "2"), (",", "1")):
        tab.key(key)
        assert tab.seen()["frame"] == frame


@RENDERERS
def test_trails(orbits, page, webgl):
    tab = page(orbits, webgl=webgl)
    tab.middle()
    assert tab.seen()["trails"] == "true"
    with_trails = pixels(tab)
    tab.drag(0, 0)
    tab.key("t")
    assert tab.seen()["trails"] == "false"
    inside = np.s_[300:500, 200:600]  # neither the ring around what is chosen nor the button
    changed = (pixels(tab)[inside] != with_trails[inside]).any(axis=2).sum()
    assert changed > 150  # the paths are about so many pixels long


# --- what is written around -----------------------------------------------------------------------


def test_axes_scale_and_legend(write_run, page):
    bodies = [{"kind": "plummer", "n": 30, "name": "<near>"}, {"kind": "plummer", "n": 30}]
    points = np.random.default_rng(3).normal(size=(2, 50, 3))  # with the ids 10 to 59
    tab = page(write_run(positions=points, config=json.dumps({"bodies": bodies})))
    names = tab.value("[...legend.children].map((entry) => entry.textContent)")
    assert names == ["<near>", "1 plummer"]
    (scale,) = numbers(tab, "scale")
    assert numbers(tab, "ticks")[0] >= 6
    written = tab.value(
        "over.getContext('2d').getImageData(0, 0, over.width, over.height).data"
        ".filter((value, i) => i % 4 == 3 && value).length"
    )
    assert written > 500
    tab.drag(0, 0)
    for _ in range(8):
        tab.key("+")
    assert 0 < numbers(tab, "scale")[0] < scale  # a shorter length fills the bar


@RENDERERS
def test_a_surface(write_fluid, page, webgl):
    tab = page(write_fluid(), webgl=webgl)
    scene = json.loads(tab.value("document.getElementById('scene').textContent"))
    corners = np.frombuffer(base64.b64decode(scene["frames"][1][1]), "<u2")
    seen = tab.seen()
    assert int(seen["drawn"]) == len(corners) // 3 > 100
    assert tab.value("trails.hidden")
    tab.middle()
    blue = (pixels(tab) @ [-1, 0, 1] > 40).sum()
    assert blue > 1000


# --- a phone, and the dark ------------------------------------------------------------------------


def test_fingers_on_a_phone(write_run, page):
    config = "title: Test\nbodies: {kind: file, path: " + "a_long_folder/" * 12 + "b.csv}\n"
    folder = write_run(title="A_title_without_spaces_that_is_long" * 2, config=config)
    (folder / "log.txt").write_text(LOG)
    tab = page(folder, pictures=True, width=390, height=844, phone=True)
    assert tab.value("document.documentElement.scrollWidth") == 390
    x, y = tab.middle()
    tab.touch("Start", (x - 30, y), (x + 30, y))
    tab.touch("Move", (x - 60, y + 20), (x + 60, y + 20))
    tab.touch("End")
    half = tab.value("document.getElementById('view').clientHeight") / 2
    zoom, down, yaw = numbers(tab, "zoom", "y", "yaw")
    assert zoom == pytest.approx(2, abs=0.01)
    assert down < -15 / half
    assert yaw == 0.6
    tab.touch("Start", (x, y))
    tab.touch("Move", (x + 75, y))
    tab.touch("End")
    assert numbers(tab, "yaw") == [1.1]


@RENDERERS
def test_dark_mode(cloud, page, webgl):
    light, dark = (pixels(page(cloud, dark=dark, webgl=webgl)) for dark in (False, True))
    assert np.median(light) == 255
    assert np.median(dark) < 40
