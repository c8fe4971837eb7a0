"""Numbers beside axes can be read: they are round, and do not touch."""

import pytest

from hybrid_nbody.analysis.style import few_ticks, new_figure, our_look, readable_decades


def numbers(axis):
    """Return what is written beside an axis, and the boxes around it in pixels."""
    low, high = axis.get_view_interval()
    ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    return [tick.label1.get_text() for tick in ticks], [
        tick.label1.get_window_extent() for tick in ticks
    ]


@pytest.mark.parametrize("half", [0.06, 0.6, 7.2, 115.0, 2471.0])
def test_numbers_under_three_planes_do_not_touch(half):
    with our_look():
        figure = new_figure(2.5)
        for axes in figure.subplots(1, 3):
            axes.set(xlim=(-half, half), ylim=(-half, half), aspect="equal")
            few_ticks(axes)
        figure.draw_without_rendering()
        texts, boxes = numbers(figure.axes[0].xaxis)
    assert len(texts) >= 3
    gaps = [right.x0 - left.x1 for left, right in zip(boxes, boxes[1:], strict=False)]
    assert min(gaps) > 4 / 72 * figure.dpi


@pytest.mark.parametrize(
    ("limits", "firsts"),
    [
        ((1.1, 25), ["2"]),
        ((2e-5, 5e-4), [r"2\times10^{-5}", r"5\times10^{-5}"]),
        ((1e-9, 1), ["10^{-8}", "10^{-9}"]),
    ],
)
def test_numbers_of_decades(limits, firsts):
    """Matplotlib 3.11 and older versions begin at different ones."""
    with our_look():
        figure = new_figure(2.5)
        axes = figure.subplots()
        axes.set(yscale="log", ylim=limits)
        readable_decades(axes.yaxis)
        figure.draw_without_rendering()
        texts, _ = numbers(axes.yaxis)
    assert any(first in texts[0] for first in firsts)
    assert 3 <= len(texts) <= 10
